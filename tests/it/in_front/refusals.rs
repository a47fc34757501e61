//! Calls with arguments that are absent, null, of a wrong type or too many: the host refuses them in the node's words.
//! `tests/record/wrong_arguments.py` makes the calls, and records the answers of release 29.

use outrigger_tests::{Client, Host, bitcoind, data_json};
use serde_json::{Value, json};

use super::start;

/// The result, or the code and message of the error, as the recording has them.
fn answer(client: &mut Client, method: &str, params: &Value) -> Value {
    match client.try_call(method, params.clone()) {
        Ok(_) if method == "getblocktemplate" => json!("a template"),
        Ok(mut result) => {
            // Only the node has these.
            for key in ["fee", "feerate"] {
                result.as_object_mut().map(|result| result.shift_remove(key));
            }
            result
        }
        // The message is the help text.
        Err(error) if error.code == -1 && error.message.starts_with(method) => json!(-1),
        Err(error) => json!([error.code, error.message]),
    }
}

/// Whether the host accepts the arguments and the node does not: no template request, or any second argument of submitblock.
fn is_allowed(method: &str, params: &Value) -> bool {
    match (method, params.as_array().map(Vec::as_slice)) {
        ("getblocktemplate", _) => [json!([]), json!([null]), json!({"args": []})].contains(params),
        ("submitblock", Some([_, dummy])) => !dummy.is_null() && !dummy.is_string(),
        _ => false,
    }
}

/// Passes each recorded call to `check`: the method, the parameters and the answer.
fn replay(recorded: &Value, mut check: impl FnMut(&str, &Value, &Value)) {
    for row in recorded["rows"].as_array().unwrap() {
        check(row[0].as_str().unwrap(), &row[1], &row[2]);
    }
}

#[test]
fn host_refuses_bad_arguments_as_recorded() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    replay(&data_json("wrong-arguments.json"), |method, params, expected| {
        if !is_allowed(method, params) {
            assert_eq!(answer(&mut wallet, method, params), *expected, "{method} {params}");
        }
    });
}

#[test]
fn host_refuses_bad_arguments_as_the_node_does() {
    let Some(host) = start(&[]) else { return };
    let mut clients = [host.client(), host.node_client()];
    clients.iter_mut().for_each(|client| drop(client.call("createwallet", json!(["w"]))));
    let recorded = data_json("wrong-arguments.json");
    let is_recorded = clients[1].call("getnetworkinfo", json!([]))["subversion"] == recorded["bitcoind"];
    let is_later = bitcoind::release(&mut clients[1]) > 29;
    let mut wallets = clients.each_ref().map(|client| client.wallet("w"));
    replay(&recorded, |method, params, expected| {
        // A later node reads it as no arguments.
        if is_later && *params == json!({"args": 5}) {
            return;
        }
        let [ours, theirs] = wallets.each_mut().map(|wallet| answer(wallet, method, params));
        assert_eq!(ours, theirs, "{method} {params}");
        assert!(!is_recorded || theirs == *expected, "{method} {params}: the recording differs: {theirs}");
    });
}
