//! bumpfee of a host's wallet and of a real bitcoind's wallet with the same descriptors, on the same blocks.

use outrigger_tests::Client;
use serde_json::{Value, json};

use super::compared::{FOREIGN, Pair};
use crate::compared::told;

fn payment(pair: &mut Pair) -> (Value, Value) {
    let pay = json!({"address": FOREIGN, "amount": 1, "fee_rate": 5, "replaceable": true, "comment": "rent"});
    let txid = pair.ours.call("sendtoaddress", pay);
    let told = pair.ours.call("gettransaction", json!([txid, true, true]));
    assert_eq!(pair.theirs.call("sendrawtransaction", json!([told["hex"]])), txid);
    let outputs = told["decoded"]["vout"].as_array().unwrap();
    let change = outputs.iter().position(|output| output["value"].as_f64() != Some(1.0)).unwrap();
    (txid, json!(change))
}

/// The sorted inputs and outputs of a replacement, and the answers about it and the replaced payment.
fn replacement(client: &mut Client, old: &Value, bumped: &Value) -> Value {
    let new = &bumped["txid"];
    let told = [old, new].map(|txid| client.call("gettransaction", json!([txid, true, true])));
    let decoded = &told[1]["decoded"];
    let list = |key: &str, part: &dyn Fn(&Value) -> String| {
        let mut parts: Vec<String> = decoded[key].as_array().unwrap().iter().map(part).collect();
        parts.sort();
        parts
    };
    assert_eq!((&told[0]["replaced_by_txid"], &told[1]["replaces_txid"]), (new, old));
    let seen = told.each_ref().map(|one| {
        let count = |key: &str| one[key].as_array().unwrap().len();
        let fee = one["fee"].to_string();
        json!([
            one["confirmations"],
            one["bip125-replaceable"],
            fee,
            count("walletconflicts"),
            count("mempoolconflicts"),
            one["details"].as_array().unwrap().len()
        ])
    });
    json!({
        "told": seen,
        "inputs": list("vin", &|input| format!("{}:{} {}", input["txid"], input["vout"], input["sequence"])),
        "outputs": list("vout", &|output| format!("{} {}", output["value"], output["scriptPubKey"]["hex"])),
        "fees": [bumped["origfee"].to_string(), bumped["fee"].to_string(), bumped["errors"].to_string()],
    })
}

/// A replacement's unconfirmed coins: whether listunspent calls them safe and lists them without unsafe ones, whether they count as
/// trusted, and whether a payment spends them.
fn unsafe_change(client: &mut Client) -> Value {
    let listed = |client: &mut Client, with_unsafe: bool| -> Vec<Value> {
        let coins = client.call("listunspent", json!([0, 9_999_999, [], with_unsafe]));
        coins
            .as_array()
            .unwrap()
            .iter()
            .filter(|coin| coin["confirmations"] == 0)
            .map(|coin| coin["safe"].clone())
            .collect()
    };
    let (all, safe) = (listed(client, true), listed(client, false));
    assert_eq!((&all[..], safe.len()), (&[json!(false)][..], 0));
    let trusted = client.call("getbalances", json!([]))["mine"]["trusted"].as_f64().unwrap();
    let coins = client.call("listunspent", json!([]));
    let confirmed: f64 = coins.as_array().unwrap().iter().map(|coin| coin["amount"].as_f64().unwrap()).sum();
    let raw = client.call("createrawtransaction", json!([[], [{FOREIGN: format!("{:.8}", trusted - 0.001)}]]));
    json!([all, safe, trusted > confirmed + 1.0, client.refused("fundrawtransaction", json!([raw]))])
}

