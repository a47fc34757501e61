//! Wallets that clients name by an absolute path, as Liana does: the wallet keeps the name, and no file is written there.

use std::path::Path;

use outrigger_tests::{Client, Host, HostOptions};
use serde_json::{Value, json};

use crate::users::{ALICE, with_user};

/// An existing folder of a client, and the name of a wallet in it.
fn of_liana(folder: &tempfile::TempDir) -> String {
    let folder = std::fs::canonicalize(folder.path()).unwrap();
    folder.join(".liana/bitcoin/data dir/bitcoind_watchonly_wallet").to_str().unwrap().to_owned()
}

/// The URL paths of a wallet's calls, as clients write them.
fn in_paths(name: &str) -> [String; 3] {
    let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    [name.replace(' ', "%20"), name.replace('/', "%2F").replace(' ', "%20"), encoded]
}

fn listed(client: &mut Client) -> Vec<Value> {
    let all = client.call("listwalletdir", json!([]));
    all["wallets"].as_array().unwrap().iter().map(|wallet| wallet["name"].clone()).collect()
}

#[test]
fn createwallet_by_an_absolute_path_keeps_the_name_and_writes_nothing_there() {
    let (mut host, folder) = (Host::start(), tempfile::tempdir().unwrap());
    let name = of_liana(&folder);
    let mut client = host.client();
    client.call("createwallet", json!(["other"]));
    let created = client.call("createwallet", json!([name, true, true, "", false, true, true]));
    assert_eq!(created["name"], json!(name));
    assert_eq!(client.call("listwallets", json!([])), json!(["other", name]));
    assert_eq!(listed(&mut client), [json!(name), json!("other")]);
    let exists = format!("Failed to create database path '{name}'. Database already exists.");
    let refused = client.refused("createwallet", json!([name]));
    assert_eq!(refused, (-4, format!("Wallet file verification failed. {exists}")));
    assert_eq!(client.refused("loadwallet", json!([name])).0, -35);

    // The wallet is loaded at the start.
    host = host.restart();
    let mut client = host.client();
    assert_eq!(client.call("listwallets", json!([])), json!([name]));
    client.call("loadwallet", json!(["other"]));
    for path in in_paths(&name) {
        assert_eq!(client.wallet(&path).call("getwalletinfo", json!([]))["walletname"], json!(name), "{path}");
    }
    client.wallet(&in_paths(&name)[0]).call("unloadwallet", json!([name, false]));
    assert_eq!(client.call("listwallets", json!([])), json!(["other"]));
    client.call("loadwallet", json!([name, true]));
    assert_eq!(host.restart().client().call("listwallets", json!([])), json!([name]));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn wallets_with_absolute_paths_are_distinguished_and_may_be_long_and_restored() {
    let host = Host::start_with(HostOptions::with(&["wallet.keypool=1"]));
    let mut client = host.client();
    let long = format!("/nowhere/{}", "é/x".repeat(150));
    let names = ["/nowhere/w", "/nowhere%2Fw", "%2Fnowhere%2Fw", "nowhere/w", &long, &format!("{long}y")];
    for name in names {
        client.call("createwallet", json!({"wallet_name": name, "load_on_startup": true}));
    }
    let host = host.kill_and_restart();
    let mut client = host.client();
    assert_eq!(client.call("listwallets", json!([])), json!(names));
    let mut sorted = names.map(|name| json!(name));
    sorted.sort_unstable_by_key(|name| name.as_str().unwrap().to_owned());
    assert_eq!(listed(&mut client), sorted);
    for name in names {
        // Clients escape `%` in the URL path.
        let path = &in_paths(name)[2];
        assert_eq!(client.wallet(path).call("getwalletinfo", json!([]))["walletname"], json!(name));
    }
    check_backup(&host);
    assert!(!Path::new("/nowhere").exists());
    for name in ["/nowhere/../w", "/..", "/", "//nowhere/v", "/nowhere/v/", "/nowhere/./v", "/a\nb"] {
        for method in ["createwallet", "loadwallet"] {
            let (code, message) = client.refused(method, json!([name]));
            assert!(code == -4 && message.contains("is not allowed"), "{method} {name:?}: {message}");
        }
    }
    let (code, message) = client.refused("createwallet", json!(["x".repeat(2000)]));
    let expected = "Wallet file verification failed. The wallet name has 2000 bytes, at most 1024 are allowed.";
    assert_eq!((code, &*message), (-4, expected));
}

fn check_backup(host: &Host) {
    let folder = tempfile::tempdir().unwrap();
    let mut client = host.client();
    let mut wallet = client.create_wallet("/nowhere/old", json!({}));
    let address = wallet.call("getnewaddress", json!(["mine"]));
    let backup = folder.path().join("backup");
    wallet.call("backupwallet", json!([backup]));
    assert_eq!(client.call("restorewallet", json!(["/nowhere/new", backup])), json!({"name": "/nowhere/new"}));
    let owned = client.wallet("/nowhere/new").call("getaddressinfo", json!([address]));
    assert_eq!(owned["ismine"], json!(true));
    let (code, message) = client.refused("restorewallet", json!(["/nowhere/new", backup]));
    assert!(code == -36 && message.starts_with("Failed to restore wallet. Database file exists in "), "{message}");
}

#[test]
fn loadwallet_of_the_path_of_a_bitcoind_wallet_explains_how_to_copy_it() {
    let [folder, folders] = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let (host, mut alice) = with_user(&format!("folders = [{:?}]", folders.path()));
    let mut client = host.client();
    let name = std::fs::canonicalize(folder.path()).unwrap().join("it's w").to_str().unwrap().to_owned();
    let failed = format!("Wallet file verification failed. Failed to load database path '{name}'. ");
    let missing = (-18, format!("{failed}Path does not exist."));
    assert_eq!(client.refused("loadwallet", json!([name])), missing);
    std::fs::create_dir(&name).unwrap();
    std::fs::write(format!("{name}/wallet.dat"), "a text that is no wallet at all").unwrap();
    assert_eq!(client.refused("loadwallet", json!([name])), missing);
    std::fs::write(format!("{name}/wallet.dat"), "SQLite format 3\0 and its pages").unwrap();
    let quoted = name.replace('\'', r"'\''");
    let advice = format!("outrigger wallet import-from-file '{quoted}/wallet.dat' '{quoted}'");
    let told = client.refused("loadwallet", json!([name]));
    assert_eq!(told, (-18, format!("{failed}A wallet of bitcoind lies there, which can be copied: {advice}")));

    // A user confined to one folder learns nothing about files elsewhere.
    assert_eq!(alice.refused("loadwallet", json!([name])), missing);
}

#[test]
fn users_reach_a_wallet_only_if_their_setting_has_its_full_absolute_path() {
    let unknown = (-18, "Requested wallet does not exist or is not loaded".to_owned());
    let users = [("alice", "/nowhere/w"), ("bob", "/nowhere/*"), ("carol", "/nowhere"), ("dave", "w")];
    let section = |(name, allowed): &(&str, &str)| {
        let line = ALICE.replace("alice", name);
        format!("[[rpc.users]]\nrpcauth = \"{line}\"\nwallet = \"{allowed}\"\n")
    };
    let host = Host::start_with(HostOptions::with_groups(&users.iter().map(section).collect::<String>()));
    host.client().call("createwallet", json!(["/nowhere/w", false, true]));
    host.client().call("createwallet", json!(["/nowhere/v", false, true]));
    for (name, allowed) in users {
        let mut user = Client::new(host.address, &format!("{name}:pass:word"));
        let is_allowed = allowed == "/nowhere/w";
        let named = user.wallet("/nowhere/w").try_call("getwalletinfo", json!([]));
        assert_eq!(named.is_ok(), is_allowed, "{allowed}");
        assert_eq!(user.call("listwallets", json!([])), if is_allowed { json!(["/nowhere/w"]) } else { json!([]) });
        assert_eq!(user.wallet("/nowhere/v").refused("getwalletinfo", json!([])), unknown);
    }
}
