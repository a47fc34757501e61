//! Results and refusals that differ by release match those of the node's wallet with the same keys and payments.

use outrigger_tests::{Host, XPUB};
use serde_json::{Value, json};

use super::twins::Wallets;
use super::{ADDRESS, is_since, start_set};
use crate::compared::told;

#[test]
fn refusals_match_those_of_the_nodes_wallet() {
    let Some(mut wallets) = Wallets::start() else { return };
    wallets.fund(1);
    check_payments(&mut wallets);
    check_imports(&wallets.host);
    // The host refuses passphrases with a zero byte as the node.
    wallets.check("encryptwallet", json!(["secret"])).unwrap();
    for passphrase in ["wrong", "secret\0", "secret\0more", "\0"] {
        wallets.check("walletpassphrase", json!([passphrase, 1])).unwrap_err();
        wallets.check("walletpassphrasechange", json!([passphrase, "new"])).unwrap_err();
    }
    wallets.check("walletpassphrasechange", json!(["secret", "a\0b"])).unwrap();
    wallets.check("walletpassphrase", json!(["a", 1])).unwrap_err();
    wallets.check("walletpassphrase", json!(["a\0b", 1])).unwrap();
    // The host refuses labels of imported descriptors as the node.
    let ranged = format!("wpkh({XPUB}/6/*)");
    let fixed = format!("wpkh({XPUB}/6/0)");
    let node = wallets.host.node.as_ref().unwrap();
    let [ranged, fixed] =
        [&ranged, &fixed].map(|text| node.client().call("getdescriptorinfo", json!([text]))["descriptor"].clone());
    wallets.make("labels", &[json!(true), json!(true)]);
    for request in [
        json!({"desc": ranged, "label": "x"}),
        json!({"desc": ranged, "label": ""}),
        json!({"desc": ranged, "label": "x", "range": 5}),
        json!({"desc": fixed, "label": "*"}),
        json!({"desc": "zz", "label": "*"}),
        json!({"desc": "zz", "label": "x", "internal": true}),
        json!({"desc": fixed, "label": "x", "internal": true}),
        json!({"desc": fixed, "label": "x"}),
    ] {
        let mut timed = request.clone();
        timed["timestamp"] = json!("now");
        for request in [request, timed] {
            let _ = wallets.check("importdescriptors", json!([[request]]));
        }
    }
}

/// Compares refused payments of wallets with one coin.
fn check_payments(wallets: &mut Wallets) {
    for amount in [50, 51] {
        wallets.check_refusal("sendtoaddress", json!({"address": ADDRESS, "amount": amount, "fee_rate": 5}));
        wallets.check_refusal("sendmany", json!({"amounts": {ADDRESS: amount}, "fee_rate": 5}));
        wallets.check_refusal("send", json!({"outputs": {ADDRESS: amount}, "fee_rate": 5}));
        wallets.check_refusal("walletcreatefundedpsbt", json!([[], [{ADDRESS: amount}], 0, {"fee_rate": 5}]));
    }
    for feerate in [json!(0), json!(0.5)] {
        wallets.check_refusal("sendtoaddress", json!({"address": ADDRESS, "amount": 1, "fee_rate": feerate}));
        wallets.check_refusal("sendall", json!({"recipients": [ADDRESS], "fee_rate": feerate}));
    }
    wallets.check_refusal("walletcreatefundedpsbt", json!([[], [{"data": "00"}], 0, {"fee_rate": 0}]));
    let raw = wallets.ours.call("createrawtransaction", json!([[], [{ADDRESS: 1}]]));
    for options in [json!({"fee_rate": 5}), json!(null), json!(true), json!("x")] {
        // Without a feerate, one wallet may lack an estimate.
        if options != json!(null) && options != json!(true) {
            wallets.check_refusal("fundrawtransaction", json!([raw, options]));
        } else {
            let types = wallets.each(|wallet| match wallet.try_call("fundrawtransaction", json!([raw, options])) {
                Err(failure) if failure.code == -3 => failure.message,
                _ => String::new(),
            });
            assert_eq!(types[0], types[1], "{options}");
        }
    }
    for version in [json!(0), json!(1), json!(3), json!(4), json!(1.5), json!(-1), json!("x")] {
        let with = |mut params: Value| {
            params["version"] = version.clone();
            params
        };
        let _ = wallets.check("createrawtransaction", with(json!({"inputs": [], "outputs": {ADDRESS: 1}})));
        wallets.check_refusal("createpsbt", with(json!({"inputs": [], "outputs": {ADDRESS: 1}})));
        let made = json!({"outputs": {ADDRESS: 1}, "fee_rate": 5, "psbt": true, "add_to_wallet": false});
        wallets.check_refusal("send", with(made));
        let swept = json!({"recipients": [ADDRESS], "fee_rate": 5, "psbt": true, "add_to_wallet": false});
        wallets.check_refusal("sendall", with(swept));
    }
    wallets.check("listreceivedbylabel", json!([0, true])).unwrap();
    wallets.each(|wallet| wallet.call("setlabel", json!([ADDRESS, "theirs"])));
    for method in ["listreceivedbylabel", "listreceivedbyaddress"] {
        wallets.check(method, json!([0, true])).unwrap();
    }
    wallets.check("listreceivedbyaddress", json!([0, true, false, ADDRESS])).unwrap();
    let reasons = wallets.each(|wallet| {
        let pay = json!({"address": ADDRESS, "amount": 1, "fee_rate": 5, "verbose": true});
        // The second payment spends the change of the first.
        wallet.call("sendtoaddress", pay)["fee_reason"].as_str().unwrap().to_owned()
    });
    assert_eq!(reasons[0], reasons[1]);
}

