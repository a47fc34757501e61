//! The history group: gettransaction, listsinceblock and related methods, through payments and reorganisations and against
//! histories recorded from bitcoind: the host gets the same blocks and transactions, and every answer is compared field by field,
//! including the order of keys.

use bitcoin::ScriptBuf;
use bitcoin::consensus::encode::serialize_hex;
use outrigger_tests::{Client, Host, HostOptions, RECORDED, is_same_text, miner, recorded};
use serde_json::{Value, json};

#[test]
fn listsinceblock_from_a_header_without_its_block_is_refused_unless_removed_is_left_out() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    let template = wallet.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let block = miner::build(&template, ScriptBuf::from_bytes(vec![0x51]));
    wallet.call("submitheader", json!([serialize_hex(&block.header)]));
    wallet.call("generatetoaddress", json!([1, address]));
    let hash = block.block_hash().to_string();
    let unreadable = (-32603, "Can't read block from disk".to_owned());
    assert_eq!(wallet.refused("listsinceblock", json!([hash])), unreadable);
    let since = wallet.call("listsinceblock", json!([hash, 1, null, false]));
    assert_eq!(since["transactions"][0]["category"], json!("immature"));
}

/// Keys that are not compared: only the recording node has them, they are empty in the recording, or compared separately; and the
/// time at which the wallet received a block, at which the recording node's wallet lags its clock.
const LEFT_OUT: [&str; 4] = ["in_mempool", "hex", "lastblock", "timereceived"];
/// The same for random histories.
const LEFT_OUT_OF_RANDOM: [&str; 4] = ["hex", "lastblock", "lastprocessedblock", "parent_descs"];

/// An answer without these keys.
fn without(value: &Value, keys: &[&str]) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), without(value, keys))).collect())
        }
        Value::Array(items) => items.iter().map(|item| without(item, keys)).collect(),
        other => other.clone(),
    }
}

/// Sorts the lists of listsinceblock; leaves other answers unchanged.
fn sorted(mut listing: Value) -> Value {
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

/// Repeats the recorded actions on the wallet and checks its answers.
fn play(wallet: &mut Client, actions: &Value, step: &str) {
    for action in actions.as_array().unwrap() {
        let (method, params, result) = (action[0].as_str().unwrap(), action[1].clone(), &action[2]);
        let refused = |code: i64, message: String| json!({"error": {"code": code, "message": message}});
        let got = wallet.try_call(method, params).unwrap_or_else(|e| refused(e.code, e.message));
        if method != "setmocktime" {
            assert_eq!(&got, result, "{step}: {method}");
        }
    }
}

/// The answers of gettransaction and these methods that differ from a recorded step after `alike` has reduced both.
fn differences(wallet: &mut Client, step: &Value, methods: &[&str], alike: impl Fn(&Value) -> Value) -> Vec<String> {
    let mut differ = Vec::new();
    let mut note = |what: String, got: &Value, expected: &Value| {
        if !is_same_text(got, expected) {
            differ.push(format!("{what}\n  got    {got}\n  wanted {expected}"));
        }
    };
    for (txid, expected) in step["gettransaction"].as_object().unwrap() {
        let got = wallet.call("gettransaction", json!([txid]));
        note(format!("gettransaction {txid}"), &alike(&got), &alike(expected));
    }
    for query in step["queries"].as_array().unwrap() {
        let (method, params, expected) = (query[0].as_str().unwrap(), &query[1], &query[2]);
        if methods.contains(&method) {
            let got = wallet.call(method, params.clone());
            note(format!("{method} {params}: lastblock"), &got["lastblock"], &expected["lastblock"]);
            note(format!("{method} {params}"), &sorted(alike(&got)), &sorted(alike(expected)));
        }
    }
    differ
}

fn host(release: u32) -> Host {
    Host::start_with(HostOptions::with(&["wallet.keypool=20", &format!("release={release}")]))
}

#[test]
fn gettransaction_and_listsinceblock_match_a_recorded_history() {
    for release in RECORDED {
        let host = host(release);
        let mut client = host.client();
        let expected = recorded(release, "history.json");
        client.call("setmocktime", json!([expected["start_time"]]));
        let mut wallet = client.create_wallet("w", json!({"blank": true, "descriptors": true}));
        for import in expected["importdescriptors"].as_array().unwrap() {
            assert_eq!(wallet.call("importdescriptors", json!([[import[0]]]))[0], import[1]);
        }
        let mut differ = Vec::new();
        for step in expected["steps"].as_array().unwrap() {
            let name = step["name"].as_str().unwrap();
            play(&mut wallet, &step["actions"], name);
            let found = differences(&mut wallet, step, &["listsinceblock"], |value| without(value, &LEFT_OUT));
            differ.extend(found.into_iter().map(|what| format!("{name}: {what}")));
        }
        assert!(differ.is_empty(), "{release}: {} answers differ:\n{}", differ.len(), differ.join("\n"));
    }
}

#[test]
fn gettransaction_and_listsinceblock_match_recorded_random_histories() {
    for release in RECORDED {
        let host = host(release);
        let mut client = host.client();
        let expected = recorded(release, "random-histories.json");
        client.call("setmocktime", json!([expected["base_time"]]));
        for block in expected["base"].as_array().unwrap() {
            assert_eq!(client.call("submitblock", json!([block])), Value::Null);
        }
        let mut differ = Vec::new();
        for sequence in expected["sequences"].as_array().unwrap() {
            let name = sequence["wallet"].as_str().unwrap();
            let mut wallet = client.create_wallet(name, json!({"blank": true, "descriptors": true}));
            wallet.import(&sequence["importdescriptors"]);
            for (number, step) in sequence["steps"].as_array().unwrap().iter().enumerate() {
                let name = format!("{name}, step {number}");
                play(&mut wallet, &step["actions"], &name);
                let found = differences(&mut wallet, step, &["listsinceblock", "listtransactions"], |value| {
                    without(value, &LEFT_OUT_OF_RANDOM)
                });
                differ.extend(found.into_iter().map(|what| format!("{name}: {what}")));
            }
            client.call("unloadwallet", json!([name]));
        }
        assert!(differ.is_empty(), "{release}: {} answers differ:\n{}", differ.len(), differ.join("\n"));
    }
}
