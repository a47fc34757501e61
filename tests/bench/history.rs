//! Compares listings and look-ups of wallet transactions in this host and in bitcoind, on the same wallet.
//!
//! Both nodes get blocks full of payments to the wallet, bitcoind only up to `MAX_BITCOIND` transactions. With `--in-front` the host is
//! in front of that bitcoind, and the wallets of both follow its chain up to that size. A call is timed over one kept-alive
//! connection, to the last byte of its answer, which is not parsed. Before the measurements, both wallets must agree in transaction
//! count and balances.

use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, HostOptions, NOBODY};
use serde_json::{Value, json};

use crate::payments::Payer;
use crate::{measure, median, milliseconds, print_rates, print_row};
use outrigger_tests::bitcoind::{Bitcoind, twin};

/// bitcoind's wallet writes each transaction of a block separately. Without the last argument it would sync each write to disk.
const ARGUMENTS: [&str; 3] = ["-checkmempool=0", "-checkblockindex=0", "-unsafesqlitesync"];

/// The sizes of the wallet, in transactions.
const SIZES: [usize; 3] = [1_000, 20_000, 200_000];
const MAX_BITCOIND: usize = 20_000;
/// How many of the last blocks `listsinceblock` lists, and how many payments each has.
const LAST_BLOCKS: usize = 5;
const PAYMENTS_PER_LAST_BLOCK: usize = 4;
/// How often the whole history is listed, and how often the last blocks.
const LISTINGS: usize = 7;
const LAST_LISTINGS: usize = 400;
/// The number of different transactions to look up, and of all look-ups.
const LOOKED_UP: usize = 500;
const LOOK_UPS: usize = 4000;

struct Node {
    client: Client,
    wallet: Client,
}

pub fn run(path: Option<&str>, in_front: bool) {
    let mut bitcoind = path.map(|path| Bitcoind::start_with(path, &ARGUMENTS).0);
    let behind = if in_front { bitcoind.take() } else { None };
    let host = Host::start_before(tempfile::tempdir().unwrap(), HostOptions::default(), behind);
    let mut ours = Node { client: host.client(), wallet: host.new_wallet("w") };
    // Ends the initial block download, during which a bitcoind makes no templates.
    ours.client.call("generatetoaddress", json!([1, NOBODY]));
    let mut theirs = bitcoind.as_ref().or(host.node.as_ref()).map(|bitcoind| {
        let client = bitcoind.client();
        Node { wallet: twin(bitcoind.client(), &mut ours.wallet), client }
    });
    let sizes = SIZES.into_iter().filter(|size| !in_front || *size <= MAX_BITCOIND);
    let mut payer = Payer::new(host.client(), &mut ours.wallet);
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
        listings(&mut nodes, &what, &since);
        look_ups(&mut nodes, &what);
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
    print_row(&what, unit, values[0], values.get(1).copied());
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

/// The times of this many look-ups, one after another over one connection.
fn look_up(wallet: &mut Client, requests: &[String], count: usize) -> Vec<Duration> {
    let once = |request: &String| {
        let began = Instant::now();
        let reply = wallet.post(request);
        assert_eq!(reply.status, 200, "{}", reply.body);
        began.elapsed()
    };
    requests.iter().cycle().take(count).map(once).collect()
}

fn look_ups(nodes: &mut [&mut Node], what: &dyn Fn(&str) -> String) {
    let requests = requests(&mut nodes[0].wallet);
    let mut rates = Vec::new();
    let mut medians = Vec::new();
    for node in nodes.iter_mut() {
        look_up(&mut node.wallet, &requests, LOOK_UPS / 10);
        let times = look_up(&mut node.wallet, &requests, LOOK_UPS);
        rates.push(LOOK_UPS as f64 / times.iter().sum::<Duration>().as_secs_f64());
        medians.push(milliseconds(median(times)));
    }
    print(what("gettransaction, median"), "ms", &medians);
    print_rates(what("gettransaction, one connection"), &rates);
}
