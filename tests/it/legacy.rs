//! Wallets with keys (made with `descriptors=false`): what clients of former releases call.

use outrigger_tests::{Client, Host, HostOptions};
use serde_json::{Value, json};

/// A P2WPKH address of regtest that nobody has a key of.
const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// A wallet with keys of this name.
fn wallet(host: &Host, name: &str) -> Client {
    host.client().call("createwallet", json!([name, false, false, "", false, false]));
    host.client().wallet(name)
}

fn text(value: Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn importprivkey_spends_what_dumpprivkey_told_and_importpubkey_watches_it() {
    let host = Host::start();
    let (mut first, mut second) = (wallet(&host, "first"), wallet(&host, "second"));
    let addresses: Vec<String> =
        ["legacy", "p2sh-segwit", "bech32"].map(|kind| text(first.call("getnewaddress", json!(["", kind])))).into();
    for address in &addresses {
        host.client().call("generatetoaddress", json!([1, address]));
    }
    host.client().call("generatetoaddress", json!([100, ADDRESS]));
    for (height, address) in (1..).zip(&addresses) {
        let key = text(first.call("dumpprivkey", json!([address])));
        assert_eq!(second.call("importprivkey", json!([key, "moved"])), Value::Null);
        let received = second.call("listreceivedbyaddress", json!([1, false, false, "", true]));
        assert_eq!(received.as_array().unwrap().len(), height, "{received}");
        assert_eq!(second.call("getaddressinfo", json!([address]))["labels"], json!(["moved"]));
        assert_eq!(text(second.call("dumpprivkey", json!([address]))), key);
    }
    let mut watching = wallet(&host, "watching");
    let key = text(first.call("getaddressinfo", json!([addresses[0]]))["pubkey"].clone());
    watching.call("importpubkey", json!([key, "watched"]));
    let received = watching.call("listreceivedbyaddress", json!([1, false, true, "", true]));
    assert_eq!((&received[0]["address"], &received[0]["involvesWatchonly"]), (&json!(addresses[0]), &json!(true)));
    watching.call("importaddress", json!([addresses[1], "watched", false]));
    let start = watching.call("rescanblockchain", json!([2, 2]));
    assert_eq!(start, json!({"start_height": 2, "stop_height": 2}));
    let received = watching.call("getreceivedbyaddress", json!([addresses[1], 1, true]));
    assert_eq!(received.to_string(), "50.00000000");
    let signed = first.call("signmessage", json!([addresses[0], "hello"]));
    assert_eq!(host.client().call("verifymessage", json!([addresses[0], signed, "hello"])), true);
}

#[test]
fn dumpwallet_is_read_by_importwallet() {
    let host = Host::start();
    let (mut first, mut second) = (wallet(&host, "first"), wallet(&host, "second"));
    let address = text(first.call("getnewaddress", json!(["a label %", "bech32"])));
    host.client().call("generatetoaddress", json!([1, address]));
    host.client().call("generatetoaddress", json!([100, ADDRESS]));
    let other = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
    first.call("importprivkey", json!([other, "one", false]));
    first.call("importaddress", json!(["51", "", false, true]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.txt");
    let file = file.to_str().unwrap();
    assert_eq!(first.call("dumpwallet", json!([file])), json!({"filename": file}));
    let dump = std::fs::read_to_string(file).unwrap();
    let line =
        |wanted: &str| dump.lines().find(|line| line.contains(wanted)).unwrap_or_else(|| panic!("{wanted}: {dump}"));
    let key = text(first.call("dumpprivkey", json!([address])));
    let said = line(&format!("# addr={address} "));
    assert!(said.starts_with(&key) && said.contains(" label=a%20label%20%25 #"), "{said}");
    assert!(said.ends_with("hdkeypath=m/84'/1'/0'/0/0"), "{said}");
    assert!(line(other).contains(" label=one #"));
    line("51 1970-01-01T00:00:01Z script=1");
    assert!(dump.ends_with("\n\n# End of dump\n") && dump.contains(" reserve=1 # addr="));
    let error = first.try_call("dumpwallet", json!([file])).unwrap_err();
    let message = "already exists. If you are sure this is what you want, move it out of the way first";
    assert_eq!((error.code, error.message), (-8, format!("{file} {message}")));
    assert_eq!(second.call("importwallet", json!([file])), Value::Null);
    assert_eq!(second.call("getbalances", json!([]))["mine"], first.call("getbalances", json!([]))["mine"]);
    assert_eq!(text(second.call("dumpprivkey", json!([address]))), key);
    let error = second.try_call("importwallet", json!([folder.path().join("none").to_str()])).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-8, "Cannot open wallet dump file"));
}

#[test]
fn addmultisigaddress_of_own_keys_can_be_spent() {
    let host = Host::start();
    let mut wallet = wallet(&host, "w");
    for kind in ["legacy", "p2sh-segwit", "bech32"] {
        let one = text(wallet.call("getnewaddress", json!(["", "bech32"])));
        let other = text(wallet.call("getnewaddress", json!(["", "legacy"])));
        let other = wallet.call("getaddressinfo", json!([other]))["pubkey"].clone();
        let made = wallet.call("addmultisigaddress", json!([2, [one, other], "shared", kind]));
        let keys = ["address", "redeemScript", "descriptor"];
        assert_eq!(made.as_object().unwrap().keys().collect::<Vec<_>>(), keys);
        let info = wallet.call("getaddressinfo", json!([made["address"]]));
        assert_eq!(
            (&info["ismine"], &info["solvable"], &info["labels"]),
            (&json!(true), &json!(true), &json!(["shared"]))
        );
        assert_eq!(info["desc"], made["descriptor"]);
        host.client().call("generatetoaddress", json!([1, made["address"]]));
    }
    host.client().call("generatetoaddress", json!([100, ADDRESS]));
    let coins = wallet.call("listunspent", json!([]));
    assert_eq!(coins.as_array().unwrap().len(), 3);
    let inputs: Vec<Value> =
        coins.as_array().unwrap().iter().map(|coin| json!({"txid": coin["txid"], "vout": coin["vout"]})).collect();
    let raw = wallet.call("createrawtransaction", json!([inputs, [{ADDRESS: 149.99}]]));
    let signed = wallet.call("signrawtransactionwithwallet", json!([raw]));
    assert_eq!(signed["complete"], true, "{signed}");
    host.client().call("sendrawtransaction", json!([signed["hex"]]));
    for (params, code, message) in [
        (json!([1, ["x"]]), -5, "Invalid address: x"),
        (json!([1, [ADDRESS]]), -5, &*format!("no full public key for address {ADDRESS}")),
        (
            json!([1, [coins[0]["address"]]]),
            -5,
            &*format!("{} does not refer to a key", coins[0]["address"]).replace('"', "'"),
        ),
        (json!([1, [], "", "bech32m"]), -5, "Bech32m multisig addresses cannot be created with legacy wallets"),
        (json!([1, []]), -8, "not enough keys supplied (got 0 keys, but need at least 1 to redeem)"),
        (json!([1, [], "*"]), -11, "Invalid label name"),
    ] {
        let error = wallet.try_call("addmultisigaddress", params.clone()).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (code, message), "{params}");
    }
}

