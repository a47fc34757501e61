//! The group mining, which is off by default in front of a node, and plugins that read the node's chain.

use bitcoin::ScriptBuf;
use outrigger_tests::{Client, Host, RECORDED, bitcoind, built, miner, recorded, recorded_chain, wait_until};
use serde_json::{Value, json};

use super::identity::in_front_of;
use super::{ADDRESS, answer, pay, start_with};

pub const MINING: &str =
    "{ file = \"mining\", trusted = true, grants = [\"chain/1\", \"mempool/1\", \"events/1\", \"log/1\"] }";

/// A plugin that reads the chain.
pub fn reader() -> String {
    let file = built().library("outrigger_node_policy").display().to_string();
    format!(
        "{{ file = {file:?}, grants = [\"chain/1\", {{ service = \"rpc/1\", methods = [\"getblocktemplate\"] }}] }}"
    )
}

/// The request that most miners send.
fn request() -> Value {
    json!([{"rules": ["segwit"]}])
}

/// A host with one group, its client and one of the node; `None` if no bitcoind is installed.
fn with(arguments: &[&'static str], group: &str) -> Option<(Host, Client, Client)> {
    let host = start_with(arguments, &[group.to_owned()], &[])?;
    let (client, node) = (host.client(), host.node_client());
    Some((host, client, node))
}

/// An answer without these keys, which differ from call to call.
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
fn templates_and_fee_deltas_match_the_node_which_accepts_the_blocks() {
    let Some((_host, mut client, mut node)) = with(&[], MINING) else { return };
    let paid = pay(&mut node, &[1, 10, 3]);
    let template = client.call("getblocktemplate", request());
    let theirs = node.call("getblocktemplate", request());
    assert_eq!(template["transactions"].as_array().unwrap().len(), 3);
    assert!(template["longpollid"].as_str().unwrap().starts_with(theirs["previousblockhash"].as_str().unwrap()));
    let changing = ["longpollid", "curtime"];
    assert_eq!(without(template.clone(), &changing), without(theirs, &changing));
    // The group and the node report the same fee deltas, for payments in the mempool and an unknown one.
    let unknown = "11".repeat(32);
    for (txid, delta) in [(paid[0].clone(), 5_000), (paid[1].clone(), -7), (json!(unknown), 9)] {
        assert_eq!(client.call("prioritisetransaction", json!([txid, 0, delta])), json!(true));
    }
    let ours = client.call("getprioritisedtransactions", json!([]));
    let mut theirs = node.call("getprioritisedtransactions", json!([]));
    // Bitcoin Knots also reports a priority.
    theirs.as_object_mut().unwrap().values_mut().for_each(|one| *one = without(one.take(), &["priority_delta"]));
    assert_eq!(ours, theirs);
    assert_eq!((ours.as_object().unwrap().len(), &ours[&unknown]["fee_delta"]), (3, &json!(9)));
    // A delta of zero is removed.
    client.call("prioritisetransaction", json!([unknown, 0, -9]));
    assert_eq!(client.call("getprioritisedtransactions", json!([])).as_object().unwrap().len(), 2);
    let block = miner::build(&template, ScriptBuf::from_bytes(vec![0x51]));
    let proposal = json!([{"mode": "proposal", "data": miner::hex(&miner::assemble(&template, ScriptBuf::new()))}]);
    assert_eq!(client.call("getblocktemplate", proposal), Value::Null);
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
    assert_eq!(node.call("getbestblockhash", json!([])), json!(block.block_hash()));
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), json!("duplicate"));
    // The next template builds on the new tip at once.
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
    let poll = |template: &Value| json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let template = client.call("getblocktemplate", request());
    let waiting = client.begin_call("getblocktemplate", poll(&template));
    let mined = node.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    let answer = waiting.answer();
    assert_eq!(answer["result"]["previousblockhash"], mined);
    // The payment is in the template that ends the wait, or in the next.
    let waiting = client.begin_call("getblocktemplate", poll(&answer["result"]));
    node.wallet("theirs").call("sendtoaddress", json!([ADDRESS, 1, "", "", false, true, null, "unset", null, 5]));
    let answer = waiting.answer();
    assert_eq!(answer["result"]["previousblockhash"], mined);
    assert_ne!(answer["result"]["longpollid"], json!(format!("{}0", mined.as_str().unwrap())));
    wait_until("the payment is selected", || {
        !client.call("getblocktemplate", request())["transactions"].as_array().unwrap().is_empty()
    });
}

