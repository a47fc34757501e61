//! Payments that the mempool refuses, beside a real bitcoind: the wallet keeps and resubmits them later.

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, bitcoind, skip, wait_until};
use serde_json::{Value, json};

use super::compared::{FOREIGN, Pair};

/// The most transactions of an unconfirmed chain.
const CHAIN: usize = 25;

/// A wallet's answers about a payment, without their random parts.
fn shown(client: &mut Client, txid: &Value) -> Value {
    let payment = client.call("gettransaction", json!([txid]));
    let details: Vec<Value> = payment["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| json!([detail["category"], detail["abandoned"]]))
        .collect();
    let texts = ["replaced_by_txid", "replaces_txid"].map(|key| payment.get(key).is_some());
    let in_pool = client.call("getrawmempool", json!([])).as_array().unwrap().contains(txid);
    let coins = client.call("listunspent", json!([0])).as_array().unwrap().len();
    json!([
        payment["confirmations"],
        payment["trusted"],
        payment["walletconflicts"].as_array().unwrap().len(),
        details,
        texts,
        in_pool,
        coins,
        client.call("getbalances", json!([]))["mine"]["trusted"]
    ])
}

fn refused_payments(client: &mut Client) -> Vec<Value> {
    for _ in 0..CHAIN {
        client.call("sendtoaddress", json!([FOREIGN, 1]));
    }
    let mut told = Vec::new();
    for (method, params) in [
        ("sendtoaddress", json!([FOREIGN, 1])),
        ("sendmany", json!(["", {FOREIGN: 1}])),
        ("send", json!([{FOREIGN: 1}])),
        ("sendall", json!([[FOREIGN]])),
    ] {
        let answer = client.call(method, params);
        let txid = answer.get("txid").unwrap_or(&answer).clone();
        told.push(json!([method, answer.get("complete"), shown(client, &txid)]));
        assert_eq!(client.call("abandontransaction", json!([txid])), Value::Null);
        told.push(shown(client, &txid));
    }
    told
}

#[test]
fn wallet_keeps_payments_that_the_mempool_refuses_as_bitcoind_does() {
    let Some(mut pair) = Pair::start(&["walletrejectlongchains=false"]) else { return };
    if pair.release > 30 {
        return skip("mempools since 31 take longer chains than that of the embedded chain");
    }
    pair.fund(1);
    let [ours, theirs] = [&mut pair.ours, &mut pair.theirs].map(refused_payments);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    // The first refused payment was not in the mempool, so nothing was trusted.
    assert!(ours[0].to_string().contains("[0,false,0,[[\"send\",false]],[false,false],false,"), "{}", ours[0]);
}

/// A replacement that the mempool refuses for its data output.
fn refused_replacement(node: &mut Client, client: &mut Client) -> Vec<Value> {
    let mine = client.call("getnewaddress", json!([]));
    node.call("generatetoaddress", json!([1, mine]));
    node.call("generatetoaddress", json!([100, FOREIGN]));
    let paid = client.call("sendtoaddress", json!([FOREIGN, 1]));
    let bumped = client.call("bumpfee", json!([paid, {"outputs": [{"data": "00"}, {FOREIGN: 1}]}]));
    // Without the new fee: it depends on the size of the first payment, whose signature may be a byte shorter on one side.
    let told = vec![bumped["origfee"].clone(), shown(client, &bumped["txid"]), shown(client, &paid)];
    let again = client.refused("bumpfee", json!([paid])).0;
    node.call("generatetoaddress", json!([1, FOREIGN]));
    [told, vec![json!(again), shown(client, &bumped["txid"]), shown(client, &paid)]].concat()
}

#[test]
fn wallet_keeps_a_replacement_that_the_mempool_refuses_as_bitcoind_does() {
    if bitcoind::installed().is_none() {
        return;
    }
    let host =
        Host::start_with(HostOptions::in_front_of(&["-datacarrier=0", "-addresstype=bech32", "-fallbackfee=0.00001"]));
    let (mut front, mut node) = (host.client(), host.node.as_ref().unwrap().client());
    node.call("createwallet", json!(["theirs"]));
    let mut wallets = [host.new_wallet("ours"), node.wallet("theirs")];
    let [ours, theirs] = wallets.each_mut().map(|client| refused_replacement(&mut front, client));
    assert_eq!(ours, theirs);
}

#[test]
fn wallet_leaves_payments_to_the_client_if_nothing_is_broadcast_as_bitcoind_does() {
    let Some(mut pair) = Pair::start(&["walletbroadcast=false"]) else { return };
    pair.fund(4);
    let calls = [
        ("sendtoaddress", json!([FOREIGN, 1])),
        ("sendmany", json!(["", {FOREIGN: 1}])),
        ("send", json!([{FOREIGN: 1}])),
        ("sendall", json!([[FOREIGN]])),
    ];
    let made = [&mut pair.ours, &mut pair.theirs].map(|client| {
        let made = calls.clone().map(|(method, params)| {
            let answer = client.call(method, params);
            let txid = answer.get("txid").unwrap_or(&answer).clone();
            (shown(client, &txid), txid)
        });
        // The wallet does not submit them later either.
        client.call("unloadwallet", json!(["w"]));
        client.call("loadwallet", json!(["w"]));
        assert_eq!(client.call("getrawmempool", json!([])), json!([]));
        // The client submits the payment, although it was abandoned.
        let first = made[0].1.clone();
        client.call("abandontransaction", json!([first]));
        let hex = client.call("gettransaction", json!([first]))["hex"].clone();
        assert_eq!(client.call("sendrawtransaction", json!([hex])), first);
        let submitted = shown(client, &first);
        let bumped = client.call("bumpfee", json!([first]))["txid"].clone();
        let rest = [submitted, shown(client, &first), shown(client, &bumped)];
        made.map(|(shown, _)| shown).into_iter().chain(rest).collect::<Vec<_>>()
    });
    let [ours, theirs] = made;
    assert_eq!(ours, theirs);
}

#[test]
fn payment_that_a_reorganisation_evicted_is_offered_again_at_the_next_blocks() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    wallet.mine(1);
    wallet.call("generatetoaddress", json!([100, ELSEWHERE]));
    // A payment may have an earlier locktime by chance, and would then be in the second block.
    let sent = wallet.call("send", json!([{ELSEWHERE: 1}, null, "unset", null, {"locktime": 101}]));
    let txid = &sent["txid"];
    // The second time, the node has judged the payment since its last eviction.
    for _ in 0..2 {
        // Two blocks less: its coinbase is immature.
        let below = wallet.call("getblockhash", json!([100]));
        wallet.call("invalidateblock", json!([below]));
        assert_eq!(wallet.call("getrawmempool", json!([])), json!([]));
        // One block makes its coinbase mature, another one its locktime final.
        wallet.mine(2);
        wait_until("it is offered again", || wallet.call("getrawmempool", json!([])) == json!([txid]));
    }
}
