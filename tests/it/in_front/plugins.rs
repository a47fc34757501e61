//! Third-party plugins in front of a node: calls to the node's methods, and mining.

use outrigger_tests::{Host, HostOptions, built, wait_until};
use serde_json::{Value, json};

use super::{ADDRESS, pay, start_with};

/// bitcoind's codes for an unknown method, an internal error, and a node that is not ready.
const METHOD_NOT_FOUND: i64 = -32601;
const INTERNAL: i64 = -32603;
const IN_WARMUP: i64 = -28;

/// A plugin that may call these methods of the node, as an entry of the configuration.
fn policy(methods: &[&str], rest: &str) -> String {
    let file = built().library("outrigger_node_policy").display().to_string();
    format!("{{ file = {file:?}, grants = [{{ service = \"rpc/1\", methods = {methods:?} }}]{rest} }}")
}

#[test]
fn rpc_returns_the_nodes_answers_to_granted_methods_and_refuses_denied_ones() {
    let granted = ["getblocktemplate", "getblock", "getwalletinfo", "bumpfee", "getnettotals", "sendrawtransaction"];
    let deny = "backend.deny=[\"getnettotals\"]";
    let Some(mut host) = start_with(&[], &[policy(&granted, "")], &[deny]) else { return };
    let (mut client, mut node) = (host.client(), host.node_client());
    let hash = node.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    let block = node.call("getblock", json!([hash, 2]));
    assert_eq!(client.call("asknode", json!(["getblock", [hash, 2]])), block);
    assert_eq!(client.call("asknode", json!(["getblock", {"blockhash": hash, "verbosity": 2}])), block);
    // The plugin gets the node's errors unchanged.
    let refused = node.refused("getblock", json!(["00"]));
    assert_eq!(client.refused("asknode", json!(["getblock", ["00"]])), refused);
    // The refusal names the method and the missing grant.
    let (code, message) = client.refused("asknode", json!(["getpeerinfo"]));
    assert_eq!(code, INTERNAL);
    assert!(message.contains("'getpeerinfo'") && message.contains("grant of rpc/1"), "{message}");
    // Granted methods that the host denies to all, or that belong to its own wallets.
    node.call("createwallet", json!(["theirs"]));
    for refused in ["getnettotals", "getwalletinfo", "bumpfee"] {
        assert_eq!(client.refused("asknode", json!([refused])), (METHOD_NOT_FOUND, "Method not found".to_owned()));
    }
    assert_eq!(client.refused("getnettotals", json!([])), (METHOD_NOT_FOUND, "Method not found".to_owned()));
    assert!(!client.call("help", json!([])).as_str().unwrap().contains("getnettotals"));
    // Text that is no parameter list could inject other members into the request.
    assert_eq!(client.refused("asknode", json!(["getblock", "x"])).0, INTERNAL);
    let plugins = client.call("listplugins", json!([]));
    let grants = format!("rpc/1 (methods: {})", granted.join(", "));
    assert_eq!(plugins[0]["grants"], json!([grants]));
    host.bitcoind().stop();
    let (code, message) = client.refused("asknode", json!(["getblock", [hash]]));
    assert!(code == IN_WARMUP && message.starts_with("Waiting for bitcoind at "), "{message}");
}

#[test]
fn template_filter_asks_the_node_if_there_is_no_mining_group() {
    let file = built().library("outrigger_template_filter").display().to_string();
    let filter = format!("{{ file = {file:?}, grants = [\"rpc/1\"], options = {{ min_feerate = 5000 }} }}");
    let Some(host) = start_with(&[], &[filter], &[]) else { return };
    let (mut client, mut node) = (host.client(), host.node_client());
    let paid = pay(&mut node, &[2, 10]);
    let request = json!([{"rules": ["segwit"]}]);
    let whole = node.call("getblocktemplate", request.clone());
    assert_eq!(whole["transactions"].as_array().unwrap().len(), 2);
    let template = client.call("getblocktemplate", request);
    let transactions = template["transactions"].as_array().unwrap();
    assert_eq!((transactions.len(), &transactions[0]["txid"]), (1, &paid[1]));
    let cheap = whole["transactions"].as_array().unwrap().iter().find(|one| one["txid"] == paid[0]).unwrap();
    let value = |template: &Value| template["coinbasevalue"].as_u64().unwrap();
    assert_eq!(value(&template), value(&whole) - cheap["fee"].as_u64().unwrap());
    assert_eq!(template["previousblockhash"], whole["previousblockhash"]);
    // Errors and proposal verdicts come from the node.
    assert_eq!(client.refused("getblocktemplate", json!([{}])), node.refused("getblocktemplate", json!([{}])));
    let proposal = json!([{"mode": "proposal", "rules": ["segwit"], "data": "00"}]);
    assert_eq!(client.refused("getblocktemplate", proposal.clone()), node.refused("getblocktemplate", proposal));
}

