//! The plugin against a host in memory. Tests without a chain compare with recorded answers of Bitcoin Core 29.

use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness, transaction};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::chain::Coin;
use outrigger_sdk::testing::{StubHost, TestPlugin};
use outrigger_sdk::{FeeRate, amount};
use serde_json::{Value, json};

use crate::ChainPlugin;

mod messages;
mod network;
mod scans;
mod statistics;
mod texts;
mod waiting;

const GENESIS: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
const KEY: &str = "033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2";
const ADDRESS: &str = "bcrt1qgrwkcxzwrd2znux6xct0m8w0n0cp39haa3wxk3";

fn start(host: &StubHost) -> TestPlugin<ChainPlugin> {
    host.start(json!({}))
}

fn check(plugin: &TestPlugin<ChainPlugin>, method: &str, cases: &[(Value, Value)]) {
    for (arguments, expected) in cases {
        let answer = plugin.call(method, arguments.clone());
        assert_eq!(answer, Ok(expected.clone()), "{method} {arguments}");
    }
}

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

fn pay(previous_output: OutPoint, satoshi: u64, script_pubkey: &[u8]) -> Transaction {
    let input =
        TxIn { previous_output, script_sig: ScriptBuf::new(), sequence: Sequence::MAX, witness: Witness::new() };
    let script_pubkey = ScriptBuf::from_bytes(script_pubkey.to_vec());
    Transaction {
        version: transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![input],
        output: vec![TxOut { value: Amount::from_sat(satoshi), script_pubkey }],
    }
}

fn hex(transaction: &Transaction) -> String {
    encode_hex(&bitcoin::consensus::serialize(transaction))
}

/// A host with a coin of 50 BTC at the outpoint.
fn funded() -> (StubHost, OutPoint) {
    let host = StubHost::new();
    let outpoint = OutPoint::new(Txid::from_byte_array([7; 32]), 1);
    let output = TxOut { value: Amount::from_btc(50.0).unwrap(), script_pubkey: ScriptBuf::from_bytes(vec![0x51]) };
    host.chain.add_coin(outpoint, Coin { output, height: 0, coinbase: true });
    (host, outpoint)
}

#[test]
fn block_and_transaction_rpcs_refuse_bad_arguments() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let confirmed = pay(outpoint, 4_999_990_000, &[0x51]);
    let (txid, block) = (confirmed.compute_txid(), host.chain.mine(vec![confirmed]));
    let unconfirmed = pay(OutPoint::new(txid, 0), 1000, &[0x52]);
    let pending = unconfirmed.compute_txid();
    host.mempool.add(unconfirmed, Amount::from_sat(500));
    plugin.refuses(
        "getblockhash",
        &[
            (json!([2]), -8, "Block height out of range"),
            (json!([-1]), -8, "Block height out of range"),
            (json!([1_u64 << 40]), -1, "JSON integer out of range"),
        ],
    );
    let zeros = "0".repeat(64);
    for method in ["getblockheader", "getblock", "invalidateblock", "reconsiderblock"] {
        let name = if method == "getblockheader" { "hash" } else { "blockhash" };
        let short = format!("{name} must be of length 64 (not 3, for 'abc')");
        plugin.refuses(method, &[(json!([zeros]), -5, "Block not found"), (json!(["abc"]), -8, &short)]);
    }
    let message = "JSON value of type string is not of expected type number";
    plugin.refuses("getblock", &[(json!([block, "x"]), -3, message)]);
    plugin.refuses("gettxout", &[(json!([txid, -1]), -1, "JSON integer out of range")]);
    let (ones, coinbase) = ("11".repeat(32), "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b");
    plugin.refuses(
        "getrawtransaction",
        &[
            (
                json!([coinbase]),
                -5,
                "The genesis block coinbase is not considered an ordinary transaction and cannot be retrieved",
            ),
            (
                json!([ones]),
                -5,
                "No such mempool or blockchain transaction. Use gettransaction for wallet transactions.",
            ),
            (
                json!([pending, 1, block]),
                -5,
                "No such transaction found in the provided block. Use gettransaction for wallet transactions.",
            ),
            (json!([txid, 1, ones]), -5, "Block hash not found"),
            (json!(["zz"]), -8, "parameter 1 must be of length 64 (not 2, for 'zz')"),
        ],
    );
}

