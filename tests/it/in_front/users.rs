//! Users of the host, and what they reach of the node.

use outrigger_tests::{Client, Host, HostOptions, bitcoind};
use serde_json::json;

use crate::users::ALICE;

/// A host with a user `alice` of these settings.
fn with_user(settings: &str, more: &[&str]) -> Option<(Host, Client)> {
    bitcoind::installed()?;
    let user = format!("rpc.users=[{{ rpcauth = '{ALICE}', {settings} }}]");
    let set = std::iter::once(user).chain(more.iter().map(|&set| set.to_owned())).collect();
    let host = Host::start_with(HostOptions { set, ..HostOptions::in_front_of(&[]) });
    let alice = Client::new(host.address, "alice:pass:word");
    Some((host, alice))
}

fn status(client: &mut Client, method: &str) -> u16 {
    client.post(&json!({"id": 1, "method": method, "params": []}).to_string()).status
}

#[test]
fn users_method_list_holds_for_passed_methods_and_batches() {
    let Some((_host, mut alice)) = with_user("methods = ['getblockcount', 'scantxoutset']", &[]) else { return };
    assert_eq!(status(&mut alice, "getblockcount"), 200);
    assert_eq!(status(&mut alice, "getbestblockhash"), 403);
    let batch = json!([{"id": 1, "method": "getblockcount"}, {"id": 2, "method": "getbestblockhash"}]);
    assert_eq!(alice.post(&batch.to_string()).status, 403);
    let options = HostOptions {
        set: vec![format!("rpc.users=[{{ rpcauth = '{ALICE}', methods = ['getblockcuont'] }}]")],
        ..HostOptions::in_front_of(&[])
    };
    let output = Host::fail(&options);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody has a method 'getblockcuont'"));
}

#[test]
fn user_confined_to_a_wallet_changes_neither_the_node_nor_its_files() {
    let Some((host, mut alice)) = with_user("wallet = 'hers'", &[]) else { return };
    host.new_wallet("hers");
    host.new_wallet("other");
    alice.call("getblockcount", json!([]));
    assert_eq!(alice.call("getwalletinfo", json!([]))["walletname"], "hers");
    for method in ["dumptxoutset", "savemempool", "setban", "invalidateblock", "pruneblockchain"] {
        assert_eq!(status(&mut alice, method), 403, "{method}");
    }
    // The operator may.
    assert_ne!(status(&mut host.client(), "setban"), 403);
}

#[test]
fn user_confined_to_a_wallet_of_the_node_reaches_no_other() {
    let Some((host, mut alice)) = with_user("wallet = 'hers'", &["backend.wallets=node", "plugins=[]"]) else { return };
    let mut client = host.client();
    client.call("createwallet", json!(["hers"]));
    client.call("createwallet", json!(["other"]));
    assert_eq!(alice.call("getwalletinfo", json!([]))["walletname"], "hers");
    assert_eq!(alice.wallet("hers").call("getwalletinfo", json!([]))["walletname"], "hers");
    let refused = alice.wallet("other").refused("getwalletinfo", json!([]));
    assert_eq!(refused, (-18, "Requested wallet does not exist or is not loaded".to_owned()));
    for method in ["listwallets", "loadwallet", "unloadwallet", "createwallet", "backupwallet"] {
        assert_eq!(status(&mut alice, method), 403, "{method}");
    }
}
