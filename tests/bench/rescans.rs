//! In front of a bitcoind: rescans compared with its own, the time to fetch its headers, and the time of a block to reach the wallets.
//!
//! A rescan is part of an import here and rescanblockchain there, both with the node's filters. `kept filters`: the host has already
//! fetched all filters.

use std::time::{Duration, Instant};

use bitcoin::block::Version;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, ScriptBuf, TxOut, WPubkeyHash};
use outrigger_tests::{Bitcoind, Client, Host, HostOptions, NOBODY, XPUB, miner};
use serde_json::{Value, json};

use crate::{median, milliseconds, print_row};

/// A bitcoind on regtest otherwise checks its whole index after each block.
const ARGUMENTS: [&str; 5] =
    ["-blockfilterindex=1", "-rest=1", "-checkblockindex=0", "-checkmempool=0", "-fallbackfee=0.0001"];

/// The chain: its blocks, the seconds between two, the outputs of each, and the blocks submitted at a time.
const BLOCKS: u32 = 20_000;
const SPACING: u32 = 60;
const OUTPUTS: u32 = 50;
const BLOCKS_PER_BATCH: usize = 200;

/// The scripts of the larger wallet.
const SCRIPTS: u32 = 1_000;

/// How often each time is measured.
const RESCANS: usize = 7;
const LATENCIES: usize = 50;
const STARTS: usize = 5;

/// How the host learns of new blocks, and the settings for that.
const HINTS: [(&str, &[&str]); 3] = [
    ("ZMQ", &[]),
    ("a waiting call", &["backend.zmq=off"]),
    ("polling", &["backend.zmq=off", "backend.long_connections=0"]),
];

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
    let (times, node) = starts(Some(node));
    for (what, time) in ["first start, which fetches the headers", "later start"].into_iter().zip(times) {
        print_row(&format!("{what}, {BLOCKS} blocks"), "ms", milliseconds(time), None);
    }
    let mut host = start(node, &["backend.filter_cache_mib=0"]);
    rescans(&host, "one script", &one);
    rescans(&host, "1,000 scripts", &many);
    host = start(host.node.take(), &[]);
    // The first import fetches the filters.
    import(&host, &one);
    rescans(&host, "one script, kept filters", &one);
    rescans(&host, "1,000 scripts, kept filters", &many);
    for (what, set) in HINTS {
        host = start(host.node.take(), set);
        print_row(&format!("a block to the wallet, by {what}"), "ms", milliseconds(latency(&host)), None);
    }
}

fn start(node: Option<Bitcoind>, set: &[&str]) -> Host {
    Host::start_before(tempfile::tempdir().unwrap(), HostOptions::with(set), node)
}

/// The times of a first start, which fetches the headers, and of a later start.
fn starts(mut node: Option<Bitcoind>) -> ([Duration; 2], Option<Bitcoind>) {
    let mut once = || {
        let began = Instant::now();
        let mut host = start(node.take(), &[]);
        let first = began.elapsed();
        assert!(host.terminate().success());
        let began = Instant::now();
        host = host.start_again();
        let later = began.elapsed();
        node = host.node.take();
        (first, later)
    };
    let (first, later) = std::iter::repeat_with(&mut once).take(STARTS).unzip();
    ([median(first), median(later)], node)
}

/// A chain whose coinbases pay zero to many different scripts in each block. It needs neither the node's wallet nor fees, so it is made
/// in seconds. The last block has the current time, which ends the node's initial block download.
fn make_chain(node: &mut Client) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let begin = u32::try_from(now).unwrap() - SPACING * (BLOCKS + 1);
    let mut last = bitcoin::constants::genesis_block(bitcoin::Network::Regtest);
    let mut calls = Vec::new();
    for height in 1..=BLOCKS {
        last.header.prev_blockhash = last.block_hash();
        last.header.time = begin + height * SPACING;
        last.header.version = Version::from_consensus(0x2000_0000);
        let coinbase = &mut last.txdata[0];
        coinbase.input[0].script_sig = ScriptBuf::builder().push_int(height.into()).push_int(0).into_script();
        coinbase.output = (0..OUTPUTS).map(|output| payment(height * OUTPUTS + output)).collect();
        miner::set_merkle_root(&mut last);
        miner::grind(&mut last);
        calls.push(json!({"id": height, "method": "submitblock", "params": [miner::hex(&last)]}));
        if calls.len() == BLOCKS_PER_BATCH || height == BLOCKS {
            let reply = node.post(&Value::from(std::mem::take(&mut calls)).to_string());
            let answers: Value = serde_json::from_str(&reply.body).unwrap();
            assert!(
                answers
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|answer| answer["result"].is_null() && answer["error"].is_null())
            );
        }
    }
    assert_eq!(node.call("getblockcount", json!([])), json!(BLOCKS));
    while node.call("getindexinfo", json!([]))["basic block filter index"]["synced"] != true {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// An output to a witness program unique to the number.
fn payment(number: u32) -> TxOut {
    let program = bitcoin::hashes::hash160::Hash::hash(&number.to_le_bytes());
    TxOut { value: Amount::ZERO, script_pubkey: ScriptBuf::new_p2wpkh(&WPubkeyHash::from_raw_hash(program)) }
}

/// An import of addresses without payments from the start of the chain.
fn request(node: &mut Client, path: &str, scripts: Option<u32>) -> Value {
    let info = node.call("getdescriptorinfo", json!([format!("wpkh({XPUB}/{path})")]));
    let mut request = json!({"desc": info["descriptor"], "timestamp": 0});
    if let Some(scripts) = scripts {
        request["range"] = json!([0, scripts - 1]);
    }
    request
}

/// A new wallet without keys.
fn blank(mut client: Client) -> Client {
    let loaded = client.call("listwallets", json!([])).as_array().unwrap().len();
    client.create_wallet(&format!("w{loaded}"), json!({"disable_private_keys": true, "blank": true}))
}

/// Imports into a new wallet of the host, which rescans. Returns the time.
fn import(host: &Host, request: &Value) -> Duration {
    let mut wallet = blank(host.client());
    let began = Instant::now();
    wallet.import(&json!([request]));
    began.elapsed()
}

/// Measures the same rescan in the host and in the node, in turns.
fn rescans(host: &Host, what: &str, request: &Value) {
    let mut theirs = blank(host.node.as_ref().unwrap().client());
    let mut known = request.clone();
    known["timestamp"] = json!("now");
    theirs.import(&json!([known]));
    let mut both = || {
        let ours = import(host, request);
        let began = Instant::now();
        theirs.call("rescanblockchain", json!([]));
        (ours, began.elapsed())
    };
    let (ours, theirs) = std::iter::repeat_with(&mut both).take(RESCANS).unzip();
    let (ours, theirs) = (milliseconds(median(ours)), Some(milliseconds(median(theirs))));
    print_row(&format!("rescan of {BLOCKS} blocks for {what}"), "ms", ours, theirs);
}

/// The time from the node's answer that it has made a block until a wallet of the host has processed it.
fn latency(host: &Host) -> Duration {
    let mut wallet = host.new_wallet("w");
    let mut node = host.node.as_ref().unwrap().client();
    let once = || {
        let hash = node.call("generatetoaddress", json!([1, NOBODY]))[0].clone();
        let began = Instant::now();
        while wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["hash"] != hash {}
        began.elapsed()
    };
    median(std::iter::repeat_with(once).take(LATENCIES).collect())
}
