//! Compares listing and looking up wallet transactions in this host and in bitcoind, on the same wallet.
//!
//! Both nodes get blocks full of payments to the wallet, bitcoind only up to `MAX_BITCOIND` transactions. With `--in-front` the
//! host stands in front of that bitcoind, and the wallets of both follow its chain up to that size. A call is timed over
//! one kept-alive connection, to the last byte of its answer, which is not parsed. Before anything is timed, both wallets must
//! agree in transaction count and balances.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, HostOptions};
use serde_json::{Value, json};

use crate::payments::Payer;
use crate::rows::{list, measure};
use crate::{Row, median, milliseconds, print_rates};
use outrigger_tests::bitcoind::{Bitcoind, twin};

/// bitcoind's wallet writes each transaction of a block apart. That it waits for the disk each time is left out.
const ARGUMENTS: [&str; 3] = ["-checkmempool=0", "-checkblockindex=0", "-unsafesqlitesync"];

/// The sizes of the wallet, in transactions.
const SIZES: [usize; 4] = [1_000, 20_000, 100_000, 200_000];
const MAX_BITCOIND: usize = 20_000;
/// The size at which memory is measured.
const MEMORY_SIZE: usize = 100_000;
/// How many of the last blocks `listsinceblock` lists, and how many payments each has.
const LAST_BLOCKS: usize = 5;
const PAYMENTS_PER_LAST_BLOCK: usize = 4;
/// How often the whole history is listed, and how often the last blocks.
const LISTINGS: usize = 7;
const LAST_LISTINGS: usize = 400;
/// How many different transactions are looked up, and how many look-ups there are in all.
const LOOKED_UP: usize = 500;
const LOOK_UPS: usize = 4000;
/// How many blocks are connected, and how many payments each holds, while transactions are looked up.
const BLOCKS: usize = 4;
const PAYMENTS: usize = 2_000;

struct Node {
    client: Client,
    wallet: Client,
}

struct LookUps {
    all: Vec<Duration>,
}

impl LookUps {
    fn per_second(&self) -> f64 {
        let total: Duration = self.all.iter().sum();
        self.all.len() as f64 / total.as_secs_f64()
    }

    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.all.clone();
        sorted.sort_unstable();
        milliseconds(sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)])
    }
}

pub fn run(path: Option<&str>, in_front: bool) {
    let mut bitcoind = path.map(|path| Bitcoind::start_with(path, &ARGUMENTS).0);
    let behind = if in_front { bitcoind.take() } else { None };
    let mut host = Host::start_before(tempfile::tempdir().unwrap(), HostOptions::default(), behind);
    let mut ours = Node { client: host.client(), wallet: host.new_wallet("w") };
    // Out of initial download, without which a bitcoind has no templates.
    ours.client.call("generatetoaddress", json!([1, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]));
    let mut theirs = bitcoind.as_ref().or(host.node.as_ref()).map(|bitcoind| {
        let client = bitcoind.client();
        Node { wallet: twin(bitcoind.client(), &mut ours.wallet), client }
    });
    let extra = BLOCKS * PAYMENTS;
    let sizes = SIZES.into_iter().filter(|size| !in_front || *size <= MAX_BITCOIND);
    let largest = sizes.clone().max().unwrap_or(0) + extra;
    let mut payer = Payer::new(host.client(), &mut ours.wallet, largest);
    if let Some(theirs) = &mut theirs {
        payer.check_addresses(&mut theirs.wallet);
    }
    if let Some(bitcoind) = &bitcoind {
        payer.follow_with(bitcoind.client());
    }
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    for size in sizes {
        if size > MAX_BITCOIND && theirs.take().is_some() {
            payer.leave();
        }
        payer.pay(size - payer.paid - LAST_BLOCKS * PAYMENTS_PER_LAST_BLOCK);
        let since = ours.client.call("getbestblockhash", json!([]));
        for _ in 0..LAST_BLOCKS {
            payer.pay(PAYMENTS_PER_LAST_BLOCK);
        }
        let mut nodes: Vec<&mut Node> = [Some(&mut ours), theirs.as_mut()].into_iter().flatten().collect();
        check(&mut nodes, size);
        let what = |what: &str| format!("{size}: {what}");
        if size != MEMORY_SIZE {
            listings(&mut nodes, &what, &since);
            look_ups(&mut nodes, &what);
        }
        if size == MAX_BITCOIND && !in_front {
            look_ups_under_load(&mut ours, theirs.as_mut(), &mut payer, &what);
        }
        if size == MEMORY_SIZE {
            for (method, params) in [("listsinceblock", json!([])), ("listtransactions", json!(["*", 2 * size]))] {
                // A fresh process retains no memory of other listings.
                host = host.restart();
                payer.client = host.client();
                payer.client.call("loadwallet", json!(["w"]));
                ours = Node { client: host.client(), wallet: payer.client.wallet("w") };
                list(&host, &mut ours.wallet, method, &params, &|what, value| {
                    println!("| {size}: {what} | {value} | | | |");
                });
            }
        }
    }
}

