//! The differences between releases of Bitcoin Core. The host answers like the release of its node.

/// The default release: on the embedded chain without the setting `release`, and until a node reports its release.
pub const PRESENT: u32 = 29;
/// The oldest release of a node that the host supports: payments need its gettxspendingprevout.
pub const FIRST: u32 = 24;
/// The latest release whose rules are known. They also apply to a node of a later release.
pub const LAST: u32 = 32;

/// Declares [`Rules`] and [`rules`] from the releases in which each rule holds: `since` a release, or `until` a release, which counts.
macro_rules! declare {
    (@holds $release:ident since $first:literal) => { $release >= $first };
    (@holds $release:ident until $last:literal) => { $release <= $last };
    ($($(#[doc = $doc:literal])* $rule:ident: $when:ident $at:literal,)*) => {
        /// The rules that differ between releases. A number is a pull request of bitcoin/bitcoin; a rule without a source was observed
        /// on a node.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Rules {
            /// The major release.
            pub release: u32,
            /// The start of the reject reason of a block with a failing script. It changed in 30, #33050.
            pub block_script_reason: &'static str,
            /// The name of the byte reader in Bitcoin Core's error messages. It changed in 31, #34483.
            pub byte_reader: &'static str,
            $($(#[doc = $doc])* #[doc = concat!(" Holds ", stringify!($when), " ", $at, ".")] pub $rule: bool,)*
        }

        /// The rules of a major release; `None` stands for [`PRESENT`].
        pub fn rules(release: Option<u32>) -> Rules {
            let release = release.unwrap_or(PRESENT);
            let changed = |first, before, after| if release < first { before } else { after };
            Rules {
                release,
                block_script_reason: changed(30, "mandatory-script-verify-flag-failed", "block-script-verify-flag-failed"),
                byte_reader: changed(31, "DataStream", "SpanReader"),
                $($rule: declare!(@holds release $when $at),)*
            }
        }
    };
}

declare! {
    /// Whether bumpfee and psbtbumpfee replace transactions that do not signal BIP 125. #31953.
    replaces_any: since 30,
    /// Whether public descriptors show keys in miniscript as written. Otherwise they normalise these keys like all others: with `h` for
    /// hardened steps, and with the public key that follows the last hardened step. #31734.
    miniscript_as_given: until 30,
    /// Whether the embedded chain relays transactions from 0.1 sat/vB (#33106), with up to
    /// [`MAX_DATA_CARRIER`](crate::policy::MAX_DATA_CARRIER) bytes of OP_RETURN outputs in total (#32406), and with up to 2,500 signature
    /// operations outside of witnesses (#32521), and whether getmempoolinfo and getmininginfo report these limits.
    relaxed_policy: since 30,
    /// Whether the reject reason `bad-txns-nonstandard-inputs` of the embedded chain has the input and the cause. #29060.
    names_nonstandard_input: since 32,
    /// Whether the lock time of a generated coinbase is the height of the previous block. #32155.
    coinbase_lock_time: since 30,
    /// Whether generated coinbases push a zero after the height. #34860.
    coinbase_padding: until 31,
    /// Whether the mempool has clusters, and getmempoolinfo and entries report limits and chunks. #33629.
    mempool_clusters: since 31,
    /// Whether getblock has `coinbase_tx`. #34512.
    block_coinbase: since 31,
    /// Whether getdeploymentinfo has `script_flags`.
    script_flags: since 31,
    /// Whether getdeploymentinfo lists taproot. #26201.
    taproot_deployment: until 31,
    /// Whether getmempoolinfo has `fullrbf`. #34911.
    full_rbf: until 31,
    /// Whether getblockstats counts a separate byte for the coinbase flag of a coin. #31449.
    coin_flag_byte: until 31,
    /// Whether mempool entries, testmempoolaccept and submitpackage have `vsize_adjusted` and `vsize_bip141`. #32800.
    adjusted_sizes: since 32,
    /// Whether submitpackage, if it rejects a package, also lists the transactions that it did not validate. #33427.
    names_unvalidated: since 31,
    /// Whether submitpackage takes a child without all of its unconfirmed parents. #31385.
    partial_packages: since 30,
    /// Whether getnetworkinfo has the rates at which transactions are sent (#34628), and the protocol version 70017.
    send_rates: since 32,
    /// Whether the host refuses a request whose `jsonrpc` is neither 1.0 nor 2.0. Bitcoin Core refuses it since 28 (#27101), Bitcoin Knots
    /// 29 does not. With rules before 30, the host accepts it for older clients, some of which send a number.
    refuses_other_json_rpc: since 30,
    /// Whether getwalletinfo has balances. #32721.
    wallet_info_balances: until 29,
    /// Whether getwalletinfo has `paytxfee`. #32138.
    wallet_info_feerate: until 30,
    /// Whether getwalletinfo has `flags`. According to the help of the releases.
    wallet_info_flags: since 30,
    /// Whether listwalletdir has `warnings` for each wallet. #32619.
    wallet_dir_warnings: since 30,
    /// Whether `parent_descs` shows descriptors as listdescriptors does, not as they were imported. #32594.
    parents_normalized: since 30,
    /// Whether a version 3 child of an unconfirmed parent conflicts with the parent's other children. #32896.
    sibling_conflicts: since 30,
    /// Whether the error for a payment without amount and feerate says `non-zero` instead of `non-0`. According to the source of 30.
    non_zero_in_words: since 30,
    /// Whether an input that only `input_weights` names must spend an output of the wallet itself, not any output of its transactions.
    /// #27286.
    presets_own_only: since 30,
    /// Whether gettransaction marks change in `decoded`. #32517.
    decoded_change: since 31,
    /// Whether importdescriptors warns of relative locktimes that consensus does not enforce as written. #33135.
    warns_of_locktimes: since 31,
    /// Whether the error for a payment whose fee exceeds the funds names the fee. #25269.
    names_missing_fee: since 31,
    /// Whether transaction entries have `bip125-replaceable`. #34917.
    bip125_key: until 31,
    /// Whether transaction entries have `alternate_wtxids`. #35501.
    alternate_wtxids: since 32,
    /// Whether getbalances counts the coins that payments outside the mempool spend, and subtracts them in `nonmempool`. #33671.
    nonmempool_balance: since 32,
    /// Whether `fee_reason` names the wallet's choice, not a threshold of the estimator. #34075.
    wallet_fee_reasons: since 32,
    /// Whether the error for a low feerate names the settings that determine the minimum. #34640.
    names_minimum_settings: since 32,
    /// Whether fundrawtransaction takes a boolean in place of its options. #35836.
    boolean_fund_options: until 31,
    /// Whether listreceivedbyaddress and listreceivedbylabel omit addresses that are not the wallet's. #35925.
    received_of_own_only: since 32,
    /// Whether the error of importdescriptors for a narrower range has the code -4 and names the descriptor. #34861.
    range_refusal_names_descriptor: since 32,
    /// Whether combinerawtransaction refuses fewer than two transactions, and transactions that differ in more than signatures.
    combines_copies_only: since 32,
    /// Whether `musig()` is a key in descriptors. #31244.
    musig: since 30,
    /// Whether descriptors with spaces around keys, or with numbers that have a plus sign, are refused. #31603 and #32520.
    strict_descriptors: since 30,
    /// Whether the error for an empty key in miniscript is `No key provided`. #34141.
    empty_miniscript_keys: since 31,
    /// Whether `unused()` is a descriptor. #29136.
    unused: since 32,
    /// Whether listdescriptors with `private` also lists the descriptors without private keys, and refuses a wallet whose private keys are
    /// disabled. #32471.
    private_of_mixed: since 31,
    /// Whether createwallet and restorewallet refuse the empty name. #34269.
    refuses_empty_names: since 31,
    /// Whether a wallet name with a path component `.` or `..` gets its own error message. #34544.
    refuses_dot_names: since 32,
    /// Whether removeprunedfunds needs the setting `deprecatedrpc`. #35605.
    deprecates_pruned_funds: since 32,
    /// Whether the MuSig2 fields of PSBTs (BIP 373) are read, checked and shown. Otherwise they are fields of unknown types. #31247.
    psbt_musig2: since 30,
    /// Whether each signature of a PSBT must have the sighash type of its input and the encoding of BIP 66. If so, signing also stores a
    /// non-default sighash type in the PSBT. #31622.
    psbt_sighashes: since 30,
    /// Whether the host reads PSBTs of version 2 (BIP 370), creates them by default, and keeps one origin per extended public key when it
    /// combines PSBTs. The reader's error messages differ, too. #21283.
    psbt_v2: since 32,
    /// Whether PSBTs get the origins of taproot output keys, as well as of internal keys. #29675.
    output_key_origins: since 31,
    /// Whether a PSBT gets the origin of each key of a descriptor wherever a script has the key's hash. #31243.
    descriptor_key_hashes: since 30,
    /// Whether analyzepsbt rounds the feerate of a negative fee down, not towards zero. #32750.
    rounds_feerates_down: since 30,
    /// Whether analyzepsbt needs the previous transaction of a signed taproot input for its estimate, which cannot verify Schnorr
    /// signatures. According to the source of 30.
    estimate_distrusts_taproot: since 30,
}

/// Arguments and options that later releases added, with the first release of each: `version` by #32896, `psbt_version` by #21283.
const ARGUMENTS: [(&str, &str, u32); 9] = [
    ("createpsbt", "version", 30),
    ("createrawtransaction", "version", 30),
    ("send", "version", 30),
    ("sendall", "version", 30),
    ("walletcreatefundedpsbt", "version", 30),
    ("converttopsbt", "psbt_version", 32),
    ("createpsbt", "psbt_version", 32),
    ("psbtbumpfee", "psbt_version", 32),
    ("walletcreatefundedpsbt", "psbt_version", 32),
];

/// Methods that Bitcoin Core has removed and the host keeps, each with the first release that lacks it: by #28710, #31250, #32438,
/// #32721, #32944, and settxfee by #32138.
const REMOVED: [(&str, u32); 8] = [
    ("dumpprivkey", 30),
    ("getunconfirmedbalance", 30),
    ("importaddress", 30),
    ("importmulti", 30),
    ("importprivkey", 30),
    ("importpubkey", 30),
    ("upgradewallet", 30),
    ("settxfee", 31),
];

impl Rules {
    /// The rules for a call, from its packed release and features ([`Deprecated::word`]).
    pub fn of_call(word: u32) -> Self {
        let (release, kept) = Deprecated::of_word(word);
        let mut rules = rules(Some(release));
        rules.bip125_key |= kept.keeps("bip125");
        rules.full_rbf |= kept.keeps("fullrbf");
        rules.deprecates_pruned_funds &= !kept.keeps("removeprunedfunds");
        rules
    }

    /// Whether this release's version of a method lacks an argument or option that the host knows.
    pub fn narrows(&self, method: &str) -> bool {
        ARGUMENTS.iter().any(|(of, _, first)| *of == method && self.release < *first)
    }

    /// Whether this release's version of a method lacks this argument or option.
    pub fn lacks(&self, method: &str, argument: &str) -> bool {
        ARGUMENTS.iter().any(|(of, name, first)| (*of, *name) == (method, argument) && self.release < *first)
    }

    /// Whether Bitcoin Core has removed a method that the host keeps.
    pub fn has_removed(&self, method: &str) -> bool {
        REMOVED.iter().any(|(name, first)| *name == method && self.release >= *first)
    }
}

/// The position of the deprecated features in a call's word, above the release.
const DEPRECATED_SHIFT: u32 = 16;

/// The deprecated features that the operator keeps with the setting `deprecatedrpc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deprecated(u32);

impl Deprecated {
    /// The names of the features, in the order of their bits.
    pub const NAMES: [&'static str; 3] = ["removeprunedfunds", "bip125", "fullrbf"];

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

    /// Packs the release and these features into the number that a call carries.
    pub fn word(self, release: u32) -> u32 {
        self.0 << DEPRECATED_SHIFT | release
    }

    /// Unpacks the release and the features from a call's word.
    pub fn of_word(word: u32) -> (u32, Self) {
        (word & ((1 << DEPRECATED_SHIFT) - 1), Self(word >> DEPRECATED_SHIFT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_hold_from_the_release_of_their_row_on() {
        let held = |release| {
            let Rules { wallet_info_balances, musig, full_rbf, unused, .. } = rules(Some(release));
            [wallet_info_balances, musig, full_rbf, unused]
        };
        assert_eq!(held(29), [true, false, true, false]);
        assert_eq!(held(30), [false, true, true, false]);
        assert_eq!(held(31), [false, true, true, false]);
        assert_eq!(held(32), [false, true, false, true]);
        for (release, same) in [(None, 24), (None, 29), (Some(LAST), LAST + 1)] {
            let expected = rules(release);
            assert_eq!(Rules { release: expected.release, ..rules(Some(same)) }, expected, "{release:?}");
        }
        assert!(rules(Some(29)).lacks("send", "version") && !rules(Some(30)).lacks("send", "version"));
    }

    #[test]
    fn a_calls_word_has_the_release_and_the_deprecated_features() {
        let kept = Deprecated::of(&["bip125", "other"]);
        assert!(kept.keeps("bip125") && !kept.keeps("removeprunedfunds") && !kept.keeps("other"));
        assert_eq!(Deprecated::of_word(kept.word(32)), (32, kept));
        assert_eq!(Deprecated::of_word(29), (29, Deprecated::default()));
    }
}
