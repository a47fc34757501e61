//! The plugin against a host in memory. What needs no chain is compared with recorded answers of release 29.

use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness, transaction};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::chain::Coin;
use outrigger_sdk::testing::{TestHost, TestPlugin};
use outrigger_sdk::{Plugin, RpcError};
use serde_json::{Value, json};

use crate::ChainPlugin;

const GENESIS: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
const KEY: &str = "033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2";
const ADDRESS: &str = "bcrt1qgrwkcxzwrd2znux6xct0m8w0n0cp39haa3wxk3";

fn start(host: &TestHost) -> TestPlugin<ChainPlugin> {
    host.start(include_str!("../manifest.json"), json!({}))
}

fn check(plugin: &TestPlugin<ChainPlugin>, method: &str, cases: &[(Value, Value)]) {
    for (arguments, expected) in cases {
        let answer = plugin.call(method, arguments.clone());
        assert_eq!(answer, Ok(expected.clone()), "{method} {arguments}");
    }
}

fn check_refusals(plugin: &TestPlugin<ChainPlugin>, method: &str, cases: &[(Value, i32, &str)]) {
    for (arguments, code, message) in cases {
        let error = plugin.call(method, arguments.clone()).unwrap_err();
        assert_eq!((error.code.0, &*error.message), (*code, *message), "{method} {arguments}");
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
fn funded() -> (TestHost, OutPoint) {
    let host = TestHost::new();
    let outpoint = OutPoint::new(Txid::from_byte_array([7; 32]), 1);
    let output = TxOut { value: Amount::from_btc(50.0).unwrap(), script_pubkey: ScriptBuf::from_bytes(vec![0x51]) };
    host.chain.add_coin(outpoint, Coin { output, height: 0, coinbase: true });
    (host, outpoint)
}

#[test]
fn the_chain_is_told_as_release_29_tells_it() {
    let host = TestHost::new();
    let plugin = start(&host);
    let tip = host.chain.mine(vec![]);
    check(&plugin, "getblockcount", &[(json!([]), json!(1))]);
    check(&plugin, "getbestblockhash", &[(json!([]), json!(tip))]);
    check(&plugin, "getblockhash", &[(json!([0]), json!(GENESIS)), (json!([1]), json!(tip))]);
    check_refusals(
        &plugin,
        "getblockhash",
        &[
            (json!([2]), -8, "Block height out of range"),
            (json!([-1]), -8, "Block height out of range"),
            (json!([1_u64 << 40]), -1, "JSON integer out of range"),
        ],
    );
    let header = plugin.call_json("getblockheader", json!([GENESIS])).unwrap();
    let expected = [
        r#"{"hash":"0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206","confirmations":2,"height":0,"#,
        r#""version":1,"versionHex":"00000001","#,
        r#""merkleroot":"4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b","time":1296688602,"#,
        r#""mediantime":1296688602,"nonce":2,"bits":"207fffff","#,
        r#""target":"7fffff0000000000000000000000000000000000000000000000000000000000","#,
        r#""difficulty":4.656542373906925e-10,"#,
        r#""chainwork":"0000000000000000000000000000000000000000000000000000000000000002","nTx":1,"nextblockhash":""#,
        &tip.to_string(),
        r#""}"#,
    ];
    assert_eq!(header, expected.concat());
    let raw = plugin.call("getblockheader", json!([GENESIS, false])).unwrap();
    assert_eq!(raw.as_str().unwrap().len(), 160);
    let zeros = "0".repeat(64);
    for method in ["getblockheader", "getblock", "invalidateblock", "reconsiderblock"] {
        check_refusals(
            &plugin,
            method,
            &[
                (json!([zeros]), -5, "Block not found"),
                (json!(["abc"]), -8, "blockhash must be of length 64 (not 3, for 'abc')"),
            ],
        );
    }
    let tips = json!([{"height": 1, "hash": tip, "branchlen": 0, "status": "active"}]);
    check(&plugin, "getchaintips", &[(json!([]), tips)]);
}

#[test]
fn chain_info_has_its_keys_and_catches_up_once() {
    let host = TestHost::new();
    let plugin = start(&host);
    let set_time = |time: u64| plugin.call("setmocktime", json!([time])).unwrap();
    set_time(1_700_000_000);
    let info = plugin.call("getblockchaininfo", json!([])).unwrap();
    let expected = "chain blocks headers bestblockhash bits target difficulty time mediantime verificationprogress \
        initialblockdownload chainwork size_on_disk pruned softforks warnings";
    assert_eq!(keys(&info), expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&info["initialblockdownload"], &info["verificationprogress"]), (&json!(true), &json!(1)));
    for (time, expected) in [(1_296_688_602 + 86_400, false), (1_700_000_000, false)] {
        set_time(time);
        let info = plugin.call("getblockchaininfo", json!([])).unwrap();
        assert_eq!(info["initialblockdownload"], json!(expected));
    }
    let message = "Mocktime must be in the range [0, 9223372036], not -1.";
    check_refusals(&plugin, "setmocktime", &[(json!([-1]), -8, message)]);
}

#[test]
fn blocks_come_in_four_depths() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let spending = pay(outpoint, 4_999_990_000, &[0x51]);
    let hash = host.chain.mine(vec![spending.clone()]);
    let block = host.chain.get(hash).unwrap();
    let raw = encode_hex(&bitcoin::consensus::serialize(&block));
    check(&plugin, "getblock", &[(json!([hash, 0]), json!(raw)), (json!([hash, false]), json!(raw))]);
    let shown = plugin.call("getblock", json!([hash])).unwrap();
    assert_eq!(shown["tx"], json!([block.txdata[0].compute_txid(), spending.compute_txid()]));
    assert_eq!((&shown["size"], &shown["strippedsize"]), (&json!(block.total_size()), &json!(block.total_size())));
    assert_eq!(keys(&shown)[keys(&shown).len() - 4..], ["strippedsize", "size", "weight", "tx"]);
    let deep = plugin.call("getblock", json!([hash, 2])).unwrap();
    assert_eq!(deep["tx"][1]["fee"].to_string(), "0.00010000");
    assert_eq!(deep["tx"][1]["hex"], json!(hex(&spending)));
    assert!(deep["tx"][0].get("fee").is_none() && deep["tx"][1]["vin"][0].get("prevout").is_none());
    let deepest = plugin.call("getblock", json!([hash, 3])).unwrap();
    let input = &deepest["tx"][1]["vin"][0];
    assert_eq!(keys(input), ["txid", "vout", "scriptSig", "prevout", "sequence"]);
    assert_eq!(keys(&input["prevout"]), ["generated", "height", "value", "scriptPubKey"]);
    assert_eq!(input["prevout"]["value"].to_string(), "50.00000000");
    let message = "JSON value of type string is not of expected type number";
    check_refusals(&plugin, "getblock", &[(json!([hash, "x"]), -3, message)]);
}

