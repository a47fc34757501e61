//! Calls that wait for a block, and proofs that a block has a transaction.

use std::time::{Duration, Instant};

use outrigger_sdk::RpcError;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::testing::{PendingCall, StubHost, TestPlugin};
use serde_json::{Value, json};

use super::{GENESIS, check, check_refusals, funded, pay, start};
use crate::ChainPlugin;

fn waiting(plugin: &TestPlugin<ChainPlugin>, calls: &[(&str, Value)]) -> Vec<PendingCall> {
    let begun: Vec<PendingCall> =
        calls.iter().map(|(method, arguments)| plugin.begin(method, arguments.clone())).collect();
    assert!(begun.iter().all(|call| call.answer().is_none()));
    begun
}

/// Waits up to ten seconds for an answer from another thread.
fn eventually(call: &PendingCall) -> Option<Result<Value, RpcError>> {
    let end = Instant::now() + Duration::from_secs(10);
    while call.answer().is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    call.answer()
}

#[test]
fn waitforblock_and_its_kin_end_with_the_block() {
    let host = StubHost::new();
    let plugin = start(&host);
    let calls =
        [("waitfornewblock", json!([])), ("waitforblockheight", json!([1])), ("waitforblockheight", json!([2]))];
    let begun = waiting(&plugin, &calls);
    let first = host.chain.mine(vec![]);
    plugin.tell(Event::TipChanged { hash: first, height: 1 });
    for call in &begun[..2] {
        assert_eq!(call.answer(), Some(Ok(json!({"hash": first, "height": 1}))));
    }
    assert!(begun[2].answer().is_none());
    // What is so already is answered at once.
    check(&plugin, "waitforblock", &[(json!([first]), json!({"hash": first, "height": 1}))]);
    check(&plugin, "waitforblockheight", &[(json!([-5]), json!({"hash": first, "height": 1}))]);
    plugin.tell(Event::ShuttingDown);
    assert_eq!(begun[2].answer(), Some(Ok(json!({"hash": first, "height": 1}))));
    assert!(plugin.begin("waitfornewblock", json!([])).answer().is_some());
    plugin.stop();
}

#[test]
fn waitforblock_ends_by_its_time_and_when_its_client_leaves() {
    let host = StubHost::new();
    let plugin = start(&host);
    let gone = plugin.begin("waitfornewblock", json!([]));
    plugin.cancel(&gone);
    let genesis = json!({"hash": GENESIS, "height": 0});
    for (method, arguments) in [
        ("waitfornewblock", json!([1])),
        ("waitforblock", json!(["11".repeat(32), 1])),
        ("waitforblockheight", json!([5, 1])),
    ] {
        let call = plugin.begin(method, arguments);
        assert_eq!(eventually(&call), Some(Ok(genesis.clone())), "{method}");
    }
    check_refusals(&plugin, "waitfornewblock", &[(json!([-1]), -1, "Negative timeout")]);
    check_refusals(
        &plugin,
        "waitforblock",
        &[
            (json!(["aa", -1]), -8, "blockhash must be of length 64 (not 2, for 'aa')"),
            (json!([GENESIS, -1]), -1, "Negative timeout"),
        ],
    );
    plugin.stop();
}

#[test]
fn gettxoutproof_is_verified_by_verifytxoutproof() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let spending = pay(outpoint, 4_999_990_000, &[0x51]);
    let txid = spending.compute_txid();
    let hash = host.chain.mine(vec![spending]);
    let coinbase = host.chain.get(hash).unwrap().txdata[0].compute_txid();
    let other = host.chain.get(host.chain.mine(vec![])).unwrap().txdata[0].compute_txid();
    let proof = plugin.call("gettxoutproof", json!([[txid]])).unwrap();
    check(&plugin, "gettxoutproof", &[(json!([[txid], hash]), proof.clone())]);
    check(&plugin, "verifytxoutproof", &[(json!([proof]), json!([txid]))]);
    let both = plugin.call("gettxoutproof", json!([[txid, coinbase]])).unwrap();
    check(&plugin, "verifytxoutproof", &[(json!([both]), json!([coinbase, txid]))]);
    let text = proof.as_str().unwrap();
    let (header, tree) = text.split_at(160);
    let stranger = format!("ff{}{tree}", &header[2..]);
    let other_root = format!("{}{}", &text[..text.len() - 66], &text[text.len() - 2..]);
    let twice = format!("Invalid parameter, duplicated txid: {txid}");
    let missing = "Not all transactions found in specified or retrieved block";
    check_refusals(
        &plugin,
        "gettxoutproof",
        &[
            (json!([[]]), -8, "Parameter 'txids' cannot be empty"),
            (json!([["aa"]]), -8, "txid must be of length 64 (not 2, for 'aa')"),
            (json!([[txid, txid]]), -8, &twice),
            (json!([["11".repeat(32)]]), -5, "Transaction not yet in block"),
            (json!([[txid], "11".repeat(32)]), -5, "Block not found"),
            (json!([[txid], GENESIS]), -5, missing),
            (json!([[txid, other]]), -5, missing),
        ],
    );
    let ends = "DataStream::read(): end of data: iostream error";
    check_refusals(
        &plugin,
        "verifytxoutproof",
        &[
            (json!([""]), -8, "proof must be hexadecimal string (not '')"),
            (json!(["aa"]), -1, ends),
            (json!([other_root]), -1, ends),
            (json!([stranger]), -5, "Block not found in chain"),
        ],
    );
    let none = format!("{header}00000000{}", &tree[8..]);
    check(&plugin, "verifytxoutproof", &[(json!([none]), json!([]))]);
}
