//! Extended keys without addresses, keys derived from a wallet's key, aggregate keys, and wallets exported without keys; and refusals
//! that releases after 29 changed.

use std::path::Path;

use outrigger_tests::{Client, Host, HostOptions, XPRV, XPUB, groups};
use serde_json::{Value, json};

use super::compared::FOREIGN;
use super::fund;

const OTHER: &str =
    "tpubDC5FSnBiZDMmhiuCmWAYsLwgLYrrT9rAqvTySfuCCrgsWz8wxMXUS9Tb9iVMvcRbvFcAHGkMD5Kx8koh4GquNGNTfohfk7pgjhaPCdXpoba";

/// A host on the embedded chain, even when other tests run in front of a node, whose getdescriptorinfo knows only one release.
fn host(set: &[&str]) -> Host {
    Host::start_with(HostOptions { config: Some(groups("regtest.toml")), ..HostOptions::with(set) })
}

fn import(client: &mut Client, text: &str, active: bool) -> Value {
    let desc = client.with_checksum(text);
    client.call("importdescriptors", json!([[{"desc": desc, "timestamp": "now", "active": active}]]))[0].clone()
}

#[test]
fn keys_descriptors_and_wallets_follow_the_release() {
    for release in 29..=32 {
        // deprecatedrpc keeps deprecated members, but no deprecated methods.
        let host = host(&[format!("release={release}").as_str(), "deprecatedrpc=[\"bip125\"]"]);
        check_descriptors(&mut host.client(), release);
        check_removeprunedfunds(&host, release < 32);
        match release {
            29 => check_names_before_release_32(&mut host.client()),
            30 => check_aggregate_keys(&host),
            32 => {
                check_unused_descriptors(&host);
                check_names_since_release_32(&mut host.client());
            }
            _ => {}
        }
        if [29, 32].contains(&release) {
            check_addhdkey(&host);
        }
    }
    check_removeprunedfunds(&host(&["release=32", "deprecatedrpc=[\"bip125\", \"removeprunedfunds\"]"]), true);
}

/// Every release can add keys without addresses.
fn check_addhdkey(host: &Host) {
    let mut wallet = host.client().create_wallet("added", json!({"blank": true}));
    assert_eq!(wallet.call("addhdkey", json!([XPRV])), json!({"xpub": XPUB}));
    let desc = format!("unused({XPUB})#7rsstqgl");
    let listed = json!([{"xpub": XPUB, "has_private": true, "descriptors": [{"desc": desc, "active": false}]}]);
    assert_eq!(wallet.call("gethdkeys", json!([])), listed);
    assert_eq!(wallet.call("listdescriptors", json!([]))["descriptors"][0]["desc"], desc);
    let info = wallet.call("getwalletinfo", json!([]));
    assert_eq!((&info["blank"], &info["keypoolsize"]), (&json!(true), &json!(0)));
    let created = wallet.call("createwalletdescriptor", json!(["bech32", {"hdkey": XPUB}]));
    assert_eq!(created["descs"].as_array().unwrap().len(), 2);
    let random = wallet.call("addhdkey", json!([]))["xpub"].clone();
    assert_ne!(random, wallet.call("addhdkey", json!([]))["xpub"]);
    assert_eq!(wallet.call("gethdkeys", json!([{"private": true}])).as_array().unwrap().len(), 3);
    for (key, code, message) in [
        (XPRV, -4, "HD key already exists"),
        (OTHER, -5, "Extended public key (xpub) provided, but extended private key (xprv) is required"),
        ("xx", -5, "Could not parse HD key"),
        ("", -5, "Could not parse HD key"),
    ] {
        assert_eq!(wallet.refused("addhdkey", json!([key])), (code, message.into()));
    }
    host.client().call("createwallet", json!(["without-keys", true]));
    let message = "addhdkey is not available for wallets without private keys";
    assert_eq!(host.client().wallet("without-keys").refused("addhdkey", json!([])), (-4, message.into()));
}

