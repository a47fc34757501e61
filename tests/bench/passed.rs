//! What passing calls on costs: the same calls through this host and of the bitcoind behind it, in turns.

use outrigger_tests::{Bitcoind, Client, Host, HostOptions};
use serde_json::{Value, json};

use crate::load::{Waits, compare};

/// Threads and queue of the node, so that none of the calls is refused.
const ARGUMENTS: [&str; 3] = ["-rpcthreads=16", "-rpcworkqueue=256", "-checkmempool=0"];

/// How many connections call at a time, where it is not one.
const MANY: usize = 16;

const BATCH: usize = 1000;

/// The outputs of the transaction whose decoding is a long answer.
const OUTPUTS: usize = 30_000;

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
}

/// A transaction with so many outputs, in hexadecimal. Decoded, each takes some 330 bytes of JSON.
fn transaction(outputs: usize) -> String {
    let input = format!("01{}0000000000ffffffff", "11".repeat(32));
    let count = u16::try_from(outputs).unwrap().to_le_bytes();
    let output = "0100000000000000160014".to_owned() + &"00".repeat(20);
    format!("02000000{input}fd{:02x}{:02x}{}00000000", count[0], count[1], output.repeat(outputs))
}
