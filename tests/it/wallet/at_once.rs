//! Concurrent payments: those of one wallet never choose the same coin.

use std::collections::HashSet;

use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

use super::compared::FOREIGN;

/// Makes each call `times` times on a thread of its own, all at the same time. Returns the answers.
fn at_once(host: &Host, name: &str, times: usize, calls: &[(&'static str, Value)]) -> Vec<Value> {
    std::thread::scope(|scope| {
        let repeat = |(method, params): &(&'static str, Value)| {
            let (mut client, method, params) = (host.client().wallet(name), *method, params.clone());
            scope.spawn(move || (0..times).map(|_| client.call(method, params.clone())).collect::<Vec<_>>())
        };
        let threads: Vec<_> = calls.iter().map(repeat).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn check_distinct(transactions: &[Value]) {
    let mut spent = HashSet::new();
    for input in transactions.iter().flat_map(|transaction| transaction["vin"].as_array().unwrap()) {
        assert!(spent.insert(format!("{}:{}", input["txid"], input["vout"])), "{input} is spent twice");
    }
}

#[test]
fn payments_of_a_wallet_at_once_never_choose_the_same_coin() {
    let host = Host::start();
    let wallets = [("paying", 12), ("locking", 30), ("bumping", 4)].map(|(name, coins)| {
        let mut wallet = host.new_wallet(name);
        wallet.mine(coins);
        wallet
    });
    host.client().call("generatetoaddress", json!([100, FOREIGN]));
    let [paying, locking, bumping] = wallets;
    check_all_are_made(&host, paying);
    check_locked_coins_are_left_alone(&host, locking);
    host.client().call("generatetoaddress", json!([1, FOREIGN]));
    check_one_bump(&host, bumping);
}

fn check_all_are_made(host: &Host, mut wallet: Client) {
    let mine = wallet.call("getnewaddress", json!([]));
    // Other payments may spend sendall's own unconfirmed outputs, in chains shorter than the mempool's limit.
    let calls = [
        ("sendtoaddress", json!([FOREIGN, 1])),
        ("send", json!([{FOREIGN: 1}])),
        ("sendall", json!([[mine]])),
        ("sendmany", json!(["", {FOREIGN: 1}])),
    ];
    let answers = at_once(host, "paying", 4, &calls);
    let txids: Vec<&Value> = answers.iter().map(|answer| answer.get("txid").unwrap_or(answer)).collect();
    let pool = wallet.call("getrawmempool", json!([]));
    assert_eq!(pool.as_array().unwrap().len(), txids.len());
    let mut made = Vec::new();
    for txid in txids {
        let payment = wallet.call("gettransaction", json!([txid, true, true]));
        assert_eq!((&payment["confirmations"], &payment["walletconflicts"]), (&json!(0), &json!([])), "{payment}");
        made.push(payment["decoded"].clone());
    }
    check_distinct(&made);
}

fn check_locked_coins_are_left_alone(host: &Host, mut wallet: Client) {
    let raw = wallet.call("createrawtransaction", json!([[], [{FOREIGN: 30}]]));
    let lock = json!({"lockUnspents": true});
    // Each payment takes a coin of its own.
    let calls = [
        ("fundrawtransaction", json!([raw, lock])),
        ("walletcreatefundedpsbt", json!([[], [{FOREIGN: 30}], 0, lock])),
        ("send", json!({"outputs": {FOREIGN: 30}, "lock_unspents": true, "add_to_wallet": false})),
        ("sendtoaddress", json!([FOREIGN, 30])),
    ];
    let mut decode = |answer: &Value| match (&answer["hex"], &answer["psbt"], answer) {
        (Value::String(hex), _, _) => wallet.call("decoderawtransaction", json!([hex])),
        (_, Value::String(psbt), _) => wallet.call("decodepsbt", json!([psbt]))["tx"].clone(),
        (_, _, txid) => wallet.call("gettransaction", json!([txid, true, true]))["decoded"].clone(),
    };
    let made: Vec<Value> = at_once(host, "locking", 5, &calls).iter().map(&mut decode).collect();
    check_distinct(&made);
}

/// One of several concurrent bumpfee calls replaces the payment.
fn check_one_bump(host: &Host, mut wallet: Client) {
    let paid = wallet.call("sendtoaddress", json!([FOREIGN, 1]));
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let bump = || {
            let (mut client, paid) = (host.client().wallet("bumping"), paid.clone());
            scope.spawn(move || client.try_call("bumpfee", json!([paid])).is_ok())
        };
        let threads: Vec<_> = std::iter::repeat_with(bump).take(3).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|bumped| **bumped).count(), 1);
    assert_eq!(wallet.call("getrawmempool", json!([])).as_array().unwrap().len(), 1);
}
