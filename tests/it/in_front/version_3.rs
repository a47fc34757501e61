//! Payments of version 3 (BIP 431): the coins they take, their sizes, and their conflicts with siblings, as in the node's wallet.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::twins::Wallets;
use super::{ADDRESS, is_since};

#[test]
fn version_3_payments_keep_the_rules_of_the_node() {
    // An older node has no argument `version`; `profiles` tests the host's.
    if !is_since(30) {
        return;
    }
    let Some(mut wallets) = Wallets::start() else { return };
    // Payments choose coins and conflict with siblings.
    let mine = wallets.fund(3);
    let coins = wallets.ours.call("listunspent", json!([]));
    let other = wallets.ours.call("getnewaddress", json!(["", "bech32"]));
    wallets.theirs.call("getnewaddress", json!(["", "bech32"]));
    let (mine, other) = (mine.as_str(), other.as_str().unwrap());
    let mut parents = Vec::new();
    for (at, outputs) in [(0, json!([{mine: 20}, {other: 29.9}])), (1, json!([{other: 45}, {ADDRESS: 4.9}]))] {
        let inputs = json!([{"txid": coins[at]["txid"], "vout": coins[at]["vout"]}]);
        let params = json!({"inputs": inputs, "outputs": outputs, "version": 3});
        let raw = wallets.ours.call("createrawtransaction", params);
        let signed = wallets.ours.call("signrawtransactionwithwallet", json!([raw]));
        parents.push(wallets.ours.call("sendrawtransaction", json!([signed["hex"], 0])));
    }
    // The confirmed coin, and both coins of the parent with the larger value.
    for (amount, version) in [(49, 2), (60, 2), (49, 3), (99, 3), (110, 3)] {
        let params = json!({"outputs": {ADDRESS: amount}, "version": version, "fee_rate": 5, "psbt": true, "add_to_wallet": false});
        let spent = wallets.each(|wallet| {
            let made = wallet.try_call("send", params.clone()).map_err(|failure| (failure.code, failure.message))?;
            let decoded = wallet.call("decoderawtransaction", json!([made["hex"]]));
            let inputs = decoded["vin"].as_array().unwrap().iter();
            Ok::<BTreeSet<String>, (i64, String)>(
                inputs.map(|input| format!("{} {}", input["txid"], input["vout"])).collect(),
            )
        });
        assert_eq!(spent[0], spent[1], "{params}");
    }
    let child = |vout: u32, feerate: u32| json!({"outputs": {ADDRESS: 10}, "version": 3, "inputs": [{"txid": parents[0], "vout": vout}], "fee_rate": feerate});
    let first = wallets.ours.call("send", child(0, 5))["txid"].clone();
    let sibling = wallets.ours.call("send", child(1, 50))["txid"].clone();
    let conflicts = wallets.each(|wallet| wallet.call("gettransaction", json!([first]))["mempoolconflicts"].clone());
    assert_eq!(conflicts, [json!([sibling]), json!([sibling])]);
    wallets.check("getbalances", json!([])).unwrap();
    wallets.host.client().call("generatetoaddress", json!([1, ADDRESS]));
    let conflicts = wallets.each(|wallet| wallet.call("gettransaction", json!([first]))["mempoolconflicts"].clone());
    assert_eq!(conflicts, [json!([]), json!([])]);
    wallets.check("getbalances", json!([])).unwrap();
    wallets.renew("sizes");
    check_sizes(&mut wallets);
}

/// Payments keep the size limits.
fn check_sizes(wallets: &mut Wallets) {
    let mine = wallets.fund(2);
    // Many small confirmed coins: a payment of version 3 has at most 10,000 vB, one with an unconfirmed parent 1,000 vB.
    let many: serde_json::Map<String, Value> = [(mine.clone(), json!(1))].into_iter().collect();
    let coins = wallets.ours.call("listunspent", json!([]));
    for coin in coins.as_array().unwrap() {
        let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
        let mut outputs = many.clone();
        for _ in 0..100 {
            let address = wallets.address("", "bech32");
            outputs.insert(address, json!(0.1));
        }
        wallets.ours.call("send", json!({"outputs": outputs, "fee_rate": 5, "inputs": inputs}));
        wallets.mine(1, ADDRESS);
    }
    let ask = |wallets: &mut Wallets, method: &str, params: Value| {
        let answers = wallets.ask(method, &params).map(|answer| answer.map(|made| made.get("psbt").is_some()));
        assert_eq!(answers[0], answers[1], "{method} {params}");
        answers[0].clone()
    };
    let sent = |outputs: Value, extra: Value| {
        let mut params = json!({"outputs": outputs, "version": 3, "fee_rate": 5, "psbt": true, "add_to_wallet": false});
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        params
    };
    ask(
        wallets,
        "sendall",
        json!({"recipients": [ADDRESS], "version": 3, "fee_rate": 5, "psbt": true, "add_to_wallet": false}),
    )
    .unwrap_err();
    let coins = wallets.ours.call("listunspent", json!([]));
    let inputs: Vec<Value> =
        coins.as_array().unwrap().iter().map(|coin| json!({"txid": coin["txid"], "vout": coin["vout"]})).collect();
    for version in [2, 3] {
        let _ = ask(wallets, "send", sent(json!({ADDRESS: 1}), json!({"inputs": inputs, "version": version})));
        let _ = ask(
            wallets,
            "sendall",
            json!({"recipients": [ADDRESS], "inputs": inputs, "version": version, "fee_rate": 5, "psbt": true, "add_to_wallet": false}),
        );
    }
    for weight in [300, 500, 700, 4_000, 40_000, 40_001, 400_000] {
        let _ = ask(wallets, "send", sent(json!({ADDRESS: 0.05}), json!({"max_tx_weight": weight})));
    }
    // An unconfirmed coin of version 3, which a payment of at most 1,000 vB spends.
    let parent = wallets.ours.call("send", json!({"outputs": {mine: 0.05}, "version": 3, "fee_rate": 5}));
    wallets.check("getbalances", json!([])).unwrap();
    let input = json!([{"txid": parent["txid"], "vout": 0}]);
    for count in [1, 10, 40] {
        let mut outputs = serde_json::Map::new();
        for _ in 0..count {
            outputs.insert(wallets.address("", "bech32"), json!(0.001));
        }
        let _ = ask(wallets, "send", sent(json!(outputs), json!({"inputs": input})));
    }
    ask(wallets, "sendall", json!({"recipients": [ADDRESS], "inputs": input, "version": 2, "fee_rate": 5, "psbt": true, "add_to_wallet": false}))
        .unwrap_err();
}