#[test]
fn derivehdkey_and_exportwatchonlywallet_work_under_release_29() {
    let (host, folder) = (host(&[]), tempfile::tempdir().unwrap());
    check_derivehdkey(&host);
    // First, since its coins must be the only ones ever mined to the imported key's address.
    check_export_of_imported_keys(&host, &folder.path().join("imported"));
    check_export(&host);
}

/// derivehdkey prefers keys without addresses.
fn check_derivehdkey(host: &Host) {
    let mut wallet = host.new_wallet("derived");
    let described = wallet.call("listdescriptors", json!([]))["descriptors"][0]["desc"].as_str().unwrap().to_owned();
    let derived = wallet.call("derivehdkey", json!(["m/44h/1h/0h"]));
    let key = [&derived["origin"], &derived["xpub"]].map(|part| part.as_str().unwrap()).concat();
    assert!(described.starts_with(&format!("pkh({key}/")), "{described} {key}");
    wallet.call("addhdkey", json!([XPRV]));
    let of_unused = wallet.call("derivehdkey", json!(["87h/1'/0"]));
    assert_eq!(of_unused["origin"], "[0c5f9a1e/87h/1h/0]");
    assert_eq!(of_unused, wallet.call("derivehdkey", json!(["m/87h/1h/0/", {"hdkey": XPUB, "private": false}])));
    let private = wallet.call("derivehdkey", json!({"path": "m/1h", "private": true}));
    let xprv: bitcoin::bip32::Xpriv = private["xprv"].as_str().unwrap().parse().unwrap();
    let xpub = bitcoin::bip32::Xpub::from_priv(&bitcoin::secp256k1::Secp256k1::new(), &xprv);
    assert_eq!(private["xpub"], xpub.to_string());
    let deep = format!("m{}", "/0h".repeat(256));
    for (path, options, code, message) in [
        ("", json!({}), -8, "Derivation path requires at least one hardened step"),
        ("m/1/2", json!({}), -8, "Derivation path requires at least one hardened step"),
        ("/", json!({}), -8, "Invalid BIP32 keypath"),
        ("m//1h", json!({}), -8, "Invalid BIP32 keypath"),
        ("m/+1h", json!({}), -8, "Invalid BIP32 keypath"),
        ("m/2147483648h", json!({}), -8, "Invalid BIP32 keypath"),
        (&deep, json!({}), -8, "Unable to derive HD key at the requested path"),
        ("m/1h", json!({"hdkey": "xx"}), -5, "Unable to parse HD key. Please provide a valid xpub"),
        ("m/1h", json!({"hdkey": OTHER}), -5, "HD key is not used by an active or unused(KEY) descriptor"),
    ] {
        assert_eq!(wallet.refused("derivehdkey", json!([path, options])), (code, message.into()), "{path}");
    }
    wallet.call("addhdkey", json!([]));
    let message = "Unable to determine which HD key to use. Please specify with 'hdkey'";
    assert_eq!(wallet.refused("derivehdkey", json!(["m/1h"])), (-5, message.into()));
    wallet.call("encryptwallet", json!(["secret"]));
    let locked = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    for (method, params) in [("derivehdkey", json!(["m/1h"])), ("addhdkey", json!([]))] {
        assert_eq!(wallet.refused(method, params), (-13, locked.into()));
    }
    wallet.call("walletpassphrase", json!(["secret", 60]));
    assert_eq!(wallet.call("derivehdkey", json!(["87h/1h/0", {"hdkey": XPUB}])), of_unused, "it was not replaced");
    for (name, watch, code, message) in [
        ("nothing-derived", false, -5, "No active or unused(KEY) descriptor found"),
        ("nothing-known", true, -4, "derivehdkey is not available for watch-only wallets"),
    ] {
        host.client().call("createwallet", json!([name, watch, true]));
        assert_eq!(host.client().wallet(name).refused("derivehdkey", json!(["m/1h"])), (code, message.into()));
    }
}

