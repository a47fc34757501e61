//! Stopping and starting again loses nothing; neither does a kill.

use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

const WATCHED: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";

/// A host with blocks, a payment, imports and labels.
fn lived() -> Host {
    let host = Host::start();
    let mut client = host.client();
    client.call("createwallet", json!({"wallet_name": "w", "load_on_startup": true}));
    let mut wallet = client.wallet("w");
    let address = wallet.call("getnewaddress", json!(["mine"]));
    wallet.call("generatetoaddress", json!([101, address]));
    let request =
        json!([[{"scriptPubKey": {"address": WATCHED}, "timestamp": 0, "watchonly": true, "label": "watched"}]]);
    assert_eq!(wallet.call("importmulti", request), json!([{"success": true}]));
    wallet.call("sendtoaddress", json!([WATCHED, 3, "a comment"]));
    wallet.call("generatetoaddress", json!([1, address]));
    wallet.call("setlabel", json!([address, "renamed"]));
    host
}

/// What must be the same afterwards.
fn state(client: &mut Client) -> Vec<Value> {
    let mut wallet = client.wallet("w");
    let mut info = client.call("getblockchaininfo", json!([]));
    info.as_object_mut().unwrap().remove("size_on_disk");
    vec![
        info,
        client.call("getchaintips", json!([])),
        client.call("listwallets", json!([])),
        wallet.call("listsinceblock", json!(["", 1, true])),
        wallet.call("getbalances", json!([])),
        wallet.call("listunspent", json!([0])),
        wallet.call("listdescriptors", json!([])),
        wallet.call("getaddressinfo", json!([WATCHED])),
    ]
}

#[test]
fn durability_orderly_stop_loses_nothing() {
    let host = lived();
    let before = state(&mut host.client());
    let fresh = host.client().wallet("w").call("getnewaddress", json!([]));
    let host = host.restart();
    let after = state(&mut host.client());
    for (before, after) in before.iter().zip(&after).take(6) {
        assert_eq!(before, after);
    }
    assert_eq!(after[7], before[7]);
    assert_ne!(host.client().wallet("w").call("getnewaddress", json!([])), fresh);
}

#[test]
fn durability_kill_loses_nothing_that_was_answered() {
    let host = lived();
    let before = state(&mut host.client());
    let host = host.kill_and_restart();
    assert_eq!(state(&mut host.client()), before);
}
