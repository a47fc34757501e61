//! Random histories as a real bitcoind told them: a dozen wallets through payments, blocks, reorganisations, double
//! spends, replacements, abandons and late imports, compared field by field after every step.

use outrigger_tests::{Client, Host, HostOptions, data_json, is_same_text};
use serde_json::{Value, json};

use crate::recorded_history::sorted;

/// Says again what the node was told, and checks what it answers.
fn play(client: &mut Client, wallet: &mut Client, actions: &Value, step: &str) {
    for action in actions.as_array().unwrap() {
        let (method, params, result) = (action[0].as_str().unwrap(), action[1].clone(), &action[2]);
        let own = ["getnewaddress", "getrawchangeaddress", "abandontransaction", "importdescriptors"];
        let target = if own.contains(&method) { &mut *wallet } else { &mut *client };
        let refused = |code: i64, message: String| json!({"error": {"code": code, "message": message}});
        let got = target.try_call(method, params).unwrap_or_else(|e| refused(e.code, e.message));
        if method != "setmocktime" {
            assert_eq!(&got, result, "{step}: {method}");
        }
    }
}

/// An answer without what this host says otherwise: keys that the recording leaves out, and the time of a transaction
/// that was found by a rescan, which Bitcoin Core 29 reckons by other rules than 0.21 and this host.
fn comparable(value: &Value, rescanned: &[Value]) -> Value {
    match value {
        Value::Object(object) => {
            let left_out = |key: &str| ["hex", "lastblock", "lastprocessedblock", "parent_descs"].contains(&key);
            let mut kept: serde_json::Map<_, _> = object
                .iter()
                .filter(|(key, _)| !left_out(key))
                .map(|(key, value)| (key.clone(), comparable(value, rescanned)))
                .collect();
            if kept.get("txid").is_some_and(|txid| rescanned.contains(txid)) {
                kept.shift_remove("time");
            }
            kept.into()
        }
        Value::Array(items) => items.iter().map(|item| comparable(item, rescanned)).collect(),
        other => other.clone(),
    }
}

/// What differs after a step.
fn compare(wallet: &mut Client, step: &Value, rescanned: &[Value]) -> Vec<String> {
    let mut differ = Vec::new();
    let mut note = |what: String, got: Value, expected: Value| {
        if !is_same_text(&got, &expected) {
            differ.push(format!("{what}\n  got    {got}\n  wanted {expected}"));
        }
    };
    for (txid, expected) in step["gettransaction"].as_object().unwrap() {
        let got = comparable(&wallet.call("gettransaction", json!([txid])), rescanned);
        note(format!("gettransaction {txid}"), got, comparable(expected, rescanned));
    }
    for query in step["queries"].as_array().unwrap() {
        let (method, params, expected) = (query[0].as_str().unwrap(), query[1].clone(), &query[2]);
        let got = wallet.call(method, params.clone());
        note(format!("{method} {params}: lastblock"), got["lastblock"].clone(), expected["lastblock"].clone());
        let tidy = |answer: Value| if method == "listsinceblock" { sorted(answer) } else { answer };
        let (got, expected) = (comparable(&got, rescanned), comparable(expected, rescanned));
        note(format!("{method} {params}"), tidy(got), tidy(expected));
    }
    differ
}

#[test]
fn random_histories_are_told_alike() {
    let host = Host::start_with(HostOptions { set: vec!["wallet.keypool=20".into()], ..HostOptions::default() });
    let mut client = host.client();
    let recorded = data_json("random-histories.json");
    client.call("setmocktime", json!([recorded["base_time"]]));
    for block in recorded["base"].as_array().unwrap() {
        assert_eq!(client.call("submitblock", json!([block])), Value::Null);
    }
    let mut differ = Vec::new();
    for sequence in recorded["sequences"].as_array().unwrap() {
        let name = sequence["wallet"].as_str().unwrap();
        client.call("createwallet", json!({"wallet_name": name, "blank": true, "descriptors": true}));
        let mut wallet = client.wallet(name);
        let imported = wallet.call("importdescriptors", json!([sequence["importdescriptors"]]));
        assert!(imported.as_array().unwrap().iter().all(|one| one["success"] == true), "{imported}");
        let rescanned = sequence["rescanned"].as_array().unwrap();
        for (number, step) in sequence["steps"].as_array().unwrap().iter().enumerate() {
            let name = format!("{name}, step {number}");
            play(&mut client, &mut wallet, &step["actions"], &name);
            differ.extend(compare(&mut wallet, step, rescanned).into_iter().map(|what| format!("{name}: {what}")));
        }
        client.call("unloadwallet", json!([name]));
    }
    assert!(differ.is_empty(), "{} answers differ:\n{}", differ.len(), differ.join("\n"));
}
