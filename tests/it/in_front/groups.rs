//! The group mining, which is off by default in front of a node: its services answer there as on the embedded chain.

use bitcoin::ScriptBuf;
use outrigger_tests::{Client, Host, built, miner, wait_until};
use serde_json::{Value, json};

use super::{ADDRESS, pay, start_with};

const MINING: &str =
    "{ file = \"mining\", trusted = true, grants = [\"chain/1\", \"mempool/1\", \"events/1\", \"log/1\"] }";

/// What most miners ask with.
fn request() -> Value {
    json!([{"rules": ["segwit"]}])
}

/// A host with one group, its client and one of the node; `None` where there is no bitcoind here.
fn with(arguments: &[&'static str], group: &str) -> Option<(Host, Client, Client)> {
    let host = start_with(arguments, &[group.to_owned()], &[])?;
    let (client, node) = (host.client(), host.node.as_ref().unwrap().client());
    Some((host, client, node))
}

/// An answer without what differs from call to call.
fn without(mut answer: Value, keys: &[&str]) -> Value {
    keys.iter().for_each(|key| drop(answer.as_object_mut().unwrap().remove(*key)));
    answer
}

#[test]
fn third_party_mining_plugin_runs_unchanged() {
    let file = built().library("outrigger_acme_mining").display().to_string();
    let acme = format!("{{ file = {file:?}, grants = [\"chain/1\", \"mempool/1\"] }}");
    let Some((_host, mut client, mut node)) = with(&[], &acme) else { return };
    let paid = pay(&mut node, &[2, 10]);
    let theirs = node.call("getblocktemplate", request());
    let template = client.call("getblocktemplate", request());
    assert_eq!((&template["acme"], &template["height"]), (&json!(true), &theirs["height"]));
    assert_eq!(template["previousblockhash"], theirs["previousblockhash"]);
    let transactions = template["transactions"].as_array().unwrap();
    assert_eq!((transactions.len(), &transactions[0]["txid"]), (1, &paid[1]));
    let cheap = theirs["transactions"].as_array().unwrap().iter().find(|one| one["txid"] == paid[0]).unwrap();
    let value = theirs["coinbasevalue"].as_u64().unwrap() - cheap["fee"].as_u64().unwrap();
    assert_eq!(template["coinbasevalue"], json!(value));
}

#[test]
fn getblocktemplate_of_the_group_is_that_of_the_node_and_its_blocks_are_taken() {
    let Some((_host, mut client, mut node)) = with(&[], MINING) else { return };
    pay(&mut node, &[1, 10, 3]);
    let template = client.call("getblocktemplate", request());
    let theirs = node.call("getblocktemplate", request());
    assert_eq!(template["transactions"].as_array().unwrap().len(), 3);
    assert!(template["longpollid"].as_str().unwrap().starts_with(theirs["previousblockhash"].as_str().unwrap()));
    let changing = ["longpollid", "curtime"];
    assert_eq!(without(template.clone(), &changing), without(theirs, &changing));
    let block = miner::build(&template, ScriptBuf::from_bytes(vec![0x51]));
    let proposal = json!([{"mode": "proposal", "data": miner::hex(&miner::assemble(&template, ScriptBuf::new()))}]);
    assert_eq!(client.call("getblocktemplate", proposal), Value::Null);
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
    assert_eq!(node.call("getbestblockhash", json!([])), json!(block.block_hash()));
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), json!("duplicate"));
    // The next one is of the new tip, at once.
    let next = client.call("getblocktemplate", request());
    assert_eq!((&next["previousblockhash"], &next["transactions"]), (&json!(block.block_hash()), &json!([])));
    let mined = client.call("generatetoaddress", json!([2, ADDRESS]));
    assert_eq!(node.call("getbestblockhash", json!([])), mined[1]);
    assert_eq!(client.call("getmininginfo", json!([]))["blocks"], node.call("getblockcount", json!([])));
}

#[test]
fn long_polls_of_the_group_end_with_blocks_and_payments_of_the_node() {
    let quick = MINING.replace(
        "trusted",
        "options = { longpoll_mempool_wait_seconds = 1, longpoll_mempool_repeat_seconds = 1 }, trusted",
    );
    let Some((_host, mut client, mut node)) = with(&[], &quick) else { return };
    pay(&mut node, &[5]);
    let poll = |template: &Value| {
        let params = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
        json!({"id": 1, "method": "getblocktemplate", "params": params}).to_string()
    };
    let template = client.call("getblocktemplate", request());
    let waiting = client.begin(&poll(&template));
    let mined = node.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    let answer: Value = serde_json::from_str(&waiting.finish().body).unwrap();
    assert_eq!(answer["result"]["previousblockhash"], mined);
    // What is paid now is in the template that ends the wait, or in the next.
    let waiting = client.begin(&poll(&answer["result"]));
    node.wallet("theirs").call("sendtoaddress", json!([ADDRESS, 1, "", "", false, true, null, "unset", null, 5]));
    let answer: Value = serde_json::from_str(&waiting.finish().body).unwrap();
    assert_eq!(answer["result"]["previousblockhash"], mined);
    assert_ne!(answer["result"]["longpollid"], json!(format!("{}0", mined.as_str().unwrap())));
    wait_until("the payment is selected", || {
        !client.call("getblocktemplate", request())["transactions"].as_array().unwrap().is_empty()
    });
}

#[test]
fn fee_deltas_of_the_group_are_those_of_the_node() {
    let Some((_host, mut client, mut node)) = with(&[], MINING) else { return };
    let paid = pay(&mut node, &[1, 2]);
    let unknown = "11".repeat(32);
    for (txid, delta) in [(paid[0].clone(), 5_000), (paid[1].clone(), -7), (json!(unknown), 9)] {
        assert_eq!(client.call("prioritisetransaction", json!([txid, 0, delta])), json!(true));
    }
    let ours = client.call("getprioritisedtransactions", json!([]));
    let mut theirs = node.call("getprioritisedtransactions", json!([]));
    // Bitcoin Knots has a priority, too.
    theirs.as_object_mut().unwrap().values_mut().for_each(|one| *one = without(one.take(), &["priority_delta"]));
    assert_eq!(ours, theirs);
    assert_eq!((ours.as_object().unwrap().len(), &ours[&unknown]["fee_delta"]), (3, &json!(9)));
    // Taken back, it is none any more.
    client.call("prioritisetransaction", json!([unknown, 0, -9]));
    assert_eq!(client.call("getprioritisedtransactions", json!([])).as_object().unwrap().len(), 2);
}
