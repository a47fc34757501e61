//! The errors of the methods on a stub host: their order, codes and messages. `tests/it` checks the answers of a real host.

mod sending;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode::serialize_hex;
use bitcoin::hashes::Hash;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, PubkeyHash, ScriptBuf, Transaction, TxIn, TxOut, Txid, WPubkeyHash};
use outrigger_sdk::FeeRate;
use outrigger_sdk::service::chain::Coin;
use outrigger_sdk::service::wallet::{
    DescriptorInfo, HdKey, Ownership, RescanProgress, ScriptInfo, SolvingData, TxState, WalletCoin, WalletInfo,
    WalletOutput, WalletTransaction,
};
use outrigger_sdk::service::{Chain, Scope};
use outrigger_sdk::testing::{KnownTransaction, StubHost, TestPlugin, WalletState};
use outrigger_sdk::wire::Secret;
use secp256k1::{Secp256k1, SecretKey};
use serde_json::{Value, json};

use crate::WalletPlugin;

const HEIGHT: u32 = 200;

/// A stub host with the wallet `w` at [`HEIGHT`], and the plugin.
struct Fixture {
    host: StubHost,
    plugin: TestPlugin<WalletPlugin>,
}

impl Fixture {
    fn new() -> Self {
        let host = StubHost::new();
        for _ in 0..HEIGHT {
            host.chain.mine(Vec::new());
        }
        let tip = host.chain.tip(Scope::NONE).unwrap();
        host.wallet.set(Some(WalletState::new("w", tip.hash, tip.height, tip.time)));
        let plugin = host.start(json!({}));
        let test = Self { host, plugin };
        test.wallet(|state| state.spending.fallback_feerate = Some(FeeRate::from_sat_per_kvb(1000)));
        test
    }

    fn wallet<T>(&self, body: impl FnOnce(&mut WalletState) -> T) -> T {
        self.host.wallet.with(body).unwrap()
    }

    fn info(&self, body: impl FnOnce(&mut WalletInfo)) {
        self.wallet(|state| body(&mut state.info));
    }

    #[track_caller]
    fn answers(&self, method: &str, arguments: Value, text: &str) {
        assert_eq!(self.plugin.call_json(method, arguments).as_deref(), Ok(text), "{method}");
    }

    #[track_caller]
    fn refuses(&self, rows: &[(&str, Value, i32, &str)]) {
        for (method, arguments, code, message) in rows {
            self.plugin.refuses(method, &[(arguments.clone(), *code, *message)]);
        }
    }

    /// Adds a key and its P2WPKH script to the wallet.
    fn own(&self, number: u8) -> ScriptBuf {
        let (secret, public) = key(number);
        let script = wpkh(number);
        let info = ScriptInfo {
            ownership: Ownership::Spendable,
            solvable: true,
            label: None,
            change: false,
            internal: false,
            timestamp: 1_700_000_000,
            descriptor: "desc#checksum".into(),
            parents: Vec::new(),
            solving: SolvingData { public_keys: vec![public.into()], ..SolvingData::default() },
            origins: Vec::new(),
        };
        self.wallet(|state| {
            state.keys.push(secret);
            state.scripts.insert(script.clone(), info);
        });
        script
    }

    /// Adds the coin `number` to the wallet and to the chain.
    fn fund(&self, script: &ScriptBuf, value: u64, number: u8) -> OutPoint {
        let coin = coin(script, value, number);
        let (outpoint, output) = (coin.outpoint, TxOut { value: coin.value, script_pubkey: script.clone() });
        self.host.chain.add_coin(outpoint, Coin { output, height: 100, coinbase: false });
        self.wallet(|state| state.coins.push(coin));
        outpoint
    }

    /// A wallet with change addresses and eight coins of 0.3 or 1 bitcoin.
    fn rich() -> Self {
        let test = Self::new();
        let script = test.own(1);
        for number in 0..4 {
            test.fund(&script, 100_000_000, 2 * number);
            test.fund(&script, 30_000_000, 2 * number + 1);
        }
        let change = test.own(50);
        test.wallet(|state| state.addresses.extend(vec![change; 9]));
        test
    }
}