/// Unused descriptors can be imported from release 32 on.
fn check_unused_descriptors(host: &Host) {
    let (mut client, mut wallet) = (host.client(), host.new_wallet("unused"));
    let message = "Cannot import descriptor without private keys to a wallet with private keys enabled";
    assert_eq!(import(&mut wallet, &format!("unused({XPUB})"), false)["error"]["message"], message);
    assert_eq!(import(&mut wallet, &format!("unused({XPRV})"), false), json!({"success": true}));
    let message = "Cannot import an unused() descriptor when its private key is already in the wallet";
    for text in [format!("unused({XPRV})"), format!("unused({XPRV}/1)")] {
        let refused = import(&mut wallet, &text, false);
        assert_eq!(refused["error"], json!({"code": -4, "message": message}), "{text}");
    }
    // Also if an earlier request of the call contains the key.
    let text = client.with_checksum(&format!("unused({XPRV})"));
    let request = json!({"desc": text, "timestamp": "now"});
    let twice = host.new_wallet("twice").call("importdescriptors", json!([[request, request]]));
    assert_eq!((&twice[0]["success"], &twice[1]["error"]["message"]), (&json!(true), &json!(message)));
    client.call("createwallet", json!(["without-unused", true]));
    let refused = import(&mut client.wallet("without-unused"), &format!("unused({XPUB})"), false);
    let message = "Cannot import unused() to wallet without private keys enabled";
    assert_eq!(refused["error"], json!({"code": -4, "message": message}));
    let text = client.with_checksum(&format!("unused({XPUB})"));
    assert_eq!(client.refused("deriveaddresses", json!([text])), (-1, "Unexpected empty result".into()));
}

/// A wallet watches coins of aggregate keys, and does not sign for them.
fn check_aggregate_keys(host: &Host) {
    let mut wallet = host.client().create_wallet("aggregate", json!({"blank": true}));
    let imported = import(&mut wallet, &format!("tr(musig({OTHER},{XPRV})/<0;1>/*)"), true);
    assert_eq!(imported["success"], true, "{imported}");
    let address = wallet.call("getnewaddress", json!(["", "bech32m"]));
    assert_eq!(address, "bcrt1pvprraw88hcc8mudx82fa9y5p72jl5au0yf5tkxwv68f4u4tmceqqvcc7v8");
    let info = wallet.call("getaddressinfo", json!([address]));
    let desc = "tr([19a13145/0/0]1c73178554b83edc095bf1e04fdd9d710039c55c89eb8f19a95af29abecd1def)#ksf7su0c";
    assert_eq!((&info["desc"], &info["ismine"], &info["solvable"]), (&json!(desc), &json!(true), &json!(true)));
    fund(&mut wallet, "bech32m");
    assert_eq!(wallet.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "50.00000000");
    let funded = wallet.call("walletcreatefundedpsbt", json!([[], [{FOREIGN: 1}], 0, {"fee_rate": 5}]));
    assert_eq!(wallet.call("walletprocesspsbt", json!([funded["psbt"]]))["complete"], false);
    let sent = wallet.call("send", json!([{FOREIGN: 1}, null, "unset", 5]));
    assert_eq!((&sent["complete"], &sent["txid"]), (&json!(false), &Value::Null));
    let message = "tr(): musig(): Must contain key expressions";
    assert_eq!(wallet.refused("getdescriptorinfo", json!(["tr(musig())"])), (-5, message.into()));
}

