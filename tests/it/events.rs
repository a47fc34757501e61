//! Plugins receive every kind of event, and the host counts events that a slow plugin misses.

use outrigger_tests::{Client, NOBODY};
use serde_json::{Value, json};

use crate::faults::{self, await_told, check_others, start_with_gate};

/// The length of a plugin's event queue; the host drops events beyond it.
const QUEUE_DEPTH: u64 = 4096;

fn wait_for(client: &mut Client, topic: &str) -> Value {
    let mut wanted = 1;
    loop {
        let heard = client.call("faultevents", json!([wanted]));
        let heard = heard.as_array().unwrap();
        if let Some(event) = heard.iter().find(|event| event["topic"] == topic) {
            return event.clone();
        }
        wanted = heard.len() + 1;
    }
}

#[test]
fn plugins_receive_events_of_the_chain_and_of_wallets() {
    let host = faults::start("");
    let mut client = host.client();
    let mut wallet = client.create_wallet("w", json!({"passphrase": "open sesame"}));
    wallet.call("walletpassphrase", json!(["open sesame", 600]));
    let address = wallet.mine(101);
    wallet.call("sendtoaddress", json!([address, "1.0"]));
    wallet.call("walletlock", json!([]));
    let mut topics: Vec<String> = Vec::new();
    // At least 101 blocks, 101 wallet transactions, the payment, and two lock changes.
    for event in client.call("faultevents", json!([101 + 101 + 1 + 2])).as_array().unwrap() {
        let topic = event["topic"].as_str().unwrap().to_owned();
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    topics.sort();
    assert_eq!(topics, ["mempool", "tip", "wallet-lock", "wallet-transaction"]);
    // A deep reorganisation undoes transactions.
    let mut wallet = client.create_wallet("reorganised", json!({}));
    let address = wallet.call("getnewaddress", json!([]));
    let blocks = wallet.call("generatetoaddress", json!([8, address]));
    wallet.call("invalidateblock", json!([blocks[2]]));
    let event = wait_for(&mut client, "reorganisation");
    assert_eq!((&event["wallet"], &event["blocks"]), (&json!("reorganised"), &json!(6)));
    let mut expected: Vec<Value> =
        (2..8).map(|at| client.call("getblock", json!([blocks[at]]))["tx"][0].clone()).collect();
    let mut transactions = event["transactions"].as_array().unwrap().clone();
    for list in [&mut expected, &mut transactions] {
        list.sort_by_key(Value::to_string);
    }
    assert_eq!(transactions, expected);
    // A rescan ends.
    let mut wallet = client.create_wallet("watched", json!({}));
    let address = wallet.mine(3);
    let mut watcher = client.create_wallet("watcher", json!({"disable_private_keys": true}));
    let descriptor = wallet.call("getaddressinfo", json!([address]))["desc"].clone();
    watcher.import(&json!([{"desc": descriptor, "timestamp": 0}]));
    let rescan = wait_for(&mut client, "rescan");
    assert_eq!((&rescan["wallet"], &rescan["outcome"]), (&json!("watcher"), &json!("Complete")));
}

#[test]
fn plugins_receive_the_shutdown_event_before_the_host_stops_them() {
    let mut host = faults::start("");
    let mut client = host.client();
    let waiting = client.begin_call("faultevents", json!([1]));
    await_told(&mut client, "waiting", &json!(1));
    assert!(host.terminate().success());
    assert_eq!(waiting.answer()["result"], json!([{"topic": "shutdown"}]));
}

#[test]
fn events_beyond_a_slow_subscribers_queue_are_dropped_and_counted_and_block_nobody() {
    let (host, gate) = start_with_gate("");
    let mut client = host.client();
    client.call("faultslowevents", json!([gate.address()]));
    client.call("generatetoaddress", json!([1, NOBODY]));
    // The plugin handles the first event; the queue takes the next ones until it is full.
    let waiting = gate.wait();
    const SURPLUS: u64 = 3;
    const PORTION: u64 = 256;
    for _ in 0..QUEUE_DEPTH / PORTION {
        client.call("generatetoaddress", json!([PORTION, NOBODY]));
    }
    check_others(&mut client);
    assert_eq!(client.plugin("faulty")["events_dropped"], json!(0));
    client.call("generatetoaddress", json!([SURPLUS, NOBODY]));
    assert_eq!(client.plugin("faulty")["events_dropped"], json!(SURPLUS));
    client.call("faultrelease", json!([]));
    drop(waiting);
    let heard = client.call("faultevents", json!([QUEUE_DEPTH + 1]));
    let heights: Vec<u64> = heard.as_array().unwrap().iter().filter_map(|event| event["height"].as_u64()).collect();
    assert_eq!(heights, (1..=QUEUE_DEPTH + 1).collect::<Vec<_>>());
    client.call("generatetoaddress", json!([1, NOBODY]));
    let heard = client.call("faultevents", json!([QUEUE_DEPTH + 2]));
    assert_eq!(heard.as_array().unwrap().last().unwrap()["height"], json!(QUEUE_DEPTH + SURPLUS + 2));
}
