//! The differences between releases of Bitcoin Core. The host answers like the release of its node.

/// The release whose rules apply on the embedded chain, and until a node reports its own.
pub const PRESENT: u32 = 29;
/// The first release that the host stands in front of: payments ask its gettxspendingprevout.
pub const FIRST: u32 = 24;
/// The last release whose rules are known. A later node is served by these.
pub const LAST: u32 = 32;

/// The rules that differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Whether bumpfee and psbtbumpfee replace transactions that do not signal BIP 125.
    pub replaces_any: bool,
    /// Whether public descriptors show keys in miniscript as written. Otherwise they show them as all other keys: with
    /// `h` for hardened steps, and with the public key after these.
    pub miniscript_as_given: bool,
}

/// The rules of releases before the table.
const OLDEST: Rules = Rules { replaces_any: false, miniscript_as_given: true };

/// The rules from a release on, newest first.
const TABLE: [(u32, Rules); 2] = [
    // bitcoin/bitcoin#31734.
    (31, Rules { replaces_any: true, miniscript_as_given: false }),
    // bitcoin/bitcoin#31953.
    (30, Rules { replaces_any: true, miniscript_as_given: true }),
];

/// The rules of a major release; `None`: of [`PRESENT`].
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
