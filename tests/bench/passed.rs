//! The cost of passing calls on: the same calls through this host and directly to the bitcoind behind it, in turns.

use std::time::Instant;

use bitcoin::Transaction;
use bitcoin::consensus::encode::serialize_hex;
use outrigger_tests::{Bitcoind, Client, Host, HostOptions, pair, wait_until};
use serde_json::{Value, json};

use crate::load::{Waits, compare};
use crate::payments::{Funds, PER_BLOCK, script_of};
use crate::{median, milliseconds, print_row};

/// Threads and queue of the node, which then refuses none of the calls.
const ARGUMENTS: [&str; 3] = ["-rpcthreads=16", "-rpcworkqueue=256", "-checkmempool=0"];

/// The number of concurrent connections, if not one.
const MANY: usize = 16;

/// The calls in a batch.
const BATCH: usize = 1000;

/// The outputs of the transaction whose decoded form is a long answer.
const OUTPUTS: usize = 30_000;

/// The transactions in the mempool, the measured ones sent besides, and the amount of each payment in satoshi.
const WAITING: usize = 60_000;
const SENT: usize = 200;
const PAID: u64 = 10_000;

/// Runs the section.
pub fn run(bitcoind: Option<&str>) {
    let Some(path) = bitcoind else {
        println!("passed calls need a node: --bitcoind PATH");
        return;
    };
    let (node, _) = Bitcoind::start_with(path, &ARGUMENTS);
    let host = Host::start_before(tempfile::tempdir().unwrap(), HostOptions::default(), Some(node));
    let node = host.node.as_ref().unwrap();
    let clients: Vec<(Client, Client)> = vec![(host.client(), host.client()), (node.client(), node.client())];
    println!("| what | through outrigger | bitcoind itself | unit | ratio |\n|---|---|---|---|---|");
    let one = vec![json!({"id": 1, "method": "getblockcount", "params": []}).to_string()];
    for (connections, waits) in [(1, Waits::Asleep), (1, Waits::Awake), (MANY, Waits::Asleep)] {
        compare("getblockcount", connections, waits, &one, false, &clients);
    }
    let batch: Value = (0..BATCH).map(|id| json!({"id": id, "method": "getblockhash", "params": [0]})).collect();
    compare("a batch of 1,000 getblockhash", 1, Waits::Asleep, &[batch.to_string()], false, &clients);
    let long = json!({"id": 1, "method": "decoderawtransaction", "params": [transaction(OUTPUTS)]}).to_string();
    compare("decoderawtransaction with an answer of 10 MB", 1, Waits::Asleep, &[long], false, &clients);
    full_mempool(&host);
}

/// Sends transactions through the host, which has a wallet, and then directly to the node.
fn full_mempool(host: &Host) {
    let mut wallet = host.new_wallet("w");
    let mut clients = [host.client(), host.node.as_ref().unwrap().client()];
    let mut funds = Funds::new(host.node.as_ref().unwrap().client());
    let payments = vec![(pair::script(), PAID); PER_BLOCK];
    let mut pending = Vec::new();
    while pending.len() < WAITING + SENT {
        let mut made = funds.payments(&payments);
        pending.extend(made.split_off(1));
        funds.mine(&made);
    }
    let own = script_of(&wallet.call("getnewaddress", json!([])));
    let mut to_wallet = funds.payments(&[(own, PAID)]);
    funds.mine(&to_wallet[..1]);
    let mut send = |to: usize, transaction: &Transaction| {
        let began = Instant::now();
        clients[to].call("sendrawtransaction", json!([serialize_hex(transaction)]));
        began.elapsed()
    };
    for transaction in pending.drain(..WAITING) {
        send(1, &transaction);
    }
    send(1, &to_wallet.remove(1));
    wait_until("the host has read the mempool", || {
        wallet.call("getbalances", json!([]))["mine"]["untrusted_pending"].as_f64() > Some(0.0)
    });
    // One server after the other: after a foreign payment the host reads the node's mempool, which is not part of this call's cost.
    let (ours, theirs) = pending[..SENT].split_at(SENT / 2);
    let ours = ours.iter().map(|transaction| send(0, transaction)).collect();
    let theirs = theirs.iter().map(|transaction| send(1, transaction)).collect();
    let what = format!("sendrawtransaction with {WAITING} transactions in the mempool");
    let theirs = Some(milliseconds(median(theirs)));
    print_row(&what, "ms", milliseconds(median(ours)), theirs);
}

/// A transaction with this many outputs, in hexadecimal. Each decoded output takes about 330 bytes of JSON.
fn transaction(outputs: usize) -> String {
    let input = format!("01{}0000000000ffffffff", "11".repeat(32));
    let count = u16::try_from(outputs).unwrap().to_le_bytes();
    let output = "0100000000000000160014".to_owned() + &"00".repeat(20);
    format!("02000000{input}fd{:02x}{:02x}{}00000000", count[0], count[1], output.repeat(outputs))
}
