//! Templates, blocks and transactions: the same chain and the same mempool in this host and in bitcoind.
//!
//! The transactions are a few kinds of payments, some of which spend others. The time is that of a call over one kept-alive connection,
//! to the last byte of its answer, which is not parsed. Besides median times there are mean processor times of the node, which are more
//! reliable on a shared machine. bitcoind makes a template at most every five seconds unless the tip changes, so both clocks are set
//! forward when a new one is due.

use std::time::{Duration, Instant};

use bitcoin::consensus::encode::serialize_hex;
use outrigger_tests::{Client, Host, miner};
use serde_json::{Value, json};

use crate::transactions::{INPUTS, Purse, funding};
use crate::{Row, median, milliseconds};
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
    process: u32,
    times: Vec<Duration>,
    worked: Duration,
}

impl Node {
    fn new(client: Client, process: u32) -> Self {
        Self { client, process, times: Vec::new(), worked: Duration::ZERO }
    }

    /// Measures one call, and returns its answer.
    fn measure(&mut self, body: &str) -> String {
        let (measured, answer) = self.try_out(body);
        self.record(measured);
        answer
    }

    /// Makes one call. Returns its times and its answer.
    fn try_out(&mut self, body: &str) -> ((Duration, Duration), String) {
        let before = worked(self.process);
        let (took, answer) = time_post(&mut self.client, body);
        ((took, worked(self.process).saturating_sub(before)), answer)
    }

    fn record(&mut self, (took, worked): (Duration, Duration)) {
        self.times.push(took);
        self.worked += worked;
    }

    /// The median time, and the mean processor time.
    fn result(&mut self) -> (Duration, Duration) {
        let times = std::mem::take(&mut self.times);
        let work = std::mem::take(&mut self.worked) / u32::try_from(times.len()).unwrap();
        (median(times), work)
    }
}

/// The processor time of a process, over all threads.
fn worked(process: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_task = |path: std::path::PathBuf| {
        // A thread that has just ended does not count any more.
        let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    Duration::from_nanos(tasks.map(|task| of_task(task.unwrap().path())).sum())
}

/// Prints the measurements of each node, and clears them.
fn report(what: &str, nodes: &mut [Node]) {
    let results: Vec<_> = nodes.iter_mut().map(Node::result).collect();
    let row = |what: String, of: fn(&(Duration, Duration)) -> Duration| {
        let time = |index: usize| results.get(index).map(of).map(milliseconds);
        Row { what, unit: "ms", ours: time(0).unwrap(), theirs: time(1) }.print();
    };
    row(what.to_owned(), |result| result.0);
    row(format!("{what} (work)"), |result| result.1);
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
        let theirs_node = theirs.as_ref().map(|theirs| Node::new(theirs.client(), theirs.process_id()));
        let nodes = std::iter::once(Node::new(host.client(), host.process_id())).chain(theirs_node).collect();
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
    fn block(&mut self) -> (usize, Vec<(Duration, Duration)>) {
        let template = self.nodes[0].client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
        let block = miner::build(&template, self.purse.script());
        self.purse.earned(&block.txdata[0]);
        let body = json!({"id": 1, "method": "submitblock", "params": [miner::hex(&block)]}).to_string();
        let submit = |node: &mut Node| {
            let (measured, answer) = node.try_out(&body);
            assert!(answer.contains("\"result\":null"), "{answer}");
            measured
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
            let (began, before) = (Instant::now(), worked(node.process));
            for body in &bodies {
                time_post(&mut node.client, body);
            }
            let each = began.elapsed() / u32::try_from(size).unwrap();
            node.times.push(each);
            node.worked = worked(node.process).saturating_sub(before) / u32::try_from(size).unwrap();
            assert_eq!(node.client.call("getmempoolinfo", json!([]))["size"], json!(size));
        }
        let rates: Vec<_> = self.nodes.iter().map(|node| format!("{:.0}", 1.0 / node.times[0].as_secs_f64())).collect();
        report(&format!("sendrawtransaction, {size} in a row, each"), &mut self.nodes);
        println!("({} transactions per second)", rates.join(" against "));
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
        for (node, measured) in blocks.iter().flat_map(|(_, measured)| measured.iter().enumerate()) {
            self.nodes[node].record(*measured);
        }
        report("submitblock of what was in the mempool", &mut self.nodes);
        println!("(blocks of {counts:?} transactions)");
    }
}
