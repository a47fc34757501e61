//! A real bitcoind reads the file that savemempool writes.

use std::path::Path;

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{Amount, OutPoint, Transaction};
use outrigger_tests::pair::{COIN, Pair, spend};
use outrigger_tests::{Client, HostOptions};
use serde_json::{Value, json};

/// The number of blocks until two coins are mature.
const BLOCKS: u64 = 102;

fn chain_of(pair: &mut Pair, length: u64, fee: u64) -> Vec<Transaction> {
    let mut transactions: Vec<Transaction> = Vec::new();
    let coin = pair.coin();
    for number in 1..=length {
        let last = transactions.last().map_or(coin, |last| OutPoint::new(last.compute_txid(), 0));
        transactions.push(spend(&[last], &[COIN - Amount::from_sat(fee * number)]));
    }
    transactions
}

fn send_all(client: &mut Client, transactions: &[Transaction]) {
    for transaction in transactions {
        client.call("sendrawtransaction", json!([serialize_hex(transaction), 0]));
    }
}

/// Fields that this node adds to those of Bitcoin Core.
const NODES_OWN: [&str; 4] = ["startingpriority", "currentpriority", "hash", "priority_delta"];

/// The entries of a mempool, and the fee deltas.
fn contents(client: &mut Client) -> (Value, Value) {
    let mut told = |method: &str, params: Value| {
        let mut told = client.call(method, params);
        for entry in told.as_object_mut().unwrap().values_mut().filter_map(Value::as_object_mut) {
            NODES_OWN.iter().for_each(|name| drop(entry.shift_remove(*name)));
        }
        told
    };
    (told("getrawmempool", json!([true])), told("getprioritisedtransactions", json!([])))
}

#[test]
fn mempool_file_of_the_host_is_read_by_bitcoind() {
    let Some(mut pair) = Pair::start(HostOptions::default(), &[], BLOCKS) else { return };
    let [mut host, mut node] = pair.clients();
    let transactions = chain_of(&mut pair, 5, 3_000);
    send_all(&mut host, &transactions);
    send_all(&mut host, &chain_of(&mut pair, 1, 20_000));
    for (transaction, delta) in [(&transactions[2], 500), (&transactions[0], -40)] {
        host.call("prioritisetransaction", json!([transaction.compute_txid(), 0, delta]));
    }
    let absent = "11".repeat(32);
    host.call("prioritisetransaction", json!([absent, 0, 77]));
    pair.pass(100);
    let saved = host.call("savemempool", json!([]))["filename"].clone();
    let expected = pair.host.network_folder().join("chain/mempool.dat");
    assert_eq!(Path::new(saved.as_str().unwrap()).canonicalize().unwrap(), expected.canonicalize().unwrap());
    let everything =
        json!({"use_current_time": false, "apply_fee_delta_priority": true, "apply_unbroadcast_set": true});
    assert_eq!(node.call("importmempool", json!([saved, everything])), json!({}));
    assert_eq!(contents(&mut host), contents(&mut node));
}
