//! A wallet's history as a real bitcoind told it: the same blocks and transactions are fed to this host, and every answer
//! is compared field by field, keys in their order.

use outrigger_tests::{Client, Host, HostOptions, data_json, is_same_text};
use serde_json::{Value, json};

/// What is not compared: a key of the recording node alone, one that the recording leaves empty, one that is compared
/// apart, and the time at which the wallet met a block, which the recording node's wallet does behind its clock.
const LEFT_OUT: [&str; 4] = ["in_mempool", "hex", "lastblock", "timereceived"];

/// What two answers can be compared by: the keys both releases share.
pub fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), comparable(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(comparable).collect()),
        other => other.clone(),
    }
}

/// Entries in an order of their own, since the order of listings is this host's own.
pub fn sorted(mut listing: Value) -> Value {
    for key in ["transactions", "removed"] {
        if let Some(entries) = listing.get_mut(key).and_then(Value::as_array_mut) {
            entries.sort_by_key(|entry| {
                let text = |key: &str| entry[key].to_string();
                (text("txid"), text("category"), text("vout"))
            });
        }
    }
    listing
}

fn play(client: &mut Client, wallet: &mut Client, actions: &Value, step: &str) {
    for action in actions.as_array().unwrap() {
        let (method, params, result) = (action[0].as_str().unwrap(), action[1].clone(), &action[2]);
        let target = if method.starts_with("get") { &mut *wallet } else { &mut *client };
        let got = target.try_call(method, params).unwrap_or_else(|error| panic!("{step}: {method}: {error:?}"));
        if !["setmocktime", "generatetoaddress"].contains(&method) {
            assert_eq!(&got, result, "{step}: {method}");
        }
    }
}

#[test]
fn a_recorded_history_is_told_alike() {
    let host = Host::start_with(HostOptions { set: vec!["wallet.keypool=20".into()], ..HostOptions::default() });
    let mut client = host.client();
    let recorded = data_json("history.json");
    client.call("setmocktime", json!([recorded["start_time"]]));
    client.call("createwallet", json!({"wallet_name": "w", "blank": true, "descriptors": true}));
    let mut wallet = client.wallet("w");
    for import in recorded["importdescriptors"].as_array().unwrap() {
        assert_eq!(wallet.call("importdescriptors", json!([[import[0]]]))[0], import[1]);
    }
    let mut differ = Vec::new();
    for step in recorded["steps"].as_array().unwrap() {
        let name = step["name"].as_str().unwrap();
        play(&mut client, &mut wallet, &step["actions"], name);
        for (txid, expected) in step["gettransaction"].as_object().unwrap() {
            let got = comparable(&wallet.call("gettransaction", json!([txid])));
            let expected = comparable(expected);
            if !is_same_text(&got, &expected) {
                differ.push(format!("{name}: gettransaction {txid}\n  got    {got}\n  wanted {expected}"));
            }
        }
        for query in step["queries"].as_array().unwrap() {
            let (method, params) = (query[0].as_str().unwrap(), query[1].clone());
            let got = wallet.try_call(method, params.clone());
            let got = got.unwrap_or_else(|error| json!({"code": error.code, "message": error.message}));
            let (got, expected) = match method {
                "listsinceblock" => {
                    assert_eq!(got["lastblock"], query[2]["lastblock"], "{name}: {params}");
                    (sorted(comparable(&got)), sorted(comparable(&query[2])))
                }
                _ => continue,
            };
            if !is_same_text(&got, &expected) {
                differ.push(format!("{name}: {method} {params}\n  got    {got}\n  wanted {expected}"));
            }
        }
    }
    assert!(differ.is_empty(), "{} answers differ:\n{}", differ.len(), differ.join("\n"));
}
