//! Wallets move from a running bitcoind or a wallet file to the host, and from the host to bitcoind.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

use super::{ADDRESS, start};
use crate::wallet_export::{refused as refusal, run as move_wallet};

const PASSPHRASE: &str = "a long passphrase";
const TYPES: [&str; 4] = ["legacy", "p2sh-segwit", "bech32", "bech32m"];

const UNLOAD: &str = "unload the original at the node: both would choose the same coins";

/// Runs a subcommand with the node's address and cookie.
fn with_node(command: &str, host: &Host, arguments: &[&str], input: &str) -> Output {
    let node = host.node.as_ref().unwrap();
    let (url, cookie) = (format!("http://{}", node.address), node.cookie());
    let place = ["--bitcoind", &url, "--bitcoind-cookie", cookie.to_str().unwrap()];
    move_wallet(host, &[&[command], arguments, &place].concat(), input)
}

fn from_node(host: &Host, arguments: &[&str], input: &str) -> Output {
    with_node("import-from-node", host, arguments, input)
}

fn to_node(host: &Host, arguments: &[&str], input: &str) -> Output {
    with_node("export-to-node", host, arguments, input)
}

fn from_file(host: &Host, file: &Path, arguments: &[&str], input: &str) -> Output {
    move_wallet(host, &[&["import-from-file", file.to_str().unwrap()], arguments].concat(), input)
}

