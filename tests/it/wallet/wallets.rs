//! Wallets are made, loaded, chosen and described, many at a time.

use std::path::Path;

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, copy_folder};
use serde_json::{Value, json};

use super::keys;

const WALLETS: usize = 300;

/// The most threads of the whole process, for any number of wallets.
const THREADS: usize = 64;
/// How many more threads each isolated plugin has, and how many plugins there are.
const THREADS_OF_A_PROCESS: usize = 12;
const PLUGINS: usize = 7;

fn most_threads() -> usize {
    THREADS + if outrigger_tests::isolated() { PLUGINS * THREADS_OF_A_PROCESS } else { 0 }
}

#[test]
fn wallets_are_made_loaded_chosen_and_described() {
    let host = Host::start();
    check_lists(&mut host.client());
    // Two wallets are loaded now.
    let message = "Multiple wallets are loaded. Please select which wallet to use by requesting the RPC through the /wallet/<walletname> URI path.";
    for method in ["getwalletinfo", "getbalances", "listunspent", "listtransactions", "listdescriptors"] {
        assert_eq!(host.client().refused(method, json!([])), (-19, message.into()), "{method}");
    }
    assert_eq!(host.client().call("createwallet", json!([""])), json!({"name": ""}));
    assert_eq!(host.client().wallet("").call("getwalletinfo", json!([]))["walletname"], json!(""));
    check_warnings(&mut host.client());
    check_members(&host);
    check_former_layouts(&host);
}

/// listwallets follows createwallet, loadwallet and unloadwallet.
fn check_lists(client: &mut Client) {
    let none = client.refused("getwalletinfo", json!([]));
    assert_eq!(none.0, -18);
    assert!(none.1.starts_with("No wallet is loaded."), "{}", none.1);
    assert_eq!(client.call("createwallet", json!(["a"]))["name"], json!("a"));
    assert_eq!(client.call("getwalletinfo", json!([]))["walletname"], json!("a"));
    client.call("createwallet", json!(["b b"]));
    assert_eq!(client.call("listwallets", json!([])), json!(["a", "b b"]));
    assert_eq!(client.wallet("b%20b").call("getwalletinfo", json!([]))["walletname"], json!("b b"));
    let differ = "The RPC endpoint wallet and the wallet name parameter specify different wallets";
    assert_eq!(client.wallet("b%20b").refused("unloadwallet", json!(["a"])), (-8, differ.into()));
    assert_eq!(client.refused("createwallet", json!(["a"])).0, -4);
    assert_eq!(client.refused("loadwallet", json!(["a"])).0, -35);
    assert_eq!(client.refused("loadwallet", json!(["nosuch"])).0, -18);
    for name in ["../up", "/../up", "nul\u{0}"] {
        assert!(client.try_call("createwallet", json!([name])).is_err(), "{name:?}");
    }
    let mut blank = client.create_wallet("blank", json!({"blank": true}));
    assert_eq!(blank.refused("keypoolrefill", json!([5])), (-4, "Error refreshing keypool.".into()));
    assert_eq!(blank.call("keypoolrefill", json!([])), Value::Null);
    blank.call("unloadwallet", json!([]));
    client.call("unloadwallet", json!(["a"]));
    assert_eq!(client.call("listwallets", json!([])), json!(["b b"]));
    client.call("loadwallet", json!(["a"]));
    assert_eq!(client.call("listwallets", json!([])), json!(["b b", "a"]));
}

/// Answers of createwallet, loadwallet, restorewallet and unloadwallet contain warnings only if there are any.
fn check_warnings(client: &mut Client) {
    assert_eq!(client.call("createwallet", json!(["c"])), json!({"name": "c"}));
    let warnings = ["Empty string given as passphrase, wallet will not be encrypted."];
    let created = client.call("createwallet", json!({"wallet_name": "d", "passphrase": ""}));
    assert_eq!((keys(&created), &created["warnings"]), (vec!["name", "warnings"], &json!(warnings)));
    assert_eq!(client.call("unloadwallet", json!(["c"])), json!({}));
    assert_eq!(client.call("loadwallet", json!(["c"])), json!({"name": "c"}));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup");
    client.wallet("c").call("backupwallet", json!([file]));
    assert_eq!(client.call("restorewallet", json!(["e", file])), json!({"name": "e"}));
}

/// getwalletinfo has the members of release 29 in their order.
fn check_members(host: &Host) {
    let expected = [
        "walletname",
        "walletversion",
        "format",
        "balance",
        "unconfirmed_balance",
        "immature_balance",
        "txcount",
        "keypoolsize",
        "keypoolsize_hd_internal",
        "paytxfee",
        "private_keys_enabled",
        "avoid_reuse",
        "scanning",
        "descriptors",
        "external_signer",
        "blank",
        "birthtime",
        "lastprocessedblock",
    ];
    let mut wallet = host.new_wallet("w");
    let info = wallet.call("getwalletinfo", json!([]));
    assert_eq!(keys(&info), expected);
    assert_eq!((&info["keypoolsize"], &info["keypoolsize_hd_internal"]), (&json!(4000), &json!(4000)));
    let told = wallet.call("getwalletbackupinfo", json!([]));
    assert_eq!(told, json!({"walletname": "w", "backup_needed": true, "last_backup": 0}));
}