#[test]
fn transactions_are_found_in_mempool_chain_and_blocks() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let confirmed = pay(outpoint, 4_999_990_000, &[0x51]);
    let (txid, block) = (confirmed.compute_txid(), host.chain.mine(vec![confirmed.clone()]));
    let unconfirmed = pay(OutPoint::new(txid, 0), 1000, &[0x52]);
    host.mempool.add(unconfirmed.clone(), 500);
    let pending = unconfirmed.compute_txid();
    check(
        &plugin,
        "getrawtransaction",
        &[
            (json!([txid]), json!(hex(&confirmed))),
            (json!([pending, false]), json!(hex(&unconfirmed))),
            (json!([txid, 0, block]), json!(hex(&confirmed))),
        ],
    );
    let shown = plugin.call("getrawtransaction", json!([txid, 2])).unwrap();
    let expected =
        "txid hash version size vsize weight locktime vin vout fee hex blockhash confirmations time blocktime";
    assert_eq!(keys(&shown), expected.split(' ').collect::<Vec<_>>());
    assert_eq!(shown["confirmations"], json!(1));
    let shown = plugin.call("getrawtransaction", json!([txid, true, block])).unwrap();
    assert_eq!((keys(&shown)[0].as_str(), &shown["in_active_chain"]), ("in_active_chain", &json!(true)));
    let shown = plugin.call("getrawtransaction", json!([pending, 2])).unwrap();
    assert_eq!(*keys(&shown).last().unwrap(), "hex");
    let (ones, coinbase) = ("11".repeat(32), "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b");
    check_refusals(
        &plugin,
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
fn unspent_outputs_count_the_mempool_unless_told_otherwise() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let shown = plugin.call("gettxout", json!([outpoint.txid, 1])).unwrap();
    assert_eq!(keys(&shown), ["bestblock", "confirmations", "value", "scriptPubKey", "coinbase"]);
    assert_eq!((shown["value"].to_string(), &shown["coinbase"]), ("50.00000000".into(), &json!(true)));
    let spending = pay(outpoint, 1000, &[0x51]);
    host.mempool.add(spending.clone(), 500);
    check(
        &plugin,
        "gettxout",
        &[(json!([outpoint.txid, 1]), Value::Null), (json!([spending.compute_txid(), 9]), Value::Null)],
    );
    assert_eq!(plugin.call("gettxout", json!([outpoint.txid, 1, false])).unwrap()["confirmations"], json!(1));
    assert_eq!(plugin.call("gettxout", json!([spending.compute_txid(), 0])).unwrap()["confirmations"], json!(0));
    check_refusals(&plugin, "gettxout", &[(json!([outpoint.txid, -1]), -1, "JSON integer out of range")]);
}

