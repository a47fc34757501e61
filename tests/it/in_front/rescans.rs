//! Rescans by the node's block filters, which the host keeps.

use outrigger_tests::{Client, Host, XPRV};
use serde_json::{Value, json};

use super::nodes::import;
use super::{ADDRESS, start_set};
use crate::metrics::ask;

/// How many filters the host's rescans had kept, and how many the host fetched from the node.
fn filters(host: &Host) -> [f64; 2] {
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    let count = |from: &str| {
        let name = format!("outrigger_node_filters_total{{from=\"{from}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&*name)?.parse().ok()).unwrap()
    };
    [count("kept"), count("node")]
}

fn found(client: &mut Client, name: &str, address: &Value) -> Value {
    let (mut wallet, answer) = import(client, name, address);
    assert_eq!(answer["success"], json!(true), "{answer}");
    wallet.call("getwalletinfo", json!([]))["txcount"].clone()
}

#[test]
fn rescans_fetch_each_filter_once_across_restarts_and_reorganisations() {
    for rest in ["-rest=1", "-rest=0"] {
        let arguments = ["-blockfilterindex=1", rest];
        let Some(host) = start_set(&arguments, &["metrics.listen=127.0.0.1:0"]) else { return };
        let mut client = host.client();
        // Mined before the first wallet, which would follow the blocks by their filters.
        client.call("generatetoaddress", json!([300, ADDRESS]));
        let mine = host.new_wallet("owner").call("getnewaddress", json!([]));
        client.call("generatetoaddress", json!([5, mine]));
        assert_eq!(found(&mut client, "first", &mine), json!(5));
        // The genesis block has a filter too.
        assert_eq!(filters(&host), [0.0, 306.0]);
        assert_eq!(found(&mut client, "second", &mine), json!(5));
        assert_eq!(filters(&host), [306.0, 306.0]);
        let host = host.restart();
        let mut client = host.client();
        assert_eq!(found(&mut client, "third", &mine), json!(5));
        assert_eq!(filters(&host), [306.0, 0.0]);
        // Three of the blocks leave the chain. Two of the blocks that replace them pay the wallet.
        let stale = client.call("getblockhash", json!([303]));
        client.call("invalidateblock", json!([stale]));
        client.call("generatetoaddress", json!([2, ADDRESS]));
        client.call("generatetoaddress", json!([2, mine]));
        assert_eq!(found(&mut client, "fourth", &mine), json!(4));
        assert_eq!(filters(&host), [306.0 + 303.0, 4.0]);
    }
}

/// Imports the first twenty scripts of a descriptor into a new wallet and rescans the whole chain. Returns the answer of
/// importdescriptors, the received transactions, and the range and next index.
fn imported(client: &mut Client, name: &str, descriptor: &str) -> (Value, Vec<String>, Value) {
    let mut wallet = client.create_wallet(name, json!({"blank": true}));
    let request = json!([[{"desc": descriptor, "timestamp": 0, "range": [0, 19]}]]);
    let answer = wallet.call("importdescriptors", request)[0].clone();
    let coins = wallet.call("listunspent", json!([0]));
    let mut coins: Vec<String> = coins.as_array().unwrap().iter().map(|coin| coin["txid"].to_string()).collect();
    coins.sort();
    let listed = wallet.call("listdescriptors", json!([]))["descriptors"][0].clone();
    (answer, coins, json!([listed["range"], listed["next"]]))
}

#[test]
fn rescans_find_payments_beyond_the_first_range_and_also_earlier_ones() {
    for source in ["-blockfilterindex=1", "-rest=1"] {
        let Some(host) = start_set(&["-keypool=20", source], &["wallet.keypool=20"]) else { return };
        let (mut client, mut node) = (host.client(), host.node_client());
        let text = format!("wpkh({XPRV}/*)");
        let private = client.with_checksum(&text);
        let addresses = client.call("deriveaddresses", json!([private, [0, 99]]));
        client.call("generatetoaddress", json!([1, ADDRESS]));
        // Each payment is within the range that the one before extends.
        for index in [15, 34, 53, 72] {
            client.call("generatetoaddress", json!([1, addresses[index]]));
        }
        client.call("generatetoaddress", json!([120, ADDRESS]));
        let (ours, theirs) = (imported(&mut client, "in-order", &private), imported(&mut node, "in-order", &private));
        assert_eq!((&ours.1, &ours.2), (&theirs.1, &theirs.2));
        assert_eq!((ours.1.len(), &ours.0["success"], &theirs.0), (4, &json!(true), &json!({"success": true})));
        // Each payment extends the range to the next one, which is in an earlier block.
        let private = client.with_checksum(&text.replace("/*", "/7/*"));
        let addresses = client.call("deriveaddresses", json!([private, [0, 99]]));
        for index in [52, 35, 18] {
            client.call("generatetoaddress", json!([1, addresses[index]]));
        }
        client.call("generatetoaddress", json!([110, ADDRESS]));
        let (ours, theirs) = (imported(&mut client, "back", &private), imported(&mut node, "back", &private));
        assert!(theirs.1.iter().all(|coin| ours.1.contains(coin)));
        assert_eq!((theirs.1.len(), ours.1.len()), (1, 3));
        let warnings = ours.0["warnings"].as_array().unwrap();
        assert!(warnings[0].as_str().unwrap().contains("near the end of the range"), "{}", ours.0);
    }
}
