//! The memory that calls with long arguments or long answers use.

use bitcoin::hex::FromHex;
use bitcoin::{Amount, ScriptBuf, TxOut};
use outrigger_tests::{Client, Host, miner, wait_until};
use serde_json::{Value, json};

const LENGTH: usize = 10_000_000;
/// A call uses at most this many times the memory of its argument, without its answer.
const MOST: u64 = 5;
/// Memory that a call uses besides, in bytes: parts of the heap touched for the first time, and partly used huge pages.
const BESIDE: u64 = 4 << 20;

fn start() -> Host {
    let host = Host::start();
    host.new_wallet("w");
    host
}

/// Makes a call, and checks how much memory it used. The host returns large freed blocks to the system, so no earlier call of a test
/// spares a later one its memory.
#[track_caller]
fn check(host: &Host, method: &str, params: Value) {
    let mut client = host.client().wallet("w");
    // The first call allocates memory that stays.
    let _ = client.try_call(method, json!(["00"]));
    wait_until("no buffer of another connection is left", || client.call("gethostinfo", json!([]))["connections"] == 1);
    let request = json!({"id": 1, "method": method, "params": params}).to_string();
    host.peak_memory();
    let before = host.peak_memory();
    let reply = client.post(&request);
    let more = host.peak_memory() - before;
    let most = MOST * LENGTH as u64 + reply.body.len() as u64 + BESIDE;
    assert!(more <= most, "{method}: {more} bytes, at most {most}; {:.100}", reply.body);
}

fn text(of: &str) -> String {
    of.repeat(LENGTH / of.len())
}

/// A transaction in hexadecimal with one input.
fn transaction(script_sig: &str, outputs: &str) -> String {
    format!("0200000001{}00000000{script_sig}ffffffff{outputs}00000000", "11".repeat(32))
}

/// A length in the encoding of transactions and PSBTs, in hexadecimal.
fn length(of: usize) -> String {
    format!("fe{:08x}", u32::try_from(of).unwrap().swap_bytes())
}

/// A PSBT with one long unknown field, in base64.
fn psbt() -> String {
    let transaction = Vec::from_hex(&transaction("00", "01e8030000000000000151")).unwrap();
    let value = LENGTH / 4 * 3 - 200;
    let mut bytes = b"psbt\xff\x01\x00".to_vec();
    bytes.push(u8::try_from(transaction.len()).unwrap());
    bytes.extend(transaction);
    bytes.extend([2, 0xf0, 0xaa]);
    bytes.extend(Vec::from_hex(&length(value)).unwrap());
    bytes.extend(vec![0xab; value]);
    bytes.extend([0; 3]);
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes)
}

#[test]
fn decoding_long_texts_takes_at_most_five_times_their_memory() {
    let host = start();
    let pushed = LENGTH / 2 - 5;
    let data = format!("4e{:08x}{}", u32::try_from(pushed).unwrap().swap_bytes(), "ab".repeat(pushed));
    check(&host, "decodescript", json!([data]));
    check(&host, "decodescript", json!([text("61")]));
    check(&host, "decodescript", json!({"hexstring": text("zz")}));
    check(&host, "decoderawtransaction", json!([text("zz")]));
    check(&host, "decodepsbt", json!([psbt()]));
    check(&host, "combinepsbt", json!([[psbt()]]));
    check(&host, "finalizepsbt", json!([psbt()]));
    // Last, since its many small blocks may stay allocated.
    let outputs = LENGTH / 2 / 9 - 10;
    let outputs = length(outputs) + &"e80300000000000000".repeat(outputs);
    check(&host, "decoderawtransaction", json!([transaction("00", &outputs)]));
}

#[test]
fn submitting_long_texts_takes_at_most_five_times_their_memory() {
    let host = start();
    let script = LENGTH / 2 - 100;
    let long = transaction(&(length(script) + &"ab".repeat(script)), "01e8030000000000000151");
    check(&host, "sendrawtransaction", json!([long]));
    check(&host, "testmempoolaccept", json!([[long]]));
    check(&host, "testmempoolaccept", json!([[text("zz")]]));
    check(&host, "signrawtransactionwithkey", json!([long, []]));
    check(&host, "submitblock", json!([format!("{}01{long}", "00".repeat(80))]));
    check(&host, "createrawtransaction", json!([[], [{"data": text("ab")}]]));
    check(&host, "createrawtransaction", json!([[], {text("x"): 1}]));
}

