//! The memory that calls with long arguments take.

use bitcoin::hex::FromHex;
use outrigger_tests::Host;
use serde_json::{Value, json};

const LENGTH: usize = 10_000_000;
/// A call takes at most so many times the memory of its argument, beside its answer.
const MOST: u64 = 5;
/// What a call takes beside: parts of the heap that are touched for the first time, and huge pages that are used in part.
const BESIDE: u64 = 4 << 20;

/// Makes a call of a fresh host, and checks how much memory it took.
#[track_caller]
fn check(method: &str, params: Value) {
    let host = Host::start();
    let mut client = host.new_wallet("w");
    // The first call takes what stays.
    let _ = client.try_call(method, json!(["00"]));
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

/// A length as transactions and PSBTs have it, in hexadecimal.
fn length(of: usize) -> String {
    format!("fe{:08x}", u32::try_from(of).unwrap().swap_bytes())
}

/// A PSBT with one long field that nobody knows, in base64.
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
    let pushed = LENGTH / 2 - 5;
    let data = format!("4e{:08x}{}", u32::try_from(pushed).unwrap().swap_bytes(), "ab".repeat(pushed));
    check("decodescript", json!([data]));
    check("decodescript", json!([text("61")]));
    check("decodescript", json!({"hexstring": text("zz")}));
    let outputs = LENGTH / 2 / 9 - 10;
    let outputs = length(outputs) + &"e80300000000000000".repeat(outputs);
    check("decoderawtransaction", json!([transaction("00", &outputs)]));
    check("decoderawtransaction", json!([text("zz")]));
    check("decodepsbt", json!([psbt()]));
    check("combinepsbt", json!([[psbt()]]));
    check("finalizepsbt", json!([psbt()]));
}

#[test]
fn submitting_long_texts_takes_at_most_five_times_their_memory() {
    let script = LENGTH / 2 - 100;
    let long = transaction(&(length(script) + &"ab".repeat(script)), "01e8030000000000000151");
    check("sendrawtransaction", json!([long]));
    check("testmempoolaccept", json!([[long]]));
    check("testmempoolaccept", json!([[text("zz")]]));
    check("signrawtransactionwithkey", json!([long, []]));
    check("submitblock", json!([format!("{}01{long}", "00".repeat(80))]));
    check("createrawtransaction", json!([[], [{"data": text("ab")}]]));
    check("createrawtransaction", json!([[], {text("x"): 1}]));
}

#[test]
fn long_texts_of_other_methods_take_at_most_five_times_their_memory() {
    check("setlabel", json!(["x", text("x")]));
    check("verifymessage", json!(["x", "x", text("x")]));
    let request = json!([{"desc": text("x"), "timestamp": "now", "label": "x"}]);
    check("importdescriptors", json!([request]));
    check("importdescriptors", json!([request.to_string()]));
    check("importmulti", json!([[{"scriptPubKey": {"address": text("x")}, "timestamp": "now"}]]));
    check("getblock", json!([text("x")]));
    check("nosuchmethod", json!([text("x")]));
    check("getblockcount", json!({"x": text("x")}));
    check("getblockcount", json!({text("x"): 1}));
}
