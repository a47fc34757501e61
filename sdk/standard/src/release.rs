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
    /// The reason of a block whose scripts fail. Since 30 it names the block, bitcoin/bitcoin#33050.
    pub block_script_reason: &'static str,
    /// Whether the embedded chain relays from 0.1 sat/vB on (bitcoin/bitcoin#33106), OP_RETURN outputs of
    /// [`MAX_DATA_CARRIER`](crate::policy::MAX_DATA_CARRIER) bytes together (#32406), and at most 2,500 signature operations outside
    /// of witnesses (#32521), and tells these limits. Since 30.
    pub relaxed_policy: bool,
    /// Whether generated coinbases are locked to the height before theirs. Since 30, bitcoin/bitcoin#32155.
    pub coinbase_lock_time: bool,
    /// Whether generated coinbases push a zero after the height. Until 30, bitcoin/bitcoin#32420.
    pub coinbase_padding: bool,
    /// Whether the mempool has clusters, whose limits and chunks are told. Since 31, bitcoin/bitcoin#33629.
    pub mempool_clusters: bool,
    /// Whether getblock tells the coinbase. Since 31, bitcoin/bitcoin#34512.
    pub block_coinbase: bool,
    /// Whether getdeploymentinfo tells script flags. Since 31.
    pub script_flags: bool,
    /// Whether getdeploymentinfo tells taproot. Until 31.
    pub taproot_deployment: bool,
    /// Whether getmempoolinfo tells `fullrbf`. Until 31.
    pub full_rbf: bool,
    /// Whether getblockstats counts a byte of its own for the coinbase flag of a coin. Until 31, bitcoin/bitcoin#31449.
    pub coin_flag_byte: bool,
    /// Whether entries of the mempool tell their size with and without signature operations. Since 32.
    pub adjusted_sizes: bool,
    /// Whether entries of transactions tell `bip125-replaceable`. Until 31, bitcoin/bitcoin#34917.
    pub bip125_key: bool,
}

/// The rules of releases before the table.
const OLDEST: Rules = Rules {
    replaces_any: false,
    miniscript_as_given: true,
    block_script_reason: "mandatory-script-verify-flag-failed",
    relaxed_policy: false,
    coinbase_lock_time: false,
    coinbase_padding: true,
    mempool_clusters: false,
    block_coinbase: false,
    script_flags: false,
    taproot_deployment: true,
    full_rbf: true,
    coin_flag_byte: true,
    adjusted_sizes: false,
    bip125_key: true,
};

const SINCE_30: Rules = Rules {
    replaces_any: true,
    block_script_reason: "block-script-verify-flag-failed",
    relaxed_policy: true,
    coinbase_lock_time: true,
    ..OLDEST
};

const SINCE_31: Rules = Rules {
    miniscript_as_given: false,
    coinbase_padding: false,
    mempool_clusters: true,
    block_coinbase: true,
    script_flags: true,
    ..SINCE_30
};

const SINCE_32: Rules = Rules {
    taproot_deployment: false,
    full_rbf: false,
    coin_flag_byte: false,
    adjusted_sizes: true,
    bip125_key: false,
    ..SINCE_31
};

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
        for (release, expected) in [
            (None, OLDEST),
            (Some(24), OLDEST),
            (Some(29), OLDEST),
            (Some(30), SINCE_30),
            (Some(31), SINCE_31),
            (Some(32), SINCE_32),
            (Some(33), SINCE_32),
        ] {
            assert_eq!(rules(release), expected, "{release:?}");
        }
    }
}