#[test]
fn wrappers_see_single_and_batched_calls_to_the_node() {
    let file = built().library("outrigger_chained").display().to_string();
    let chained = format!(
        "{{ file = {file:?}, grants = [\"rpc/1\"], options = {{ refuse = [\"getblockcount\"], ask = [\"getconnectioncount\"] }} }}"
    );
    let wrap =
        "routes.wrap=[{ plugin = \"chained\", methods = [\"getbest*\", \"getconnectioncount\", \"getblockhash\"] }]";
    let Some(host) = start_with(&[], &[chained], &[wrap]) else { return };
    let (mut client, mut node) = (host.client(), host.node_client());
    assert_eq!(client.call("getconnectioncount", json!([]))["next"], node.call("getconnectioncount", json!([])));
    let calls: Vec<_> = (0..256).map(|id| json!({"method": "getbestblockhash", "id": id})).collect();
    let answers: Value = serde_json::from_str(&client.post(&json!(calls).to_string()).body).unwrap();
    let best = node.call("getbestblockhash", json!([]));
    assert!(answers.as_array().unwrap().iter().all(|answer| answer["result"] == best), "{answers}");
    assert_eq!(client.call("getblockhash", json!({"height": 0})), node.call("getblockhash", json!([0])));
    let seen = client.call("listseen", json!([]));
    let seen: Vec<&str> = seen.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let batch = seen.iter().filter(|call| **call == "getbestblockhash []").count();
    assert_eq!((batch, seen.len()), (256, 258));
    assert!(seen.contains(&"getblockhash [] {\"height\":0}"), "{seen:?}");
}

#[test]
fn rpc_calls_end_with_the_deadline_or_the_client_and_never_block_a_connection_thread() {
    let methods = ["getblocktemplate", "waitfornewblock", "getblockcount"];
    let Some(host) = start_with(&[], &[policy(&methods, ", deadline_seconds = 1")], &[]) else { return };
    let mut client = host.client();
    let late = client.refused("asknode", json!(["waitfornewblock", [0]]));
    assert_eq!(late, (INTERNAL, "asknode was not answered within 1 s".to_owned()));
    // The plugin's code stops waiting for the node.
    wait_until("the question ends", || client.call("lastanswer", json!([])) == "Stale");
    assert_eq!(client.call("asknode", json!(["getblockcount"])), json!(0));
    // The same when the client leaves.
    let policy = policy(&methods, ", deadline_seconds = 0, trusted = true");
    let Some(host) = start_with(&[], &[policy], &[]) else { return };
    let mut client = host.client();
    let body = json!({"id": 1, "method": "asknode", "params": ["waitfornewblock", [0]]}).to_string();
    let stream = client.post_and_stay(&body);
    wait_until("the node is asked", || client.call("lastanswer", json!([])) == "asked");
    // Dropping the stream resets the connection.
    drop(stream);
    wait_until("the question ends", || client.call("lastanswer", json!([])) == "Stale");
    let (code, message) = client.refused("asknodeinline", json!(["getblockcount"]));
    assert!(
        code == INTERNAL && message.contains("cannot wait for this call on a thread that serves connections"),
        "{message}"
    );
}

#[test]
fn rpc_refuses_unknown_methods_and_grants_must_list_the_manifests_calls() {
    let granted = |method| HostOptions::configured(&format!("plugins = [{}]\n", policy(&[method], "")));
    let host = Host::start_with(granted("getblocktemplate"));
    let (code, message) = host.client().refused("asknode", json!(["getblocktemplate"]));
    // On the embedded chain without the mining group, the method does not exist.
    assert_eq!((code, message.as_str()), (METHOD_NOT_FOUND, "Method not found"));
    // The grants must include the methods that the manifest lists as called.
    let said = Host::refused(&granted("getblock"));
    let expected = "plugin 'node-policy' calls the method getblocktemplate, which 'methods' of its grant \
                    rpc/1 (methods: getblock) does not list";
    assert!(said.contains(expected), "{said}");
}
