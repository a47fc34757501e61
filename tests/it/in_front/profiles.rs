//! Results and refusals that differ by release: those of the node's own wallet with the same keys and payments.

use std::collections::BTreeSet;

use outrigger_tests::{Client, bitcoind};
use serde_json::{Value, json};

use super::{ADDRESS, start, start_set};
use crate::compared::told;
use crate::profiles::paths;

const XPUB: &str =
    "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";

/// A wallet of the host and one of its node with the same keys.
struct Pair {
    host: outrigger_tests::Host,
    ours: Client,
    theirs: Client,
}

impl Pair {
    /// With mature coins of 50 BTC, all at one address, which is given.
    fn fund(host: outrigger_tests::Host, coins: u32) -> (Self, Value) {
        let mut ours = host.new_wallet("w");
        let mut theirs = bitcoind::twin(host.node.as_ref().unwrap().client(), &mut ours);
        let [mine, same] = [&mut ours, &mut theirs].map(|wallet| wallet.call("getnewaddress", json!(["", "bech32"])));
        assert_eq!(mine, same);
        host.client().call("generatetoaddress", json!([coins, mine]));
        host.client().call("generatetoaddress", json!([100, ADDRESS]));
        (Self { host, ours, theirs }, mine)
    }

    fn each<T>(&mut self, ask: impl Fn(&mut Client) -> T) -> [T; 2] {
        [&mut self.ours, &mut self.theirs].map(|wallet| {
            wallet.call("syncwithvalidationinterfacequeue", json!([]));
            ask(wallet)
        })
    }

    /// Both answer a call with the same bytes.
    #[track_caller]
    fn check(&mut self, method: &str, params: Value) {
        let [ours, theirs] = self.each(|wallet| told(wallet, method, &params));
        assert_eq!(ours, theirs, "{method} {params}");
    }

    /// Both answer a call, or refuse it with the same words.
    #[track_caller]
    fn check_refusal(&mut self, method: &str, params: Value) {
        let told = |wallet: &mut Client| match wallet.try_call(method, params.clone()) {
            Ok(_) => "answered".to_owned(),
            Err(failure) => format!("{} {}", failure.code, failure.message),
        };
        let [ours, theirs] = self.each(told);
        assert_eq!(ours, theirs, "{method} {params}");
    }
}

#[test]
fn wallet_methods_tell_the_members_that_the_nodes_wallet_tells() {
    let Some(host) = start(&[]) else { return };
    let (mut pair, mine) = Pair::fund(host, 2);
    let paid = pair.ours.call("sendtoaddress", json!([ADDRESS, 1, "", "", false, true, null, "unset", null, 5]));
    for (method, params) in [
        ("getwalletinfo", json!([])),
        ("getbalances", json!([])),
        ("gettransaction", json!([paid, true, true])),
        ("listtransactions", json!([])),
        ("listsinceblock", json!([])),
        ("listunspent", json!([0])),
        ("getaddressinfo", json!([mine])),
        ("listreceivedbyaddress", json!([0, true])),
    ] {
        let [ours, theirs] = pair.each(|wallet| {
            let mut members = BTreeSet::new();
            paths(&wallet.call(method, params.clone()), "", &mut members);
            members
        });
        assert_eq!(ours, theirs, "{method}");
    }
    let directories = [pair.host.client(), pair.host.node.as_ref().unwrap().client()]
        .map(|mut client| client.call("listwalletdir", json!([]))["wallets"][0].as_object().unwrap().len());
    assert_eq!(directories[0], directories[1]);
    let parents = pair.each(|wallet| {
        let coins = wallet.call("listunspent", json!([]));
        let sent = wallet.call("gettransaction", json!([coins[0]["txid"]]));
        [&coins[0], &sent["details"][0]].map(|entry| entry["parent_descs"].clone())
    });
    assert_eq!(parents[0], parents[1]);
}

