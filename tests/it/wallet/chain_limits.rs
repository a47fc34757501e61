//! Chains of unconfirmed payments beyond the mempool's limits, beside a real bitcoind with the same mempool.

use outrigger_tests::{Client, Host, HostOptions, bitcoind};
use serde_json::{Value, json};

use super::check_fee;
use super::compared::FOREIGN;
use crate::in_front::twins::Wallets;

/// The most transactions of an unconfirmed chain.
const CHAIN: usize = 25;
/// The most transactions of a cluster since Bitcoin Core 31.
const CLUSTER: usize = 64;

/// A host's wallet and its bitcoind twin, with one coin of 50 BTC, and whether the bitcoind limits clusters.
fn start(arguments: &[&'static str], setting: &str) -> Option<(Wallets, bool)> {
    bitcoind::installed()?;
    let options = HostOptions::in_front_of(&[&["-addresstype=bech32", "-fallbackfee=0.0001"], arguments].concat());
    let mut wallets = Wallets::of(Host::start_with(options.and(&[setting, "wallet.fallbackfee=0.0001"])));
    wallets.fund(1);
    let has_clusters = bitcoind::release(&mut wallets.theirs) >= 31;
    Some((wallets, has_clusters))
}

fn coins(wallet: &mut Client) -> Vec<Value> {
    let mut coins = wallet.call("listunspent", json!([0])).as_array().unwrap().clone();
    coins.sort_by_key(|coin| coin["ancestorcount"].as_u64());
    coins
}

fn inputs(coins: &[Value]) -> Value {
    coins.iter().map(|coin| json!({"txid": coin["txid"], "vout": coin["vout"]})).collect()
}

#[test]
fn wallet_refuses_payments_on_long_chains_as_bitcoind_does() {
    let Some((mut wallets, has_clusters)) = start(&[], "wallet.walletrejectlongchains=true") else { return };
    let mine = wallets.address("", "bech32");
    // A chain of payments from each other's change, with fixed inputs: the wallet might choose other coins.
    for _ in 0..if has_clusters { CLUSTER } else { CHAIN } {
        let change = coins(&mut wallets.ours).into_iter().max_by_key(|coin| coin["amount"].as_f64().map(f64::to_bits));
        let options = json!({"inputs": inputs(&[change.unwrap()]), "add_inputs": false});
        wallets.ours.call("send", json!([[{ &*mine: 0.6 }], null, "unset", null, options]));
    }
    let coins = coins(&mut wallets.ours);
    let (first, last) = (&coins[..1], &coins[coins.len() - 1..]);
    let only = json!({"add_inputs": false, "change_type": "bech32"});
    let several = [&coins[..1], last].concat();
    let mut refused = Vec::new();
    for preset in [first, last, &several] {
        let funded = json!([inputs(preset), [{FOREIGN: 0.5}], 0, only]);
        let (_, told) = check_fee(&mut wallets, "walletcreatefundedpsbt", &funded, "").unwrap_err();
        refused.push(told.split(" for tx").next().unwrap().to_owned());
        let sent = json!([[{FOREIGN: 0.5}], null, "unset", null, {"inputs": inputs(preset), "psbt": true}]);
        let _ = check_fee(&mut wallets, "send", &sent, "");
    }
    let expected = if has_clusters {
        ["too many unconfirmed transactions in cluster"; 2]
    } else {
        ["possibly too many descendants", "possibly too many unconfirmed ancestors [limit: 25]"]
    };
    assert_eq!(refused[..2], expected);
    // The order of the parents' ids determines which text comes first.
    assert!(expected.contains(&&*refused[2]), "{}", refused[2]);
    for (method, params) in [
        ("sendtoaddress", json!([FOREIGN, 0.5])),
        ("sendtoaddress", json!([FOREIGN, 500])),
        ("sendmany", json!(["", {FOREIGN: 0.5}])),
        ("walletcreatefundedpsbt", json!([[], [{FOREIGN: 0.5}], 0, {"change_type": "bech32"}])),
    ] {
        check_fee(&mut wallets, method, &params, "").unwrap_err();
    }
}

#[test]
fn wallet_pays_on_long_chains_if_the_operator_allows_it_as_bitcoind_does() {
    let Some((mut wallets, _)) = start(&["-walletrejectlongchains=0"], "wallet.walletrejectlongchains=false") else {
        return;
    };
    for _ in 0..CHAIN {
        wallets.ours.call("sendtoaddress", json!([FOREIGN, 1]));
    }
    let coins = coins(&mut wallets.ours);
    let options = json!({"add_inputs": false, "change_type": "bech32"});
    for preset in [json!([]), inputs(&coins)] {
        let mut options = options.clone();
        options["add_inputs"] = json!(preset == json!([]));
        let funded = json!([preset, [{FOREIGN: 0.5}], 0, options]);
        check_fee(&mut wallets, "walletcreatefundedpsbt", &funded, "").unwrap();
    }
}