/// loadwallet of an unreleased layout names the commit that reads it, and changes nothing.
fn check_former_layouts(host: &Host) {
    let mut client = host.client();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/former");
    for kind in ["both", "descriptors", "legacy"] {
        let folder = host.datadir().join("regtest/wallets").join(kind);
        copy_folder(&recorded.join(kind), &folder);
        let (code, message) = client.refused("loadwallet", json!([kind]));
        let text = "data.mdb has layout 4, but this build of the program reads layout 6. ";
        let remedy = " A build of commit fb151e5407d8 loads it: its listdescriptors and dumpwallet tell the keys.";
        assert!(code == -18 && message.contains(text) && message.ends_with(remedy), "{code} {message}");
        let read = |folder: &Path| std::fs::read(folder.join("data.mdb")).unwrap();
        assert!(read(&folder) == read(&recorded.join(kind)), "{kind}");
    }
}

fn threads(host: &Host) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", host.process_id())).unwrap().count()
}

#[test]
fn loadwallet_lets_three_hundred_wallets_share_a_few_threads() {
    let mut host = Host::start_with(HostOptions::with(&["wallet.keypool=1"]));
    let mut client = host.client();
    for number in 0..WALLETS {
        // Few wallets have keys, since these take longer to make.
        let blank = number % 50 != 7;
        client.call("createwallet", json!([format!("w{number}"), false, blank, "", false, true, true]));
    }
    assert_eq!(client.call("listwallets", json!([])).as_array().unwrap().len(), WALLETS);
    assert!(threads(&host) <= most_threads(), "{} threads for {WALLETS} wallets", threads(&host));

    // A block pays one wallet, and the others follow it without a transaction.
    let address = client.wallet("w7").call("getnewaddress", json!([]));
    let mut client = host.client();
    let block = client.call("generatetoaddress", json!([1, address]))[0].clone();
    assert_eq!(host.client().wallet("w7").call("getbalances", json!([]))["mine"]["immature"], 50.0);
    for number in [0, 57, WALLETS - 1] {
        let info = host.client().wallet(&format!("w{number}")).call("getwalletinfo", json!([]));
        assert_eq!((&info["lastprocessedblock"]["hash"], &info["txcount"]), (&block, &json!(0)));
    }

    // After a kill, wallets are at the tip again, even if they had followed the last blocks in memory only.
    client.call("generatetoaddress", json!([3, ELSEWHERE]));
    host = host.kill_and_restart();
    let mut client = host.client();
    assert_eq!(client.call("listwallets", json!([])).as_array().unwrap().len(), WALLETS);
    assert!(threads(&host) <= most_threads(), "{} threads for {WALLETS} wallets", threads(&host));
    let tip = client.call("getbestblockhash", json!([]));
    for number in [7, 57, WALLETS - 1] {
        let info = host.client().wallet(&format!("w{number}")).call("getwalletinfo", json!([]));
        assert_eq!(info["lastprocessedblock"]["hash"], tip);
    }
    assert_eq!(host.client().wallet("w7").call("getbalances", json!([]))["mine"]["immature"], 50.0);
}

#[test]
fn wallets_beyond_the_open_file_limit_are_neither_loaded_nor_made() {
    let mut host = Host::start_with(HostOptions::with(&["wallet.keypool=1"]));
    for number in 0..12 {
        host.client().call("createwallet", json!({"wallet_name": format!("w{number}"), "load_on_startup": true}));
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    host = host.restart_otherwise(|options| {
        options.open_files = Some(280);
        options.log = Some(log.path().to_owned());
    });
    let mut client = host.client();
    let loaded = client.call("listwallets", json!([]));
    assert_eq!(loaded.as_array().unwrap().len(), 8);
    let said = std::fs::read_to_string(log.path()).unwrap();
    assert!(said.contains("at most 210 connections are taken"), "{said}");
    // One log line covers all of them.
    let told: Vec<&str> = said.lines().filter(|line| line.contains("no further wallets are loaded")).collect();
    assert!(told.len() == 1 && told[0].contains("wallets=4"), "{said}");
    assert!(!said.contains("the wallet could not be loaded"), "{said}");

    let (code, message) = client.refused("createwallet", json!(["more"]));
    assert!(
        code == -4
            && message.contains("The system lets this process open 280 files, of which 8 loaded")
            && message.contains("Raise the limit (ulimit -n, LimitNOFILE) to 283 or more"),
        "{message}"
    );
    client.call("unloadwallet", json!([loaded[0]]));
    client.call("createwallet", json!(["more"]));
    assert_eq!(client.refused("loadwallet", json!([loaded[0]])).1, message);
    client.wallet("more").call("getnewaddress", json!([]));
}
