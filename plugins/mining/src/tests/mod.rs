//! The plugin against a host in memory.

mod long_polls;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::Hash;
use bitcoin::{Amount, Block, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness, transaction};
use outrigger_sdk::params::{Params, decode_hex, encode_hex};
use outrigger_sdk::plugin::ReplySink;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::testing::{PendingCall, StubHost, TestPlugin};
use outrigger_sdk::{Call, Plugin, Reply, RpcError};
use serde_json::{Value, json};

use crate::MiningPlugin;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
const MANIFEST: &str = include_str!("../../manifest.json");

fn start(host: &StubHost) -> TestPlugin<MiningPlugin> {
    host.start(MANIFEST, json!({}))
}

fn template(plugin: &TestPlugin<MiningPlugin>) -> Value {
    plugin.call("getblocktemplate", json!([{"rules": ["segwit"]}])).unwrap()
}

fn spend(previous_output: OutPoint) -> Transaction {
    let input =
        TxIn { previous_output, script_sig: ScriptBuf::new(), sequence: Sequence::MAX, witness: Witness::new() };
    let output = TxOut { value: Amount::from_sat(1000), script_pubkey: ScriptBuf::from_bytes(vec![0x51]) };
    Transaction {
        version: transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![input],
        output: vec![output],
    }
}

fn refusal(outcome: Result<Value, RpcError>) -> (i32, String) {
    let error = outcome.unwrap_err();
    (error.code.0, error.message)
}

/// The answers by token.
type Answers = HashMap<u64, Result<Arc<Vec<u8>>, RpcError>>;

/// Keeps the answers of calls that are begun by hand, and may say that they are not wanted.
#[derive(Default)]
struct Sink {
    answers: Mutex<Answers>,
    /// How often the answers are said to be wanted; none for always.
    wanted: Option<AtomicU64>,
}

impl ReplySink for Sink {
    fn reply(&self, token: u64, outcome: Result<Vec<u8>, RpcError>) -> bool {
        self.answers.lock().unwrap().insert(token, outcome.map(Arc::new));
        true
    }

    fn reply_shared(&self, token: u64, json: Arc<Vec<u8>>) -> bool {
        self.answers.lock().unwrap().insert(token, Ok(json));
        true
    }

    fn wanted(&self, _: u64) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        wanted.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}

fn begin(plugin: &MiningPlugin, sink: &Arc<Sink>, token: u64, method: &str, params: Value) {
    let params = Params(params.as_array().unwrap().clone());
    let call = Call { method, params, scope: Scope(token), deadline: None };
    plugin.call(call, Reply::new(token, sink.clone()));
}

#[test]
fn getblocktemplate_empty_template_has_its_keys_in_order() {
    let host = StubHost::new();
    let plugin = start(&host);
    host.handle().chain.set_mock_time(Scope::NONE, 1_700_000_000).unwrap();
    let genesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
    let expected = [
        r#"{"capabilities":["proposal"],"version":536870912,"rules":["csv","!segwit","taproot"],"vbavailable":{},"#,
        r#""vbrequired":0,"previousblockhash":""#,
        genesis,
        r#"","transactions":[],"coinbaseaux":{},"coinbasevalue":5000000000,"longpollid":""#,
        genesis,
        r#"0","target":"7fffff0000000000000000000000000000000000000000000000000000000000","mintime":1296688603,"#,
        r#""mutable":["time","transactions","prevblock"],"noncerange":"00000000ffffffff","sigoplimit":80000,"#,
        r#""sizelimit":4000000,"weightlimit":4000000,"curtime":1700000000,"bits":"207fffff","height":1,"#,
        r#""default_witness_commitment":"6a24aa21a9ede2f61c3f71d1defd3fa999dfa36953755c690689799962b48bebd836974e8cf9"}"#,
    ];
    assert_eq!(plugin.call_json("getblocktemplate", json!([{"rules": ["segwit"]}])).unwrap(), expected.concat());
}