/// The host's importdescriptors warns and refuses as the node's.
fn check_imports(host: &Host) {
    let mut node = host.node_client();
    let requests = [
        (format!("wpkh({XPUB}/0/*)"), json!([0, 20])),
        (format!("wpkh({XPUB}/0/*)"), json!([0, 10])),
        (format!("wpkh({XPUB}/0/*)"), json!([5, 30])),
        (
            format!("wsh(or_i(and_v(v:pk({XPUB}/1/*),older(65536)),and_v(v:pk({XPUB}/2/*),older(4259840))))"),
            json!([0, 2]),
        ),
        (format!("wsh(and_v(v:pk({XPUB}/<3;4>/*),older(65537)))"), json!([0, 2])),
        (format!("wsh(and_v(v:pk({XPUB}/5/*),older(4259839)))"), json!([0, 2])),
    ];
    let checked =
        requests.map(|(text, range)| json!({"desc": node.with_checksum(&text), "timestamp": "now", "range": range}));
    let [ours, theirs] = [&mut host.client(), &mut node].map(|client| {
        let mut wallet = client.create_wallet("watch", json!({"disable_private_keys": true}));
        checked.clone().map(|request| wallet.call("importdescriptors", json!([[request]])).to_string())
    });
    // Refusals of ranges mention the keypool, which is the same in both wallets.
    assert_eq!(ours, theirs);
}

#[test]
fn payments_that_are_not_broadcast_are_bumped_and_counted_as_by_the_node() {
    let Some(host) = start_set(&["-walletbroadcast=0"], &["wallet.walletbroadcast=false"]) else { return };
    let mut wallets = Wallets::of(host);
    wallets.fund(1);
    // bumpfee ignores abandoned descendants.
    let parent = wallets.ours.call("sendtoaddress", json!({"address": ADDRESS, "amount": 1, "fee_rate": 5}));
    let hex = wallets.ours.call("gettransaction", json!([parent]))["hex"].clone();
    wallets.ours.call("sendrawtransaction", json!([hex]));
    wallets.check("getbalances", json!([])).unwrap();
    let bump = json!([parent, {"fee_rate": 20}]);
    let children = wallets.each(|wallet| {
        let child = json!({"outputs": {ADDRESS: 1}, "fee_rate": 5, "minconf": 0});
        wallet.call("send", child)["txid"].clone()
    });
    wallets.check("psbtbumpfee", bump.clone()).unwrap_err();
    for (wallet, child) in [&mut wallets.ours, &mut wallets.theirs].into_iter().zip(&children) {
        wallet.call("abandontransaction", json!([child]));
    }
    let fees = wallets.ask("psbtbumpfee", &bump).map(|answer| answer.map(|made| made["fee"].to_string()));
    assert_eq!(fees[0], fees[1]);
    wallets.renew("counted");
    wallets.fund(2);
    // getbalances counts payments outside the mempool.
    let [before, same] = wallets.each(|wallet| told(wallet, "getbalances", &json!([])));
    assert_eq!(before, same);
    wallets.each(|wallet| wallet.call("sendtoaddress", json!({"address": ADDRESS, "amount": 1, "fee_rate": 5})));
    wallets.check("getbalances", json!([])).unwrap();
    wallets.check("getbalance", json!([])).unwrap();
    assert_ne!(wallets.each(|wallet| told(wallet, "getbalances", &json!([])))[0], before);
}

#[test]
fn gettransaction_reports_other_witnesses_as_the_node() {
    // Before 32, a node keeps the first witness even of a confirmed payment.
    if !is_since(32) {
        return;
    }
    let Some(mut wallets) = Wallets::start() else { return };
    let mine = wallets.address("", "bech32m");
    wallets.mine(1, &mine);
    wallets.mine(100, ADDRESS);
    let coin = wallets.ours.call("listunspent", json!([]))[0].clone();
    let inputs = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let raw = wallets.ours.call("createrawtransaction", json!([inputs, [{ADDRESS: 49.9}]]));
    // A signature of the default type is one byte shorter.
    let [first, second] = ["DEFAULT", "ALL"]
        .map(|kind| wallets.ours.call("signrawtransactionwithwallet", json!([raw, [], kind]))["hex"].clone());
    let mut front = wallets.host.client();
    let txid = front.call("sendrawtransaction", json!([first, 0]));
    let check = |wallets: &mut Wallets| {
        wallets.each(|wallet| {
            let told = wallet.call("gettransaction", json!([txid]));
            let listed = wallet.call("listtransactions", json!([]));
            let listed = listed.as_array().unwrap().iter().find(|entry| entry["txid"] == txid).unwrap();
            ["wtxid", "alternate_wtxids", "hex"].map(|key| [&told[key], &listed[key]].map(Value::to_string))
        })
    };
    let [ours, theirs] = check(&mut wallets);
    assert_eq!(ours, theirs);
    let block = front.call("generateblock", json!([ADDRESS, [second]]));
    let [ours, theirs] = check(&mut wallets);
    assert_eq!(ours, theirs);
    front.call("invalidateblock", json!([block["hash"]]));
    let [ours, theirs] = check(&mut wallets);
    assert_eq!(ours, theirs);
}
