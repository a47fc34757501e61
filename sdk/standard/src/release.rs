//! The differences between releases of Bitcoin Core. The host answers like the release of its node.

/// The default release: on the embedded chain without the setting `release`, and until a node reports its release.
pub const PRESENT: u32 = 29;
/// The oldest release of a node that the host supports: payments need its gettxspendingprevout.
pub const FIRST: u32 = 24;
/// The latest release whose rules are known. They also apply to a node of a later release.
pub const LAST: u32 = 32;

/// The rules that differ between releases. A number is a pull request of bitcoin/bitcoin; a rule without a source was observed on a
/// node. "Until N" includes N.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// The major release.
    pub release: u32,
    /// Whether bumpfee and psbtbumpfee replace transactions that do not signal BIP 125. Since 30, #31953.
    pub replaces_any: bool,
    /// Whether public descriptors show keys in miniscript as written. Otherwise they normalise these keys like all others: with
    /// `h` for hardened steps, and with the public key that follows the last hardened step. Until 30, #31734.
    pub miniscript_as_given: bool,
    /// The start of the reject reason of a block with a failing script. It changed in 30, #33050.
    pub block_script_reason: &'static str,
    /// Whether the embedded chain relays transactions from 0.1 sat/vB (#33106), with up to
    /// [`MAX_DATA_CARRIER`](crate::policy::MAX_DATA_CARRIER) bytes of OP_RETURN outputs in total (#32406), and with up to 2,500
    /// signature operations outside of witnesses (#32521), and whether getmempoolinfo and getmininginfo report these limits. Since 30.
    pub relaxed_policy: bool,
    /// Whether the reject reason `bad-txns-nonstandard-inputs` of the embedded chain has the input and the cause. Since 32, #29060.
    pub names_nonstandard_input: bool,
    /// Whether the lock time of a generated coinbase is the height of the previous block. Since 30, #32155.
    pub coinbase_lock_time: bool,
    /// Whether generated coinbases push a zero after the height. Until 31, #34860.
    pub coinbase_padding: bool,
    /// Whether the mempool has clusters, and getmempoolinfo and entries report limits and chunks. Since 31, #33629.
    pub mempool_clusters: bool,
    /// Whether getblock has `coinbase_tx`. Since 31, #34512.
    pub block_coinbase: bool,
    /// Whether getdeploymentinfo has `script_flags`. Since 31.
    pub script_flags: bool,
    /// Whether getdeploymentinfo lists taproot. Until 31, #26201.
    pub taproot_deployment: bool,
    /// Whether getmempoolinfo has `fullrbf`. Until 31, #34911.
    pub full_rbf: bool,
    /// Whether getblockstats counts a separate byte for the coinbase flag of a coin. Until 31, #31449.
    pub coin_flag_byte: bool,
    /// Whether mempool entries, testmempoolaccept and submitpackage have `vsize_adjusted` and `vsize_bip141`. Since 32,
    /// #32800.
    pub adjusted_sizes: bool,
    /// Whether submitpackage, if it rejects a package, also lists the transactions that it did not validate. Since 31, #33427.
    pub names_unvalidated: bool,
    /// Whether submitpackage takes a child without all of its unconfirmed parents. Since 30, #31385.
    pub partial_packages: bool,
    /// Whether getnetworkinfo has the rates at which transactions are sent (#34628), and the protocol version 70017. Since 32.
    pub send_rates: bool,
    /// Whether the host refuses a request whose `jsonrpc` is neither 1.0 nor 2.0. Bitcoin Core refuses it since 28 (#27101), Bitcoin
    /// Knots 29 does not. With rules before 30, the host accepts it for older clients, some of which send a number.
    pub refuses_other_json_rpc: bool,
    /// Whether getwalletinfo has balances. Until 29, #32721.
    pub wallet_info_balances: bool,
    /// Whether getwalletinfo has `paytxfee`. Until 30, #32138.
    pub wallet_info_feerate: bool,
    /// Whether getwalletinfo has `flags`. Since 30, according to the help of the releases.
    pub wallet_info_flags: bool,
    /// Whether listwalletdir has `warnings` for each wallet. Since 30, #32619.
    pub wallet_dir_warnings: bool,
    /// Whether `parent_descs` shows descriptors as listdescriptors does, not as they were imported. Since 30, #32594.
    pub parents_normalized: bool,
    /// Whether a version 3 child of an unconfirmed parent conflicts with the parent's other children. Since 30, #32896.
    pub sibling_conflicts: bool,
    /// Whether the error for a payment without amount and feerate says `non-zero` instead of `non-0`. Since 30, according to its source.
    pub non_zero_in_words: bool,
    /// Whether an input that only `input_weights` names must spend an output of the wallet itself, not any output of its transactions.
    /// Since 30, #27286.
    pub presets_own_only: bool,
    /// Whether gettransaction marks change in `decoded`. Since 31, #32517.
    pub decoded_change: bool,
    /// Whether importdescriptors warns of relative locktimes that consensus does not enforce as written. Since 31, #33135.
    pub warns_of_locktimes: bool,
    /// Whether the error for a payment whose fee exceeds the funds names the fee. Since 31, #25269.
    pub names_missing_fee: bool,
    /// Whether transaction entries have `bip125-replaceable`. Until 31, #34917.
    pub bip125_key: bool,
    /// Whether transaction entries have `alternate_wtxids`. Since 32, #35501.
    pub alternate_wtxids: bool,
    /// Whether getbalances counts the coins that payments outside the mempool spend, and subtracts them in `nonmempool`. Since 32, #33671.
    pub nonmempool_balance: bool,
    /// Whether `fee_reason` names the wallet's choice, not a threshold of the estimator. Since 32, #34075.
    pub wallet_fee_reasons: bool,
    /// Whether the error for a low feerate names the settings that determine the minimum. Since 32, #34640.
    pub names_minimum_settings: bool,
    /// Whether fundrawtransaction takes a boolean in place of its options. Until 31, #35836.
    pub boolean_fund_options: bool,
    /// Whether listreceivedbyaddress and listreceivedbylabel omit addresses that are not the wallet's. Since 32, #35925.
    pub received_of_own_only: bool,
    /// Whether the error of importdescriptors for a narrower range has the code -4 and names the descriptor. Since 32, #34861.
    pub range_refusal_names_descriptor: bool,
    /// Whether combinerawtransaction refuses fewer than two transactions, and transactions that differ in more than signatures. Since 32.
    pub combines_copies_only: bool,
    /// Whether `musig()` is a key in descriptors. Since 30, #31244.
    pub musig: bool,
    /// Whether descriptors with spaces around keys, or with numbers that have a plus sign, are refused. Since 30,
    /// #31603 and #32520.
    pub strict_descriptors: bool,
    /// Whether the error for an empty key in miniscript is `No key provided`. Since 31, #34141.
    pub empty_miniscript_keys: bool,
    /// Whether `unused()` is a descriptor. Since 32, #29136.
    pub unused: bool,
    /// Whether listdescriptors with `private` also lists the descriptors without private keys, and refuses a wallet whose private
    /// keys are disabled. Since 31, #32471.
    pub private_of_mixed: bool,
    /// Whether createwallet and restorewallet refuse the empty name. Since 31, #34269.
    pub refuses_empty_names: bool,
    /// Whether a wallet name with a path component `.` or `..` gets its own error message. Since 32, #34544.
    pub refuses_dot_names: bool,
    /// Whether removeprunedfunds needs the setting `deprecatedrpc`. Since 32, #35605.
    pub deprecates_pruned_funds: bool,
    /// Whether the MuSig2 fields of PSBTs (BIP 373) are read, checked and shown. Otherwise they are fields of unknown types.
    /// Since 30, #31247.
    pub psbt_musig2: bool,
    /// Whether each signature of a PSBT must have the sighash type of its input and the encoding of BIP 66. If so, signing also
    /// stores a non-default sighash type in the PSBT. Since 30, #31622.
    pub psbt_sighashes: bool,
    /// Whether the host reads PSBTs of version 2 (BIP 370), creates them by default, and keeps one origin per extended public key
    /// when it combines PSBTs. The reader's error messages differ, too. Since 32, #21283.
    pub psbt_v2: bool,
    /// Whether PSBTs get the origins of taproot output keys, as well as of internal keys. Since 31, #29675.
    pub output_key_origins: bool,
    /// Whether a PSBT gets the origin of each key of a descriptor wherever a script has the key's hash. Since 30, #31243.
    pub descriptor_key_hashes: bool,
    /// Whether analyzepsbt rounds the feerate of a negative fee down, not towards zero. Since 30, #32750.
    pub rounds_feerates_down: bool,
    /// Whether analyzepsbt needs the previous transaction of a signed taproot input for its estimate, which cannot verify Schnorr
    /// signatures. Since 30, according to its source.
    pub estimate_distrusts_taproot: bool,
    /// The name of the byte reader in Bitcoin Core's error messages. It changed in 31, #34483.
    pub byte_reader: &'static str,
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