#[test]
fn long_texts_of_other_methods_take_at_most_five_times_their_memory() {
    let host = start();
    check(&host, "setlabel", json!(["x", text("x")]));
    check(&host, "verifymessage", json!(["x", "x", text("x")]));
    let request = json!([{"desc": text("x"), "timestamp": "now", "label": "x"}]);
    check(&host, "importdescriptors", json!([request]));
    check(&host, "importdescriptors", json!([request.to_string()]));
    check(&host, "importmulti", json!([[{"scriptPubKey": {"address": text("x")}, "timestamp": "now"}]]));
    check(&host, "createwallet", json!([text("x")]));
    check(&host, "loadwallet", json!([text("x")]));
    check(&host, "restorewallet", json!([text("x"), "/nonexistent"]));
    check(&host, "getblock", json!([text("x")]));
    check(&host, "nosuchmethod", json!([text("x")]));
    check(&host, "getblockcount", json!({"x": text("x")}));
    check(&host, "getblockcount", json!({text("x"): 1}));
}

/// The blocks that pay the wallet, and how many outputs of each do. Their listing is long.
const BLOCKS: usize = 10;
const OUTPUTS: usize = 2_000;
/// How often the coins are listed.
const LISTINGS: u64 = 8;

/// Gives the wallet `w` many coins of one script, which it returns.
fn pay_often(client: &mut Client) -> Value {
    let address = client.call("getnewaddress", json!([]));
    let hex = client.call("getaddressinfo", json!([address]))["scriptPubKey"].clone();
    let script = ScriptBuf::from_hex(hex.as_str().unwrap()).unwrap();
    for _ in 0..BLOCKS {
        let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
        let mut block = miner::assemble(&template, script.clone());
        let coin = TxOut { value: Amount::ZERO, script_pubkey: script.clone() };
        block.txdata[0].output.extend(vec![coin; OUTPUTS]);
        miner::set_merkle_root(&mut block);
        miner::grind(&mut block);
        assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
    }
    hex
}

#[test]
fn listunspent_of_many_coins_takes_at_most_three_times_the_memory_of_its_answer_and_gives_it_back() {
    let host = start();
    let mut client = host.client().wallet("w");
    pay_often(&mut client);
    let params = json!([0, null, null, null, {"include_immature_coinbase": true}]);
    let request = json!({"id": 1, "method": "listunspent", "params": params}).to_string();
    // The first call allocates memory that stays.
    let answer = client.post(&request).body.len() as u64;
    assert!(answer > 8_000_000, "{answer} bytes");
    host.peak_memory();
    let (peak, before) = (host.peak_memory(), host.private_memory());
    client.post(&request);
    let more = host.peak_memory().saturating_sub(peak);
    assert!(more <= 3 * answer + BESIDE, "{more} bytes for an answer of {answer}");
    (1..LISTINGS).for_each(|_| drop(client.post(&request)));
    let most = before + LISTINGS * answer / 2;
    wait_until("the memory of the answers is given back", || host.private_memory() <= most);
}

#[test]
fn memory_of_answers_that_are_built_as_trees_is_given_back() {
    let host = start();
    let mut client = host.client().wallet("w");
    let script = pay_often(&mut client);
    let descriptor = format!("raw({})", script.as_str().unwrap());
    let request = json!({"id": 1, "method": "scantxoutset", "params": ["start", [descriptor]]}).to_string();
    let before = host.private_memory();
    let answer = client.post(&request).body.len() as u64;
    assert!(answer > 4_000_000, "{answer} bytes");
    (1..LISTINGS).for_each(|_| drop(client.post(&request)));
    // If the host gave no memory back, its threads would keep some 80 times an answer.
    wait_until("the memory of the answers is given back", || host.private_memory() <= before + 30 * answer);
}