#[test]
fn the_mempool_is_listed() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let parent = pay(outpoint, 1000, &[0x51]);
    let child = pay(OutPoint::new(parent.compute_txid(), 0), 500, &[0x51]);
    host.mempool.add(parent.clone(), 2540);
    host.mempool.add(child.clone(), 500);
    let ids = json!([parent.compute_txid(), child.compute_txid()]);
    check(
        &plugin,
        "getrawmempool",
        &[(json!([]), ids.clone()), (json!([false, true]), json!({"txids": ids, "mempool_sequence": 2}))],
    );
    let message = "Verbose results cannot contain mempool sequence values.";
    check_refusals(&plugin, "getrawmempool", &[(json!([true, true]), -8, message)]);
    let entry = plugin.call("getmempoolentry", json!([parent.compute_txid()])).unwrap();
    let expected = "vsize weight time height descendantcount descendantsize ancestorcount ancestorsize wtxid fees depends \
        spentby bip125-replaceable unbroadcast fee modifiedfee descendantfees ancestorfees";
    assert_eq!(keys(&entry), expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(entry["fees"]["base"].to_string(), "0.00002540");
    assert_eq!(plugin.call("getrawmempool", json!([true])).unwrap()[parent.compute_txid().to_string()], entry);
    check_refusals(
        &plugin,
        "getmempoolentry",
        &[
            (json!(["11".repeat(32)]), -5, "Transaction not in mempool"),
            (json!(["zz"]), -8, "parameter 1 must be of length 64 (not 2, for 'zz')"),
        ],
    );
    let info = plugin.call("getmempoolinfo", json!([])).unwrap();
    assert_eq!((info["total_fee"].to_string(), &info["size"]), ("0.00003040".into(), &json!(2)));
    let network = plugin.call("getnetworkinfo", json!([])).unwrap();
    assert_eq!((&network["version"], network["relayfee"].to_string()), (&json!(290_000), "0.00001000".into()));
}

