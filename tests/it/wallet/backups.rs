//! Files of the host's system that clients name: backupwallet, exportwatchonlywallet and restorewallet.

use outrigger_tests::{Client, Host, HostOptions, wait_until};
use serde_json::{Value, json};
use std::path::Path;

use crate::users::{ALICE, with_user};

/// bitcoind's error for every failed backup.
const FAILED: &str = "Error: Wallet backup failed!";

/// Why a file outside the folders of a user or a plugin is refused.
const OUTSIDE: &str =
    "it is outside the folders that the configuration allows the user (rpc.users.folders) or the plugin (reach)";

#[test]
fn backupwallet_and_restorewallet_overwrite_no_file_and_keep_users_to_their_folders() {
    let outside = tempfile::tempdir().unwrap();
    let allowed = outside.path().join("allowed");
    std::fs::create_dir(&allowed).unwrap();
    let bob = ALICE.replace("alice", "bob");
    // Bob is not confined to folders.
    let (host, alice) = with_user(&format!(
        "wallet = \"hot\"\nfolders = [{allowed:?}]\n[[rpc.users]]\nrpcauth = \"{bob}\"\nwallet = \"hot\""
    ));
    host.client().call("createwallet", json!({"wallet_name": "hot", "load_on_startup": true}));
    check_nothing_is_overwritten(&host, Client::new(host.address, "bob:pass:word"));
    check_folders(&host, alice, outside.path(), &allowed);
}

/// backupwallet overwrites neither the host's files nor other ones.
fn check_nothing_is_overwritten(host: &Host, mut bob: Client) {
    let folder = host.network_folder();
    let own = [".cookie", ".lock", "wallets/load.json", "wallets/hot/data.mdb", "chain/data.mdb", "mempool.dat", "new"];
    for client in [&mut bob, &mut host.client().wallet("hot")] {
        for name in own {
            let before = std::fs::read(folder.join(name)).ok();
            assert_eq!(client.refused("backupwallet", json!([folder.join(name)])), (-4, FAILED.into()), "{name}");
            assert_eq!(std::fs::read(folder.join(name)).ok(), before, "{name}");
        }
    }
    let outside = tempfile::tempdir().unwrap();
    let foreign = outside.path().join("notes.txt");
    std::fs::write(&foreign, "notes").unwrap();
    assert_eq!(bob.refused("backupwallet", json!([foreign])), (-4, FAILED.into()));
    assert_eq!(std::fs::read(&foreign).unwrap(), b"notes");
    let backup = outside.path().join("hot.backup");
    for _ in 0..2 {
        assert_eq!(bob.call("backupwallet", json!([backup])), Value::Null);
    }
}

/// backupwallet, exportwatchonlywallet and restorewallet confine a user to the user's folder.
fn check_folders(host: &Host, mut alice: Client, outside: &Path, allowed: &Path) {
    let (other, notes) = (outside.join("other"), outside.join("notes"));
    std::fs::create_dir(&other).unwrap();
    std::fs::write(&notes, "notes").unwrap();
    // The error does not reveal whether the file exists.
    let reason = format!(": {OUTSIDE}");
    for (file, reason) in
        [(&notes, &*reason), (&outside.join("none"), &*reason), (&host.network_folder().join(".cookie"), "")]
    {
        let message = format!("Error: Could not create file '{}'{reason}", file.display());
        assert_eq!(alice.refused("exportwatchonlywallet", json!([file])), (-4, message));
    }
    alice.call("exportwatchonlywallet", json!([allowed.join("watching")]));
    assert_eq!(std::fs::read(&notes).unwrap(), b"notes");
    let refused = format!("{FAILED} The file cannot be written: {OUTSIDE}");
    assert_eq!(alice.refused("backupwallet", json!([other.join("b")])), (-4, refused));
    alice.call("backupwallet", json!([allowed.join("b")]));
    host.client().wallet("hot").call("backupwallet", json!([other.join("b")]));
    alice.call("unloadwallet", json!(["hot"]));
    std::fs::remove_dir_all(host.network_folder().join("wallets/hot")).unwrap();
    let (code, message) = alice.refused("restorewallet", json!(["hot", other.join("b")]));
    assert_eq!(code, -4, "{message}");
    assert_eq!(message, format!("The backup file cannot be read: {OUTSIDE}"));
    assert_eq!(alice.refused("restorewallet", json!(["hot", allowed.join("none")])).0, -8);
    assert_eq!(alice.call("restorewallet", json!(["hot", allowed.join("b")]))["name"], json!("hot"));
}

#[test]
fn restorewallet_warns_if_payments_near_the_end_of_the_range_make_it_scan_again() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start_with(HostOptions::with(&["wallet.keypool=20"]));
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    let listed = wallet.call("listdescriptors", json!([]))["descriptors"].clone();
    let of_kind = |described: &&Value| described["desc"].as_str().unwrap().starts_with("wpkh(");
    let described = listed.as_array().unwrap().iter().find(of_kind).unwrap();
    let addresses = client.call("deriveaddresses", json!([described["desc"], [0, 39]]));
    wallet.call("backupwallet", json!([folder.path().join("w")]));
    // The second payment extends the range to the first. A third one is near the beginning.
    for index in [35, 18, 2] {
        client.call("generatetoaddress", json!([1, addresses[index]]));
    }
    let restored = client.call("restorewallet", json!(["copy", folder.path().join("w")]));
    let warnings = restored["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().contains("are being scanned again"), "{restored}");
    let mut copy = host.client().wallet("copy");
    wait_until("the wallet is scanned", || copy.call("getwalletinfo", json!([]))["scanning"] == false);
    assert_eq!(copy.call("getwalletinfo", json!([]))["txcount"], 3);
    assert_eq!(
        wallet.call("getwalletinfo", json!([]))["txcount"],
        2,
        "one that was loaded all the time is not scanned"
    );
    // Payments near the beginning cause no further scan.
    copy.call("backupwallet", json!([folder.path().join("copy")]));
    client.call("unloadwallet", json!(["copy"]));
    assert_eq!(client.call("loadwallet", json!(["copy"])), json!({"name": "copy"}));
}