fn key(number: u8) -> (SecretKey, Vec<u8>) {
    let secret = SecretKey::from_slice(&[number; 32]).unwrap();
    (secret, secret.public_key(&Secp256k1::new()).serialize().to_vec())
}

fn wpkh(number: u8) -> ScriptBuf {
    ScriptBuf::new_p2wpkh(&WPubkeyHash::hash(&key(number).1))
}

fn address(script: &ScriptBuf) -> String {
    outrigger_sdk::standard::address::from_script(script, bitcoin::Network::Regtest).unwrap()
}

fn confirmed() -> TxState {
    TxState::Confirmed { block: Hash::all_zeros(), height: 100, index: 1, time: 0 }
}

fn coin(script: &ScriptBuf, value: u64, number: u8) -> WalletCoin {
    WalletCoin {
        outpoint: OutPoint::new(Txid::from_byte_array([number + 1; 32]), 0),
        value: Amount::from_sat(value),
        script: script.clone(),
        state: confirmed(),
        coinbase: false,
        ownership: Ownership::Spendable,
        change: false,
        label: None,
        trusted: true,
        from_us: false,
    }
}

const LOCKED: &str = "Error: Please enter the wallet passphrase with walletpassphrase first.";

#[test]
fn methods_that_need_keys_refuse_a_locked_wallet() {
    let (test, to) = (Fixture::new(), address(&wpkh(9)));
    test.info(|info| info.locked = true);
    test.refuses(&[
        ("listdescriptors", json!([true]), -13, LOCKED),
        ("gethdkeys", json!([{"private": true}]), -13, LOCKED),
        ("dumpprivkey", json!(["x"]), -13, LOCKED),
        ("keypoolrefill", json!([]), -13, LOCKED),
        ("sendtoaddress", json!(["garbage", 1]), -13, LOCKED),
        ("sendmany", json!(["", {&to: 0}]), -13, LOCKED),
        ("sendmany", json!(["x", {&to: 0}]), -8, "Dummy value must be set to \"\""),
    ]);
}