/// The report of an import whose copy equals its original.
#[track_caller]
fn report(output: &Output) -> String {
    let (report, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{report}\n{error}");
    let equal = |line: &str| line.ends_with(" equal, 0 different") || line == UNLOAD;
    assert!(report.lines().skip(1).all(equal), "{report}");
    report.into_owned()
}

/// A wallet of the node with coins of each type of address, labels, a payment with comments, and a locked coin.
fn used_wallet(node: &mut Client, name: &str, options: &Value) -> Client {
    let mut wallet = node.create_wallet(name, options.clone());
    unlock(&mut wallet, options);
    for (at, kind) in TYPES.into_iter().enumerate() {
        wallet.call("getnewaddress", json!(["", kind]));
        let paid = wallet.call("getnewaddress", json!([format!("label {at}"), kind]));
        node.call("generatetoaddress", json!([2, paid]));
    }
    wallet.call("setlabel", json!([ADDRESS, "a friend"]));
    node.call("generatetoaddress", json!([101, ADDRESS]));
    wallet.call("sendtoaddress", json!([ADDRESS, 1, "rent", "the landlord"]));
    node.call("generatetoaddress", json!([1, ADDRESS]));
    let coin = wallet.call("listunspent", json!([]))[0].clone();
    let coin = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    wallet.call("lockunspent", json!([false, coin, true]));
    if options["passphrase"].is_string() {
        wallet.call("walletlock", json!([]));
    }
    wallet
}

fn unlock(wallet: &mut Client, options: &Value) {
    if let Some(passphrase) = options["passphrase"].as_str() {
        wallet.call("walletpassphrase", json!([passphrase, 600]));
    }
}

/// Checks that both wallets derive the same next addresses of each type.
fn check_next_addresses(one: &mut Client, other: &mut Client) {
    for kind in TYPES {
        for method in ["getnewaddress", "getrawchangeaddress"] {
            let params = if method == "getnewaddress" { json!(["", kind]) } else { json!([kind]) };
            assert_eq!(one.call(method, params.clone()), other.call(method, params), "{method} {kind}");
        }
    }
}

#[test]
fn wallets_of_the_running_node_are_copied_completely() {
    let Some(host) = start(&["-fallbackfee=0.0001"]) else { return };
    let mut node = host.node_client();
    let mut original = used_wallet(&mut node, "savings", &json!({"avoid_reuse": true}));
    let told = report(&from_node(&host, &["savings"], ""));
    assert!(told.starts_with("copied to the wallet \"savings\": 8 descriptors, "), "{told}");
    assert!(told.trim_end().ends_with(UNLOAD), "{told}");
    let mut copy = host.client().wallet("savings");
    for (method, params) in [
        ("getbalances", json!([])),
        ("listlockunspent", json!([])),
        ("listlabels", json!([])),
        ("listunspent", json!([])),
    ] {
        let (ours, theirs) = (copy.call(method, params.clone()), original.call(method, params));
        if method == "listunspent" {
            assert_eq!(ours.as_array().unwrap().len(), theirs.as_array().unwrap().len());
        } else {
            assert_eq!(ours, theirs, "{method}");
        }
    }
    assert_eq!(copy.call("getwalletinfo", json!([]))["avoid_reuse"], json!(true));
    check_next_addresses(&mut copy, &mut original);
    // The copy can pay, and a second import under its name is refused.
    copy.call("sendtoaddress", json!([ADDRESS, 1]));
    let refused = refusal(&from_node(&host, &["savings"], ""));
    assert!(refused.contains("the host has a wallet \"savings\" already"), "{refused}");
    report(&from_node(&host, &["savings", "--as", "second"], ""));
    let missing = refusal(&from_node(&host, &["nothing"], ""));
    assert!(missing.contains("the node answers getwalletinfo with error -18"), "{missing}");
    // The copy of an encrypted wallet keeps the passphrase.
    let options = json!({"passphrase": PASSPHRASE});
    let mut original = used_wallet(&mut node, "safe", &options);
    let wrong = refusal(&from_node(&host, &["safe"], "another\n"));
    assert!(wrong.contains("error -14") && !wrong.contains("another"), "{wrong}");
    report(&from_node(&host, &["safe"], &format!("{PASSPHRASE}\n")));
    let mut copy = host.client().wallet("safe");
    // Both are locked again.
    for wallet in [&mut copy, &mut original] {
        assert_eq!(wallet.call("getwalletinfo", json!([]))["unlocked_until"], json!(0));
    }
    copy.call("walletpassphrase", json!([PASSPHRASE, 600]));
    copy.call("sendtoaddress", json!([ADDRESS, 1]));
}

#[test]
fn file_of_an_unloaded_node_wallet_is_copied_like_the_running_wallet() {
    let Some(host) = start(&["-fallbackfee=0.0001"]) else { return };
    let node = host.node.as_ref().unwrap();
    let mut client = node.client();
    // A mock time shows that the copied times are not the time of the copy.
    client.call("setmocktime", json!([1_700_000_000]));
    client.call("generatetoaddress", json!([1, ADDRESS]));
    for (name, options, input) in
        [("open", json!({}), ""), ("sealed", json!({"passphrase": PASSPHRASE}), "a long passphrase\n")]
    {
        let mut original = used_wallet(&mut client, name, &options);
        let of_the_node = format!("{name}-of-the-node");
        report(&from_node(&host, &[name, "--as", &of_the_node], input));
        let expected = times(&mut original);
        assert!(expected.0 == false && !expected.2.is_empty());
        let file = node.wallet_file(name);
        let loaded = refusal(&from_file(&host, &file, &[name], input));
        assert!(loaded.contains("a bitcoind has the wallet loaded"), "{loaded}");
        original.call("unloadwallet", json!([]));
        let before = std::fs::read(&file).unwrap();
        if !input.is_empty() {
            let wrong = refusal(&from_file(&host, &file, &[name], "another\n"));
            assert!(wrong.contains("the passphrase is not the wallet's"), "{wrong}");
        }
        let told = report(&from_file(&host, &file, &[name], input));
        assert!(told.contains("\nbalances: 2 equal") && !told.contains("\ncoins: 0 equal"), "{told}");
        assert_eq!(std::fs::read(&file).unwrap(), before);
        for copy in [of_the_node.as_str(), name] {
            assert_eq!(times(&mut host.client().wallet(copy)), expected, "{copy}");
        }
        client.call("loadwallet", json!([name]));
        let mut copy = host.client().wallet(name);
        for wallet in [&mut original, &mut copy] {
            unlock(wallet, &options);
        }
        assert_eq!(copy.call("getbalances", json!([])), original.call("getbalances", json!([])));
        assert_eq!(copy.call("listdescriptors", json!([true])), without_ranges(&mut original, &mut copy));
        check_next_addresses(&mut copy, &mut original);
        let sent = copy.call("sendtoaddress", json!([ADDRESS, 1]));
        host.client().call("generatetoaddress", json!([1, ADDRESS]));
        assert_eq!(copy.call("gettransaction", json!([sent]))["confirmations"], json!(1));
    }
    let foreign = host.datadir().join("foreign");
    std::fs::write(&foreign, "no database at all, but some text that is longer than its header would be").unwrap();
    let refused = refusal(&from_file(&host, &foreign, &["x"], ""));
    assert!(refused.contains("it is not a descriptor wallet of bitcoind"), "{refused}");
}

/// A wallet's blank flag, its birth time, and the times of each transaction.
fn times(wallet: &mut Client) -> (Value, Value, BTreeSet<String>) {
    let info = wallet.call("getwalletinfo", json!([]));
    let history = wallet.call("listsinceblock", json!([]))["transactions"].clone();
    let received = |entry: &Value| format!("{} {} {}", entry["txid"], entry["time"], entry["timereceived"]);
    let received = history.as_array().unwrap().iter().map(received).collect();
    (info["blank"].clone(), info["birthtime"].clone(), received)
}

/// The original's descriptors with the copy's name and ranges, since the keypool sizes differ.
fn without_ranges(original: &mut Client, copy: &mut Client) -> Value {
    let (mut theirs, ours) =
        (original.call("listdescriptors", json!([true])), copy.call("listdescriptors", json!([true])));
    for (their, our) in
        theirs["descriptors"].as_array_mut().unwrap().iter_mut().zip(ours["descriptors"].as_array().unwrap())
    {
        their["range"] = our["range"].clone();
    }
    theirs
}

#[test]
fn export_to_node_moves_wallets_to_the_node_and_reports_what_the_node_refuses() {
    let Some(host) = start(&["-fallbackfee=0.0001"]) else { return };
    // The node imports a wallet's descriptors.
    let mut ours = host.client();
    let mut original = used_wallet(&mut ours, "back", &json!({}));
    let mut node = host.node_client();
    let mut copy = node.create_wallet("back", json!({"blank": true}));
    let listed = original.call("listdescriptors", json!([true]));
    copy.import(&listed["descriptors"]);
    assert_eq!(copy.call("getbalances", json!([])), original.call("getbalances", json!([])));
    let count = |wallet: &mut Client| wallet.call("getwalletinfo", json!([]))["txcount"].clone();
    assert_eq!(count(&mut copy), count(&mut original));
    check_next_addresses(&mut original, &mut copy);
    check_exports(&host);
    // For keys and a watched address, export-to-node reports the descriptors that bitcoind refuses. It shows no key.
    let (mut ours, mut node) = (host.client(), host.node_client());
    let mut original = used_wallet(&mut ours, "mixed", &json!({}));
    let key = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
    original.call("importprivkey", json!([key, "a single key", false]));
    let watched = node.create_wallet("theirs", json!({})).call("getnewaddress", json!([]));
    original.call("importaddress", json!([watched, "watched", false]));
    let output = to_node(&host, &["mixed", "--private"], "");
    let (report, told) = (String::from_utf8_lossy(&output.stdout), refusal(&output));
    assert!(told.contains("the copy differs from the original"), "{told}");
    let refused = |line: &&str| line.starts_with("not taken by bitcoind: a descriptor addr(...): ");
    assert_eq!(told.lines().filter(refused).count(), 1, "{told}");
    assert!(told.contains("Cannot import descriptor without private keys"), "{told}");
    assert!(told.contains("only in the original: addr(...)#"), "{told}");
    for secret in ["tprv", key] {
        assert!(!told.contains(secret) && !report.contains(secret), "{report}\n{told}");
    }
    // The node has everything else.
    let mut copy = node.wallet("mixed");
    assert_eq!(copy.call("getbalances", json!([])), original.call("getbalances", json!([])));
    check_next_addresses(&mut original, &mut copy);
}

/// export-to-node creates an equal wallet on the node.
fn check_exports(host: &Host) {
    let mut ours = host.client();
    let node = host.node_client();
    for (name, private, options, input) in [
        ("open", true, json!({}), ""),
        ("sealed", true, json!({"passphrase": PASSPHRASE}), "a long passphrase\n"),
        ("watched", false, json!({"avoid_reuse": true}), ""),
    ] {
        let mut original = used_wallet(&mut ours, name, &options);
        let flags: &[&str] = if private { &["--private"] } else { &[] };
        let output = to_node(host, &[&[name], flags].concat(), input);
        let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{told}\n{error}");
        let note = "not taken by bitcoind: 1 comments of transactions, for which it has no call";
        let equal = |line: &str| line.ends_with(" equal, 0 different") || line == note;
        assert!(told.lines().skip(1).all(|line| equal(line) || line.contains("unload the original")), "{told}");
        assert!(told.contains(note) && !told.contains("tprv"), "{told}");
        let mut copy = node.wallet(name);
        assert_eq!(copy.call("getbalances", json!([])), original.call("getbalances", json!([])));
        assert_eq!(copy.call("listlockunspent", json!([])), original.call("listlockunspent", json!([])));
        assert_eq!(copy.call("listlabels", json!([])), original.call("listlabels", json!([])));
        assert_eq!(copy.call("getwalletinfo", json!([]))["private_keys_enabled"], json!(private));
        check_next_addresses(&mut original, &mut copy);
        if private {
            unlock(&mut copy, &options);
            copy.call("sendtoaddress", json!([ADDRESS, 1]));
        }
        let again = refusal(&to_node(host, &[&[name], flags].concat(), input));
        assert!(again.contains("the node has a wallet") && again.contains("--as"), "{again}");
    }
    // The command can also read the node from the host's configuration.
    let config = host.datadir().join("bitcoind.toml");
    let arguments = ["export-to-node", "open", "--as", "third", "--config", config.to_str().unwrap()];
    let output = move_wallet(host, &arguments, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(node.wallet("third").call("getwalletinfo", json!([]))["private_keys_enabled"], json!(false));
}

#[test]
fn multisig_and_watch_only_wallets_are_copied_and_late_reuse_marks_reported() {
    let Some(host) = start(&["-fallbackfee=0.0001"]) else { return };
    check_shared_and_watching(&host);
    // The import reports a difference if the wallet set avoid_reuse after its payments.
    let node = host.node.as_ref().unwrap();
    let mut client = node.client();
    let mut original = client.create_wallet("late", json!({}));
    let mine = original.fund(1);
    original.call("sendtoaddress", json!([ADDRESS, 1]));
    // Eight more coins to the address already spent from.
    client.call("generatetoaddress", json!([8, mine]));
    client.call("generatetoaddress", json!([101, ADDRESS]));
    original.call("setwalletflag", json!(["avoid_reuse", true]));
    let balance = |wallet: &mut Client| wallet.call("getbalances", json!([]))["mine"]["used"].as_f64();
    assert_eq!(balance(&mut original), Some(0.0));
    let told = refusal(&from_node(&host, &["late", "--as", "of-the-node"], ""));
    assert!(told.contains("only in the copy: used 400."), "{told}");
    original.call("unloadwallet", json!([]));
    let told = refusal(&from_file(&host, &node.wallet_file("late"), &["of-the-file"], ""));
    assert!(told.contains("only in the copy: used 400."), "{told}");
    assert!(told.contains("used only once avoid_reuse is set"), "{told}");
    // Once the node has marked the addresses, nothing differs.
    client.call("loadwallet", json!(["late"]));
    original.call("rescanblockchain", json!([]));
    original.call("unloadwallet", json!([]));
    report(&from_file(&host, &node.wallet_file("late"), &["again"], ""));
}

#[test]
fn failed_import_from_node_or_file_leaves_no_wallet() {
    let Some(host) = start(&["-prune=1", "-fastprune", "-fallbackfee=0.0001"]) else { return };
    let mut node = host.node_client();
    let (mut client, folder) = (host.client(), host.network_folder().join("wallets/copies"));
    let mut original = node.create_wallet("old", json!({}));
    original.mine(1);
    client.call("generatetoaddress", json!([800, ADDRESS]));
    client.call("pruneblockchain", json!([500]));
    let mut check = |output: Output| {
        let told = refusal(&output);
        assert!(told.contains("cannot be imported into \"copies/old\""), "{told}");
        assert_eq!(client.call("listwallets", json!([])), json!([]));
        assert!(!folder.exists());
    };
    // A second attempt fails alike, since the first leaves nothing behind.
    (0..2).for_each(|_| check(from_node(&host, &["old", "--as", "copies/old"], "")));
    original.call("unloadwallet", json!([]));
    let file = host.node.as_ref().unwrap().wallet_file("old");
    (0..2).for_each(|_| check(from_file(&host, &file, &["copies/old"], "")));
}

/// A multisig with public cosigner keys is copied from its file, and watch-only wallets keep their blank flag.
fn check_shared_and_watching(host: &Host) {
    let node = host.node.as_ref().unwrap();
    let mut client = node.client();
    let cosigner = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let mut shared = client.create_wallet("shared", json!({"blank": true}));
    let key = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
    let text = client.with_checksum(&format!("wsh(multi(2,{key},{cosigner}))"));
    shared.import(&json!([{"desc": text, "timestamp": "now"}]));
    // Some releases of the node list its private descriptors.
    if shared.try_call("listdescriptors", json!([true])).is_err() {
        let refused = refusal(&from_node(host, &["shared"], ""));
        assert!(refused.contains("copy it from its file by import-from-file"), "{refused}");
    }
    shared.call("unloadwallet", json!([]));
    report(&from_file(host, &node.wallet_file("shared"), &["shared"], ""));
    let mut copy = host.client().wallet("shared");
    assert_eq!(copy.call("listdescriptors", json!([]))["descriptors"].as_array().unwrap().len(), 1);
    for blank in [false, true] {
        let name = format!("blank-{blank}");
        let mut original = client.create_wallet(&name, json!({"disable_private_keys": true, "blank": blank}));
        let public = client.call("getdescriptorinfo", json!([format!("wpkh({cosigner})")]))["descriptor"].clone();
        original.call("importdescriptors", json!([[{"desc": public, "timestamp": 1_600_000_000}]]));
        report(&from_node(host, &[&name, "--as", &format!("{name}-of-the-node")], ""));
        original.call("unloadwallet", json!([]));
        report(&from_file(host, &node.wallet_file(&name), &[&name], ""));
        for copy in [format!("{name}-of-the-node"), name] {
            let info = host.client().wallet(&copy).call("getwalletinfo", json!([]));
            assert_eq!((&info["blank"], &info["birthtime"]), (&json!(blank), &json!(1_600_000_000)), "{info}");
        }
    }
}