#[test]
fn transactions_are_offered_and_tried() {
    let (host, outpoint) = funded();
    let plugin = start(&host);
    let good = pay(outpoint, 4_999_980_000, &[0x51]);
    let burning = pay(outpoint, 1000, &[0x6a]);
    let greedy = pay(outpoint, 5_000_000_001, &[0x51]);
    let orphan = pay(OutPoint::new(Txid::all_zeros(), 3), 1, &[0x51]);
    let (txid, wtxid) = (good.compute_txid(), good.compute_wtxid());
    let tried = plugin.call_json("testmempoolaccept", json!([[hex(&good)]])).unwrap();
    let feerate = 20_000 * 1000 / good.vsize();
    let expected = format!(
        r#"[{{"txid":"{txid}","wtxid":"{wtxid}","allowed":true,"vsize":{},"fees":{{"base":0.00020000,"effective-feerate":0.{feerate:08},"effective-includes":["{wtxid}"]}}}}]"#,
        good.vsize()
    );
    assert_eq!(tried, expected);
    let tried = plugin.call("testmempoolaccept", json!([[hex(&orphan), hex(&good)]])).unwrap();
    assert_eq!((&tried[0]["allowed"], &tried[0]["reject-reason"]), (&json!(false), &json!("missing-inputs")));
    assert_eq!(keys(&tried[1]), ["txid", "wtxid"]);
    let child = pay(OutPoint::new(txid, 0), 1, &[0x51]);
    let rival = pay(outpoint, 1, &[0x51]);
    for (package, error) in [
        ([&good, &good], "package-contains-duplicates"),
        ([&child, &good], "package-not-sorted"),
        ([&good, &rival], "conflict-in-package"),
    ] {
        let tried = plugin.call("testmempoolaccept", json!([package.map(hex)])).unwrap();
        assert_eq!(keys(&tried[0]), ["txid", "wtxid", "package-error"]);
        assert_eq!(tried[1]["package-error"], error);
    }
    let tried = plugin.call("testmempoolaccept", json!([[hex(&good), hex(&child)]])).unwrap();
    assert_eq!((&tried[0]["allowed"], keys(&tried[1]).len()), (&json!(true), 2));
    check_refusals(
        &plugin,
        "testmempoolaccept",
        &[
            (json!([[]]), -8, "Array must contain between 1 and 25 transactions."),
            (json!([["zz"]]), -22, "TX decode failed: zz Make sure the tx has at least one input."),
            (json!([[5]]), -3, "JSON value of type number is not of expected type string"),
            (json!([[hex(&good)], 1]), -8, "Fee rates larger than or equal to 1BTC/kvB are not accepted"),
        ],
    );
    check_refusals(
        &plugin,
        "sendrawtransaction",
        &[
            (json!(["zz"]), -22, "TX decode failed. Make sure the tx has at least one input."),
            (json!([hex(&burning)]), -25, "Unspendable output exceeds maximum configured by user (maxburnamount)"),
            (json!([hex(&greedy)]), -26, "bad-txns-in-belowout"),
            (json!([hex(&orphan)]), -25, "bad-txns-inputs-missingorspent"),
            (json!([hex(&good), 2]), -8, "Fee rates larger than or equal to 1BTC/kvB are not accepted"),
            (json!([hex(&good), "x"]), -3, "Invalid amount"),
        ],
    );
    assert_eq!(plugin.call("sendrawtransaction", json!([hex(&burning), null, 0.1])), Ok(json!(burning.compute_txid())));
    // What is known already is as good as sent.
    for _ in 0..2 {
        assert_eq!(plugin.call("sendrawtransaction", json!([hex(&good)])), Ok(json!(txid)));
    }
    assert_eq!(plugin.call("getmempoolinfo", json!([])).unwrap()["size"], json!(2));
}

