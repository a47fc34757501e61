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
const TABLE: [(u32, Rules); 1] = [(30, Rules { replaces_any: true, miniscript_as_given: false })];

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
        for (release, any) in [(None, false), (Some(24), false), (Some(29), false), (Some(30), true), (Some(32), true)]
        {
            assert_eq!(rules(release), Rules { replaces_any: any, miniscript_as_given: !any }, "{release:?}");
        }
    }
}
