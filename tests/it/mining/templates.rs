use outrigger_tests::{Host, miner};
use serde_json::{Value, json};

use super::{anyone, request};

/// The target of the bits 207fffff.
const REGTEST_TARGET: &str = "7fffff0000000000000000000000000000000000000000000000000000000000";

#[test]
fn getblocktemplate_has_every_key_in_its_order() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.mine(101);
    let txid = wallet.call("sendtoaddress", json!([address, 1.5]));
    let template = wallet.call("getblocktemplate", request());
    let keys: Vec<&String> = template.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "capabilities",
            "version",
            "rules",
            "vbavailable",
            "vbrequired",
            "previousblockhash",
            "transactions",
            "coinbaseaux",
            "coinbasevalue",
            "longpollid",
            "target",
            "mintime",
            "mutable",
            "noncerange",
            "sigoplimit",
            "sizelimit",
            "weightlimit",
            "curtime",
            "bits",
            "height",
            "default_witness_commitment"
        ]
    );
    let entry = &template["transactions"][0];
    let keys: Vec<&String> = entry.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["data", "txid", "hash", "depends", "fee", "sigops", "weight"]);
    assert_eq!((&entry["txid"], &entry["depends"]), (&txid, &json!([])));
    let fee = entry["fee"].as_u64().unwrap();
    assert_eq!(template["coinbasevalue"].as_u64(), Some(5_000_000_000 + fee));
    assert_eq!((&template["height"], &template["bits"]), (&json!(102), &json!("207fffff")));
    assert_eq!(template["rules"], json!(["csv", "!segwit", "taproot"]));
    assert_eq!((&template["vbrequired"], &template["coinbaseaux"]), (&json!(0), &json!({})));
    assert_eq!(template["mutable"], json!(["time", "transactions", "prevblock"]));
    assert_eq!(template["capabilities"], json!(["proposal"]));
    assert_eq!((&template["noncerange"], &template["target"]), (&json!("00000000ffffffff"), &json!(REGTEST_TARGET)));
    let tip = wallet.call("getbestblockhash", json!([]));
    assert!(template["longpollid"].as_str().unwrap().starts_with(tip.as_str().unwrap()));
    assert_eq!(wallet.call("getblocktemplate", request()), template);
}

#[test]
fn getblocktemplate_proposal_is_judged_and_not_kept_and_submitblock_completes_a_coinbase() {
    let host = Host::start();
    let mut client = host.client();
    let template = client.call("getblocktemplate", request());
    let good = miner::assemble(&template, anyone());
    let mut propose = |block: &bitcoin::Block| {
        client.call("getblocktemplate", json!([{"mode": "proposal", "data": miner::hex(block)}]))
    };
    assert_eq!(propose(&good), Value::Null);
    let mut block = good.clone();
    block.header.bits = bitcoin::CompactTarget::from_consensus(0x1d00_ffff);
    assert_eq!(propose(&block), json!("bad-diffbits"));
    let mut block = good.clone();
    block.header.merkle_root = bitcoin::hashes::Hash::all_zeros();
    assert_eq!(propose(&block), json!("bad-txnmrklroot"));
    let mut block = good.clone();
    block.header.prev_blockhash = bitcoin::hashes::Hash::all_zeros();
    assert_eq!(propose(&block), json!("inconclusive-not-best-prevblk"));
    let mut block = good.clone();
    block.txdata[0].output[0].value += bitcoin::Amount::ONE_SAT;
    miner::set_merkle_root(&mut block);
    assert_eq!(propose(&block), json!("bad-cb-amount"));
    assert_eq!(
        client.refused("getblocktemplate", json!([{"mode": "proposal"}])),
        (-3, "Missing data String key for proposal".into())
    );
    let undecodable = json!([{"mode": "proposal", "data": "00"}]);
    assert_eq!(client.refused("getblocktemplate", undecodable), (-22, "Block decode failed".into()));
    assert_eq!(client.call("getblockcount", json!([])), json!(0));
    // submitblock adds the witness that the coinbase lacks.
    let mut block = miner::build(&template, anyone());
    block.txdata[0].input[0].witness.clear();
    assert_eq!(client.call("submitblock", json!([miner::hex(&block), {"workid": "x"}])), Value::Null);
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), json!("duplicate"));
}

/// The host answers as Bitcoin Core: the reference node has another name and meaning for the second argument.
#[test]
fn prioritisetransaction_refuses_bad_requests() {
    let host = Host::start();
    let mut client = host.client();
    let txid = "11".repeat(32);
    let wrong = |places: &[(usize, &str, &str)]| {
        let lines = places.iter().map(|(place, name, got)| {
            format!("    \"Position {place} ({name})\": \"JSON value of type {got} is not of expected type number\"")
        });
        (-3, format!("Wrong type passed:\n{{\n{}\n}}", lines.collect::<Vec<_>>().join(",\n")))
    };
    let priority =
        || (-8, "Priority is no longer supported, dummy argument to prioritisetransaction must be 0.".to_owned());
    let range = || (-1, "JSON integer out of range".to_owned());
    for (params, expected) in [
        (json!([txid, "0", 5]), wrong(&[(2, "dummy", "string")])),
        (json!([txid, true, 5]), wrong(&[(2, "dummy", "bool")])),
        (json!([txid, 0, "5"]), wrong(&[(3, "fee_delta", "string")])),
        (json!([txid, null, null]), wrong(&[(3, "fee_delta", "null")])),
        (json!([txid, "x", "x"]), wrong(&[(2, "dummy", "string"), (3, "fee_delta", "string")])),
        (json!({"txid": txid, "fee_delta": "5"}), wrong(&[(3, "fee_delta", "string")])),
        (json!([txid, 1, 5]), priority()),
        (json!([txid, 0.5, 5]), priority()),
        (json!([txid, 0, 1.5]), range()),
        (json!([txid, 1, 1.5]), range()),
    ] {
        assert_eq!(client.refused("prioritisetransaction", params.clone()), expected, "{params}");
    }
    for params in [json!([txid, null, 5]), json!([txid, 0.0, 5]), json!({"txid": txid, "fee_delta": 5})] {
        assert_eq!(client.call("prioritisetransaction", params), true);
    }
}

#[test]
fn getblocktemplate_of_a_periods_first_block_follows_bip_94() {
    const START: u64 = 2_000_000_000;
    let host = Host::start();
    let mut client = host.client();
    let mut mine = |time: u64, blocks: u64| {
        client.call("setmocktime", json!([time]));
        client.call("generatetodescriptor", json!([blocks, "raw(51)"]));
        client.call("setmocktime", json!([START + 1_000]));
        let template = client.call("getblocktemplate", request());
        let tip = client.call("getblockheader", json!([template["previousblockhash"]]));
        let after_median = tip["mediantime"].as_u64().unwrap() + 1;
        (template["height"].as_u64(), template["mintime"].as_u64(), template["curtime"].as_u64(), after_median)
    };
    mine(START, 142);
    // As bitcoind 29: ten minutes before the former block, although the clock is earlier.
    let (height, least, current, after_median) = mine(START + 6_000, 1);
    assert_eq!((height, least, current), (Some(144), Some(START + 5_400), Some(START + 5_400)));
    assert!(after_median < START + 1_000);
    let (height, least, current, after_median) = mine(START + 1_000, 1);
    assert_eq!((height, least, current), (Some(145), Some(after_median), Some(START + 1_000)));
    let first = client.call("getblockhash", json!([144]));
    assert_eq!(client.call("getblockheader", json!([first]))["time"], json!(START + 5_400));
}
