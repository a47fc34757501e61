//! Wallet rules recorded from a real bitcoind: a wallet restored from its descriptors, hardened wildcards, encryption of a blank wallet,
//! and the effect of replacements and orphaned coinbases on coins and history.

use outrigger_tests::{Client, Host, HostOptions, RECORDED, recorded};
use serde_json::{Map, Value, json};

/// The part of an answer that the recording has, as `tests/record/wallet_rules.py` selects it.
fn kept(method: &str, answer: Value) -> Value {
    let only = |item: &Value, keys: &[&str]| -> Value {
        let object = item.as_object().unwrap().iter().filter(|(key, _)| keys.contains(&key.as_str()));
        Value::Object(object.map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    let without = |item: &Value| -> Value {
        let left_out = ["hex", "in_mempool", "timereceived", "lastprocessedblock"];
        let object = item.as_object().unwrap().iter().filter(|(key, _)| !left_out.contains(&key.as_str()));
        Value::Object(object.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>())
    };
    let sorted = |items: &Value, keep: &dyn Fn(&Value) -> Value| -> Value {
        let mut items: Vec<Value> = items.as_array().unwrap().iter().map(keep).collect();
        let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
        items.sort_by_key(|item| (text(item, "txid"), text(item, "category"), item["vout"].as_u64()));
        items.into()
    };
    match method {
        "listunspent" => sorted(&answer, &|item| only(item, &["txid", "vout"])),
        "listtransactions" => sorted(&answer, &without),
        "getwalletinfo" => only(&answer, &["blank", "keypoolsize", "keypoolsize_hd_internal"]),
        "getaddressinfo" => {
            only(&answer, &["ismine", "solvable", "desc", "parent_desc", "ischange", "hdkeypath", "labels"])
        }
        "listdescriptors" => {
            let keys = ["desc", "active", "internal", "range", "next_index"];
            answer["descriptors"].as_array().unwrap().iter().map(|item| only(item, &keys)).collect()
        }
        "gettransaction" => without(&answer),
        _ => answer,
    }
}

struct Replay {
    host: Host,
    client: Client,
}

impl Replay {
    fn call(&mut self, call: &Value) -> Value {
        let (method, params) = (call[1].as_str().unwrap(), call[2].clone());
        let answer = match call[0].as_str() {
            Some(wallet) => self.host.client().wallet(wallet).try_call(method, params),
            None => self.client.try_call(method, params),
        };
        answer.unwrap_or_else(|error| json!({"error": {"code": error.code, "message": error.message}}))
    }
}

#[test]
fn wallet_rpcs_follow_the_rules_of_a_recorded_bitcoind() {
    for release in RECORDED {
        let host = Host::start_with(HostOptions::with(&["wallet.keypool=20", &format!("release={release}")]));
        let mut replay = Replay { client: host.client(), host };
        let expected = recorded(release, "wallet-rules.json");
        replay.client.call("setmocktime", json!([expected["start_time"]]));
        let mut differ = Vec::new();
        for step in expected["steps"].as_array().unwrap() {
            for action in step["actions"].as_array().unwrap() {
                let got = replay.call(action);
                // Warnings of createwallet depend on the build.
                if action[1] != "createwallet" {
                    assert_eq!(got, action[3], "{}: {action}", step["name"]);
                }
            }
            for question in step["answers"].as_array().unwrap() {
                let got = kept(question[1].as_str().unwrap(), replay.call(question)).to_string();
                let wanted = question[3].to_string();
                if got != wanted {
                    let asked = format!("{} {} {}", question[0], question[1], question[2]);
                    differ.push(format!("{}: {asked}\n  got    {got}\n  wanted {wanted}", step["name"]));
                }
            }
        }
        assert!(differ.is_empty(), "{release}: {} answers differ:\n{}", differ.len(), differ.join("\n"));
    }
}