/// A release refuses descriptors of later ones.
fn check_descriptors(client: &mut Client, release: u32) {
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let cases = [
        (29, format!("tr(musig({key}))"), Some(format!("tr(): key 'musig({key})' is not valid"))),
        (29, format!("pkh( {OTHER})"), None),
        (30, format!("pkh( {OTHER})"), Some(format!("pkh(): Key ' {OTHER}' is invalid due to whitespace"))),
        (31, format!("unused({key})"), Some(format!("'unused({key})' is not a valid descriptor function"))),
        (32, format!("unused({key})"), None),
    ];
    for (_, text, refused) in cases.into_iter().filter(|(of, ..)| *of == release) {
        match refused {
            Some(message) => assert_eq!(client.refused("getdescriptorinfo", json!([text])), (-5, message)),
            None => assert_eq!(client.call("getdescriptorinfo", json!([text]))["issolvable"], true),
        }
    }
}

/// The answers that an exported wallet shares with its original. It has no descriptor with the hardened steps.
fn shared_answers(wallet: &mut Client) -> Vec<Value> {
    let entries = |mut listed: Value| {
        for entry in listed.as_array_mut().unwrap() {
            entry.as_object_mut().unwrap().remove("parent_descs");
        }
        listed
    };
    let mut unspent = entries(wallet.call("listunspent", json!([])));
    unspent.as_array_mut().unwrap().sort_by_key(|coin| coin["txid"].to_string());
    vec![
        wallet.call("listdescriptors", json!([]))["descriptors"].clone(),
        entries(wallet.call("listtransactions", json!(["*", 100]))),
        wallet.call("listlabels", json!([])),
        wallet.call("getaddressesbylabel", json!(["theirs"])),
        wallet.call("getbalances", json!([])),
        unspent,
    ]
}

/// The exported wallet watches the same coins.
fn check_export(host: &Host) {
    let folder = tempfile::tempdir().unwrap();
    let mut wallet = host.client().create_wallet("w", json!({"passphrase": "secret", "avoid_reuse": true}));
    for kind in ["bech32", "legacy"] {
        fund(&mut wallet, kind);
    }
    wallet.call("walletpassphrase", json!(["secret", 60]));
    wallet.call("sendtoaddress", json!([FOREIGN, 1, "rent"]));
    wallet.call("addhdkey", json!([XPRV]));
    wallet.call("walletlock", json!([]));
    wallet.call("setlabel", json!([FOREIGN, "theirs"]));
    let coins = wallet.call("listunspent", json!([0]));
    let [kept, passing] = [0, 1].map(|index| json!([{"txid": coins[index]["txid"], "vout": coins[index]["vout"]}]));
    wallet.call("lockunspent", json!([false, kept, true]));
    wallet.call("lockunspent", json!([false, passing, false]));
    let file = folder.path().join("export");
    assert_eq!(wallet.call("exportwatchonlywallet", json!([file])), json!({"exported_file": file}));
    wallet.call("lockunspent", json!([true, passing]));
    assert_eq!(host.client().call("restorewallet", json!(["watch", file])), json!({"name": "watch"}));
    let mut watch = host.client().wallet("watch");
    for (ours, theirs) in shared_answers(&mut watch).into_iter().zip(shared_answers(&mut wallet)) {
        assert_eq!(ours.to_string(), theirs.to_string());
    }
    assert_eq!(watch.call("listlockunspent", json!([])), kept);
    let info = watch.call("getwalletinfo", json!([]));
    assert_eq!(
        [&info["private_keys_enabled"], &info["avoid_reuse"], &info["blank"], &info["unlocked_until"]],
        [&json!(false), &json!(true), &json!(false), &Value::Null]
    );
    for kind in ["bech32", "p2sh-segwit", "bech32m"] {
        let next = [&mut watch, &mut wallet].map(|wallet| wallet.call("getnewaddress", json!(["", kind])));
        assert_eq!(next[0], next[1]);
    }
    let again = folder.path().join("again");
    watch.call("exportwatchonlywallet", json!([again]));
    let refusal = |file: &Path| (-4, format!("Error: Export destination '{}' already exists", file.display()));
    assert_eq!(watch.refused("exportwatchonlywallet", json!([again])), refusal(&again));
    assert_eq!(watch.refused("exportwatchonlywallet", json!([folder.path()])), refusal(folder.path()));
    let message = "Error: Export destination cannot be empty";
    assert_eq!(watch.refused("exportwatchonlywallet", json!([""])), (-4, message.into()));
    host.client().call("createwallet", json!(["empty", false, true]));
    let (mut empty, new) = (host.client().wallet("empty"), folder.path().join("new"));
    let message = "Error: Wallet has no descriptors to export";
    assert_eq!(empty.refused("exportwatchonlywallet", json!([new])), (-4, message.into()));
    assert!(!new.exists() && std::fs::read_dir(folder.path()).unwrap().count() == 2, "nothing unfinished is left");
}

