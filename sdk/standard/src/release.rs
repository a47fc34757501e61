//! What differs between releases of Bitcoin Core: one table, from which the host answers as the release that it stands in front of.

/// The release whose rules hold on the embedded chain, and as long as a node has not told its own.
pub const PRESENT: u32 = 29;

/// What a release does in its own way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Whether bumpfee and psbtbumpfee also replace transactions that do not signal it (BIP 125).
    pub replaces_any: bool,
    /// Whether public texts of descriptors show keys within a miniscript as they were given. Else they show them as all others:
    /// with `h` at hardened steps, and with the public key behind these.
    pub miniscript_as_given: bool,
}

/// The rules of the releases before the first one of the table.
const OLDEST: Rules = Rules { replaces_any: false, miniscript_as_given: true };

/// The rules from a release on, the newest first.
const TABLE: [(u32, Rules); 2] = [
    // bitcoin/bitcoin#31734.
    (31, Rules { replaces_any: true, miniscript_as_given: false }),
    // bitcoin/bitcoin#31953.
    (30, Rules { replaces_any: true, miniscript_as_given: true }),
];

/// The rules of a release, by its first number; of none: of the present one.
pub fn rules(release: Option<u32>) -> Rules {
    let release = release.unwrap_or(PRESENT);
    TABLE.iter().find(|(first, _)| release >= *first).map_or(OLDEST, |(_, rules)| *rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_from_the_release_of_their_row_on() {
        for (release, replaces_any, miniscript_as_given) in [
            (None, false, true),
            (Some(24), false, true),
            (Some(29), false, true),
            (Some(30), true, true),
            (Some(31), true, false),
            (Some(32), true, false),
        ] {
            assert_eq!(rules(release), Rules { replaces_any, miniscript_as_given }, "{release:?}");
        }
    }
}
