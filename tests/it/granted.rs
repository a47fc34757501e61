//! Which wallets, and which files of the host, a plugin's grants leave it.

use outrigger_tests::{Host, HostOptions, groups};
use serde_json::json;

/// bitcoind's code for a wallet that is not loaded, and for one that fails.
const WALLET_NOT_FOUND: i64 = -18;
const WALLET_ERROR: i64 = -4;

/// A host with the groups of a file of the project, in which the section of a plugin is another.
fn host_with(section: &str, other: &str) -> Host {
    let text = std::fs::read_to_string(groups("regtest.toml")).unwrap();
    assert!(text.contains(section), "the configuration has changed: {section}");
    Host::start_with(HostOptions::configured(&text.replace(section, other)).1)
}

#[test]
fn plugin_knows_the_wallets_of_its_grant_alone() {
    let section = "file = \"history\"\ntrusted = true\ngrants = [\"chain/1\", \"wallet/1\", \"log/1\"]";
    let other = section.replace("\"wallet/1\"", "{ service = \"wallet/1\", wallets = [\"hot\", \"warm\"] }");
    let host = host_with(section, &other);
    let mut cold = host.new_wallet("cold");
    let unknown = "Requested wallet does not exist or is not loaded";
    assert_eq!(cold.refused("listsinceblock", json!([])), (WALLET_NOT_FOUND, unknown.into()));
    // The only one that is loaded, where the call names none.
    assert_eq!(host.client().refused("listsinceblock", json!([])), (WALLET_NOT_FOUND, unknown.into()));
    cold.call("getbalance", json!([]));
    let mut hot = host.new_wallet("hot");
    assert_eq!(hot.call("listsinceblock", json!([]))["transactions"], json!([]));
    let plugins = host.client().call("listplugins", json!([]));
    let history = plugins.as_array().unwrap().iter().find(|plugin| plugin["id"] == "history").unwrap();
    assert!(history["grants"].as_array().unwrap().contains(&json!("wallet/1 (wallets: hot, warm)")), "{history}");
}

#[test]
fn isolated_plugin_has_the_host_write_where_it_may_write_itself() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let section = "file = \"wallet\"\ntrusted = true\n";
    let reach = format!("reach = [\"write:{}\"]", folders[0].path().display());
    let other = format!("file = \"wallet\"\nisolated = true\nsandbox = \"best-effort\"\n{reach}\n");
    let host = host_with(section, &other);
    let mut wallet = host.new_wallet("w");
    let backup = |folder: usize| json!([folders[folder].path().join("backup").display().to_string()]);
    wallet.call("backupwallet", backup(0));
    assert!(folders[0].path().join("backup").exists());
    assert_eq!(wallet.refused("backupwallet", backup(1)).0, WALLET_ERROR);
    assert_eq!(std::fs::read_dir(folders[1].path()).unwrap().count(), 0);
    std::fs::rename(folders[0].path().join("backup"), folders[1].path().join("backup")).unwrap();
    let mut client = host.client();
    let restored = |folder: usize| json!(["restored", backup(folder)[0]]);
    client.refused("restorewallet", restored(1));
    std::fs::rename(folders[1].path().join("backup"), folders[0].path().join("backup")).unwrap();
    assert_eq!(client.call("restorewallet", restored(0))["name"], "restored");
}