/// The rules of 29, which also apply to 24 to 28. Rules that are not listed are false.
fn oldest() -> Rules {
    Rules {
        miniscript_as_given: true,
        block_script_reason: "mandatory-script-verify-flag-failed",
        coinbase_padding: true,
        taproot_deployment: true,
        full_rbf: true,
        coin_flag_byte: true,
        wallet_info_balances: true,
        wallet_info_feerate: true,
        bip125_key: true,
        boolean_fund_options: true,
        byte_reader: "DataStream",
        ..Rules::default()
    }
}

fn since_30() -> Rules {
    Rules {
        replaces_any: true,
        block_script_reason: "block-script-verify-flag-failed",
        relaxed_policy: true,
        partial_packages: true,
        coinbase_lock_time: true,
        refuses_other_json_rpc: true,
        wallet_info_balances: false,
        wallet_info_flags: true,
        wallet_dir_warnings: true,
        parents_normalized: true,
        sibling_conflicts: true,
        non_zero_in_words: true,
        presets_own_only: true,
        musig: true,
        strict_descriptors: true,
        psbt_musig2: true,
        descriptor_key_hashes: true,
        estimate_distrusts_taproot: true,
        rounds_feerates_down: true,
        psbt_sighashes: true,
        ..oldest()
    }
}

