//! Templates, blocks and transactions: the same chain and the same mempool in this host and in bitcoind.
//!
//! The transactions are a few kinds of payments, some of which spend others. The time is that of a call over one kept-alive connection,
//! to the last byte of its answer, which is not parsed. bitcoind makes a template at most every five seconds unless the tip changes, so
//! both clocks are set forward when a new one is due.

use std::time::{Duration, Instant};

use bitcoin::consensus::encode::serialize_hex;
use outrigger_tests::{Client, Host, miner};
use serde_json::{Value, json};

use crate::transactions::{INPUTS, Purse, funding};
use crate::{median, milliseconds, print_row};
use outrigger_tests::bitcoind::Bitcoind;

const SIZES: [usize; 2] = [1_500, 20_000];
const UNCHANGED: usize = 200;
const CHANGES: usize = 25;
/// The transactions between two templates, and the number of such batches.
const MANY: usize = 900;
const BATCHES: usize = 5;
const BLOCKS: usize = 6;
/// The blocks until the first coinbases are mature, and a few more.
const BLOCKS_BEFORE: usize = 120;

/// Without the first three, Knots makes blocks of 300 kB, partly by the age of coins. Without the others, a bitcoind on regtest checks its
/// whole mempool and index after each change.
const ARGUMENTS: [&str; 5] = [
    "-blockmaxsize=4000000",
    "-blockmaxweight=4000000",
    "-blockprioritysize=0",
    "-checkmempool=0",
    "-checkblockindex=0",
];

/// A node, ours or bitcoind, and its measurements.
struct Node {
    client: Client,
    times: Vec<Duration>,
}

impl Node {
    /// Measures one call, and returns its answer.
    fn measure(&mut self, body: &str) -> String {
        let (took, answer) = time_post(&mut self.client, body);
        self.times.push(took);
        answer
    }
}

/// Prints the median time of each node, and clears the measurements.
fn report(what: &str, nodes: &mut [Node]) {
    let times = nodes.iter_mut().map(|node| milliseconds(median(std::mem::take(&mut node.times))));
    let times: Vec<f64> = times.collect();
    print_row(what, "ms", times[0], times.get(1).copied());
}

fn request() -> String {
    json!({"id": 1, "method": "getblocktemplate", "params": [{"rules": ["segwit"]}]}).to_string()
}

/// Times one call.
fn time_post(client: &mut Client, body: &str) -> (Duration, String) {
    let began = Instant::now();
    let reply = client.post(body);
    let took = began.elapsed();
    assert_eq!(reply.status, 200, "{}", reply.body);
    (took, reply.body)
}

pub fn run(bitcoind: Option<&str>) {
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    for size in SIZES {
        let host = Host::start();
        let theirs = bitcoind.map(|path| Bitcoind::start_with(path, &ARGUMENTS).0);
        let clients = std::iter::once(host.client()).chain(theirs.as_ref().map(Bitcoind::client));
        let nodes = clients.map(|client| Node { client, times: Vec::new() }).collect();
        Bench { nodes, purse: Purse::default(), clock: 0 }.run(size);
    }
}

struct Bench {
    nodes: Vec<Node>,
    purse: Purse,
    /// The mocked time of both nodes, in seconds.
    clock: u64,
}

impl Bench {
    fn run(mut self, size: usize) {
        self.prepare(size);
        self.fill(size);
        self.unchanged(size);
        self.after_changes(size);
        self.after_many(size);
        if size == SIZES[SIZES.len() - 1] {
            self.full_blocks();
        }
    }

    fn call_all(&mut self, method: &str, params: &Value) {
        self.nodes.iter_mut().for_each(|node| drop(node.client.call(method, params.clone())));
    }

    /// Submits a block of our template to both. Returns the number of its transactions, and the times.
    fn block(&mut self) -> (usize, Vec<Duration>) {
        let template = self.nodes[0].client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
        let block = miner::build(&template, self.purse.script());
        self.purse.earned(&block.txdata[0]);
        let body = json!({"id": 1, "method": "submitblock", "params": [miner::hex(&block)]}).to_string();
        let submit = |node: &mut Node| {
            let (took, answer) = time_post(&mut node.client, &body);
            assert!(answer.contains("\"result\":null"), "{answer}");
            took
        };
        (block.txdata.len(), self.nodes.iter_mut().map(submit).collect())
    }