#[test]
fn getblocktemplate_transactions_are_whole_and_depend_by_position() {
    let host = StubHost::new();
    let plugin = start(&host);
    let parent = spend(OutPoint::new(Txid::all_zeros(), 0));
    let child = spend(OutPoint::new(parent.compute_txid(), 0));
    host.mempool.add(parent.clone(), Amount::from_sat(150));
    host.mempool.add(child.clone(), Amount::from_sat(250));
    let template = template(&plugin);
    let entry = |transaction: &Transaction, fee: u64, depends: Value| {
        json!({
            "data": encode_hex(&serialize(transaction)),
            "txid": transaction.compute_txid(),
            "hash": transaction.compute_wtxid(),
            "depends": depends,
            "fee": fee,
            "sigops": 0,
            "weight": transaction.weight().to_wu(),
        })
    };
    let expected = json!([entry(&parent, 150, json!([])), entry(&child, 250, json!([1]))]);
    assert_eq!(template["transactions"].to_string(), expected.to_string());
    assert_eq!(template["coinbasevalue"], json!(5_000_000_400_u64));
    let commitment = template["default_witness_commitment"].as_str().unwrap();
    assert!(commitment.starts_with("6a24aa21a9ed") && !commitment.ends_with("8cf9"), "{commitment}");
    let info = plugin.call("getmininginfo", json!([])).unwrap();
    let weight = 8000 + parent.weight().to_wu() + child.weight().to_wu();
    assert_eq!((&info["currentblocktx"], &info["currentblockweight"]), (&json!(2), &json!(weight)));
}

#[test]
fn getblocktemplate_is_made_anew_five_seconds_after_a_change_of_the_mempool() {
    let host = StubHost::new();
    let plugin = start(&host);
    let set_time = |time| plugin.host.chain.set_mock_time(Scope::NONE, time).unwrap();
    set_time(1_700_000_000);
    let first = template(&plugin);
    host.mempool.add(spend(OutPoint::new(Txid::all_zeros(), 0)), Amount::from_sat(100));
    set_time(1_700_000_005);
    let kept = template(&plugin);
    assert_eq!((&kept["longpollid"], &kept["transactions"]), (&first["longpollid"], &json!([])));
    assert_eq!(kept["curtime"], json!(1_700_000_005));
    set_time(1_700_000_006);
    let fresh = template(&plugin);
    assert_eq!(fresh["transactions"].as_array().unwrap().len(), 1);
    assert_ne!(fresh["longpollid"], first["longpollid"]);
    // A new tip does not wait, and the time never goes back within a template.
    set_time(1_700_000_001);
    host.mempool.clear();
    host.chain.mine(vec![]);
    assert_eq!(template(&plugin)["height"], json!(2));
}

#[test]
fn getblocktemplate_segwit_rule_is_required() {
    let host = StubHost::new();
    let plugin = start(&host);
    let message = "getblocktemplate must be called with the segwit rule set (call with {\"rules\": [\"segwit\"]})";
    for argument in [json!([]), json!([{}]), json!([{"rules": "segwit"}]), json!([null])] {
        assert_eq!(refusal(plugin.call("getblocktemplate", argument)), (-8, message.into()));
    }
}

#[test]
fn getblocktemplate_unchanged_is_the_same_bytes() {
    let host = StubHost::new();
    let set_time = |seconds| host.handle().chain.set_mock_time(Scope::NONE, seconds).unwrap();
    set_time(1_700_000_000);
    host.mempool.add(spend(OutPoint::new(Txid::all_zeros(), 0)), Amount::from_sat(100));
    let plugin = start(&host);
    let sink = Arc::new(Sink::default());
    let ask = |token| {
        begin(&plugin, &sink, token, "getblocktemplate", json!([{"rules": ["segwit"]}]));
        sink.answers.lock().unwrap()[&token].clone().unwrap()
    };
    let (first, again) = (ask(1), ask(2));
    assert!(Arc::ptr_eq(&first, &again));
    // Another second is another time, and nothing else.
    set_time(1_700_000_001);
    let later = ask(3);
    let text = |json: &[u8]| String::from_utf8(json.to_vec()).unwrap();
    assert_eq!(text(&later), text(&first).replace("\"curtime\":1700000000", "\"curtime\":1700000001"));
    set_time(1_700_000_100);
    let much_later = ask(4);
    assert_eq!(text(&much_later), text(&first).replace("\"curtime\":1700000000", "\"curtime\":1700000100"));
}

