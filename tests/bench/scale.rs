//! In front of a large chain and a full mempool, and with many clients that wait.
//!
//! The large chain is that of a program that answers as a bitcoind does, as far as the host asks: making it takes seconds. The
//! clients wait for the next template of a real one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use outrigger_tests::{Bitcoind, Client, Host, HostOptions, Pending, groups};
use serde_json::{Value, json};

use crate::false_node::{FalseNode, SLOW_METHOD};
use crate::milliseconds;
use crate::rows::own_memory;

/// The size of the chain and of the mempool.
const HEADERS: usize = 1_000_000;
const TRANSACTIONS: usize = 100_000;
/// How many clients wait for the same template.
const POLLS: usize = 500;
/// How many clients wait for a slow node, and how often another one's calls are measured meanwhile.
const WAITING: usize = 32;
const CALLS: usize = 20_000;
/// How long memory is watched after the last answer was fetched.
const AFTERWARDS: Duration = Duration::from_secs(3);

pub fn run(bitcoind: Option<&str>) {
    println!("| what | outrigger |\n|---|---|");
    large_node();
    if let Some(path) = bitcoind {
        long_polls(path);
    }
}

fn large_node() {
    let node = FalseNode::start(HEADERS, TRANSACTIONS);
    let folder = tempfile::tempdir().unwrap();
    let cookie = folder.path().join("cookie");
    std::fs::write(&cookie, "user:password").unwrap();
    let url = format!("backend.url=http://{}", node.address);
    let cookie = format!("backend.cookie={}", cookie.display());
    let set = ["network=regtest".to_owned(), url, cookie].to_vec();
    let host = Host::start_with(HostOptions { config: Some(groups("bitcoind.toml")), set, ..HostOptions::default() });
    let show = |what: &str, time: Duration, peak: u64| {
        let after = own_memory(host.process_id());
        println!("| {what} | {:.2} s, {:.0} MiB at most, {:.0} MiB then |", time.as_secs_f64(), mib(peak), mib(after));
    };
    println!("| private memory before | {:.0} MiB |", mib(own_memory(host.process_id())));
    let (time, peak) = watch(&host, || node.blocks.store(HEADERS, Ordering::SeqCst), || node.is_followed());
    show(&format!("{HEADERS} headers"), time, peak);
    let wallet = host.new_wallet("w");
    beside_a_slow_node(&host, wallet);
    let shown = || node.transactions.store(TRANSACTIONS, Ordering::SeqCst);
    let (time, peak) = watch(&host, shown, || node.fetched.load(Ordering::SeqCst) >= TRANSACTIONS);
    show(&format!("{TRANSACTIONS} transactions of the mempool"), time, peak);
    let began = Instant::now();
    let host = host.restart();
    println!("| stop and start with both | {:.2} s |", began.elapsed().as_secs_f64());
    println!("| private memory after that | {:.0} MiB |", mib(own_memory(host.process_id())));
}

/// What a call of a wallet takes while other clients wait for a node that is slow, and while nobody does.
fn beside_a_slow_node(host: &Host, mut wallet: Client) {
    let mut percentiles = || {
        let mut times: Vec<Duration> = (0..CALLS)
            .map(|_| {
                let began = Instant::now();
                wallet.call("getbalances", json!([]));
                began.elapsed()
            })
            .collect();
        times.sort_unstable();
        let at = |percent: usize| milliseconds(times[CALLS * percent / 100]);
        format!("{:.3} ms, {:.3} ms", at(50), at(99))
    };
    let alone = percentiles();
    let stop = AtomicBool::new(false);
    let beside = thread::scope(|scope| {
        for _ in 0..WAITING {
            scope.spawn(|| {
                let mut client = host.client();
                while !stop.load(Ordering::SeqCst) {
                    client.call(SLOW_METHOD, json!([]));
                }
            });
        }
        let beside = percentiles();
        stop.store(true, Ordering::SeqCst);
        beside
    });
    println!("| getbalances, median and 99th percentile | {alone} |");
    println!("| the same while {WAITING} clients wait for a node that takes 200 ms for each answer | {beside} |");
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Has something to do, and gives how long it took and the most private memory meanwhile.
fn watch(host: &Host, begin: impl FnOnce(), is_done: impl Fn() -> bool) -> (Duration, u64) {
    let mut peak = 0;
    let mut look = || {
        peak = own_memory(host.process_id()).max(peak);
        thread::sleep(Duration::from_millis(5));
    };
    begin();
    let began = Instant::now();
    while !is_done() {
        look();
    }
    let (time, done) = (began.elapsed(), Instant::now());
    while done.elapsed() < AFTERWARDS {
        look();
    }
    (time, peak)
}

/// How many calls wait at the node while many clients wait for the same template, and how soon all have the next.
fn long_polls(path: &str) {
    let (node, _) = Bitcoind::start_with(path, &["-rpcthreads=4", "-rpcworkqueue=16"]);
    let host = Host::start_before(tempfile::tempdir().unwrap(), HostOptions::default(), Some(node));
    let mut node = host.node.as_ref().unwrap().client();
    let mut mine = || node.call("generatetoaddress", json!([1, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]));
    mine();
    let mut client = host.client();
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let params = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let request = json!({"id": 1, "method": "getblocktemplate", "params": params}).to_string();
    let polls: Vec<Pending> = (0..POLLS).map(|_| client.begin(&request)).collect();
    // All of them have been read by then.
    client.call("getblockcount", json!([]));
    thread::sleep(AFTERWARDS);
    let active = host.node.as_ref().unwrap().client().call("getrpcinfo", json!([]));
    let waiting: Vec<&Value> =
        active["active_commands"].as_array().unwrap().iter().map(|call| &call["method"]).collect();
    println!("| calls at the node, with {POLLS} equal long polls | {} of the host |", waiting.len() - 1);
    let hash = mine()[0].clone();
    let began = Instant::now();
    for poll in polls {
        let answer: Value = serde_json::from_str(&poll.finish().body).unwrap();
        assert_eq!(answer["result"]["previousblockhash"], hash);
    }
    println!("| from a block until all of them have the next template | {:.1} ms |", milliseconds(began.elapsed()));
}
