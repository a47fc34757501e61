//! The wallets and host files that a plugin's grants give it.

use outrigger_tests::{Host, HostOptions, all_groups};
use serde_json::json;

/// bitcoind's codes for a wallet that is not loaded and for a wallet error.
const WALLET_NOT_FOUND: i64 = -18;
const WALLET_ERROR: i64 = -4;

#[test]
fn host_writes_for_an_isolated_plugin_only_within_the_plugins_reach() {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let text = all_groups();
    let section = "file = \"wallet\"\ntrusted = true\n";
    assert!(text.contains(section), "the configuration has changed");
    let reach = format!("reach = [\"write:{}\"]", folders[0].path().display());
    let other = format!("file = \"wallet\"\nisolated = true\nsandbox = \"best-effort\"\n{reach}\n");
    let host = Host::start_with(HostOptions::configured(&text.replace(section, &other)));
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

/// For each service in a group's grants in `regtest.toml`: a method, with arguments, that fails without the service. Without a
/// method, the host refuses the plugin itself. The signing group needs no mempool: it signs for coins of the chain.
const LACKING: [(&str, &str, &str, &str); 32] = [
    ("chain", "chain/1", "", ""),
    ("chain", "mempool/1", "", ""),
    ("chain", "log/1", "", ""),
    ("mining", "chain/1", "", ""),
    ("mining", "mempool/1", "", ""),
    ("mining", "log/1", "", ""),
    ("wallet", "chain/1", "", ""),
    ("wallet", "mempool/1", "", ""),
    ("wallet", "wallet-read/1", "", ""),
    ("wallet", "wallet-book/1", "getnewaddress", "[]"),
    ("wallet", "wallet-pay/1", "sendtoaddress", r#"["ADDRESS", 1]"#),
    ("wallet", "wallet-import/1", "addhdkey", "[]"),
    ("wallet", "wallet-admin/1", "listwalletdir", "[]"),
    ("wallet", "wallet-keys/1", "listdescriptors", "[true]"),
    ("wallet", "signer/1", "sendtoaddress", r#"["ADDRESS", 1]"#),
    ("wallet", "log/1", "", ""),
    ("import", "chain/1", "", ""),
    ("import", "wallet-read/1", "", ""),
    ("import", "wallet-book/1", "importpubkey", r#"["KEY", "label", false]"#),
    ("import", "wallet-import/1", "", ""),
    ("import", "log/1", "", ""),
    ("signing", "chain/1", "", ""),
    ("signing", "wallet-read/1", "signrawtransactionwithwallet", r#"["RAW"]"#),
    ("signing", "signer/1", "signrawtransactionwithwallet", r#"["RAW"]"#),
    ("psbt", "chain/1", "", ""),
    ("psbt", "mempool/1", "walletcreatefundedpsbt", r#"[[], {"ADDRESS": 1}]"#),
    ("psbt", "wallet-read/1", "walletprocesspsbt", r#"["PSBT"]"#),
    ("psbt", "wallet-book/1", "walletcreatefundedpsbt", r#"[[], {"ADDRESS": 1}]"#),
    ("psbt", "wallet-pay/1", "send", r#"[{"ADDRESS": 1}]"#),
    ("psbt", "signer/1", "walletprocesspsbt", r#"["PSBT"]"#),
    ("history", "wallet-book/1", "setcomment", r#"["TXID", "rent"]"#),
    ("history", "wallet-pay/1", "abandontransaction", r#"["TXID"]"#),
];

#[test]
fn each_grant_of_the_groups_is_needed_by_a_method() {
    let text = all_groups();
    let host = Host::start_with(HostOptions::configured(&text).and(&["wallet.fallbackfee=0.0001"]));
    let mut wallet = host.new_wallet("w");
    let address = wallet.mine(101);
    let address = address.as_str().unwrap();
    let coin = wallet.call("listunspent", json!([]))[0].clone();
    let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = wallet.call("createrawtransaction", json!([inputs, {address: 1}]));
    let psbt = wallet.call("createpsbt", json!([inputs, {address: 1}]));
    let key = wallet.call("getaddressinfo", json!([address]))["pubkey"].clone();
    let address_text = json!(address);
    let filled = [("ADDRESS", &address_text), ("TXID", &coin["txid"]), ("RAW", &raw), ("PSBT", &psbt), ("KEY", &key)];
    for (group, service, method, params) in LACKING {
        let begin = text.find(&format!("\nfile = \"{group}\"\n")).unwrap();
        let (before, section) = text.split_at(begin);
        let (head, rest) = section.split_once("grants = [").unwrap();
        let (all, rest) = rest.split_once(']').unwrap();
        let others: Vec<&str> =
            all.split(',').map(str::trim).filter(|grant| *grant != format!("\"{service}\"")).collect();
        assert!(others.len() < all.split(',').count(), "{group} has no grant of {service}");
        let granted = format!("{before}{head}grants = [{}]{rest}", others.join(", "));
        std::fs::write(host.config_file().path(), granted).unwrap();
        let reload = wallet.try_call("reloadplugin", json!([group]));
        if method.is_empty() {
            let expected = format!("plugin '{group}' needs the service {service}, which its 'grants' do not list");
            assert!(reload.unwrap_err().message.contains(&expected), "{group} {service}");
            continue;
        }
        reload.unwrap();
        let params = filled
            .iter()
            .fold(params.to_owned(), |params, (name, value)| params.replace(name, value.as_str().unwrap()));
        let lacking = (-32603, format!("The plugin's grants lack {service}"));
        assert_eq!(wallet.refused(method, serde_json::from_str(&params).unwrap()), lacking, "{group} {method}");
        std::fs::write(host.config_file().path(), &text).unwrap();
        wallet.call("reloadplugin", json!([group]));
    }
}

/// The configuration with a group's grants of these services limited to these wallets.
fn limited(mut text: String, group: &str, services: &[&str], wallets: &[&str]) -> String {
    let begin = text.find(&format!("\nfile = \"{group}\"\n")).unwrap();
    for service in services {
        let (whole, grant) =
            (format!("\"{service}\""), format!("{{ service = \"{service}\", wallets = {wallets:?} }}"));
        let at = begin + text[begin..].find(&whole).unwrap();
        text.replace_range(at..at + whole.len(), &grant);
    }
    text
}

#[test]
fn plugins_see_and_use_only_the_wallets_of_their_grants() {
    let text = limited(all_groups(), "history", &["wallet-read/1"], &["hot", "warm"]);
    let host = Host::start_with(HostOptions::configured(&text));
    let mut cold = host.new_wallet("cold");
    let mut client = host.client();
    let unknown = (WALLET_NOT_FOUND, "Requested wallet does not exist or is not loaded".to_owned());
    assert_eq!(cold.refused("listsinceblock", json!([])), unknown);
    // A call without a wallet name uses the only loaded wallet.
    assert_eq!(client.refused("listsinceblock", json!([])), unknown);
    let mut hot = host.new_wallet("hot");
    assert_eq!(hot.call("listsinceblock", json!([]))["transactions"], json!([]));
    let history = client.plugin("history");
    assert!(history["grants"].as_array().unwrap().contains(&json!("wallet-read/1 (wallets: hot, warm)")), "{history}");

    let services = ["book", "pay", "import", "admin", "keys"].map(|name| format!("wallet-{name}/1"));
    let text = limited(text, "wallet", &services.each_ref().map(String::as_str), &["hot"]);
    std::fs::write(host.config_file().path(), text).unwrap();
    client.call("reloadplugin", json!(["wallet"]));
    for (service, method, params) in [
        ("wallet-book/1", "getnewaddress", json!([])),
        ("wallet-pay/1", "settxfee", json!([0.0001])),
        ("wallet-import/1", "addhdkey", json!([])),
        ("wallet-admin/1", "setwalletflag", json!(["avoid_reuse", true])),
        ("wallet-keys/1", "listdescriptors", json!([true])),
    ] {
        let refused = format!("The plugin may not use {service} for the wallet \"cold\"");
        assert_eq!(cold.refused(method, params.clone()), (-32603, refused), "{method}");
        hot.call(method, params);
    }
    // The plugin can read the other wallet but not change it.
    assert_eq!(cold.call("getbalance", json!([])).as_f64(), Some(0.0));
    assert_eq!(client.call("listwallets", json!([])), json!(["cold", "hot"]));
    assert_eq!(client.call("listwalletdir", json!([]))["wallets"].as_array().unwrap().len(), 1);
    for (method, params) in [("unloadwallet", json!(["cold"])), ("createwallet", json!(["warm"]))] {
        assert_eq!(client.refused(method, params).0, -32603, "{method}");
    }
}
