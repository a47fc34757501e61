//! A wallet of the host and one of the node with the same keys report the same addresses, coins and balances.

use serde_json::{Value, json};

use super::ADDRESS;
use super::twins::Wallets;
use crate::compared::as_core;

/// Compares both answers to `getaddressinfo`, without the wallets' creation times.
#[track_caller]
fn check_address(wallets: &mut Wallets, address: &str) {
    let [ours, theirs] = wallets.ask("getaddressinfo", &json!([address])).map(|info| {
        let mut info = info.unwrap();
        info.as_object_mut().unwrap().shift_remove("timestamp");
        as_core(&mut info);
        info.to_string()
    });
    assert_eq!(ours, theirs);
}

/// Compares the coins, which bitcoind lists in no fixed order.
#[track_caller]
fn check_coins(wallets: &mut Wallets, arguments: &Value) {
    let [ours, theirs] = wallets.ask("listunspent", arguments).map(|coins| {
        let mut coins: Vec<String> = coins.unwrap().as_array().unwrap().iter().map(Value::to_string).collect();
        coins.sort();
        coins
    });
    assert_eq!(ours, theirs, "{arguments}");
}

#[test]
fn getaddressinfo_listunspent_and_getbalance_answer_as_the_node() {
    let Some(mut wallets) = Wallets::start() else { return };
    let kinds = [("rent", "legacy"), ("rent", "p2sh-segwit"), ("", "bech32"), ("pay", "bech32m")];
    let addresses = kinds.map(|(label, kind)| wallets.address(label, kind));
    for address in &addresses {
        wallets.mine(1, address);
    }
    wallets.mine(98, ADDRESS);
    wallets.check("setlabel", json!([ADDRESS, "theirs"])).unwrap();
    let pay = json!([addresses[0], 1.5, "", "", false, true, null, "unset", null, 10]);
    wallets.ours.call("sendtoaddress", pay);
    for address in addresses.iter().map(String::as_str).chain([ADDRESS, "bcrt1pfeesnyr2tx"]) {
        check_address(&mut wallets, address);
    }
    for depth in [json!(null), json!(-5), json!(0), json!(1), json!(2), json!(101), json!(102)] {
        let coins = json!([depth, null, null, null, {"include_immature_coinbase": true}]);
        for arguments in [json!([depth]), json!([depth, 101]), json!([depth, 9_999, [addresses[1]]]), coins] {
            check_coins(&mut wallets, &arguments);
        }
    }
    for options in [json!({"minimumAmount": "49"}), json!({"maximumAmount": "49"}), json!({"maximumCount": 0})] {
        check_coins(&mut wallets, &json!([0, 9_999, [], true, options]));
    }
    for arguments in [json!([]), json!([""]), json!(["receive"]), json!(["send"]), json!(["refund"])] {
        wallets.check("listlabels", arguments).unwrap();
    }
    for label in ["rent", "", "theirs"] {
        let [ours, theirs] = wallets.ask("getaddressesbylabel", &json!([label]));
        assert_eq!(ours, theirs, "{label}");
    }
    // Bitcoin Knots counts own change below the requested depth, and trusts fewer own unconfirmed payments than Bitcoin Core.
    wallets.mine(1, ADDRESS);
    for depth in [json!(null), json!(-5), json!(0), json!(1)] {
        wallets.check("getbalance", json!(["*", depth])).unwrap();
    }
    let mut told = [&mut wallets.ours, &mut wallets.theirs].map(|wallet| wallet.call("getbalances", json!([])));
    told.iter_mut().for_each(|balances| drop(balances.as_object_mut().unwrap().shift_remove("lastprocessedblock")));
    assert_eq!(told[0].to_string(), told[1].to_string());
    let keys = [
        "03789ed0bb717d88f7d321a368d905e7430207ebbd82bd342cf11ae157a7ace5fd",
        "03dbc6764b8884a92e871274b87583e6d5c2a58819473e17e107ef3f6aa5a61626",
    ];
    wallets.make("watch", &[json!(true), json!(true)]);
    for form in ["sh(multi(1,{0},{1}))", "wsh(multi(2,{0},{1}))", "sh(wsh(multi(1,{0},{1})))", "tr({0},pk({1}))"] {
        let text = form.replace("{0}", keys[0]).replace("{1}", keys[1]);
        let text = wallets.check("getdescriptorinfo", json!([text])).unwrap()["descriptor"].clone();
        let imported = wallets.check("importdescriptors", json!([[{"desc": text, "timestamp": "now"}]])).unwrap();
        assert_eq!(imported[0]["success"], Value::Bool(true), "{form}");
        let address = wallets.check("deriveaddresses", json!([text])).unwrap()[0].clone();
        check_address(&mut wallets, address.as_str().unwrap());
    }
}