#[test]
fn newkeypool_passes_over_the_addresses_that_were_derived_ahead() {
    let host = Host::start();
    let mut wallet = wallet(&host, "w");
    let before = wallet.call("getnewaddress", json!(["", "bech32"]));
    let path = |wallet: &mut Client, address: &Value| {
        text(wallet.call("getaddressinfo", json!([address]))["hdkeypath"].clone())
    };
    assert!(path(&mut wallet, &before).ends_with("/0/0"));
    assert_eq!(wallet.call("newkeypool", json!([])), Value::Null);
    let after = wallet.call("getnewaddress", json!(["", "bech32"]));
    let index: u32 = path(&mut wallet, &after).rsplit('/').next().unwrap().parse().unwrap();
    assert!(index >= 1000, "{index}");
    let info = wallet.call("getwalletinfo", json!([]));
    assert!(info["keypoolsize"].as_u64().unwrap() >= 999, "{info}");
}

#[test]
fn sethdseed_without_a_new_keypool_uses_up_the_former_addresses_first() {
    let set = vec!["wallet.keypool=5".to_owned()];
    let host = Host::start_with(HostOptions { set, ..HostOptions::default() });
    let mut wallet = wallet(&host, "w");
    wallet.call("getnewaddress", json!(["", "bech32"]));
    let seed = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
    assert_eq!(wallet.call("sethdseed", json!([false, seed])), Value::Null);
    let host = host.restart();
    host.client().call("loadwallet", json!(["w"]));
    let mut wallet = host.client().wallet("w");
    let mut path = |kind: &str| {
        let address = wallet.call("getnewaddress", json!(["", kind]));
        text(wallet.call("getaddressinfo", json!([address]))["hdkeypath"].clone())
    };
    let former: Vec<String> = (1..5).map(|index| format!("m/84h/1h/0h/0/{index}")).collect();
    assert_eq!((1..5).map(|_| path("bech32").replace('\'', "h")).collect::<Vec<_>>(), former);
    let seeded: Vec<String> = (0..3).map(|index| format!("m/0h/0h/{index}h")).collect();
    assert_eq!((0..3).map(|_| path("bech32").replace('\'', "h")).collect::<Vec<_>>(), seeded);
    // Each type has its own addresses ahead.
    assert_eq!(path("legacy").replace('\'', "h"), "m/44h/1h/0h/0/0");
    assert_eq!(wallet.call("newkeypool", json!([])), Value::Null);
    let address = wallet.call("getnewaddress", json!(["", "legacy"]));
    let path = text(wallet.call("getaddressinfo", json!([address]))["hdkeypath"].clone());
    assert_eq!(path.replace('\'', "h"), "m/0h/0h/0h");
}

