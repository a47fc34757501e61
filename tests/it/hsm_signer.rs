//! The example `hsm-signer`: wallets whose keys another process holds. All signing methods use it.

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, all_groups, built};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::check::{check, report};
use crate::isolation::has_sandbox;
use crate::key_daemon::KeyDaemon;

/// The master key of BIP 32's first test vector on test chains, and its public account keys.
const MASTER: &str =
    "tprv8ZgxMBicQKsPeDgjzdC36fs6bMjGApWDNLR9erAXMs5skhMv36j9MV5ecvfavji5khqjWaWSFhN3YcCUUdiKH6isR4Pwy3U5y5egddBr16m";

fn daemon() -> KeyDaemon {
    KeyDaemon::new("hsm-daemon", MASTER)
}

/// A host with the HSM's plugin, where `rest` belongs to the plugin's section.
fn options(hsm: &KeyDaemon, rest: &str) -> HostOptions {
    let text = all_groups().replace("[wallet]\n", "[wallet]\nsigner = \"hsm-signer\"\n");
    let socket = hsm.socket();
    let rest = format!(
        "grants = [\"log/1\"]\n{rest}reach = [\"connect:unix:{socket}\"]\noptions = {{ socket = {socket:?} }}\n"
    );
    HostOptions::with_plugin(&text, built().library("outrigger_hsm_signer"), &rest)
}

/// Imports active descriptors of the master key: private ones, or public ones of the same accounts.
fn import(wallet: &mut Client, private: bool) {
    let mut requests = Vec::new();
    for (kind, purpose) in [("wpkh", 84), ("tr", 86), ("pkh", 44)] {
        for branch in [0, 1] {
            let checked = match private {
                true => wallet.with_checksum(&format!("{kind}({MASTER}/{purpose}h/1h/0h/{branch}/*)")),
                false => public(kind, purpose, branch, wallet),
            };
            let internal = branch == 1;
            requests.push(json!({"desc": checked, "timestamp": "now", "active": true, "internal": internal}));
        }
    }
    wallet.import(&json!(requests));
}

/// A descriptor's public text, as a wallet with private keys lists it.
fn public(kind: &str, purpose: u32, branch: u32, client: &mut Client) -> String {
    let listed = client.wallet("hot").call("listdescriptors", json!([]));
    let texts = listed["descriptors"].as_array().unwrap().iter().map(|one| one["desc"].as_str().unwrap());
    let place = (format!("/{purpose}h/1h/0h]"), format!("/{branch}/*)"));
    let matches = |text: &&str| text.starts_with(kind) && text.contains(&place.0) && text.contains(&place.1);
    texts.into_iter().find(matches).unwrap().to_owned()
}

/// The wallets "hot", with private keys, and "vault", without; both have the same addresses.
fn wallets(host: &Host) -> (Client, Client) {
    let mut client = host.client();
    let mut hot = client.create_wallet("hot", json!({"blank": true}));
    import(&mut hot, true);
    let mut vault = client.create_wallet("vault", json!({"disable_private_keys": true, "external_signer": true}));
    import(&mut vault, false);
    (hot, vault)
}

fn fund(vault: &mut Client) {
    for kind in ["bech32", "bech32m", "legacy"] {
        let address = vault.call("getnewaddress", json!(["", kind]));
        vault.call("generatetoaddress", json!([2, address]));
    }
    vault.call("generatetoaddress", json!([100, ELSEWHERE]));
}