#[test]
fn getblockchaininfo_has_the_keys_of_release_29_and_catches_up_once() {
    let host = StubHost::new();
    let plugin = start(&host);
    let set_time = |time: u64| plugin.call("setmocktime", json!([time])).unwrap();
    set_time(1_700_000_000);
    let info = plugin.call("getblockchaininfo", json!([])).unwrap();
    let expected = "chain blocks headers bestblockhash bits target difficulty time mediantime verificationprogress \
        initialblockdownload chainwork size_on_disk pruned warnings";
    assert_eq!(info["warnings"], json!([]));
    assert_eq!(keys(&info), expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&info["initialblockdownload"], &info["verificationprogress"]), (&json!(true), &json!(1)));
    for (time, expected) in [(1_296_688_602 + 86_400, false), (1_700_000_000, false)] {
        set_time(time);
        let info = plugin.call("getblockchaininfo", json!([])).unwrap();
        assert_eq!(info["initialblockdownload"], json!(expected));
    }
    let message = "Mocktime must be in the range [0, 9223372036], not -1.";
    plugin.refuses("setmocktime", &[(json!([-1]), -8, message)]);
}

#[test]
fn getrawmempool_getmempoolentry_and_gettxspendingprevout_show_the_mempool() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let parent = pay(outpoint, 1000, &[0x51]);
    let child = pay(OutPoint::new(parent.compute_txid(), 0), 500, &[0x51]);
    host.mempool.add(parent.clone(), Amount::from_sat(2540));
    host.mempool.add(child.clone(), Amount::from_sat(500));
    let ids = json!([parent.compute_txid(), child.compute_txid()]);
    check(
        &plugin,
        "getrawmempool",
        &[(json!([]), ids.clone()), (json!([false, true]), json!({"txids": ids, "mempool_sequence": 2}))],
    );
    let message = "Verbose results cannot contain mempool sequence values.";
    plugin.refuses("getrawmempool", &[(json!([true, true]), -8, message)]);
    let entry = plugin.call("getmempoolentry", json!([parent.compute_txid()])).unwrap();
    let expected = "vsize weight time height descendantcount descendantsize ancestorcount ancestorsize wtxid fees depends \
        spentby bip125-replaceable unbroadcast";
    assert_eq!(keys(&entry), expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(entry["fees"]["base"].to_string(), "0.00002540");
    assert_eq!(plugin.call("getrawmempool", json!([true])).unwrap()[parent.compute_txid().to_string()], entry);
    plugin.refuses(
        "getmempoolentry",
        &[
            (json!(["11".repeat(32)]), -5, "Transaction not in mempool"),
            (json!(["zz"]), -8, "parameter 1 must be of length 64 (not 2, for 'zz')"),
        ],
    );
    let [none, txid] = ["00".repeat(32), outpoint.txid.to_string()];
    let asked = json!([[{"txid": txid, "vout": outpoint.vout}, {"txid": none, "vout": 0}]]);
    let answer = format!(
        r#"[{{"txid":"{txid}","vout":{},"spendingtxid":"{}"}},{{"txid":"{none}","vout":0}}]"#,
        outpoint.vout,
        parent.compute_txid()
    );
    assert_eq!(plugin.call_json("gettxspendingprevout", asked), Ok(answer));
    let type_of_txid = "JSON value of type number for field txid is not of expected type string";
    plugin.refuses(
        "gettxspendingprevout",
        &[
            (json!([[]]), -8, "Invalid parameter, outputs are missing"),
            (json!([[5]]), -3, "JSON value of type number is not of expected type object"),
            (json!([[{"x": 1}]]), -3, "Missing txid"),
            (json!([[{"txid": none, "vout": null}]]), -3, "Missing vout"),
            (json!([[{"txid": 5, "vout": "a"}]]), -3, type_of_txid),
            (json!([[{"txid": "00", "vout": 0, "x": 1}]]), -3, "Unexpected key x"),
            (json!([[{"txid": "00", "vout": 0}]]), -8, "txid must be of length 64 (not 2, for '00')"),
            (json!([[{"txid": none, "vout": 1.5}]]), -1, "JSON integer out of range"),
            (json!([[{"txid": none, "vout": -1}, 5]]), -8, "Invalid parameter, vout cannot be negative"),
        ],
    );
    let info = plugin.call("getmempoolinfo", json!([])).unwrap();
    assert_eq!((info["total_fee"].to_string(), &info["size"]), ("0.00003040".into(), &json!(2)));
}