#[test]
fn sethdseed_derives_the_addresses_of_bitcoinds_legacy_wallets() {
    let host = Host::start();
    let mut wallet = wallet(&host, "w");
    let before = text(wallet.call("getnewaddress", json!(["", "bech32"])));
    let seed = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
    assert_eq!(wallet.call("sethdseed", json!([true, seed])), Value::Null);
    // m/0'/0'/0' below the master key of the seed.
    let master = bitcoin::bip32::Xpriv::new_master(
        bitcoin::Network::Regtest,
        &bitcoin::PrivateKey::from_wif(seed).unwrap().inner.secret_bytes(),
    );
    let descriptor =
        |open: &str, side: u8, close: &str| format!("{open}{}/0h/{side}h/0h{close}", master.as_ref().unwrap());
    for (kind, open, close) in [("legacy", "pkh(", ")"), ("p2sh-segwit", "sh(wpkh(", "))"), ("bech32", "wpkh(", ")")] {
        for (method, side, params) in
            [("getnewaddress", 0, json!(["", kind])), ("getrawchangeaddress", 1, json!([kind]))]
        {
            let info = host.client().call("getdescriptorinfo", json!([descriptor(open, side, close)]));
            let expected = host.client().call(
                "deriveaddresses",
                json!([format!("{}#{}", descriptor(open, side, close), text(info["checksum"].clone()))]),
            );
            assert_eq!(wallet.call(method, params), expected[0], "{kind} {side}");
        }
    }
    assert_eq!(wallet.call("getaddressinfo", json!([before]))["ismine"], true);
    let error = wallet.try_call("sethdseed", json!([true, seed])).unwrap_err();
    let message = "Already have this key (either as an HD seed or as a loose private key)";
    assert_eq!((error.code, error.message.as_str()), (-5, message));
    let error = wallet.try_call("sethdseed", json!([true, "x"])).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-5, "Invalid private key"));
    assert_eq!(wallet.call("sethdseed", json!([])), Value::Null);
}
