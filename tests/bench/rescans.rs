//! In front of a bitcoind: rescans beside its own, and how long a block takes from the node to the wallets.
//!
//! ```text
//! cargo run --release -p outrigger-tests --bin bench rescans -- --bitcoind PATH
//! ```
//!
//! A rescan is that of an import here, and rescanblockchain there, both with the node's filters. `kept filters`: the host has
//! fetched all filters before.

use std::time::{Duration, Instant};

use outrigger_tests::{Bitcoind, Client, Host, HostOptions};
use serde_json::{Value, json};

use crate::{Row, median, milliseconds};

/// bitcoind checks its whole index after each block on this chain unless told otherwise, which it does on no real one.
const ARGUMENTS: [&str; 5] =
    ["-blockfilterindex=1", "-rest=1", "-checkblockindex=0", "-checkmempool=0", "-fallbackfee=0.0001"];

/// The chain: how many blocks, how many of them are made in one call, and the outputs of a payment in each such call.
const BLOCKS: usize = 20_000;
const BLOCKS_PER_CALL: usize = 50;
const OUTPUTS: usize = 500;

/// The scripts of the larger wallet.
const SCRIPTS: u32 = 1_000;

/// How often each is measured.
const RESCANS: usize = 7;
const LATENCIES: usize = 50;

/// An extended key to whose addresses nothing is paid.
const KEY: &str =
    "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";

/// Runs the section.
pub fn run(bitcoind: Option<&str>) {
    let Some(path) = bitcoind else {
        println!("rescans need a node: --bitcoind PATH");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let publish = format!("-zmqpubsequence=ipc://{}/zmq", folder.path().display());
    let arguments: Vec<&str> = ARGUMENTS.into_iter().chain([&*publish]).collect();
    let (node, _) = Bitcoind::start_with(path, &arguments);
    make_chain(&mut node.client());
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    let one = request(&mut node.client(), "0", None);
    let many = request(&mut node.client(), "*", Some(SCRIPTS));
    let theirs = [&one, &many].map(|request| rescan_node(&node, request));
    let mut host = start(Some(node), "backend.filter_cache_mib=0");
    let row = |what: &str, ours, theirs| {
        let what = format!("rescan of {BLOCKS} blocks for {what}");
        Row { what, unit: "ms", ours: milliseconds(ours), theirs: Some(milliseconds(theirs)) }.print();
    };
    row("one script", rescan(&host, &one), theirs[0]);
    row("1,000 scripts", rescan(&host, &many), theirs[1]);
    host = start(host.node.take(), "backend.filter_cache_mib=1024");
    // The first of them fetches the filters.
    import(&host, &one);
    row("one script, kept filters", rescan(&host, &one), theirs[0]);
    row("1,000 scripts, kept filters", rescan(&host, &many), theirs[1]);
    for (what, set) in [("ZMQ", ""), ("a waiting call", "backend.zmq=off")] {
        host = start(host.node.take(), set);
        let ours = milliseconds(latency(&host));
        Row { what: format!("a block to the wallet, by {what}"), unit: "ms", ours, theirs: None }.print();
    }
}

fn start(node: Option<Bitcoind>, set: &str) -> Host {
    let set = Some(set.to_owned()).filter(|set| !set.is_empty()).into_iter().collect();
    Host::start_before(tempfile::tempdir().unwrap(), HostOptions { set, ..HostOptions::default() }, node)
}

/// Blocks, some with payments to many addresses.
fn make_chain(node: &mut Client) {
    node.call("createwallet", json!(["funds"]));
    let mut funds = node.wallet("funds");
    let own = funds.call("getnewaddress", json!([]));
    let payees: serde_json::Map<String, Value> = (0..OUTPUTS)
        .map(|_| (funds.call("getnewaddress", json!([])).as_str().unwrap().to_owned(), json!(0.0001)))
        .collect();
    funds.call("generatetoaddress", json!([101, own]));
    for _ in 0..(BLOCKS - 101) / BLOCKS_PER_CALL {
        funds.call("sendmany", json!(["", payees]));
        funds.call("generatetoaddress", json!([BLOCKS_PER_CALL, own]));
    }
    while node.call("getindexinfo", json!([]))["basic block filter index"]["synced"] != true {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// An import of the key's addresses from the chain's begin on.
fn request(node: &mut Client, path: &str, scripts: Option<u32>) -> Value {
    let info = node.call("getdescriptorinfo", json!([format!("wpkh({KEY}/{path})")]));
    let mut request = json!({"desc": info["descriptor"], "timestamp": 0});
    if let Some(scripts) = scripts {
        request["range"] = json!([0, scripts - 1]);
    }
    request
}

/// A fresh wallet without keys.
fn blank(mut client: Client) -> Client {
    let loaded = client.call("listwallets", json!([])).as_array().unwrap().len();
    let name = format!("w{loaded}");
    client.call("createwallet", json!([name, true, true]));
    client.wallet(&name)
}

/// Imports into a fresh wallet of the host, which rescans. How long it took.
fn import(host: &Host, request: &Value) -> Duration {
    let mut wallet = blank(host.client());
    let began = Instant::now();
    let answer = wallet.call("importdescriptors", json!([[request]]));
    let took = began.elapsed();
    assert_eq!(answer[0]["success"], true, "{answer}");
    took
}

fn rescan(host: &Host, request: &Value) -> Duration {
    median((0..RESCANS).map(|_| import(host, request)).collect())
}

fn rescan_node(node: &Bitcoind, request: &Value) -> Duration {
    let mut wallet = blank(node.client());
    let mut request = request.clone();
    request["timestamp"] = json!("now");
    let answer = wallet.call("importdescriptors", json!([[request]]));
    assert_eq!(answer[0]["success"], true, "{answer}");
    let once = || {
        let began = Instant::now();
        wallet.call("rescanblockchain", json!([]));
        began.elapsed()
    };
    median(std::iter::repeat_with(once).take(RESCANS).collect())
}

/// From the node's answer that it has made a block until a wallet of ours has taken it over.
fn latency(host: &Host) -> Duration {
    let mut wallet = host.new_wallet("w");
    let mut node = host.node.as_ref().unwrap().client();
    let once = || {
        let hash =
            node.call("generatetoaddress", json!([1, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]))[0].clone();
        let began = Instant::now();
        while wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["hash"] != hash {}
        began.elapsed()
    };
    median(std::iter::repeat_with(once).take(LATENCIES).collect())
}