#[test]
fn transactions_are_made_as_recorded() {
    let plugin = start(&TestHost::new());
    let txid = "11".repeat(32);
    let input = json!([{"txid": txid, "vout": 0}]);
    let pay = json!([{ADDRESS: 0.1}]);
    let made = |sequence: &str, outputs: &str, lock_time: &str| {
        json!(format!("0200000001{txid}0000000000{sequence}{outputs}{lock_time}"))
    };
    let one = "01809698000000000016001440dd6c184e1b5429f0da3616fd9dcf9bf01896fd";
    let two = "02809698000000000016001440dd6c184e1b5429f0da3616fd9dcf9bf01896fd0000000000000000046a0200ff";
    let sequence = |value: Value| json!([{"txid": txid, "vout": 0, "sequence": value}]);
    check(
        &plugin,
        "createrawtransaction",
        &[
            (json!([input, pay]), made("fdffffff", one, "00000000")),
            (json!([input, {ADDRESS: 0.1, "data": "00ff"}]), made("fdffffff", two, "00000000")),
            (json!([input, format!("{{\"{ADDRESS}\":\"0.1\"}}")]), made("fdffffff", one, "00000000")),
            (json!([input, pay, 500, true]), made("fdffffff", one, "f4010000")),
            (json!([input, pay, 0, false]), made("ffffffff", one, "00000000")),
            (json!([input, pay, 500, false]), made("feffffff", one, "f4010000")),
            (json!([input, pay, 4_294_967_295_u32]), made("fdffffff", one, "ffffffff")),
            (json!([sequence(json!(1000)), pay, 5]), made("e8030000", one, "05000000")),
            (json!([sequence(json!("1")), pay]), made("fdffffff", one, "00000000")),
            (json!([[], []]), json!("02000000000000000000")),
        ],
    );
    let not_hex = "z".repeat(64);
    check_refusals(
        &plugin,
        "createrawtransaction",
        &[
            (json!([input, [{"data": ""}]]), -8, "Data must be hexadecimal string (not '')"),
            (json!([input, [{"data": "zz"}]]), -8, "Data must be hexadecimal string (not 'zz')"),
            (json!([input, [{"data": "00"}, {"data": "01"}]]), -8, "Invalid parameter, duplicate key: data"),
            (
                json!([input, [{ADDRESS: 0.1}, {ADDRESS: 0.2}]]),
                -8,
                &format!("Invalid parameter, duplicated address: {ADDRESS}"),
            ),
            (json!([input, [{"garbage": 0.1}]]), -5, "Invalid Bitcoin address: garbage"),
            (json!([input, [{ADDRESS: -1}]]), -3, "Amount out of range"),
            (json!([input, [{ADDRESS: "x"}]]), -3, "Invalid amount"),
            (json!([input, [{"a": 1, "b": 1}]]), -8, "Invalid parameter, key-value pair must contain exactly one key"),
            (json!([input, [{}]]), -8, "Invalid parameter, key-value pair must contain exactly one key"),
            (json!([input, ["x"]]), -8, "Invalid parameter, key-value pair not an object as expected"),
            (json!([input, "x"]), -3, "JSON value of type string is not of expected type array"),
            (json!([input, null]), -8, "Invalid parameter, output argument must be non-null"),
            (json!([["x"], pay]), -3, "JSON value of type string is not of expected type object"),
            (json!([[{}], pay]), -3, "JSON value of type null is not of expected type string"),
            (json!([[{"txid": "zz", "vout": 0}], pay]), -8, "txid must be of length 64 (not 2, for 'zz')"),
            (
                json!([[{"txid": not_hex, "vout": 0}], pay]),
                -8,
                &format!("txid must be hexadecimal string (not '{not_hex}')"),
            ),
            (json!([[{"txid": txid}], pay]), -8, "Invalid parameter, missing vout key"),
            (json!([[{"txid": txid, "vout": -1}], pay]), -8, "Invalid parameter, vout cannot be negative"),
            (json!([sequence(json!(-1)), pay]), -8, "Invalid parameter, sequence number is out of range"),
            (json!([sequence(json!(1_u64 << 32)), pay]), -8, "Invalid parameter, sequence number is out of range"),
            (json!([input, pay, -1]), -8, "Invalid parameter, locktime out of range"),
            (
                json!([sequence(json!(u32::MAX)), pay, 0, true]),
                -8,
                "Invalid parameter combination: Sequence number(s) contradict replaceable option",
            ),
        ],
    );
}

#[test]
fn raw_transactions_are_decoded_in_the_form_asked_for() {
    let plugin = start(&TestHost::new());
    let empty = "02000000000000000000";
    let shown = plugin.call("decoderawtransaction", json!([empty])).unwrap();
    assert_eq!(keys(&shown), ["txid", "hash", "version", "size", "vsize", "weight", "locktime", "vin", "vout"]);
    let unfunded = "0200000000010100000000000000015100000000";
    assert!(plugin.call("decoderawtransaction", json!([unfunded, false])).is_ok());
    for bad in [json!(["zz"]), json!([""]), json!([unfunded, true])] {
        check_refusals(&plugin, "decoderawtransaction", &[(bad, -22, "TX decode failed")]);
    }
}