/// Waits until all wallets have followed the chain, and compares their transaction counts and balances.
fn check(nodes: &mut [&mut Node], size: usize) {
    let mut summaries = Vec::new();
    for (which, node) in nodes.iter_mut().enumerate() {
        if which > 0 {
            node.client.call("syncwithvalidationinterfacequeue", json!([]));
        }
        let info = node.wallet.call("getwalletinfo", json!([]));
        assert!(info["txcount"].as_u64().unwrap() >= size as u64, "{info}");
        let balance = node.wallet.call("getbalances", json!([]));
        summaries.push((info["txcount"].clone(), balance["mine"].clone()));
    }
    assert!(summaries.windows(2).all(|pair| pair[0] == pair[1]), "{summaries:?}");
}

fn print(what: String, unit: &'static str, values: &[f64]) {
    Row { what, unit, ours: values[0], theirs: values.get(1).copied() }.print();
}

fn listings(nodes: &mut [&mut Node], what: &dyn Fn(&str) -> String, since: &Value) {
    let mut time = |name: String, times: usize, (method, params): (&str, Value)| {
        let mut bytes = 0;
        let mut measured = Vec::new();
        for node in nodes.iter_mut() {
            let (time, size) = measure(&mut node.wallet, times, method, &params);
            measured.push(milliseconds(time));
            bytes = bytes.max(size);
        }
        print(what(&format!("{name} ({:.1} kB)", bytes as f64 / 1e3)), "ms", &measured);
    };
    time("listsinceblock, everything".into(), LISTINGS, ("listsinceblock", json!([])));
    time(format!("listsinceblock, the last {LAST_BLOCKS} blocks"), LAST_LISTINGS, ("listsinceblock", json!([since])));
    time("listreceivedbyaddress".into(), LISTINGS, ("listreceivedbyaddress", json!([])));
}

/// Request bodies of `gettransaction`, for transactions spread evenly over the history.
fn requests(wallet: &mut Client) -> Vec<String> {
    let listed = wallet.call("listsinceblock", json!([]));
    let listed = listed["transactions"].as_array().unwrap();
    let some = listed.iter().step_by((listed.len() / LOOKED_UP).max(1));
    some.map(|entry| json!({"id": 1, "method": "gettransaction", "params": [entry["txid"]]}).to_string()).collect()
}

/// Looks transactions up, one after the other over one connection, until `enough` returns true for their number.
fn look_up(wallet: &mut Client, requests: &[String], mut enough: impl FnMut(usize) -> bool) -> LookUps {
    let mut all = Vec::new();
    for request in requests.iter().cycle() {
        if enough(all.len()) {
            break;
        }
        let began = Instant::now();
        let reply = wallet.post(request);
        all.push(began.elapsed());
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    LookUps { all }
}

fn look_ups(nodes: &mut [&mut Node], what: &dyn Fn(&str) -> String) {
    let requests = requests(&mut nodes[0].wallet);
    let mut rates = Vec::new();
    let mut medians = Vec::new();
    for node in nodes.iter_mut() {
        look_up(&mut node.wallet, &requests, |done| done == LOOK_UPS / 10);
        let times = look_up(&mut node.wallet, &requests, |done| done == LOOK_UPS);
        rates.push(times.per_second());
        medians.push(milliseconds(median(times.all)));
    }
    print(what("gettransaction, median"), "ms", &medians);
    print_rates(what("gettransaction, one connection"), &rates);
}

/// Looks transactions up while something else runs on another connection.
fn look_up_while(wallet: &mut Client, requests: &[String], other: impl FnOnce() + Send) -> LookUps {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            other();
            done.store(true, Ordering::Relaxed);
        });
        look_up(wallet, requests, |_| done.load(Ordering::Relaxed))
    })
}

/// Looks transactions up while the wallet is rescanned, and while blocks are connected.
fn look_ups_under_load(ours: &mut Node, theirs: Option<&mut Node>, payer: &mut Payer, what: &dyn Fn(&str) -> String) {
    let requests = requests(&mut ours.wallet);
    let mut rescans = Vec::new();
    let mut connections = Vec::new();
    // The same blocks go to this host first, and then to bitcoind.
    let blocks = payer.prepare(BLOCKS, PAYMENTS);
    let nodes = [Some(&mut *ours), theirs].into_iter().flatten();
    for node in nodes {
        let (mut importer, mut miner) = (node.client.wallet("w"), node.client.wallet("w"));
        let known = importer.call("listdescriptors", json!([true]))["descriptors"][0].clone();
        let import = json!([[{"desc": known["desc"], "timestamp": 0, "active": known["active"],
                              "range": known["range"], "internal": known["internal"]}]]);
        rescans.push(look_up_while(&mut node.wallet, &requests, move || {
            let outcome = importer.call("importdescriptors", import);
            assert_eq!(outcome[0]["success"], true, "{outcome}");
        }));
        let blocks = blocks.clone();
        connections.push(look_up_while(&mut node.wallet, &requests, move || {
            for block in blocks {
                assert_eq!(miner.call("submitblock", json!([block])), Value::Null);
            }
        }));
    }
    for (name, times) in [("a rescan", rescans), ("block connections", connections)] {
        let rates: Vec<f64> = times.iter().map(LookUps::per_second).collect();
        print_rates(what(&format!("gettransaction during {name}")), &rates);
        for percent in [50, 99, 100] {
            let values: Vec<f64> = times.iter().map(|times| times.percentile(percent)).collect();
            print(what(&format!("the same, {percent}th percentile of {} calls", times[0].all.len())), "ms", &values);
        }
    }
}