fn check_export_of_imported_keys(host: &Host, file: &Path) {
    let mut wallet = host.new_wallet("imported");
    wallet.call("importprivkey", json!(["cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA", "key"]));
    wallet.call("generatetoaddress", json!([101, FOREIGN]));
    assert_eq!(wallet.call("getbalances", json!([]))["mine"]["trusted"].to_string(), "50.00000000");
    wallet.call("exportwatchonlywallet", json!([file]));
    host.client().call("restorewallet", json!(["imported-watch", file]));
    let mut watch = host.client().wallet("imported-watch");
    let balances = watch.call("getbalances", json!([]));
    let trusted = ["mine", "watchonly"].map(|of| balances[of]["trusted"].to_string());
    assert_eq!(trusted, ["0.00000000", "50.00000000"]);
    let message = format!("Private key for address {FOREIGN} is not known");
    assert_eq!(watch.refused("dumpprivkey", json!([FOREIGN])), (-4, message));
    watch.call("generatetoaddress", json!([1, FOREIGN]));
    assert_eq!(watch.call("getbalances", json!([]))["watchonly"]["trusted"].to_string(), "100.00000000");
}

const NOT_NORMALIZED: &str = "Wallet file verification failed. Wallet name given as a path must be normalized";

fn check_names_before_release_32(client: &mut Client) {
    assert_eq!(client.call("createwallet", json!([""])), json!({"name": ""}));
    for method in ["createwallet", "loadwallet"] {
        assert_ne!(client.refused(method, json!(["a/../b"])).1, NOT_NORMALIZED);
    }
    check_private_descriptors(client, "Can't get descriptor string.");
}

fn check_names_since_release_32(client: &mut Client) {
    let empty = (-8, "Wallet name cannot be empty".to_owned());
    assert_eq!(client.refused("createwallet", json!([""])), empty);
    assert_eq!(client.refused("restorewallet", json!(["", "/none"])), empty);
    assert_eq!(client.refused("loadwallet", json!([""])).0, -18);
    for method in ["createwallet", "loadwallet"] {
        assert_eq!(client.refused(method, json!(["a/../b"])), (-4, NOT_NORMALIZED.into()));
    }
    check_private_descriptors(client, "Can't get private descriptor string for watch-only wallets");
}

/// listdescriptors of a wallet without private keys refuses private descriptors.
fn check_private_descriptors(client: &mut Client, message: &str) {
    let mut watch = client.create_wallet("watch", json!({"disable_private_keys": true}));
    import(&mut watch, &format!("wpkh({OTHER})"), false);
    assert_eq!(watch.refused("listdescriptors", json!([true])), (-4, message.into()));
}

/// From release 32 on, removeprunedfunds needs a setting.
fn check_removeprunedfunds(host: &Host, is_there: bool) {
    let txid = "00".repeat(32);
    let deprecated = "DEPRECATION WARNING: This feature will be removed in the next major release. Start bitcoind with the `-deprecatedrpc=removeprunedfunds` option in order to use this.";
    let refusal = match is_there {
        true => (-4, format!("Transaction {txid} does not belong to this wallet")),
        false => (-32, deprecated.to_owned()),
    };
    assert_eq!(host.new_wallet("pruned").refused("removeprunedfunds", json!([txid])), refusal);
}
