//! Results and refusals that differ by release: those of the node's own wallet with the same keys and payments.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::twins::Wallets;
use super::{ADDRESS, start, start_set};
use crate::compared::told;
use crate::profiles::{paths, views};

const XPUB: &str =
    "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";

#[test]
fn wallet_methods_tell_the_members_that_the_nodes_wallet_tells() {
    let Some(mut wallets) = Wallets::start() else { return };
    let mine = wallets.fund(2);
    let paid = wallets.ours.call("sendtoaddress", json!([ADDRESS, 1, "", "", false, true, null, "unset", null, 5]));
    for (method, params) in views(&paid, &json!(mine)) {
        let [ours, theirs] = wallets.each(|wallet| {
            let mut members = BTreeSet::new();
            paths(&wallet.call(method, params.clone()), "", &mut members);
            members
        });
        assert_eq!(ours, theirs, "{method}");
    }
    let directories = [wallets.host.client(), wallets.host.node.as_ref().unwrap().client()]
        .map(|mut client| client.call("listwalletdir", json!([]))["wallets"][0].as_object().unwrap().len());
    assert_eq!(directories[0], directories[1]);
    let parents = wallets.each(|wallet| {
        let coins = wallet.call("listunspent", json!([]));
        let sent = wallet.call("gettransaction", json!([coins[0]["txid"]]));
        [&coins[0], &sent["details"][0]].map(|entry| entry["parent_descs"].clone())
    });
    assert_eq!(parents[0], parents[1]);
}

#[test]
fn refusals_of_payments_are_those_of_the_nodes_wallet() {
    let Some(mut wallets) = Wallets::start() else { return };
    wallets.fund(1);
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
        // Without a feerate, one side might lack an estimate.
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

#[test]
fn importdescriptors_warns_and_refuses_as_the_node() {
    let Some(host) = start(&[]) else { return };
    let mut node = host.node.as_ref().unwrap().client();
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
    let checked = requests.map(|(text, range)| {
        let checksum = node.call("getdescriptorinfo", json!([text]))["checksum"].clone();
        json!({"desc": format!("{text}#{}", checksum.as_str().unwrap()), "timestamp": "now", "range": range})
    });
    let [ours, theirs] = [&mut host.client(), &mut node].map(|client| {
        client.call("createwallet", json!(["watch", true]));
        let mut wallet = client.wallet("watch");
        checked.clone().map(|request| wallet.call("importdescriptors", json!([[request]])).to_string())
    });
    // The keypool, which the refusals of ranges tell, is the same on both sides.
    assert_eq!(ours, theirs);
}

#[test]
fn getbalances_counts_payments_outside_the_mempool_as_the_node() {
    let Some(host) = start_set(&["-walletbroadcast=0"], &["wallet.walletbroadcast=false"]) else { return };
    let mut wallets = Wallets::of(host);
    wallets.fund(2);
    let [before, same] = wallets.each(|wallet| told(wallet, "getbalances", &json!([])));
    assert_eq!(before, same);
    wallets.each(|wallet| wallet.call("sendtoaddress", json!({"address": ADDRESS, "amount": 1, "fee_rate": 5})));
    wallets.check("getbalances", json!([])).unwrap();
    wallets.check("getbalance", json!([])).unwrap();
    assert_ne!(wallets.each(|wallet| told(wallet, "getbalances", &json!([])))[0], before);
}

#[test]
fn version_3_payments_choose_coins_and_conflict_with_siblings_as_in_the_node() {
    let Some(mut wallets) = Wallets::start() else { return };
    let mine = wallets.fund(3);
    let coins = wallets.ours.call("listunspent", json!([]));
    let other = wallets.ours.call("getnewaddress", json!(["", "bech32"]));
    wallets.theirs.call("getnewaddress", json!(["", "bech32"]));
    let (mine, other) = (mine.as_str(), other.as_str().unwrap());
    let mut parents = Vec::new();
    for (at, outputs) in [(0, json!([{mine: 20}, {other: 29.9}])), (1, json!([{other: 45}, {ADDRESS: 4.9}]))] {
        let inputs = json!([{"txid": coins[at]["txid"], "vout": coins[at]["vout"]}]);
        let params = json!({"inputs": inputs, "outputs": outputs, "version": 3});
        // Below release 30 neither side has the argument.
        let raw = match wallets.ours.try_call("createrawtransaction", params) {
            Err(failure) => return assert_eq!(failure.message, "Unknown named parameter version"),
            Ok(raw) => raw,
        };
        let signed = wallets.ours.call("signrawtransactionwithwallet", json!([raw]));
        parents.push(wallets.ours.call("sendrawtransaction", json!([signed["hex"], 0])));
    }
    // The confirmed coin, and both coins of the parent that is worth more.
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
}