#[test]
fn sendrawtransaction_submits_and_testmempoolaccept_tests_transactions() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let good = pay(outpoint, 4_999_980_000, &[0x51]);
    let other = OutPoint { vout: 2, ..outpoint };
    let output = TxOut { value: Amount::from_sat(2000), script_pubkey: ScriptBuf::from_bytes(vec![0x51]) };
    host.chain.add_coin(other, Coin { output, height: 0, coinbase: true });
    let burning = pay(other, 1000, &[0x6a]);
    // Without inputs, in the legacy form: 1 bitcoin to an empty script.
    let bare = "02000000000100e1f505000000000000000000";
    let greedy = pay(outpoint, 5_000_000_001, &[0x51]);
    let orphan = pay(OutPoint::new(Txid::all_zeros(), 3), 1, &[0x51]);
    let (txid, wtxid) = (good.compute_txid(), good.compute_wtxid());
    let tried = plugin.call_json("testmempoolaccept", json!([[hex(&good)]])).unwrap();
    let feerate = amount::to_json(FeeRate::paid(Amount::from_sat(20_000), good.vsize() as u64));
    let expected = format!(
        r#"[{{"txid":"{txid}","wtxid":"{wtxid}","allowed":true,"vsize":{},"fees":{{"base":0.00020000,"effective-feerate":{feerate},"effective-includes":["{wtxid}"]}}}}]"#,
        good.vsize()
    );
    assert_eq!(tried, expected);
    let tried = plugin.call("testmempoolaccept", json!([[hex(&orphan), hex(&good)]])).unwrap();
    assert_eq!((&tried[0]["allowed"], &tried[0]["reject-reason"]), (&json!(false), &json!("missing-inputs")));
    assert_eq!(tried[1]["allowed"], json!(true));
    let child = pay(OutPoint::new(txid, 0), 1, &[0x51]);
    plugin.refuses(
        "testmempoolaccept",
        &[
            (json!([[]]), -8, "Array must contain between 1 and 25 transactions."),
            (json!([["zz"]]), -22, "TX decode failed: zz Make sure the tx has at least one input."),
            (json!([[bare]]), -22, &format!("TX decode failed: {bare} Make sure the tx has at least one input.")),
            (json!([[5]]), -3, "JSON value of type number is not of expected type string"),
            (json!([[hex(&good)], 1]), -8, "Fee rates larger than or equal to 1BTC/kvB are not accepted"),
            (json!([[], 5]), -8, "Array must contain between 1 and 25 transactions."),
            (json!([["00"], 5]), -8, "Fee rates larger than or equal to 1BTC/kvB are not accepted"),
            (json!([[5], true]), -3, "Amount is not a number or string"),
        ],
    );
    let topology = "package topology disallowed. not child-with-parents or parents depend on each other.";
    plugin.refuses(
        "submitpackage",
        &[
            (json!([[]]), -8, "Array must contain between 1 and 25 transactions."),
            (json!([["zz"]]), -22, "TX decode failed: zz Make sure the tx has at least one input."),
            (json!([[hex(&burning)]]), -25, "Unspendable output exceeds maximum configured by user (maxburnamount)"),
            (json!([[hex(&good), hex(&good)]]), -25, topology),
            (json!([[hex(&child), hex(&good)]]), -25, topology),
        ],
    );
    plugin.refuses(
        "sendrawtransaction",
        &[
            (json!(["zz"]), -22, "TX decode failed. Make sure the tx has at least one input."),
            (json!([bare]), -22, "TX decode failed. Make sure the tx has at least one input."),
            (json!([hex(&burning)]), -25, "Unspendable output exceeds maximum configured by user (maxburnamount)"),
            (json!([hex(&greedy)]), -26, "bad-txns-in-belowout"),
            (json!([hex(&orphan)]), -25, "bad-txns-inputs-missingorspent"),
            (json!([hex(&good), 2]), -8, "Fee rates larger than or equal to 1BTC/kvB are not accepted"),
            (json!([hex(&good), "x"]), -3, "Invalid amount"),
            // The plugin reads both limits before the transaction.
            (json!(["00", true]), -3, "Amount is not a number or string"),
            (json!(["00", 5, []]), -8, "Fee rates larger than or equal to 1BTC/kvB are not accepted"),
            (json!(["00", null, -1]), -3, "Amount out of range"),
            (json!([hex(&good), null, []]), -3, "Amount is not a number or string"),
        ],
    );
    assert_eq!(plugin.call("sendrawtransaction", json!([hex(&burning), null, 0.1])), Ok(json!(burning.compute_txid())));
    // Sending a known transaction again succeeds.
    for _ in 0..2 {
        assert_eq!(plugin.call("sendrawtransaction", json!([hex(&good)])), Ok(json!(txid)));
    }
    assert_eq!(plugin.call("getmempoolinfo", json!([])).unwrap()["size"], json!(2));
}