#[test]
fn refusals_of_payments_are_those_of_the_nodes_wallet() {
    let Some(host) = start(&[]) else { return };
    let (mut pair, _) = Pair::fund(host, 1);
    for amount in [50, 51] {
        pair.check_refusal("sendtoaddress", json!({"address": ADDRESS, "amount": amount, "fee_rate": 5}));
        pair.check_refusal("sendmany", json!({"amounts": {ADDRESS: amount}, "fee_rate": 5}));
        pair.check_refusal("send", json!({"outputs": {ADDRESS: amount}, "fee_rate": 5}));
        pair.check_refusal("walletcreatefundedpsbt", json!([[], [{ADDRESS: amount}], 0, {"fee_rate": 5}]));
    }
    for feerate in [json!(0), json!(0.5)] {
        pair.check_refusal("sendtoaddress", json!({"address": ADDRESS, "amount": 1, "fee_rate": feerate}));
        pair.check_refusal("sendall", json!({"recipients": [ADDRESS], "fee_rate": feerate}));
    }
    pair.check_refusal("walletcreatefundedpsbt", json!([[], [{"data": "00"}], 0, {"fee_rate": 0}]));
    let raw = pair.ours.call("createrawtransaction", json!([[], [{ADDRESS: 1}]]));
    for options in [json!({"fee_rate": 5}), json!(null), json!(true), json!("x")] {
        // Without a feerate, one side might lack an estimate.
        if options != json!(null) && options != json!(true) {
            pair.check_refusal("fundrawtransaction", json!([raw, options]));
        } else {
            let types = pair.each(|wallet| match wallet.try_call("fundrawtransaction", json!([raw, options])) {
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
        pair.check("createrawtransaction", with(json!({"inputs": [], "outputs": {ADDRESS: 1}})));
        pair.check_refusal("createpsbt", with(json!({"inputs": [], "outputs": {ADDRESS: 1}})));
        let made = json!({"outputs": {ADDRESS: 1}, "fee_rate": 5, "psbt": true, "add_to_wallet": false});
        pair.check_refusal("send", with(made));
        let swept = json!({"recipients": [ADDRESS], "fee_rate": 5, "psbt": true, "add_to_wallet": false});
        pair.check_refusal("sendall", with(swept));
    }
    pair.check("listreceivedbylabel", json!([0, true]));
    pair.each(|wallet| wallet.call("setlabel", json!([ADDRESS, "theirs"])));
    for method in ["listreceivedbylabel", "listreceivedbyaddress"] {
        pair.check(method, json!([0, true]));
    }
    pair.check("listreceivedbyaddress", json!([0, true, false, ADDRESS]));
    let reasons = pair.each(|wallet| {
        let pay = json!({"address": ADDRESS, "amount": 1, "fee_rate": 5, "verbose": true});
        wallet.try_call("sendtoaddress", pay).map(|paid| paid["fee_reason"].clone()).unwrap_or_default()
    });
    // Both spend the only coin, or what is left of it.
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
    let (mut pair, _) = Pair::fund(host, 2);
    let [before, same] = pair.each(|wallet| told(wallet, "getbalances", &json!([])));
    assert_eq!(before, same);
    pair.each(|wallet| wallet.call("sendtoaddress", json!({"address": ADDRESS, "amount": 1, "fee_rate": 5})));
    pair.check("getbalances", json!([]));
    pair.check("getbalance", json!([]));
    assert_ne!(pair.each(|wallet| told(wallet, "getbalances", &json!([])))[0], before);
}

#[test]
fn version_3_payments_choose_coins_and_conflict_with_siblings_as_in_the_node() {
    let Some(host) = start(&[]) else { return };
    let (mut pair, mine) = Pair::fund(host, 3);
    let coins = pair.ours.call("listunspent", json!([]));
    let other = pair.ours.call("getnewaddress", json!(["", "bech32"]));
    pair.theirs.call("getnewaddress", json!(["", "bech32"]));
    let (mine, other) = (mine.as_str().unwrap(), other.as_str().unwrap());
    let mut parents = Vec::new();
    for (at, outputs) in [(0, json!([{mine: 20}, {other: 29.9}])), (1, json!([{other: 45}, {ADDRESS: 4.9}]))] {
        let inputs = json!([{"txid": coins[at]["txid"], "vout": coins[at]["vout"]}]);
        let params = json!({"inputs": inputs, "outputs": outputs, "version": 3});
        // Below release 30 neither side has the argument.
        let Ok(raw) = pair.ours.try_call("createrawtransaction", params) else { return };
        let signed = pair.ours.call("signrawtransactionwithwallet", json!([raw]));
        parents.push(pair.ours.call("sendrawtransaction", json!([signed["hex"], 0])));
    }
    // The confirmed coin, and both coins of the parent that is worth more.
    for (amount, version) in [(49, 2), (60, 2), (49, 3), (99, 3), (110, 3)] {
        let params = json!({"outputs": {ADDRESS: amount}, "version": version, "fee_rate": 5, "psbt": true, "add_to_wallet": false});
        let spent = pair.each(|wallet| {
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
    let first = pair.ours.call("send", child(0, 5))["txid"].clone();
    let sibling = pair.ours.call("send", child(1, 50))["txid"].clone();
    let conflicts = pair.each(|wallet| wallet.call("gettransaction", json!([first]))["mempoolconflicts"].clone());
    assert_eq!(conflicts, [json!([sibling]), json!([sibling])]);
    pair.check("getbalances", json!([]));
    pair.host.client().call("generatetoaddress", json!([1, ADDRESS]));
    let conflicts = pair.each(|wallet| wallet.call("gettransaction", json!([first]))["mempoolconflicts"].clone());
    assert_eq!(conflicts, [json!([]), json!([])]);
    pair.check("getbalances", json!([]));
}