#[test]
fn blocks_and_headers_are_refused_for_the_reasons_of_the_node() {
    let Some((_host, mut client, mut node)) = with(&[], MINING) else { return };
    let release = RECORDED[usize::from(bitcoind::release(&mut node) >= 32)];
    for (height, block) in recorded_chain(release).iter().enumerate() {
        assert_eq!(client.call("submitblock", json!([block])), Value::Null, "height {}", height + 1);
    }
    let tip = node.call("getbestblockhash", json!([]));
    let time = node.call("getblockheader", json!([tip]))["time"].clone();
    node.call("setmocktime", json!([time]));
    let answer = |client: &mut Client, method: &str, params: Value| match client.try_call(method, params) {
        Ok(verdict) => verdict,
        Err(error) => json!({"code": error.code, "message": error.message}),
    };
    let mut differ = Vec::new();
    for row in recorded(release, "bad-blocks.json")["rows"].as_array().unwrap() {
        let (name, Some(block)) = (row["name"].as_str().unwrap(), row["hex"].as_str()) else { continue };
        let proposal = json!([{"mode": "proposal", "data": block, "rules": ["segwit"]}]);
        let header = json!([block.get(..160).unwrap_or(block)]);
        for (method, params) in
            [("getblocktemplate", proposal), ("submitheader", header), ("submitblock", json!([block]))]
        {
            // Compare submitblock with the recording, since the node would know the submitted block.
            let (ours, theirs) = match method {
                "submitblock" => (answer(&mut client, method, params), row["submitblock"].clone()),
                _ => (answer(&mut client, method, params.clone()), answer(&mut node, method, params)),
            };
            if ours != theirs {
                differ.push(format!("{name}: {method}: {ours} and not {theirs}"));
            }
        }
        if row["accepted"] == json!(true) {
            let accepted = node.call("getbestblockhash", json!([]));
            node.call("invalidateblock", json!([accepted]));
        }
        assert_eq!(node.call("getbestblockhash", json!([])), tip, "{name}");
    }
    assert!(differ.is_empty(), "{} verdicts differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn mining_group_answers_as_the_node_on_a_signet_and_without_peers() {
    for chain in ["signet", "main"] {
        let Some(host) = in_front_of(chain, &[], &[&format!("plugins=[{MINING}]")]) else { return };
        let (mut client, mut node) = (host.client(), host.node_client());
        for (method, params) in [
            ("getblocktemplate", json!([{}])),
            ("getblocktemplate", request()),
            ("getblocktemplate", json!([{"rules": ["signet"]}])),
            ("getblocktemplate", json!([{"rules": ["segwit", "signet"]}])),
            ("getmininginfo", json!([])),
            ("submitheader", json!(["00".repeat(79)])),
            ("submitheader", json!(["00".repeat(80)])),
            ("preciousblock", json!(["77".repeat(32)])),
        ] {
            let [ours, theirs] = [&mut client, &mut node].map(|client| {
                let mut answer = answer(client, method, &params);
                // The host's request for a template counts as one of the node's; Bitcoin Knots also reports its size.
                let is_changing =
                    |key: &str| ["longpollid", "curtime"].contains(&key) || key.starts_with("currentblock");
                if let Some(answer) = answer.as_object_mut() {
                    answer.retain(|key, _| !is_changing(key));
                }
                answer.to_string()
            });
            assert_eq!(ours, theirs, "{chain}: {method} {params}");
        }
    }
}

#[test]
fn plugin_reads_transactions_deployments_and_branches_of_the_node() {
    let Some((_host, mut client, mut node)) = with(&["-txindex=1"], &reader()) else { return };
    let best = node.call("generatetoaddress", json!([3, ADDRESS]))[2].clone();
    let coinbase = node.call("getblock", json!([best, 1]))["tx"][0].clone();
    wait_until("the node is followed", || client.call("readchain", json!(["header", best])) == json!(3));
    wait_until("the node indexes", || client.call("readchain", json!(["transaction", coinbase])) == json!([best, 0]));
    let deployments = node.call("getdeploymentinfo", json!([]))["deployments"].clone();
    let names: Vec<&String> = deployments.as_object().unwrap().keys().collect();
    assert_eq!(client.call("readchain", json!(["deployments"])), json!(names));
    // The block is on a stale branch now, so its transactions are not in the best chain.
    node.call("invalidateblock", json!([best]));
    wait_until("the node is followed", || client.call("readchain", json!(["transaction", coinbase])).is_null());
    let tips = node.call("getchaintips", json!([]));
    let mut tips: Vec<&Value> = tips.as_array().unwrap().iter().collect();
    tips.sort_by_key(|tip| tip["branchlen"].as_u64());
    let tips: Vec<Value> = tips.iter().map(|tip| json!([tip["hash"], tip["height"], tip["branchlen"]])).collect();
    assert_eq!(client.call("readchain", json!(["tips"])), json!(tips));
}