#[test]
fn getwalletinfo_shows_locks_and_scans() {
    let test = Fixture::new();
    test.info(|info| {
        (info.encrypted, info.unlocked_until, info.birth_time) = (true, 99, 0);
        info.rescan = Some(RescanProgress { duration: 3, millionths: 250_000 });
    });
    let answer = || test.plugin.call_json("getwalletinfo", json!([])).unwrap();
    assert!(answer().contains(r#""unlocked_until":99,"#));
    assert!(answer().contains(r#""scanning":{"duration":3,"progress":0.25},"descriptors":true"#));
    assert!(!answer().contains("birthtime"));
    test.info(|info| (info.blank, info.birth_time) = (true, 7));
    assert!(answer().contains(r#""blank":true,"birthtime":7,"#), "a blank wallet has a birthtime after an import");
}

#[test]
fn getbalance_and_listunspent_refuse_bad_arguments() {
    let test = Fixture::new();
    let to = address(&wpkh(9));
    let reuse = "wallet does not have the \"avoid reuse\" feature enabled";
    test.refuses(&[
        ("getbalance", json!(["x"]), -32, "dummy first argument must be excluded or set to \"*\"."),
        ("getbalance", json!(["*", 0, false, true]), -4, reuse),
        ("getbalance", json!(["*", 99_999_999_999_i64]), -1, "JSON integer out of range"),
        ("listunspent", json!([1.5]), -1, "JSON integer out of range"),
        ("listunspent", json!([1, 2, ["garbage"]]), -5, "Invalid Bitcoin address: garbage"),
        ("listunspent", json!([1, 2, [5]]), -3, "JSON value of type number is not of expected type string"),
        ("listunspent", json!([1, 2, [to, to]]), -8, &format!("Invalid parameter, duplicated address: {to}")),
        ("listunspent", json!([1, 2, [], true, {"nosuch": 1}]), -3, "Unexpected key nosuch"),
    ]);
    test.info(|info| info.avoid_reuse = true);
    test.answers("getbalance", json!(["*", 0, false, true]), "0.00000000");
}

#[test]
fn listunspent_lists_more_coins_than_fit_into_a_batch() {
    let test = Fixture::new();
    let script = test.own(1);
    let outpoint = |vout: u32| OutPoint { vout, ..coin(&script, 1, 0).outpoint };
    let coins = (0..2500).map(|number| WalletCoin { outpoint: outpoint(number), ..coin(&script, 1, 0) });
    test.wallet(|state| state.coins.extend(coins));
    assert_eq!(test.plugin.call("listunspent", json!([])).unwrap().as_array().unwrap().len(), 2500);
}

#[test]
fn getaddressinfo_and_labels_refuse_bad_arguments() {
    let test = Fixture::new();
    let script = test.own(1);
    let purpose = "Invalid 'purpose' argument, must be a known purpose string, typically 'send', or 'receive'.";
    let base58 = "Invalid checksum or length of Base58 address (P2PKH or P2SH)";
    test.refuses(&[
        ("getaddressinfo", json!(["garbage"]), -5, base58),
        ("setlabel", json!(["garbage", "x"]), -5, "Invalid Bitcoin address"),
        ("setlabel", json!([address(&script), "*"]), -11, "Invalid label name"),
        ("listlabels", json!(["foo"]), -8, purpose),
        ("getaddressesbylabel", json!(["none"]), -11, "No addresses with label none"),
        ("getaddressesbylabel", json!(["*"]), -11, "Invalid label name"),
    ]);
}

#[test]
fn methods_of_a_wallet_refuse_where_none_is_loaded() {
    let test = Fixture::new();
    test.host.wallet.set(None);
    let none = "No wallet is loaded. Load a wallet using loadwallet or create a new one with createwallet. (Note: A default wallet is no longer automatically created)";
    let unnamed = "Either the RPC endpoint wallet or the wallet name parameter must be provided";
    test.refuses(&[("getaddressinfo", json!(["garbage"]), -18, none), ("unloadwallet", json!([]), -8, unnamed)]);
}

#[test]
fn getnewaddress_and_getrawchangeaddress_refuse_bad_arguments_and_missing_keys() {
    let test = Fixture::new();
    let ran_out = "Error: Keypool ran out, please call keypoolrefill first";
    test.refuses(&[
        ("getnewaddress", json!([]), -12, ran_out),
        ("getrawchangeaddress", json!([]), -12, ran_out),
        ("getnewaddress", json!(["*"]), -11, "Invalid label name"),
        ("getnewaddress", json!(["", "nosuch"]), -5, "Unknown address type 'nosuch'"),
        ("getnewaddress", json!(["", "LEGACY"]), -5, "Unknown address type 'LEGACY'"),
        ("keypoolrefill", json!([-1]), -8, "Invalid parameter, expected valid size."),
        ("keypoolrefill", json!([4_294_967_296_u64]), -1, "JSON integer out of range"),
    ]);
    // Missing keys are refused before the arguments are checked.
    let sources = test.wallet(|state| state.info.sources.clone());
    let no_keys = "Error: This wallet has no available keys";
    for method in ["getnewaddress", "getrawchangeaddress"] {
        let internal = method == "getrawchangeaddress";
        test.info(|info| info.sources.retain(|source| source.internal != internal));
        test.refuses(&[(method, json!(["*"]), -4, no_keys)]);
        test.info(|info| {
            info.sources = sources.clone();
            info.sources.iter_mut().for_each(|source| source.available = source.internal != internal);
        });
        test.refuses(&[(method, json!(["nosuch"]), -4, no_keys)]);
        test.info(|info| info.sources = sources.clone());
    }
}

#[test]
fn walletpassphrase_and_encryptwallet_refuse_wrong_states_and_bad_arguments() {
    let test = Fixture::new();
    let unencrypted = |method: &str| format!("Error: running with an unencrypted wallet, but {method} was called.");
    test.refuses(&[
        ("walletlock", json!([]), -15, &unencrypted("walletlock")),
        ("walletpassphrase", json!(["", -1]), -15, &unencrypted("walletpassphrase")),
        ("walletpassphrasechange", json!(["", ""]), -15, &unencrypted("walletpassphrasechange")),
        ("encryptwallet", json!([""]), -8, "passphrase cannot be empty"),
    ]);
    test.info(|info| info.private_keys_enabled = false);
    let nothing = "Error: wallet does not contain private keys, nothing to encrypt.";
    test.refuses(&[("encryptwallet", json!([""]), -16, nothing)]);
    test.info(|info| (info.private_keys_enabled, info.encrypted) = (true, true));
    let encrypted = "Error: running with an encrypted wallet, but encryptwallet was called.";
    test.refuses(&[
        ("encryptwallet", json!([""]), -15, encrypted),
        ("walletpassphrase", json!(["", -1]), -8, "Timeout cannot be negative."),
        ("walletpassphrase", json!(["", 1]), -8, "passphrase cannot be empty"),
        ("walletpassphrase", json!(["x", 1.5]), -1, "JSON integer out of range"),
        ("walletpassphrasechange", json!(["new", ""]), -8, "passphrase cannot be empty"),
        ("walletpassphrasechange", json!(["", "new"]), -8, "passphrase cannot be empty"),
    ]);
}

#[test]
fn walletpassphrase_and_walletpassphrasechange_hint_at_a_null_character_of_a_wrong_passphrase() {
    let test = Fixture::new();
    test.plugin.call("encryptwallet", json!(["se\0cret"])).unwrap();
    let unlocking = "Error: The wallet passphrase entered is incorrect. It contains a null character (ie - a zero byte). If the passphrase was set with a version of this software prior to 25.0, please try again with only the characters up to — but not including — the first null character. If this is successful, please set a new passphrase to avoid this issue in the future.";
    let changing = "Error: The old wallet passphrase entered is incorrect. It contains a null character (ie - a zero byte). If the old passphrase was set with a version of this software prior to 25.0, please try again with only the characters up to — but not including — the first null character.";
    let wrong = "Error: The wallet passphrase entered was incorrect.";
    test.refuses(&[
        ("walletpassphrase", json!(["se\0", 10]), -14, unlocking),
        ("walletpassphrasechange", json!(["se\0", "new"]), -14, changing),
        ("walletpassphrase", json!(["se", 10]), -14, wrong),
        ("walletpassphrasechange", json!(["se", "new"]), -14, wrong),
    ]);
    // The stub host stores the seconds. The plugin caps a longer time.
    test.answers("walletpassphrase", json!(["se\0cret", 200_000_000]), "null");
    test.info(|info| assert_eq!(info.unlocked_until, 100_000_000));
}

#[test]
fn encryptwallet_walletlock_and_walletpassphrasechange_are_refused_during_a_rescan() {
    let test = Fixture::new();
    let message = |action: &str| {
        format!(
            "Error: the wallet is currently being used to rescan the blockchain for related transactions. Please call `abortrescan` before {action}."
        )
    };
    test.info(|info| info.rescan = Some(RescanProgress { duration: 0, millionths: 0 }));
    test.refuses(&[("encryptwallet", json!(["x"]), -4, &message("proceeding"))]);
    test.info(|info| info.encrypted = true);
    test.refuses(&[
        ("walletlock", json!([]), -4, &message("locking the wallet")),
        ("walletpassphrasechange", json!(["a", "b"]), -4, &message("changing the passphrase")),
    ]);
}

const TPUB: &str =
    "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";

#[test]
fn methods_of_keys_refuse_bad_arguments() {
    let test = Fixture::new();
    let which = "Unable to determine which HD key to use from active descriptors. Please specify with 'hdkey'";
    test.refuses(&[("createwalletdescriptor", json!(["legacy"]), -5, which)]);
    let hd_key = HdKey { xpub: TPUB.to_owned(), has_private: true, xprv: None, descriptors: vec![("a".into(), true)] };
    test.wallet(|state| state.hd_keys.push(hd_key));
    let boolean = "JSON value of type number is not of expected type bool";
    let unreadable = "Unable to parse HD key. Please provide a valid xpub";
    let unknown = format!("Private key for {TPUB} is not known");
    let arguments = |script: ScriptBuf| json!([address(&script)]);
    let pkh = ScriptBuf::new_p2pkh(&PubkeyHash::hash(&key(2).1));
    let pkh_unknown = format!("Private key for address {} is not known", address(&pkh));
    let (no_key, taproot) =
        ("Address does not refer to a key", ScriptBuf::from_bytes([&[0x51, 32][..], &[2; 32]].concat()));
    test.refuses(&[
        ("gethdkeys", json!([{"private": 1}]), -3, boolean),
        ("createwalletdescriptor", json!(["x"]), -5, "Unknown address type 'x'"),
        ("createwalletdescriptor", json!(["legacy", {"hdkey": "x"}]), -5, unreadable),
        ("createwalletdescriptor", json!(["legacy", {"hdkey": TPUB}]), -5, &unknown),
        ("dumpprivkey", arguments(taproot), -3, no_key),
        ("dumpprivkey", arguments(wpkh(2).to_p2sh()), -3, no_key),
        ("dumpprivkey", arguments(pkh), -4, &pkh_unknown),
        ("dumpprivkey", json!(["x"]), -5, "Invalid Bitcoin address"),
    ]);
    let versions = r#""wallet_name":"w","previous_version":169900,"current_version":169900"#;
    let message = "Cannot downgrade wallet from version 169900 to version 7. Wallet version unchanged.";
    test.answers("upgradewallet", json!([7]), &format!(r#"{{{versions},"error":"{message}"}}"#));
    let message = "Already at latest version. Wallet version unchanged.";
    test.answers("upgradewallet", json!([]), &format!(r#"{{{versions},"result":"{message}"}}"#));
}

#[test]
fn createwalletdescriptor_refuses_known_descriptors_and_listdescriptors_missing_keys() {
    const TPRV: &str = "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
    let test = Fixture::new();
    let (xpub, xprv) = (TPUB.to_owned(), Some(Secret::new(TPRV.into())));
    let hd_key = HdKey { xpub, has_private: true, xprv, descriptors: vec![("a".into(), true)] };
    test.wallet(|state| state.hd_keys.push(hd_key));
    let added = test.plugin.call("createwalletdescriptor", json!(["bech32m"])).unwrap();
    let added: Vec<String> = serde_json::from_value(added["descs"].clone()).unwrap();
    let known = |text: String| DescriptorInfo {
        text: Secret::new(text),
        timestamp: 7,
        active: true,
        internal: Some(false),
        range: Some((0, 999)),
        next_index: 3,
    };
    test.wallet(|state| state.descriptors = added.into_iter().map(known).collect());
    test.refuses(&[
        ("createwalletdescriptor", json!(["bech32m"]), -4, "Descriptor already exists"),
        // The stub host gives the same text with and without private keys, like a real host that lacks the keys.
        ("listdescriptors", json!([true]), -4, "Can't get descriptor string."),
    ]);
}

#[test]
fn lockunspent_checks_each_output_before_it_reads_the_next() {
    let test = Fixture::new();
    let script = test.own(1);
    let [coin, spent] = [0, 1].map(|number| test.fund(&script, 5000, number));
    for (txid, inputs) in [(coin.txid, vec![]), (spent.txid, vec![]), (Txid::from_byte_array([9; 32]), vec![spent])] {
        let transaction = transaction(txid, inputs, &script);
        let known = KnownTransaction { transaction, unsettled: None, raw: Vec::new() };
        test.wallet(|state| state.transactions.push(known));
    }
    let named = |txid: Txid, vout: i64| json!({"txid": txid, "vout": vout});
    let of = |coin: &OutPoint| named(coin.txid, coin.vout.into());
    let none = Txid::from_byte_array([7; 32]);
    let refused = [
        (json!([5]), -3, "JSON value of type number is not of expected type object"),
        (json!([{}]), -3, "Missing txid"),
        (json!([{"txid": 5}]), -3, "JSON value of type number for field txid is not of expected type string"),
        (json!([{"txid": "ab"}]), -3, "Missing vout"),
        (json!([{"txid": "ab", "vout": 0}]), -8, "txid must be of length 64 (not 2, for 'ab')"),
        (json!([{"txid": none, "vout": 0.5}]), -1, "JSON integer out of range"),
        (json!([named(none, -1)]), -8, "Invalid parameter, vout cannot be negative"),
        (json!([named(none, 0), 5]), -8, "Invalid parameter, unknown transaction"),
        (json!([of(&coin), 5]), -3, "JSON value of type number is not of expected type object"),
        (json!([named(coin.txid, 1)]), -8, "Invalid parameter, vout index out of bounds"),
        (json!([of(&coin), of(&spent)]), -8, "Invalid parameter, expected unspent output"),
    ];
    for (list, code, message) in refused {
        test.refuses(&[("lockunspent", json!([false, list]), code, message)]);
    }
    test.refuses(&[("lockunspent", json!([true, [of(&coin)]]), -8, "Invalid parameter, expected locked output")]);
    test.answers("lockunspent", json!([false, [of(&coin), of(&coin)]]), "true");
    test.refuses(&[("lockunspent", json!([false, [of(&coin)]]), -8, "Invalid parameter, output already locked")]);
}

/// A confirmed transaction of the wallet with one output to `script`.
fn transaction(txid: Txid, inputs: Vec<OutPoint>, script: &ScriptBuf) -> WalletTransaction {
    let output = WalletOutput {
        value: Amount::ONE_SAT,
        script: script.clone(),
        ownership: Ownership::Spendable,
        change: false,
        label: None,
        descriptors: Vec::new(),
    };
    WalletTransaction {
        contested: false,
        txid,
        wtxid: Hash::all_zeros(),
        state: confirmed(),
        order_position: 0,
        time: 0,
        time_received: 0,
        coinbase: false,
        signals: true,
        lock_time: 0,
        total_output: Amount::ZERO,
        debit_spendable: Amount::ZERO,
        debit_watch_only: Amount::ZERO,
        metadata: Vec::new(),
        inputs,
        outputs: vec![output],
    }
}

#[test]
fn restorewallet_refuses_a_missing_file() {
    let test = Fixture::new();
    let missing = json!(["third", "/backups/none.mdb"]);
    test.refuses(&[("restorewallet", missing, -8, "Backup file does not exist")]);
    test.answers("listwallets", json!([]), r#"["w"]"#);
}

#[test]
fn setwalletflag_changes_avoid_reuse_alone() {
    let test = Fixture::new();
    let set = test.plugin.call("setwalletflag", json!(["avoid_reuse"])).unwrap();
    assert_eq!((&set["flag_name"], &set["flag_state"]), (&json!("avoid_reuse"), &json!(true)));
    assert!(set["warnings"].as_str().unwrap().starts_with("You need to rescan the blockchain"));
    test.refuses(&[
        ("setwalletflag", json!(["avoid_reuse", true]), -8, "Wallet flag is already set to true: avoid_reuse"),
        ("setwalletflag", json!(["descriptors"]), -8, "Unknown wallet flag: descriptors"),
    ]);
    test.answers("setwalletflag", json!(["avoid_reuse", false]), r#"{"flag_name":"avoid_reuse","flag_state":false}"#);
    for flag in ["blank", "descriptor_wallet", "key_origin_metadata", "last_hardened_xpub_cached"] {
        test.refuses(&[("setwalletflag", json!([flag]), -8, &format!("Wallet flag is immutable: {flag}"))]);
    }
}

#[test]
fn settxfee_bumpfee_and_simulaterawtransaction_refuse_bad_arguments() {
    let test = Fixture::new();
    let coin = test.fund(&wpkh(1), 5000, 0);
    let spending = |coin: OutPoint| {
        let transaction = Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![TxIn { previous_output: coin, ..TxIn::default() }],
            output: vec![TxOut { value: Amount::ONE_SAT, script_pubkey: wpkh(2) }],
        };
        serialize_hex(&transaction)
    };
    let (known, unknown) = (spending(coin), spending(OutPoint { vout: 7, ..coin }));
    let low = "txfee cannot be less than min relay tx fee (0.00001000 BTC/kvB)";
    let missing = "One or more transaction inputs are missing or have been spent already";
    let twice = "Transaction(s) are spending the same output more than once";
    test.refuses(&[
        ("settxfee", json!(["0.00000999"]), -8, low),
        ("simulaterawtransaction", json!([["zz"]]), -22, "Transaction hex string decoding failure."),
        ("simulaterawtransaction", json!([[unknown]]), -8, missing),
        ("simulaterawtransaction", json!([[known, known]]), -8, twice),
    ]);
    test.info(|info| info.private_keys_enabled = false);
    let keyless = "bumpfee is not available with wallets that have private keys disabled. Use psbtbumpfee instead.";
    test.refuses(&[("bumpfee", json!(["11".repeat(32)]), -4, keyless)]);
}
