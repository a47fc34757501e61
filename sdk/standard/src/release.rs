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
    /// The arguments that a method lacks, by the names of both.
    pub lacks: &'static [(&'static str, &'static str)],
    /// Whether the MuSig2 fields of PSBTs (BIP 373) are read, checked and shown. Otherwise they are fields of unknown types.
    /// Since 30, bitcoin/bitcoin#31247.
    pub psbt_musig2: bool,
    /// Whether the signatures of a PSBT have to be of the sighash type of their input, and encoded by BIP 66. Signing then
    /// stores a sighash type other than the default. Since 30, bitcoin/bitcoin#31622.
    pub psbt_sighashes: bool,
    /// Whether PSBTs of version 2 (BIP 370) are read, and made by default. Since 32, bitcoin/bitcoin#21283. With it go rules
    /// that were seen on 31.99 alone: the messages of the reader, one origin for an extended public key when PSBTs are
    /// combined, the origins of all keys of descriptors and of taproot output keys, and the estimates of analyzepsbt.
    pub psbt_v2: bool,
}

/// The rules of releases before the table.
const OLDEST: Rules = Rules {
    replaces_any: false,
    miniscript_as_given: true,
    lacks: &[
        ("createpsbt", "version"),
        ("createrawtransaction", "version"),
        ("send", "version"),
        ("sendall", "version"),
        ("walletcreatefundedpsbt", "version"),
        ("converttopsbt", "psbt_version"),
        ("createpsbt", "psbt_version"),
        ("psbtbumpfee", "psbt_version"),
        ("walletcreatefundedpsbt", "psbt_version"),
    ],
    psbt_musig2: false,
    psbt_sighashes: false,
    psbt_v2: false,
};

const SINCE_30: Rules = Rules {
    // bitcoin/bitcoin#31953.
    replaces_any: true,
    // bitcoin/bitcoin#32896 added `version`.
    lacks: &[
        ("converttopsbt", "psbt_version"),
        ("createpsbt", "psbt_version"),
        ("psbtbumpfee", "psbt_version"),
        ("walletcreatefundedpsbt", "psbt_version"),
    ],
    psbt_musig2: true,
    psbt_sighashes: true,
    ..OLDEST
};
// bitcoin/bitcoin#31734.
const SINCE_31: Rules = Rules { miniscript_as_given: false, ..SINCE_30 };
const SINCE_32: Rules = Rules { lacks: &[], psbt_v2: true, ..SINCE_31 };

impl Rules {
    /// Whether a method lacks an argument, or a member of its options.
    pub fn lacks(&self, method: &str, argument: &str) -> bool {
        self.lacks.contains(&(method, argument))
    }
}

/// The rules from a release on, newest first.
const TABLE: [(u32, Rules); 3] = [(32, SINCE_32), (31, SINCE_31), (30, SINCE_30)];

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
        for (release, replaces_any, miniscript_as_given, psbt_musig2, psbt_v2) in [
            (None, false, true, false, false),
            (Some(24), false, true, false, false),
            (Some(29), false, true, false, false),
            (Some(30), true, true, true, false),
            (Some(31), true, false, true, false),
            (Some(32), true, false, true, true),
        ] {
            let psbt_sighashes = psbt_musig2;
            let found = rules(release);
            let expected = Rules { replaces_any, miniscript_as_given, psbt_musig2, psbt_sighashes, psbt_v2, ..found };
            assert_eq!(found, expected, "{release:?}");
            assert_eq!(found.lacks("createpsbt", "psbt_version"), !psbt_v2, "{release:?}");
        }
    }
}
