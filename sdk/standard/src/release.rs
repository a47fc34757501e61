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
    /// Whether `musig()` is a key in descriptors.
    pub musig: bool,
    /// Whether descriptors with spaces around keys, or with numbers that have a plus sign, are refused.
    pub strict_descriptors: bool,
    /// Whether `unused()` is a descriptor.
    pub unused: bool,
    /// Whether listdescriptors with private keys also lists descriptors without; a wallet without private keys is
    /// refused.
    pub private_of_mixed: bool,
    /// Whether createwallet and restorewallet refuse the empty name.
    pub names_wallets: bool,
    /// Whether the name of a wallet that contains `.` or `..` as a part is refused with a reason of its own.
    pub normal_names: bool,
    /// Whether removeprunedfunds needs the setting `deprecatedrpc`.
    pub deprecates_pruned_funds: bool,
}

/// The rules of releases before the table.
const OLDEST: Rules = Rules {
    replaces_any: false,
    miniscript_as_given: true,
    musig: false,
    strict_descriptors: false,
    unused: false,
    private_of_mixed: false,
    names_wallets: false,
    normal_names: false,
    deprecates_pruned_funds: false,
};
/// bitcoin/bitcoin#31953; #31244; #31603 and #32520.
const THIRTY: Rules = Rules { replaces_any: true, musig: true, strict_descriptors: true, ..OLDEST };
/// bitcoin/bitcoin#31734; #32471; #34269.
const THIRTY_ONE: Rules = Rules { miniscript_as_given: false, private_of_mixed: true, names_wallets: true, ..THIRTY };
/// bitcoin/bitcoin#29136; the others were seen on a build between 31 and 32.
const THIRTY_TWO: Rules = Rules { unused: true, normal_names: true, deprecates_pruned_funds: true, ..THIRTY_ONE };

/// The rules from a release on, newest first.
const TABLE: [(u32, Rules); 3] = [(32, THIRTY_TWO), (31, THIRTY_ONE), (30, THIRTY)];

/// The rules of a major release; `None`: of [`PRESENT`].
pub fn rules(release: Option<u32>) -> Rules {
    let release = release.unwrap_or(PRESENT);
    TABLE.iter().find(|(first, _)| release >= *first).map_or(OLDEST, |(_, rules)| *rules)
}

/// The position of the deprecated features in a call's word, above the release.
const DEPRECATED_SHIFT: u32 = 16;

/// Features that releases have deprecated and the operator keeps, by the setting `deprecatedrpc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deprecated(u32);

impl Deprecated {
    /// The names of the features, in the order of their bits.
    pub const NAMES: [&'static str; 2] = ["removeprunedfunds", "bip125"];

    /// The features with these names; unknown names have no effect.
    pub fn of<S: AsRef<str>>(names: &[S]) -> Self {
        let bit = |(place, name): (usize, &&str)| {
            let given = names.iter().any(|given| given.as_ref() == *name);
            u32::from(given) << place
        };
        Self(Self::NAMES.iter().enumerate().map(bit).sum())
    }

    /// Whether the operator keeps the feature.
    pub fn keeps(self, name: &str) -> bool {
        Self::NAMES.iter().position(|known| *known == name).is_some_and(|place| self.0 >> place & 1 == 1)
    }

    /// The word with which a call carries its release and the features.
    pub fn word(self, release: u32) -> u32 {
        self.0 << DEPRECATED_SHIFT | release
    }

    /// The release and the features of a call's word.
    pub fn of_word(word: u32) -> (u32, Self) {
        (word & ((1 << DEPRECATED_SHIFT) - 1), Self(word >> DEPRECATED_SHIFT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_from_the_release_of_their_row_on() {
        for (release, expected) in [
            (None, OLDEST),
            (Some(24), OLDEST),
            (Some(29), OLDEST),
            (Some(30), THIRTY),
            (Some(31), THIRTY_ONE),
            (Some(32), THIRTY_TWO),
        ] {
            assert_eq!(rules(release), expected, "{release:?}");
        }
    }

    #[test]
    fn a_calls_word_has_the_release_and_the_deprecated_features() {
        let kept = Deprecated::of(&["bip125", "other"]);
        assert!(kept.keeps("bip125") && !kept.keeps("removeprunedfunds") && !kept.keeps("other"));
        assert_eq!(Deprecated::of_word(kept.word(32)), (32, kept));
        assert_eq!(Deprecated::of_word(29), (29, Deprecated::default()));
    }
}