#[test]
fn hsm_signer_serves_every_method_that_signs_from_its_own_process() {
    let (hsm, isolated) = (daemon(), has_sandbox());
    // Runs in the host's process if the system has no sandbox.
    let host = Host::start_with(options(&hsm, if isolated { "isolated = true\n" } else { "" }));
    let (mut hot, mut vault) = wallets(&host);
    let info = vault.call("getwalletinfo", json!([]));
    assert_eq!((&info["private_keys_enabled"], &info["external_signer"]), (&json!(true), &json!(true)), "{info}");
    let held = "Error: the plugin 'hsm-signer' holds the keys of this wallet, nothing to encrypt.".to_owned();
    assert_eq!(vault.refused("encryptwallet", json!(["x"])), (-4, held));
    assert_eq!(vault.refused("listdescriptors", json!([true])).0, -4);
    fund(&mut vault);

    let txid = vault.call("sendtoaddress", json!([ELSEWHERE, 1]));
    let bumped = vault.call("bumpfee", json!([txid]));
    let many = vault.call("sendmany", json!(["", {ELSEWHERE: 1}]));
    let sent = vault.call("send", json!([{ELSEWHERE: 60}]));
    assert_eq!(sent["complete"], json!(true), "{sent}");
    let mempool = vault.call("getrawmempool", json!([]));
    for txid in [&bumped["txid"], &many, &sent["txid"]] {
        assert!(mempool.as_array().unwrap().contains(txid), "{txid} {mempool}");
    }
    let funded = vault.call("walletcreatefundedpsbt", json!([[], [{ELSEWHERE: 2}]]));
    let processed = vault.call("walletprocesspsbt", json!([funded["psbt"]]));
    assert_eq!(processed["complete"], json!(true), "{processed}");

    // The signatures match those of a wallet with the same keys.
    let coins = vault.call("listunspent", json!([0]));
    let inputs: Vec<Value> =
        coins.as_array().unwrap().iter().map(|coin| json!({"txid": coin["txid"], "vout": coin["vout"]})).collect();
    let raw = vault.call("createrawtransaction", json!([inputs, [{ELSEWHERE: 1}]]));
    let signed = vault.call("signrawtransactionwithwallet", json!([raw]));
    assert_eq!(signed["complete"], json!(true), "{signed}");
    let prevtxs: Vec<Value> = coins.as_array().unwrap().iter().map(|coin| {
        json!({"txid": coin["txid"], "vout": coin["vout"], "scriptPubKey": coin["scriptPubKey"], "amount": coin["amount"]})
    }).collect();
    assert_eq!(signed, hot.call("signrawtransactionwithwallet", json!([raw, prevtxs])));
    let address = vault.call("getnewaddress", json!(["", "legacy"]));
    let message = vault.call("signmessage", json!([address, "text"]));
    assert_eq!(message, hot.call("signmessage", json!([address, "text"])));
    assert_eq!(vault.call("sendall", json!([[ELSEWHERE]]))["complete"], json!(true));
    if isolated {
        let told = vault.plugin("hsm-signer");
        assert_eq!((&told["isolated"], &told["denied"]["count"]), (&json!(true), &json!(0)), "{told}");
    }
}

#[test]
fn unreachable_hsm_signer_is_named_and_the_wallet_stores_nothing() {
    let mut hsm = daemon();
    let host = Host::start_with(options(&hsm, ""));
    let (_, mut vault) = wallets(&host);
    fund(&mut vault);
    let state = |vault: &mut Client| {
        let transactions = vault.call("listtransactions", json!(["*", 1000]));
        (transactions, vault.call("getbalances", json!([])), vault.call("getrawmempool", json!([])))
    };
    let before = state(&mut vault);
    let refuse = |vault: &mut Client, reason: &str| {
        for (method, params) in [
            ("sendtoaddress", json!([ELSEWHERE, 1])),
            ("send", json!([{ELSEWHERE: 1}])),
            ("sendall", json!([[ELSEWHERE]])),
        ] {
            let (code, message) = vault.refused(method, params);
            assert!(code == -4 && message.contains("'hsm-signer'") && message.contains(reason), "{method}: {message}");
        }
    };
    hsm.stop();
    refuse(&mut vault, "The signing daemon cannot be reached");
    let locking = json!({"lock_unspents": true});
    assert_eq!(vault.refused("send", json!([{ELSEWHERE: 1}, null, null, null, locking])).0, -4);
    assert_eq!(vault.refused("sendall", json!([[ELSEWHERE], null, null, null, locking])).0, -4);
    assert_eq!(vault.call("listlockunspent", json!([])), json!([]));
    vault.call("stopplugin", json!(["hsm-signer"]));
    refuse(&mut vault, "does not run");
    assert_eq!(state(&mut vault), before);
    hsm.start();
    vault.call("startplugin", json!(["hsm-signer"]));
    vault.call("reloadplugin", json!(["hsm-signer"]));
    vault.call("sendtoaddress", json!([ELSEWHERE, 1]));
    // Clients cannot call a provider's functions.
    let (code, _) = vault.refused("keys-provider/1.sign", json!([{}]));
    assert_eq!(code, -32601);
}

