mod long_polls;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness, transaction};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::testing::{PendingCall, StubHost, TestPlugin};
use outrigger_sdk::{Plugin, RpcError};
use serde_json::{Value, json};

use crate::MiningPlugin;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

fn start(host: &StubHost) -> TestPlugin<MiningPlugin> {
    host.start(json!({}))
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

#[test]
fn getblocktemplate_transactions_are_complete_and_refer_to_parents_by_position() {
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
fn getblocktemplate_reflects_a_change_of_the_mempool_after_five_seconds() {
    let host = StubHost::new();
    let plugin = start(&host);
    let set_time = |time| host.handle().chain.set_mock_time(Scope::NONE, time).unwrap();
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
    // A new tip makes a new template at once, even if the clock was set back.
    set_time(1_700_000_001);
    host.mempool.clear();
    host.chain.mine(vec![]);
    assert_eq!(template(&plugin)["height"], json!(2));
}

#[test]
fn getblocktemplate_calls_share_the_bytes_of_an_unchanged_template() {
    let host = StubHost::new();
    let set_time = |seconds| host.handle().chain.set_mock_time(Scope::NONE, seconds).unwrap();
    set_time(1_700_000_000);
    host.mempool.add(spend(OutPoint::new(Txid::all_zeros(), 0)), Amount::from_sat(100));
    let plugin = start(&host);
    let ask = || plugin.templates.answer(&host.handle(), Scope::NONE).unwrap();
    let (first, again) = (ask(), ask());
    assert!(Arc::ptr_eq(&first, &again));
    // A second later, only the time differs.
    set_time(1_700_000_001);
    let later = ask();
    let text = |json: &[u8]| String::from_utf8(json.to_vec()).unwrap();
    assert_eq!(text(&later), text(&first).replace("\"curtime\":1700000000", "\"curtime\":1700000001"));
    set_time(1_700_000_100);
    let much_later = ask();
    assert_eq!(text(&much_later), text(&first).replace("\"curtime\":1700000000", "\"curtime\":1700000100"));
}

#[test]
fn generatetoaddress_stops_when_its_client_leaves_or_the_host_stops() {
    let host = StubHost::new();
    let plugin = start(&host);
    let height = || host.handle().chain.tip(Scope::NONE).unwrap().height;
    plugin.want_answers_for(0);
    plugin.begin("generatetoaddress", json!([1_000_000, ADDRESS]));
    assert_eq!(height(), 0);
    plugin.want_answers_for(3);
    plugin.begin("generatetoaddress", json!([1_000_000, ADDRESS]));
    assert_eq!(height(), 3);
    plugin.tell(Event::ShuttingDown);
    assert_eq!(plugin.call("generatetoaddress", json!([5, ADDRESS])), Ok(json!([])));
    assert_eq!(height(), 3);
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
fn getnetworkhashps_adjusts_difficulty_every_144_blocks() {
    let host = StubHost::new();
    let plugin = start(&host);
    // Each block takes longer than the previous block, so that each number of blocks has its own rate.
    for number in 0..290 {
        host.handle().chain.set_mock_time(Scope::NONE, 1_600_000_000 + 10 * number * number).unwrap();
        plugin.call("generatetoaddress", json!([1, ADDRESS])).unwrap();
    }
    let rate = |blocks: i32, height: u32| plugin.call("getnetworkhashps", json!([blocks, height])).unwrap();
    // The answers of bitcoind 29 for the same blocks.
    for (height, expected) in [
        (144, "0.0007017543859649122"),
        (145, "0.0006993006993006993"),
        (287, "0.0004672897196261682"),
        (288, "0.0003490401396160559"),
        (289, "0.0003484320557491289"),
    ] {
        assert_eq!(rate(-1, height).to_string(), expected, "at {height}");
    }
    assert_eq!(rate(-1, 143), rate(143, 143));
    // Too many blocks reach back to the first block. Without a height, the range ends at the tip.
    assert_eq!(rate(500, 289), rate(289, 289));
    assert_eq!(plugin.call("getnetworkhashps", json!([144, -1])).unwrap(), rate(144, 290));
    assert_eq!(rate(5, 0).as_f64(), Some(0.0));
}

#[test]
fn descriptors_have_the_syntax_of_the_release() {
    const KEYS: [&str; 2] = [
        "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
        "02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9",
    ];
    let host = StubHost::new();
    let plugin = start(&host);
    let musig = format!("tr(musig({},{}))", KEYS[0], KEYS[1]);
    let is_known = |release, method: &str, arguments| {
        plugin.set_release(release, &[]);
        plugin.call(method, arguments).is_ok()
    };
    for (release, known) in [(29, false), (30, true)] {
        assert_eq!(is_known(release, "generatetodescriptor", json!([0, musig])), known, "in {release}");
        assert_eq!(is_known(release, "generateblock", json!([musig, [], false])), known, "in {release}");
    }
}

#[test]
fn mining_rpcs_refuse_bad_arguments_with_the_messages_of_release_29() {
    const KEY: &str = "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";
    let host = StubHost::new();
    let plugin = start(&host);
    for _ in 0..4 {
        host.chain.mine(vec![]);
    }
    for arguments in [json!([0, ADDRESS]), json!([-1, ADDRESS]), json!([1, ADDRESS, 0])] {
        assert_eq!(plugin.call("generatetoaddress", arguments), Ok(json!([])));
    }
    assert_eq!(plugin.call("generatetodescriptor", json!([-1, "raw(6a)"])), Ok(json!([])));
    let (segwit, number) = (
        "getblocktemplate must be called with the segwit rule set (call with {\"rules\": [\"segwit\"]})",
        "Invalid nblocks. Must be a positive number or -1.",
    );
    let unknown = "11".repeat(32);
    let absent = format!("Transaction {unknown} not in mempool.");
    let orphan = format!("04000000{}{}", "33".repeat(32), "00".repeat(44));
    let no_parent = format!("Must submit previous header ({}) first", "33".repeat(32));
    let wrong_checksum = "Provided checksum 'aaaaaaaa' does not match computed checksum '4mhr9ur5'";
    let ranged = "Ranged descriptor not accepted. Maybe pass through deriveaddresses first?";
    let undecodable = "Transaction decode failed for zz. Make sure the tx has at least one input.";
    let propose = |data: &str| json!([{"mode": "proposal", "data": data}]);
    for (method, arguments, code, message) in [
        ("getblocktemplate", json!([]), -8, segwit),
        ("getblocktemplate", json!([{}]), -8, segwit),
        ("getblocktemplate", json!([{"rules": "segwit"}]), -8, segwit),
        ("getblocktemplate", json!([null]), -8, segwit),
        ("getblocktemplate", json!([5]), -3, "JSON value of type number is not of expected type object"),
        ("getblocktemplate", propose(""), -22, "Block decode failed"),
        ("getblocktemplate", propose("zz"), -22, "Block decode failed"),
        ("submitblock", json!(["zz"]), -22, "Block decode failed"),
        ("submitblock", json!(["00"]), -22, "Block decode failed"),
        ("submitheader", json!(["zz"]), -22, "Block header decode failed"),
        ("submitheader", json!([orphan]), -25, &no_parent),
        ("generatetoaddress", json!([1, "notanaddress"]), -5, "Error: Invalid address"),
        ("generateblock", json!(["x", []]), -5, "Error: Invalid address or descriptor"),
        ("generateblock", json!([ADDRESS, [5]]), -3, "JSON value of type number is not of expected type string"),
        ("generateblock", json!([ADDRESS, [unknown]]), -5, &absent),
        ("generateblock", json!([ADDRESS, ["zz"]]), -22, undecodable),
        ("generatetodescriptor", json!([1, "raw(6a)#aaaaaaaa"]), -5, wrong_checksum),
        ("generatetodescriptor", json!([1, format!("wpkh({KEY}/*)")]), -8, ranged),
        ("generatetodescriptor", json!([1, format!("wpkh({KEY}/<0;1>)")]), -8, "Multipath descriptor not accepted"),
        ("getnetworkhashps", json!([0]), -8, number),
        ("getnetworkhashps", json!([-2]), -8, number),
        ("getnetworkhashps", json!([5, 5]), -8, "Block does not exist at specified height"),
        ("getnetworkhashps", json!([5, -3]), -8, "Block does not exist at specified height"),
        ("preciousblock", json!([unknown]), -5, "Block not found"),
    ] {
        plugin.refuses(method, &[(arguments, code, message)]);
    }
}