#[test]
fn scripts_are_decoded_as_recorded() {
    let plugin = start(&TestHost::new());
    let answer = |hex: String| plugin.call("decodescript", json!([hex])).unwrap();
    let pk = answer(format!("21{KEY}ac"));
    let segwit = json!({
        "asm": "0 63f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed",
        "hex": "001463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed",
        "reqSigs": 1,
        "type": "witness_v0_keyhash",
        "addresses": ["bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw"],
        "desc": "addr(bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw)#6qxtkqd5",
        "address": "bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw",
        "p2sh-segwit": "2MsG5rs7r83mEMwEARytyZ9H4jXr8KZLeJL",
    });
    let expected = json!({
        "asm": format!("{KEY} OP_CHECKSIG"),
        "type": "pubkey",
        "desc": format!("pk({KEY})#4f6ru7w0"),
        "p2sh": "2N3WzE4yem1HnnCpshEtWRbqeQijXTsGmh1",
        "segwit": segwit,
    });
    assert_eq!(pk.to_string(), expected.to_string());
    let miniscript = answer(format!("21{KEY}ad5ab2"));
    assert_eq!(miniscript["p2sh"], "2Mz2zUppmFAXMrnDmtLA9JVWYkqzLHCBtCs");
    assert_eq!(miniscript["segwit"]["desc"], format!("wsh(and_v(v:pk({KEY}),older(10)))#c434ug6z"));
    let empty = answer(String::new());
    assert_eq!(empty["segwit"]["p2sh-segwit"], "2N2CmnxjBbPTHrawgG2FkTuBLcJtEzA86sF");
    // These cannot be a redeem script, and those not a witness script.
    let wrapped = |hex: &str| {
        let answer = answer(hex.to_owned());
        (answer.get("p2sh").is_some(), answer.get("segwit").is_some())
    };
    for (hex, expected) in [
        ("a914da1745e9b549bd0bfa1a569971c77eba30cd5a4b87", (false, false)),
        ("51024e73", (false, false)),
        ("6a026162", (false, false)),
        ("ff", (false, false)),
        ("50", (false, false)),
        ("001463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed", (true, false)),
        (
            "4104a48b2aa38ccb5e48361c89d16b398047006b7eb2c4a9bc3a2cedaeedf332cfcc18881aa43570165972d68a5aa7890e950a5b2517c3cebb16cf5f0ab7dccda10bac",
            (true, false),
        ),
        ("51", (true, true)),
    ] {
        assert_eq!(wrapped(hex), expected, "{hex}");
    }
    let message = "argument must be hexadecimal string (not 'zz')";
    check_refusals(&plugin, "decodescript", &[(json!(["zz"]), -8, message)]);
}

#[test]
fn addresses_are_validated_as_recorded() {
    let plugin = start(&TestHost::new());
    check(
        &plugin,
        "validateaddress",
        &[
            (
                json!(["mrrEvVahbkE5qi9wq936VbiszJswLpjXze"]),
                json!({"isvalid": true, "address": "mrrEvVahbkE5qi9wq936VbiszJswLpjXze",
                    "scriptPubKey": "76a9147c4f2adfa53f39b968396ab53171e69cb64ad3b988ac",
                    "isscript": false, "iswitness": false}),
            ),
            (
                json!(["2N79nRPizh5y3pLXQ1UuojavNZQGaRVgQz4"]),
                json!({"isvalid": true, "address": "2N79nRPizh5y3pLXQ1UuojavNZQGaRVgQz4",
                    "scriptPubKey": "a914988a56bd9443f05e5571b27f0b089d8661d78a3e87",
                    "isscript": true, "iswitness": false}),
            ),
            (
                json!(["BCRT1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080"]),
                json!({"isvalid": true, "address": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
                    "scriptPubKey": "0014751e76e8199196d454941c45d1b3a323f1433bd6", "isscript": false,
                    "iswitness": true, "witness_version": 0,
                    "witness_program": "751e76e8199196d454941c45d1b3a323f1433bd6"}),
            ),
            (
                json!(["bcrt1pfeesnyr2tx"]),
                json!({"isvalid": true, "address": "bcrt1pfeesnyr2tx", "scriptPubKey": "51024e73",
                    "isscript": true, "iswitness": true}),
            ),
            (
                json!(["bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt081"]),
                json!({"isvalid": false, "error_locations": [43], "error": "Invalid separator position"}),
            ),
        ],
    );
}

