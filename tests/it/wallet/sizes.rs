//! The fees of spending coins of all kinds of scripts, beside a real bitcoind with the same descriptors and coins.

use outrigger_tests::{Client, XPRV};
use serde_json::{Value, json};

use super::check_fee;
use super::compared::FOREIGN;
use crate::in_front::twins::Wallets;

const NOBODY: &str = "0250929b74c1a04954b78b4b6035e97a5e078a5a0f28ec96d547bfee9ace803ac0";

/// Makes two wallets without keys. Each name has a change branch of its own: all keys derive from one master key.
fn make(wallets: &mut Wallets, name: &str, change: &str) {
    wallets.make(name, &[json!(false), json!(true)]);
    import(wallets, &format!("wpkh({}/*)", private(change)), true);
}

/// Imports a descriptor into both wallets, and returns its address.
fn import(wallets: &mut Wallets, text: &str, internal: bool) -> Value {
    let desc = wallets.ours.with_checksum(text);
    let mut request = json!({"desc": desc, "timestamp": "now", "active": internal, "internal": internal});
    if internal {
        request["range"] = json!([0, 99]);
    }
    for client in [&mut wallets.ours, &mut wallets.theirs] {
        client.import(&json!([request]));
    }
    if internal {
        return Value::Null;
    }
    let public = wallets.ours.call("getdescriptorinfo", json!([text]))["descriptor"].clone();
    wallets.ours.call("deriveaddresses", json!([public]))[0].clone()
}

/// The key at a path below the master key, with its private key.
fn private(path: &str) -> String {
    format!("{XPRV}/{path}")
}

#[test]
fn wallet_weighs_and_spends_coins_of_all_scripts_as_bitcoind_does() {
    let Some(mut wallets) = Wallets::start() else { return };
    check_spent_miniscripts(&mut wallets);
    check_weighed_miniscripts(&mut wallets);
    check_inputs_of_others(&mut wallets);
}

