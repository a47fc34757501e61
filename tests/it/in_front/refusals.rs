//! Calls with arguments that are absent, null, of a wrong type or too many: the host refuses them in the node's words.

use outrigger_tests::Client;
use serde_json::{Value, json};

use super::start;

/// A key without coins.
const KEY: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
/// A descriptor without its checksum, which host and node refuse.
const DESCRIPTOR: &str = "wpkh(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)";

/// The values tried for each argument. The host accepts arrays and objects as text, so these are not among them.
fn values() -> Vec<Value> {
    let values = json!([
        null, true, false, 5, -1, 1.5, 2_147_483_648_u64, 9_223_372_036_854_775_808_u64, "", "x", "*", "all",
        [], [5], ["x"], [null], [[]], [{}], [KEY, 5], {}, {"a": 1}
    ]);
    values.as_array().unwrap().clone()
}

/// The result, or the code and message of the error. For a wrong number of arguments, the code alone: the message is the help text.
fn answer(client: &mut Client, method: &str, params: &Value) -> Value {
    match client.try_call(method, params.clone()) {
        Ok(mut result) => {
            // Only the node has these.
            for key in ["fee", "feerate"] {
                result.as_object_mut().map(|result| result.shift_remove(key));
            }
            result
        }
        Err(error) if error.message.starts_with(method) => json!(error.code),
        Err(error) => json!([error.code, error.message]),
    }
}

/// Valid calls. The test changes each argument in turn.
fn calls(raw: &Value, tip: &Value) -> [(&'static str, Value); 6] {
    let coin = coin();
    [
        ("signrawtransactionwithkey", json!([raw, [KEY], [coin], "ALL"])),
        ("signrawtransactionwithwallet", json!([raw, [coin], "ALL"])),
        ("importdescriptors", json!([[{"desc": DESCRIPTOR, "timestamp": "now"}]])),
        ("gettransaction", json!(["11".repeat(32), true, false])),
        ("listsinceblock", json!([tip, 1, false, true, false, "x"])),
        ("listtransactions", json!(["*", 10, 0, false])),
    ]
}

/// A coin as `prevtxs` describes one.
fn coin() -> Value {
    let script = format!("a914{}87", "00".repeat(20));
    json!({"txid": "11".repeat(32), "vout": 0, "scriptPubKey": script, "redeemScript": "51", "witnessScript": "51",
        "amount": 2})
}

#[test]
fn host_refuses_bad_arguments_as_the_node_does() {
    let Some(host) = start(&[]) else { return };
    let mut clients = [host.client(), host.node_client()];
    let inputs = json!([{"txid": "11".repeat(32), "vout": 0}]);
    let raw = clients[1].call("createrawtransaction", json!([inputs, [{super::ADDRESS: 1}]]));
    // Change each field of a previous output in turn.
    let good = coin();
    for name in good.as_object().unwrap().keys() {
        for value in values().into_iter().map(Some).chain([None]) {
            let mut coin = good.clone();
            match value {
                Some(value) => coin[name] = value,
                None => drop(coin.as_object_mut().unwrap().shift_remove(name)),
            }
            let params = json!([raw, [KEY], [coin]]);
            let [ours, theirs] = clients.each_mut().map(|client| answer(client, "signrawtransactionwithkey", &params));
            assert_eq!(ours, theirs, "{coin}");
        }
    }
    let tip = clients[1].call("getbestblockhash", json!([]));
    clients.iter_mut().for_each(|client| drop(client.call("createwallet", json!(["w"]))));
    let is_later = outrigger_tests::bitcoind::release(&mut clients[1]) > 29;
    let mut wallets = clients.each_ref().map(|client| client.wallet("w"));
    let mut compare = |method: &str, params: &Value| {
        let [ours, theirs] = wallets.each_mut().map(|wallet| answer(wallet, method, params));
        assert_eq!(ours, theirs, "{method} {params}");
    };
    for (method, good) in calls(&raw, &tip) {
        let good = good.as_array().unwrap();
        for index in 0..good.len() {
            compare(method, &json!(good[..index]));
            for value in values() {
                let mut params = good.clone();
                params[index] = value;
                compare(method, &json!(params));
                compare(method, &json!(params[..=index]));
                // With two wrong arguments, the error names both.
                params[0] = json!(5);
                compare(method, &json!(params));
            }
        }
        for container in [json!("x"), json!(5), json!({"x": 1}), json!({"args": []})] {
            compare(method, &container);
        }
        // A later node reads it as no arguments.
        if !is_later {
            compare(method, &json!({"args": 5}));
        }
        // This node's importdescriptors takes a further argument.
        let spare = if method == "importdescriptors" { vec![json!([]); 2] } else { vec![json!("x")] };
        compare(method, &json!([good.as_slice(), &spare].concat()));
    }
}