#[test]
fn generatetoaddress_ends_when_nobody_waits_for_it() {
    let host = StubHost::new();
    let plugin = start(&host);
    let height = || host.handle().chain.tip(Scope::NONE).unwrap().height;
    // Nobody waited any more when it began: no notice comes.
    let sink = Arc::new(Sink { wanted: Some(AtomicU64::new(0)), ..Sink::default() });
    begin(&plugin, &sink, 1, "generatetoaddress", json!([1_000_000, ADDRESS]));
    assert_eq!(height(), 0);
    let sink = Arc::new(Sink { wanted: Some(AtomicU64::new(3)), ..Sink::default() });
    begin(&plugin, &sink, 1, "generatetoaddress", json!([1_000_000, ADDRESS]));
    assert_eq!(height(), 3);
    plugin.tell(Event::ShuttingDown);
    assert_eq!(plugin.call("generatetoaddress", json!([5, ADDRESS])), Ok(json!([])));
    assert_eq!(height(), 3);
}

#[test]
fn generatetoaddress_pays_the_address() {
    let host = StubHost::new();
    let plugin = start(&host);
    let hashes = plugin.call("generatetoaddress", json!([17, ADDRESS])).unwrap();
    assert_eq!(hashes.as_array().unwrap().len(), 17);
    let scripts = ["5100", "5200", "6000", "011100"];
    for (height, script) in [1, 2, 16, 17].into_iter().zip(scripts) {
        let hash = hashes[height - 1].as_str().unwrap().parse().unwrap();
        let block: Block = host.chain.get(hash).unwrap();
        let coinbase = &block.txdata[0];
        assert_eq!(encode_hex(coinbase.input[0].script_sig.as_bytes()), script);
        assert!(block.check_merkle_root() && block.check_witness_commitment());
        assert!(block.header.validate_pow(block.header.target()).is_ok());
        assert_eq!(
            encode_hex(coinbase.output[0].script_pubkey.as_bytes()),
            "0014751e76e8199196d454941c45d1b3a323f1433bd6"
        );
    }
    for (arguments, expected) in
        [(json!([0, ADDRESS]), json!([])), (json!([-1, ADDRESS]), json!([])), (json!([1, ADDRESS, 0]), json!([]))]
    {
        assert_eq!(plugin.call("generatetoaddress", arguments), Ok(expected));
    }
    let outcome = plugin.call("generatetoaddress", json!([1, "notanaddress"]));
    assert_eq!(refusal(outcome), (-5, "Error: Invalid address".into()));
}