/// Own unconfirmed coins are trusted if spendzeroconfchange is set. At least one coin of the wallet must be confirmed.
pub fn check_trust(pair: &mut Pair) {
    let (txid, _) = payment(pair);
    pair.settle();
    let seen = [&mut pair.ours, &mut pair.theirs].map(|client| {
        let safe = |coins: Value| {
            let mut safe: Vec<String> = coins.as_array().unwrap().iter().map(|coin| coin["safe"].to_string()).collect();
            safe.sort();
            safe
        };
        let mut balances = client.call("getbalances", json!([]));
        balances.as_object_mut().unwrap().remove("lastprocessedblock");
        json!([
            balances,
            client.call("getbalance", json!([])),
            safe(client.call("listunspent", json!([0]))),
            safe(client.call("listunspent", json!([0, 9_999_999, [], false]))),
            client.call("gettransaction", json!([txid]))["trusted"],
            client.call("getwalletinfo", json!([]))["unconfirmed_balance"],
        ])
    });
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn bumpfee_pays_and_refuses_as_bitcoind() {
    let Some(mut pair) = Pair::start(&[]) else { return };
    pair.fund(12);
    check_trust(&mut pair);
    pair.mine(1, &json!(FOREIGN));
    check_replacements(&mut pair);
    check_refusals(&mut pair);
    pair.mine(1, &json!(FOREIGN));
    if pair.release < 30 {
        check_unsignalled(&mut pair);
    }
}

fn check_refusals(pair: &mut Pair) {
    let (mined, _) = payment(pair);
    pair.mine(1, &json!(FOREIGN));
    let (txid, change) = payment(pair);
    let refused = [
        json!(["zz"]),
        json!([5]),
        json!(["11".repeat(32)]),
        json!([mined]),
        json!([txid, 5]),
        json!([txid, {"x": 1}]),
        json!([txid, {"confTarget": 1, "conf_target": 2}]),
        json!([txid, {"conf_target": "a"}]),
        json!([txid, {"conf_target": 0}]),
        json!([txid, {"conf_target": 1009}]),
        json!([txid, {"conf_target": 2, "fee_rate": 10}]),
        json!([txid, {"estimate_mode": "x"}]),
        json!([txid, {"estimate_mode": "economical", "fee_rate": 10}]),
        json!([txid, {"replaceable": null}]),
        json!([txid, {"fee_rate": "x"}]),
        json!([txid, {"fee_rate": -1}]),
        json!([txid, {"fee_rate": 0}]),
        json!([txid, {"fee_rate": 0.5}]),
        json!([txid, {"fee_rate": 1}]),
        json!([txid, {"fee_rate": 5}]),
        // The node's increment is 0.1 sat/vB since release 30, and was 1 sat/vB before.
        json!([txid, {"fee_rate": if pair.release < 30 { 5.99 } else { 5.09 }}]),
        json!([txid, {"fee_rate": 100_000}]),
        json!([txid, {"outputs": []}]),
        json!([txid, {"outputs": 5}]),
        json!([txid, {"outputs": [{"x": 1}]}]),
        json!([txid, {"outputs": [{FOREIGN: 1}], "original_change_index": 0}]),
        json!([txid, {"outputs": [{FOREIGN: 1_000}]}]),
        json!([txid, {"outputs": [{FOREIGN: 0.00000001}]}]),
        json!([txid, {"original_change_index": 2}]),
        json!([txid, {"original_change_index": -1}]),
        json!([txid, {"original_change_index": null}]),
    ];
    for params in refused {
        pair.check("bumpfee", params.clone());
        pair.check("psbtbumpfee", params);
    }
    // psbtbumpfee changes no wallet.
    let psbts = pair.both("psbtbumpfee", &json!([txid, {"fee_rate": 20}]));
    let fees = psbts.map(|psbt| [psbt["origfee"].to_string(), psbt["fee"].to_string(), psbt["errors"].to_string()]);
    assert_eq!(fees[0], fees[1]);
    // A payment that spends the change prevents a replacement.
    let raw = pair.ours.call("createrawtransaction", json!([[{"txid": txid, "vout": change}], [{FOREIGN: 1}]]));
    for client in [&mut pair.ours, &mut pair.theirs] {
        let signed = client.call("signrawtransactionwithwallet", json!([raw]));
        client.call("sendrawtransaction", json!([signed["hex"], 0]));
    }
    pair.check("bumpfee", json!([txid]));
    for client in [&mut pair.ours, &mut pair.theirs] {
        client.call("createwallet", json!(["watch", true, true]));
    }
    let [ours, theirs] =
        [&pair.ours, &pair.theirs].map(|client| told(&mut client.wallet("watch"), "bumpfee", &json!([txid])));
    assert_eq!(ours, theirs);
}

/// Before release 30, payments without the signal are not replaced.
fn check_unsignalled(pair: &mut Pair) {
    let pay = json!({"address": FOREIGN, "amount": 1, "fee_rate": 5, "replaceable": false});
    let txid = pair.ours.call("sendtoaddress", pay);
    let told = pair.ours.call("gettransaction", json!([txid]));
    assert_eq!(pair.theirs.call("sendrawtransaction", json!([told["hex"]])), txid);
    for method in ["bumpfee", "psbtbumpfee"] {
        pair.check(method, json!([txid]));
        let (code, message) = pair.ours.refused(method, json!([txid]));
        assert_eq!((code, message.as_str()), (-4, "Transaction is not BIP 125 replaceable"));
    }
}

fn check_replacements(pair: &mut Pair) {
    let asked = [
        json!({}),
        json!({"fee_rate": 6}),
        json!({"fee_rate": 25, "replaceable": false}),
        json!({"outputs": [{FOREIGN: 2}]}),
        json!({"outputs": [{FOREIGN: 70}], "fee_rate": 10}),
        json!({"original_change_index": "change", "fee_rate": 8}),
        json!({"original_change_index": "paid", "fee_rate": 8}),
    ];
    for mut options in asked {
        let (txid, change) = payment(pair);
        match options["original_change_index"].as_str() {
            Some("change") => options["original_change_index"] = change,
            Some(_) => options["original_change_index"] = json!(1 - change.as_u64().unwrap()),
            None => {}
        }
        let bumped = pair.both("bumpfee", &json!([txid, options]));
        pair.settle();
        let seen = [&mut pair.ours, &mut pair.theirs].into_iter().zip(&bumped);
        let seen: Vec<Value> = seen.map(|(client, bumped)| replacement(client, &txid, bumped)).collect();
        if options["outputs"][0][FOREIGN] == json!(70) {
            // Each wallet may add another coin.
            assert_eq!(seen[0]["fees"], seen[1]["fees"], "{options}");
        } else {
            assert_eq!(seen[0], seen[1], "{options}");
        }
        // A replacement's change counts in balances, and is not safe.
        let change = [&mut pair.ours, &mut pair.theirs].map(unsafe_change);
        assert_eq!(change[0], change[1], "{options}");
        for (client, bumped) in [&mut pair.ours, &mut pair.theirs].into_iter().zip(&bumped) {
            let new = bumped["txid"].as_str().unwrap();
            let message = format!(
                "Cannot bump transaction {} which was already bumped by transaction {new}",
                txid.as_str().unwrap()
            );
            assert_eq!(client.refused("bumpfee", json!([txid])), (-4, message));
        }
        // Both wallets continue with the same transactions.
        let mine = bumped.each_ref().map(|bumped| bumped["txid"].clone());
        let hex = pair.ours.call("gettransaction", json!([mine[0]]))["hex"].clone();
        let address = json!(FOREIGN);
        assert!(hex.is_string());
        pair.mine(1, &address);
    }
}
