//! The mempool over restarts, and what it says of itself.

use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

/// A host whose mempool has transactions that build on each other, and one whose fee was raised.
fn with_transactions() -> Host {
    let host = Host::start();
    let mut client = host.client();
    client.call("createwallet", json!({"wallet_name": "w", "load_on_startup": false}));
    let mut wallet = client.wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    wallet.call("generatetoaddress", json!([101, address]));
    for amount in 1..=5 {
        wallet.call("sendtoaddress", json!([address, amount]));
    }
    let txid = wallet.call("getrawmempool", json!([]))[2].clone();
    client.call("prioritisetransaction", json!([txid, 0, 12_345]));
    client.call("prioritisetransaction", json!(["11".repeat(32), 0, -7]));
    host
}

/// What must be the same afterwards. No wallet is loaded, so nobody else brings transactions back.
fn state(client: &mut Client) -> Vec<Value> {
    vec![
        client.call("getrawmempool", json!([])),
        client.call("getrawmempool", json!([true])),
        client.call("getmempoolinfo", json!([])),
        client.call("getprioritisedtransactions", json!([])),
    ]
}

#[test]
fn the_mempool_survives_an_orderly_stop_and_a_kill() {
    let host = with_transactions();
    let before = state(&mut host.client());
    assert_eq!(before[0].as_array().unwrap().len(), 5);
    assert_eq!(before[3].as_object().unwrap().len(), 2);
    let host = host.restart();
    assert_eq!(state(&mut host.client()), before);
    let host = host.kill_and_restart();
    assert_eq!(state(&mut host.client()), before);
    let mut client = host.client();
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    assert_eq!(template["transactions"].as_array().unwrap().len(), 5);
    client.call("generatetoaddress", json!([1, "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202"]));
    let host = host.kill_and_restart();
    let mut client = host.client();
    assert_eq!(client.call("getrawmempool", json!([])), json!([]));
    assert_eq!(client.call("getprioritisedtransactions", json!([])).as_object().unwrap().len(), 1);
}

#[test]
fn a_damaged_journal_of_the_mempool_does_not_prevent_the_start() {
    let mut host = with_transactions();
    let journal = host.network_folder().join("chain/mempool.journal");
    let before = host.client().call("getrawmempool", json!([]));
    host.kill();
    let mut bytes = std::fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&journal, bytes).unwrap();
    let mut host = host.start_again();
    let after = host.client().call("getrawmempool", json!([]));
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    // What built on the one that was damaged cannot come back either.
    assert!(after.len() < before.len() && after.iter().all(|txid| before.contains(txid)));
    host.kill();
    std::fs::write(&journal, b"nonsense").unwrap();
    let host = host.start_again();
    assert_eq!(host.client().call("getrawmempool", json!([])), json!([]));
}

#[test]
fn the_mempool_counts_as_bitcoind_counts() {
    let host = with_transactions();
    let mut client = host.client();
    let mut sequence = || client.call("getrawmempool", json!([false, true]))["mempool_sequence"].clone();
    // It begins with 1 and counts what came and what left, and no blocks.
    assert_eq!(sequence(), json!(6));
    assert_eq!(sequence(), json!(6));
    let mut client = host.client();
    let info = client.call("getmempoolinfo", json!([]));
    assert_eq!((&info["unbroadcastcount"], &info["maxmempool"]), (&json!(5), &json!(300_000_000)));
    let entries = client.call("getrawmempool", json!([true]));
    assert!(entries.as_object().unwrap().values().all(|entry| entry["unbroadcast"] == json!(true)));
    let mined = client.call("generatetoaddress", json!([1, "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202"]));
    assert_eq!(client.call("getrawmempool", json!([false, true]))["mempool_sequence"], json!(11));
    client.call("invalidateblock", json!([mined[0]]));
    // What comes back from a block was not sent by anyone here.
    let info = client.call("getmempoolinfo", json!([]));
    assert_eq!((&info["size"], &info["unbroadcastcount"]), (&json!(5), &json!(0)));
    let txid = client.call("getrawmempool", json!([]))[0].clone();
    assert_eq!(client.call("getmempoolentry", json!([txid]))["unbroadcast"], json!(false));
}