#[test]
fn generateblock_makes_a_block_of_chosen_transactions() {
    let host = StubHost::new();
    let plugin = start(&host);
    let made = plugin.call("generateblock", json!([ADDRESS, [], false])).unwrap();
    let block: Block = deserialize(&decode_hex(made["hex"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!((json!(block.block_hash()), block.txdata.len()), (made["hash"].clone(), 1));
    assert_eq!(plugin.host.chain.tip(Scope::NONE).unwrap().height, 0);
    let made = plugin.call("generateblock", json!(["raw(51)#8lvh9jxk", []])).unwrap();
    let block = host.chain.get(made["hash"].as_str().unwrap().parse().unwrap()).unwrap();
    assert_eq!(block.txdata[0].output[0].script_pubkey.as_bytes(), [0x51]);
    let unknown = "11".repeat(32);
    for (arguments, code, message) in [
        (json!(["x", []]), -5, "Error: Invalid address or descriptor".to_owned()),
        (json!([ADDRESS, [5]]), -3, "JSON value of type number is not of expected type string".into()),
        (json!([ADDRESS, [unknown]]), -5, format!("Transaction {unknown} not in mempool.")),
        (
            json!([ADDRESS, ["zz"]]),
            -22,
            "Transaction decode failed for zz. Make sure the tx has at least one input.".into(),
        ),
    ] {
        assert_eq!(refusal(plugin.call("generateblock", arguments)), (code, message));
    }
}

#[test]
fn submitblock_submitheader_and_proposals_are_judged_by_the_chain() {
    let host = StubHost::new();
    let plugin = start(&host);
    let made = plugin.call("generateblock", json!([ADDRESS, [], false])).unwrap();
    let hex = made["hex"].as_str().unwrap();
    let propose = |data: &str| plugin.call("getblocktemplate", json!([{"mode": "proposal", "data": data}]));
    assert_eq!(propose(hex), Ok(Value::Null));
    assert_eq!(plugin.call("submitblock", json!([hex, {}])), Ok(Value::Null));
    assert_eq!(plugin.call("submitblock", json!([hex])), Ok(json!("duplicate")));
    assert_eq!(propose(hex), Ok(json!("duplicate")));
    for bad in ["", "zz", "00"] {
        assert_eq!(refusal(propose(bad)), (-22, "Block decode failed".into()));
        assert_eq!(refusal(plugin.call("submitblock", json!([bad]))), (-22, "Block decode failed".into()));
    }
    assert_eq!(refusal(plugin.call("submitblock", json!([5]))).0, -1);
    let next = plugin.call("generateblock", json!([ADDRESS, [], false])).unwrap();
    let header = &next["hex"].as_str().unwrap()[..160];
    assert_eq!(plugin.call("submitheader", json!([header])), Ok(Value::Null));
    assert_eq!(refusal(plugin.call("submitheader", json!(["zz"]))), (-22, "Block header decode failed".into()));
    let orphan = format!("04000000{}{}", "33".repeat(32), &header[72..]);
    let message = format!("Must submit previous header ({}) first", "33".repeat(32));
    assert_eq!(refusal(plugin.call("submitheader", json!([orphan]))), (-25, message));
}

#[test]
fn generatetodescriptor_pays_a_descriptor_of_one_script() {
    const KEY: &str = "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";
    let host = StubHost::new();
    let plugin = start(&host);
    let hashes = plugin.call("generatetodescriptor", json!([2, "raw(6a)#4mhr9ur5"])).unwrap();
    assert_eq!(hashes.as_array().unwrap().len(), 2);
    let tip = host.handle().chain.tip(Scope::NONE).unwrap();
    assert_eq!((tip.height, json!(tip.hash)), (2, hashes[1].clone()));
    let raw = host.handle().chain.block(Scope::NONE, tip.hash).unwrap().unwrap();
    let block: Block = deserialize(&raw).unwrap();
    assert_eq!(block.txdata[0].output[0].script_pubkey.as_bytes(), [0x6a]);
    assert_eq!(plugin.call("generatetodescriptor", json!([-1, "raw(6a)"])), Ok(json!([])));
    // As bitcoind 29 answered.
    let wrong_checksum = "Provided checksum 'aaaaaaaa' does not match computed checksum '4mhr9ur5'";
    let ranged = "Ranged descriptor not accepted. Maybe pass through deriveaddresses first?";
    for (descriptor, code, message) in [
        ("raw(6a)#aaaaaaaa".to_owned(), -5, wrong_checksum),
        (format!("wpkh({KEY}/*)"), -8, ranged),
        (format!("wpkh({KEY}/<0;1>)"), -8, "Multipath descriptor not accepted"),
    ] {
        assert_eq!(refusal(plugin.call("generatetodescriptor", json!([1, descriptor]))), (code, message.to_owned()));
    }
}

#[test]
fn getmininginfo_has_the_keys_of_release_29() {
    let host = StubHost::new();
    let plugin = start(&host);
    host.chain.mine(vec![]);
    host.chain.mine(vec![]);
    let info = plugin.call("getmininginfo", json!([])).unwrap();
    let keys: Vec<&String> = info.as_object().unwrap().keys().collect();
    let expected = "blocks bits difficulty target networkhashps pooledtx chain next warnings";
    assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
    assert_eq!(info["difficulty"].to_string(), "4.656542373906925e-10");
    assert_eq!(info["next"]["height"], json!(3));
}

#[test]
fn getnetworkhashps_is_work_by_time_over_the_blocks_asked_for() {
    let host = StubHost::new();
    let plugin = start(&host);
    let hashes: Vec<_> = (0..4).map(|_| host.chain.mine(vec![])).collect();
    let time = |height: usize| f64::from(host.chain.get(hashes[height - 1]).unwrap().header.time);
    // A block of the development chain takes two hashes on average.
    let rate = |first: usize, last: usize| (2 * (last - first)) as f64 / (time(last) - time(first));
    for (arguments, expected) in [
        (json!([2]), rate(2, 4)),
        (json!([1, 3]), rate(2, 3)),
        (json!([2, 3]), rate(1, 3)),
        (json!([3, -1]), rate(1, 4)),
        (json!([5, 0]), 0.0),
    ] {
        let answer = plugin.call("getnetworkhashps", arguments.clone()).unwrap().as_f64().unwrap();
        assert!((answer - expected).abs() < 1e-12, "{arguments}: {answer}, not {expected}");
    }
    // Both reach back to the first block: there are fewer than 120, and as many since the difficulty was last adjusted.
    let all = plugin.call("getnetworkhashps", json!([])).unwrap();
    assert_eq!(plugin.call("getnetworkhashps", json!([-1, null])).unwrap(), all);
    for (arguments, message) in [
        (json!([0]), "Invalid nblocks. Must be a positive number or -1."),
        (json!([-2]), "Invalid nblocks. Must be a positive number or -1."),
        (json!([5, 5]), "Block does not exist at specified height"),
        (json!([5, -3]), "Block does not exist at specified height"),
    ] {
        assert_eq!(refusal(plugin.call("getnetworkhashps", arguments)), (-8, message.into()));
    }
}

#[test]
fn getnetworkhashps_adjusts_difficulty_every_144_blocks() {
    let host = StubHost::new();
    let plugin = start(&host);
    // Each block takes longer than the one before, so that each number of blocks has its own rate.
    for number in 0..290 {
        host.handle().chain.set_mock_time(Scope::NONE, 1_600_000_000 + 10 * number * number).unwrap();
        plugin.call("generatetoaddress", json!([1, ADDRESS])).unwrap();
    }
    let rate = |blocks: i32, height: u32| plugin.call("getnetworkhashps", json!([blocks, height])).unwrap();
    // What bitcoind 29 answered for the same blocks.
    for (height, told) in [
        (144, "0.0007017543859649122"),
        (145, "0.0006993006993006993"),
        (287, "0.0004672897196261682"),
        (288, "0.0003490401396160559"),
        (289, "0.0003484320557491289"),
    ] {
        assert_eq!(rate(-1, height).to_string(), told, "at {height}");
    }
    assert_eq!(rate(-1, 143), rate(143, 143));
}

#[test]
fn prioritisetransaction_and_preciousblock_check_their_arguments() {
    let host = StubHost::new();
    let plugin = start(&host);
    let hash = "11".repeat(32);
    assert_eq!(plugin.call("prioritisetransaction", json!([hash, null, 1000])), Ok(json!(true)));
    assert_eq!(plugin.call("prioritisetransaction", json!([hash, 0.0, -10])), Ok(json!(true)));
    assert_eq!(refusal(plugin.call("prioritisetransaction", json!([hash, 1, 10]))).0, -8);
    let expected = json!({&hash: {"fee_delta": 990, "in_mempool": false}});
    assert_eq!(plugin.call("getprioritisedtransactions", json!([])), Ok(expected));
    let transaction = spend(OutPoint::new(Txid::all_zeros(), 0));
    let txid = transaction.compute_txid();
    host.mempool.add(transaction, Amount::from_sat(100));
    assert_eq!(plugin.call("prioritisetransaction", json!([txid, 0, -150])), Ok(json!(true)));
    assert_eq!(plugin.call("prioritisetransaction", json!([hash, 0, -990])), Ok(json!(true)));
    let expected = json!({txid.to_string(): {"fee_delta": -150, "in_mempool": true, "modified_fee": -50}});
    assert_eq!(plugin.call("getprioritisedtransactions", json!([])), Ok(expected));
    assert_eq!(refusal(plugin.call("preciousblock", json!([hash]))), (-5, "Block not found".into()));
    let genesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
    assert_eq!(plugin.call("preciousblock", json!([genesis])), Ok(Value::Null));
}