#[test]
fn descriptors_are_described_and_derived_as_recorded() {
    let plugin = start(&TestHost::new());
    let info = plugin.call_json("getdescriptorinfo", json!([format!("pkh({KEY})")])).unwrap();
    let expected = format!(
        r#"{{"descriptor":"pkh({KEY})#qevngwza","checksum":"qevngwza","isrange":false,"issolvable":true,"hasprivatekeys":false}}"#
    );
    assert_eq!(info, expected);
    let private = "cSDnEboTpA86cQS85YWShTYBQUrabK8EdXUbq2Fh9dfBKPdFBs5T";
    let info = plugin.call("getdescriptorinfo", json!([format!("pk({private})")])).unwrap();
    assert_eq!((&info["checksum"], &info["hasprivatekeys"]), (&json!("0qeehurc"), &json!(true)));
    assert!(!info.to_string().contains(private));
    let addresses = |descriptor: String| plugin.call("deriveaddresses", json!([descriptor]));
    let expected = json!(["bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw"]);
    assert_eq!(addresses(format!("wpkh({KEY})#jh8x92j2")), Ok(expected));
    let combo = json!([
        "mpdTPzJRwTaKt4GtpYX5LHfja39rfJ62Xm",
        "bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw",
        "2MsG5rs7r83mEMwEARytyZ9H4jXr8KZLeJL"
    ]);
    assert_eq!(addresses(format!("combo({KEY})#z6453lqp")), Ok(combo));
    let ranged = "wpkh(tpubD6NzVbkrYhZ4WftWoL6uQgGPwZrywmoh2Ckm4QyTm7rknQB66xHRfF6iVhbkt875LvDFc3fagZZUNmk4UX6F9boFm5DTmvTfi3RKnji1TgE/84h/1h/0h/0/*)#hhxv7auj";
    check_refusals(
        &plugin,
        "deriveaddresses",
        &[
            (json!([ranged, [0, 2]]), -5, "Cannot derive script without private keys"),
            (json!([ranged]), -8, "Range must be specified for a ranged descriptor"),
            (json!([ranged, [2, 0]]), -8, "Range specified as [begin,end] must not have begin after end"),
            (json!([ranged.split('#').next(), 1]), -5, "Missing checksum"),
            (
                json!([format!("wpkh({KEY})#jh8x92j2"), [0, 2]]),
                -8,
                "Range should not be specified for an un-ranged descriptor",
            ),
            (json!([format!("pk({KEY})#4f6ru7w0")]), -5, "Descriptor does not have a corresponding address"),
        ],
    );
    let error = plugin.call("getdescriptorinfo", json!(["nosuch(1)"])).unwrap_err();
    assert!(error.code.0 == -5 && error.message.contains("is not a valid descriptor function"), "{error}");
}

#[test]
fn multipath_descriptors_give_a_list_per_path() {
    let plugin = start(&TestHost::new());
    let text = "wpkh(tprv8ZgxMBicQKsPdCriugSK1GcHNYM3nScnSu9ymtwALr4MwuvKUZTqUkUrKYSsLfYHz4X2MQwfft4C5Gk1WqeCWaDhWN9aVSXT3rF9tcZx77N/<0;1>/*)#pmgs3x5k";
    let expected: Result<Value, RpcError> = Ok(json!([
        ["bcrt1qgw04ruwfyxt0ykz3cszw4rnwdgyx4vddw58c33", "bcrt1qhcnju37e3wyzlvg02qph50arc985hku5ted08q"],
        ["bcrt1qgq34vcw57jdwwp9e94gj0td9wca62nzkwkhxv0", "bcrt1qfttfghvyv8c7kednf5zpke54rzsd4ppnd49esr"]
    ]));
    assert_eq!(plugin.call("deriveaddresses", json!([text, [0, 1]])), expected);
    let info = plugin.call("getdescriptorinfo", json!([text])).unwrap();
    assert_eq!(info["multipath_expansion"].as_array().unwrap().len(), 2);
    assert_eq!(info["multipath_expansion"][0], info["descriptor"]);
}

#[test]
fn blocks_are_invalidated_and_reconsidered() {
    let host = TestHost::new();
    let plugin = start(&host);
    let hash = host.chain.mine(vec![]);
    check(&plugin, "invalidateblock", &[(json!([hash]), Value::Null)]);
    check(&plugin, "getblockcount", &[(json!([]), json!(0))]);
    let header = plugin.call("getblockheader", json!([hash])).unwrap();
    assert_eq!(header["confirmations"], json!(-1));
    check(&plugin, "reconsiderblock", &[(json!([hash]), Value::Null)]);
    check(&plugin, "getblockcount", &[(json!([]), json!(1))]);
    plugin.quiesce();
}