fn check_weighed_miniscripts(wallets: &mut Wallets) {
    make(wallets, "weighed", "99");
    let key = |number: u8| private(&number.to_string());
    let (a, b, c) = (key(1), key(2), key(3));
    let hash = "11".repeat(32);
    let descriptors = [
        format!("wsh(or_d(pk({a}),and_v(v:pkh({b}),older(10))))"),
        format!("wsh(andor(pk({a}),older(5),multi(2,{b},{c},{NOBODY})))"),
        format!("wsh(and_v(v:pk({a}),after(100)))"),
        format!("wsh(thresh(2,pk({a}),s:pk({b}),sln:after(100)))"),
        format!("wsh(or_i(and_v(v:pkh({a}),sha256({hash})),pk({b})))"),
        format!("wsh(or_b(pk({a}),s:pk({NOBODY})))"),
        format!("sh(wsh(and_v(v:pkh({a}),pk({c}))))"),
        format!("wsh(and_b(pk({a}),a:pk({b})))"),
        format!("wsh(pkh({a}))"),
        format!("wsh(pk({b}))"),
        format!("wsh(multi(2,{a},{b},{NOBODY}))"),
        format!("sh(multi(2,{a},{b},{NOBODY}))"),
        format!("sh(wsh(sortedmulti(1,{a},{c})))"),
        format!("sh(pkh({c}))"),
        format!("pkh({})", key(5)),
        format!("sh(wpkh({}))", key(6)),
        format!("tr({a},{{pk({b}),and_v(v:pk({c}),older(10))}})"),
        format!("tr({NOBODY},pk({a}))"),
        format!("tr({NOBODY},multi_a(2,{a},{b},{c}))"),
    ];
    let addresses: Vec<Value> = descriptors.iter().map(|text| import(wallets, text, false)).collect();
    let mut payer = wallets.host.new_wallet("payer");
    payer.fund(1);
    let outputs: Value = addresses
        .iter()
        .map(|address| (address.as_str().unwrap().to_owned(), json!(1)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    payer.call("sendmany", json!(["", outputs]));
    wallets.host.client().call("generatetoaddress", json!([1, FOREIGN]));
    let coins = wallets.ours.call("listunspent", json!([])).as_array().unwrap().clone();
    assert_eq!(coins.len(), descriptors.len());
    for (text, address) in descriptors.iter().zip(&addresses) {
        let coin = coins.iter().find(|coin| coin["address"] == *address).unwrap();
        for feerate in [1, 10] {
            let input = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
            let options = json!({"fee_rate": feerate, "add_inputs": false, "change_type": "bech32"});
            let params = json!([input, [{FOREIGN: 0.5}], 0, options]);
            check_fee(wallets, "walletcreatefundedpsbt", &params, text).unwrap();
            // Chosen by the wallet, while all others are locked.
            let others: Vec<Value> = coins
                .iter()
                .filter(|other| *other != coin)
                .map(|other| json!({"txid": other["txid"], "vout": other["vout"]}))
                .collect();
            for client in [&mut wallets.ours, &mut wallets.theirs] {
                client.call("lockunspent", json!([false, others]));
            }
            let options = json!({"fee_rate": feerate, "change_type": "bech32"});
            let params = json!([[], [{FOREIGN: 0.5}], 0, options]);
            check_fee(wallets, "walletcreatefundedpsbt", &params, text).unwrap();
            for client in [&mut wallets.ours, &mut wallets.theirs] {
                client.call("lockunspent", json!([true, others]));
            }
        }
    }
    // All coins together.
    let options = json!({"fee_rate": 5, "change_type": "bech32"});
    let all = json!([[], [{FOREIGN: descriptors.len() as f64 - 0.01}], 0, options]);
    check_fee(wallets, "walletcreatefundedpsbt", &all, "all").unwrap();
}

/// sendtoaddress spends miniscripts that the wallet's keys can satisfy.
fn check_spent_miniscripts(wallets: &mut Wallets) {
    make(wallets, "spent", "98");
    let addresses = [
        format!("wsh(or_d(pk({}),and_v(v:pkh({NOBODY}),older(10))))", private("1")),
        format!("tr({NOBODY},pk({}))", private("2")),
        // Needs a timelock that the payment does not wait for.
        format!("wsh(or_d(pk({NOBODY}),and_v(v:pkh({}),older(10))))", private("3")),
    ]
    .map(|text| import(wallets, &text, false));
    let mut node = wallets.host.client();
    for address in &addresses {
        node.call("generatetoaddress", json!([1, address]));
    }
    node.call("generatetoaddress", json!([100, FOREIGN]));
    for _ in 0..2 {
        let txid = wallets.ours.call("sendtoaddress", json!([FOREIGN, 40]));
        assert!(node.call("getrawmempool", json!([])).as_array().unwrap().contains(&txid), "{txid}");
    }
    assert_eq!(wallets.ours.refused("sendtoaddress", json!([FOREIGN, 40])).0, -6);
}

/// psbtbumpfee weighs foreign inputs by their signatures.
fn check_inputs_of_others(wallets: &mut Wallets) {
    make(wallets, "bumped", "97");
    let mine = import(wallets, &format!("wpkh({}/5)", private("1")), false);
    let mut node = wallets.host.client();
    let mut others = ["legacy", "p2sh-segwit", "bech32"].map(|kind| (kind, wallets.host.new_wallet(kind)));
    for (kind, other) in &mut others {
        let theirs = other.call("getnewaddress", json!(["", kind]));
        node.call("generatetoaddress", json!([1, mine]));
        node.call("generatetoaddress", json!([1, theirs]));
    }
    node.call("generatetoaddress", json!([100, FOREIGN]));
    for (kind, other) in &mut others {
        let mut value = 0.0;
        let mut coin = |client: &mut Client| {
            let coins = client.call("listunspent", json!([1]));
            // Not the change of an earlier payment.
            let coin = coins.as_array().unwrap().iter().find(|coin| coin["amount"].as_f64() > Some(1.0)).unwrap();
            value += coin["amount"].as_f64().unwrap();
            json!({"txid": coin["txid"], "vout": coin["vout"], "sequence": 0xffff_fffd_u32})
        };
        let inputs = json!([coin(&mut wallets.ours), coin(other)]);
        let change = wallets.ours.call("getrawchangeaddress", json!(["bech32"]));
        let change = json!({change.as_str().unwrap(): 0.9999});
        let raw = node.call("createrawtransaction", json!([inputs, [{FOREIGN: value - 1.0}, change]]));
        let raw = wallets.ours.call("signrawtransactionwithwallet", json!([raw]))["hex"].clone();
        let signed = other.call("signrawtransactionwithwallet", json!([raw]));
        assert_eq!(signed["complete"], true, "{signed}");
        let paid = node.call("sendrawtransaction", json!([signed["hex"]]));
        for options in [json!({"fee_rate": 77}), json!({"fee_rate": 200})] {
            check_fee(wallets, "psbtbumpfee", &json!([paid, options]), kind).unwrap();
        }
        node.call("generatetoaddress", json!([1, FOREIGN]));
    }
}