#[test]
fn hanging_hsm_signer_is_reported_before_the_deadline_of_the_call() {
    let hsm = daemon();
    let options = options(&hsm, "");
    options.change("file = \"signing\"\n", "file = \"signing\"\ndeadline_seconds = 3\n");
    let host = Host::start_with(options);
    let (_, mut vault) = wallets(&host);
    let address = vault.call("getnewaddress", json!(["", "legacy"]));
    kill_process(hsm.process_id(), Signal::STOP).unwrap();
    let (code, message) = vault.refused("signmessage", json!([address, "text"]));
    kill_process(hsm.process_id(), Signal::CONT).unwrap();
    assert!(
        code == -4 && message.contains("'hsm-signer'") && message.ends_with("it did not answer in time"),
        "{message}"
    );
}

#[test]
fn hsm_signer_passes_plugin_check_without_its_daemon() {
    let report = report("outrigger_hsm_signer", &[]);
    assert_eq!(report["passed"], true, "{report:#}");
    assert!(check(&report, "parameters")["detail"].as_str().unwrap().ends_with(" calls of 3 methods"), "{report:#}");
}

#[test]
fn wallet_signer_must_be_a_plugin_that_provides_keys() {
    let hsm = daemon();
    let output = Host::check(&options(&hsm, "enabled = false\n"));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("no enabled plugin 'hsm-signer' provides keys-provider/1"), "{told}");
}

#[test]
fn a_policy_judges_all_wallets_of_hsm_signer_but_no_wallet_with_its_own_keys() {
    let hsm = daemon();
    let options = options(&hsm, "");
    let judge = built().library("outrigger_judge").display().to_string();
    let config = options.config_file();
    let text = std::fs::read_to_string(config.path()).unwrap();
    let policy = format!(
        "\n[[plugins]]\nfile = {judge:?}\noptions = {{ refuse = [\"Sign\", \"SignMessage\"] }}\n\
         [[wallet.policies]]\nwallets = [\"vault\"]\nplugin = \"judge\"\n"
    );
    std::fs::write(config.path(), text + &policy).unwrap();
    let host = Host::start_with(options);
    let (mut hot, mut vault) = wallets(&host);
    fund(&mut vault);
    let refused = (-4, "The policy 'judge' refuses: It is Sunday".to_owned());
    // Another wallet of the same provider, which may use other references to the same keys.
    let mut other = vault.create_wallet("other", json!({"disable_private_keys": true, "external_signer": true}));
    let coin = vault.call("listunspent", json!([]))[0].clone();
    other.import(&json!([{"desc": coin["desc"], "timestamp": "now"}]));
    let raw =
        vault.call("createrawtransaction", json!([[{"txid": coin["txid"], "vout": coin["vout"]}], [{ELSEWHERE: 1}]]));
    assert_eq!(other.refused("signrawtransactionwithwallet", json!([raw])), refused);
    assert_eq!(vault.refused("sendtoaddress", json!([ELSEWHERE, 1])), refused);
    let address = vault.call("getnewaddress", json!(["", "legacy"]));
    assert_eq!(vault.refused("signmessage", json!([address, "text"])), refused);
    // The vault has only public keys, and anybody may make a wallet with those.
    let address = hot.call("getnewaddress", json!(["", "legacy"]));
    hot.call("signmessage", json!([address, "text"]));
}
