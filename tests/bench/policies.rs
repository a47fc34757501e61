//! What policies of wallets cost: signrawtransactionwithwallet of two P2WPKH inputs with and without one.

use std::time::Instant;

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, built};
use serde_json::{Value, json};

use crate::{measure, median};

const CALLS: usize = 3_000;
const TURNS: usize = 5;
/// How many transactions are signed that need a reservation of their own.
const RESERVED: usize = 300;

/// A policy: its plugin, and a line of the plugin's section.
type Policy = (&'static str, &'static str);

const TRUSTED: &str = "trusted = true";
const ISOLATED: &str = "isolated = true";

pub fn run() {
    println!("| what | us | more |\n|---|---|---|");
    let row = |what: &str, one: f64, plain: f64| println!("| {what} | {one:.1} | {:.1} |", one - plain);
    let plain = signed(&[], false);
    row("two inputs signed without a policy, on a network thread", plain, plain);
    // A guarded wallet signs on a thread of the pool, so the cost of a policy is that of another one.
    let one = signed(&[("judge", TRUSTED)], false);
    row("the same with a policy that keeps nothing, on a thread of the pool", one, plain);
    let reserved = signed(&[("spending_guard", TRUSTED)], false);
    row("the same with the spending guard that has reserved enough", reserved, plain);
    for (what, section) in [("that keeps nothing", TRUSTED), ("in a process of its own", ISOLATED)] {
        let two = signed(&[("spending_guard", TRUSTED), ("judge", section)], false);
        row(&format!("the guard, and another policy {what}, beside the guard alone"), two, reserved);
    }
    for (what, section) in [("", TRUSTED), (" in a process of its own", ISOLATED)] {
        let reserving = signed(&[("spending_guard", section)], true);
        row(&format!("the spending guard{what} that makes a reservation, on disk"), reserving, plain);
    }
}

/// The median of the medians of several hosts, in microseconds.
fn signed(policies: &[Policy], reserves: bool) -> f64 {
    let mut turns: Vec<f64> = (0..TURNS).map(|_| once(policies, reserves)).collect();
    turns.sort_by(f64::total_cmp);
    turns[TURNS / 2]
}

fn configured((plugin, section): &Policy) -> String {
    let file = built().library(&format!("outrigger_{plugin}")).display().to_string();
    let (grants, options) = match *plugin {
        "judge" => ("", "silent = true"),
        _ => ("\"store/1\", \"chain/1\", \"wallet-read/1\"", "limit = 2_000_000_000_000_000"),
    };
    let id = plugin.replace('_', "-");
    format!(
        "[[plugins]]\nfile = {file:?}\nsandbox = \"best-effort\"\ngrants = [{grants}]\n{section}\noptions = {{ {options} }}\n\
         [[wallet.policies]]\nwallets = [\"hot\"]\nplugin = {id:?}\n"
    )
}

fn once(policies: &[Policy], reserves: bool) -> f64 {
    let policies: String = policies.iter().map(configured).collect();
    let host = Host::start_with(HostOptions::with_groups(&policies));
    let mut wallet = host.new_wallet("hot");
    wallet.mine(2);
    wallet.call("generatetoaddress", json!([100, ELSEWHERE]));
    if !reserves {
        let params = json!([raw(&mut wallet, 0)]);
        return measure(&mut wallet, CALLS, "signrawtransactionwithwallet", &params).0.as_secs_f64() * 1e6;
    }
    let raws: Vec<Value> = (0..RESERVED).map(|more| raw(&mut wallet, more)).collect();
    let sign = |raw: Value| {
        let request = json!({"id": 1, "method": "signrawtransactionwithwallet", "params": [raw]}).to_string();
        let began = Instant::now();
        let reply = wallet.post(&request);
        assert_eq!(reply.status, 200, "{}", reply.body);
        began.elapsed()
    };
    median(raws.into_iter().map(sign).collect()).as_secs_f64() * 1e6
}

/// A transaction of the wallet's two coins that gives away some satoshi more.
fn raw(wallet: &mut Client, more: usize) -> Value {
    let coins = wallet.call("listunspent", json!([]));
    let input = |coin: &Value| json!({"txid": coin["txid"], "vout": coin["vout"]});
    let inputs: Vec<Value> = coins.as_array().unwrap().iter().map(input).collect();
    assert_eq!(inputs.len(), 2);
    let (given, own) = (1.0 + more as f64 / 1e6, coins[0]["address"].as_str().unwrap());
    let outputs = json!([{ELSEWHERE: format!("{given:.8}")}, {own: format!("{:.8}", 98.9 - given)}]);
    wallet.call("createrawtransaction", json!([inputs, outputs]))
}