    /// Makes a chain with outputs for this many transactions, and some more.
    fn prepare(&mut self, size: usize) {
        (0..BLOCKS_BEFORE).for_each(|_| drop(self.block()));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        self.clock = now + 1_000;
        let inputs = (size + CHANGES + MANY * BATCHES + 4) * INPUTS / 4;
        for tx in funding(&mut self.purse, inputs) {
            self.call_all("sendrawtransaction", &json!([serialize_hex(&tx), 0]));
            // Each transaction fills a good part of a block.
            self.forward(6);
            self.block();
        }
    }

    fn forward(&mut self, seconds: u64) {
        self.clock += seconds;
        let clock = json!([self.clock]);
        self.call_all("setmocktime", &clock);
    }

    fn fill(&mut self, size: usize) {
        let body = |tx| json!({"id": 1, "method": "sendrawtransaction", "params": [serialize_hex(&tx), 0]}).to_string();
        let bodies: Vec<String> = (0..size).map(|_| body(self.purse.pay())).collect();
        for node in &mut self.nodes {
            let began = Instant::now();
            for body in &bodies {
                time_post(&mut node.client, body);
            }
            node.times.push(began.elapsed() / u32::try_from(size).unwrap());
            assert_eq!(node.client.call("getmempoolinfo", json!([]))["size"], json!(size));
        }
        report(&format!("sendrawtransaction, {size} in a row, each"), &mut self.nodes);
    }

    /// Times an unchanged template.
    fn unchanged(&mut self, size: usize) {
        self.forward(6);
        let request = request();
        let mut last = String::new();
        for node in &mut self.nodes {
            (0..3).for_each(|_| drop(time_post(&mut node.client, &request)));
            (0..UNCHANGED).for_each(|_| last = node.measure(&request));
        }
        report(&format!("getblocktemplate unchanged, {size} in the mempool"), &mut self.nodes);
        let template: Value = serde_json::from_str(&last).unwrap();
        let count = template["result"]["transactions"].as_array().unwrap().len();
        println!("(a template of {count} transactions, {} bytes of JSON)", last.len());
    }

    /// Times the first template after one more transaction.
    fn after_changes(&mut self, size: usize) {
        let request = request();
        for _ in 0..CHANGES {
            let hex = serialize_hex(&self.purse.pay());
            self.call_all("sendrawtransaction", &json!([hex, 0]));
            self.forward(6);
            self.nodes.iter_mut().for_each(|node| drop(node.measure(&request)));
        }
        report(&format!("getblocktemplate, first after a transaction, {size} in the mempool"), &mut self.nodes);
    }

    /// Times the first template after many more transactions.
    fn after_many(&mut self, size: usize) {
        let request = request();
        for _ in 0..BATCHES {
            for hex in (0..MANY).map(|_| serialize_hex(&self.purse.pay())).collect::<Vec<_>>() {
                self.call_all("sendrawtransaction", &json!([hex, 0]));
            }
            self.forward(6);
            self.nodes.iter_mut().for_each(|node| drop(node.measure(&request)));
        }
        report(&format!("getblocktemplate, first after {MANY} transactions, {size} in the mempool"), &mut self.nodes);
    }

    /// Times full blocks, and the first template after each.
    fn full_blocks(&mut self) {
        let request = request();
        let mut blocks = Vec::new();
        for _ in 0..BLOCKS {
            self.forward(6);
            blocks.push(self.block());
            self.nodes.iter_mut().for_each(|node| drop(node.measure(&request)));
        }
        report("getblocktemplate, first after a full block", &mut self.nodes);
        let counts: Vec<_> = blocks.iter().map(|(count, _)| *count).collect();
        for (node, took) in blocks.iter().flat_map(|(_, times)| times.iter().enumerate()) {
            self.nodes[node].times.push(*took);
        }
        report("submitblock of what was in the mempool", &mut self.nodes);
        println!("(blocks of {counts:?} transactions)");
    }
}