fn since_31() -> Rules {
    Rules {
        miniscript_as_given: false,
        mempool_clusters: true,
        block_coinbase: true,
        script_flags: true,
        wallet_info_feerate: false,
        decoded_change: true,
        warns_of_locktimes: true,
        empty_miniscript_keys: true,
        names_missing_fee: true,
        private_of_mixed: true,
        refuses_empty_names: true,
        byte_reader: "SpanReader",
        output_key_origins: true,
        names_unvalidated: true,
        ..since_30()
    }
}

fn since_32() -> Rules {
    Rules {
        coinbase_padding: false,
        taproot_deployment: false,
        full_rbf: false,
        coin_flag_byte: false,
        send_rates: true,
        adjusted_sizes: true,
        names_nonstandard_input: true,
        bip125_key: false,
        alternate_wtxids: true,
        nonmempool_balance: true,
        wallet_fee_reasons: true,
        names_minimum_settings: true,
        boolean_fund_options: false,
        received_of_own_only: true,
        range_refusal_names_descriptor: true,
        combines_copies_only: true,
        unused: true,
        refuses_dot_names: true,
        deprecates_pruned_funds: true,
        psbt_v2: true,
        ..since_31()
    }
}

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

/// The rules of a major release; `None` stands for [`PRESENT`].
pub fn rules(release: Option<u32>) -> Rules {
    let release = release.unwrap_or(PRESENT);
    let rules = match release {
        ..30 => oldest(),
        30 => since_30(),
        31 => since_31(),
        32.. => since_32(),
    };
    Rules { release, ..rules }
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
        for (release, expected) in [
            (None, oldest()),
            (Some(24), oldest()),
            (Some(29), oldest()),
            (Some(30), since_30()),
            (Some(31), since_31()),
            (Some(32), since_32()),
            (Some(33), since_32()),
        ] {
            let release_of = release.unwrap_or(PRESENT);
            assert_eq!(rules(release), Rules { release: release_of, ..expected }, "{release:?}");
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
