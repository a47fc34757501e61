//! estimatesmartfee on the embedded chain: the same transactions and blocks give the same estimates as a real bitcoind.

use std::collections::VecDeque;

use bitcoin::{Amount, OutPoint, Transaction};
use outrigger_tests::pair::{COIN, Pair, spend};
use outrigger_tests::{Client, Host, HostOptions};
use serde_json::{Value, json};

/// How many blocks make enough coins mature.
const BLOCKS: u64 = 112;
/// How many outputs a coin is split into, and what each is worth.
const SPLIT: u64 = 400;
const VALUE: Amount = Amount::from_sat(10_000_000);
/// Targets: of each horizon, and beyond what can be estimated for.
const TARGETS: [u32; 12] = [1, 2, 3, 5, 6, 12, 13, 24, 25, 48, 49, 1008];

/// A confirmed output for each transaction to come.
struct Outputs(VecDeque<OutPoint>);

impl Outputs {
    fn of(pair: &mut Pair, coins: u64) -> Self {
        let split = |pair: &mut Pair| spend(&[pair.coin()], &vec![VALUE; SPLIT as usize]);
        assert!(VALUE * SPLIT <= COIN);
        let transactions: Vec<Transaction> = (0..coins).map(|_| split(pair)).collect();
        for transaction in &transactions {
            pair.mine_only(std::slice::from_ref(transaction));
        }
        let outputs = |transaction: &Transaction| {
            let txid = transaction.compute_txid();
            (0..u32::try_from(SPLIT).unwrap()).map(move |vout| OutPoint::new(txid, vout))
        };
        Self(transactions.iter().flat_map(outputs).collect())
    }

    /// A transaction of its own that pays this feerate, in satoshi per virtual byte.
    fn transaction(&mut self, feerate: u64) -> Transaction {
        pay(self.0.pop_front().unwrap(), VALUE, feerate)
    }
}

/// Spends an output at a feerate, in satoshi per virtual byte.
fn pay(outpoint: OutPoint, value: Amount, feerate: u64) -> Transaction {
    let size = spend(&[outpoint], &[value]).vsize() as u64;
    spend(&[outpoint], &[value - Amount::from_sat(size * feerate)])
}

/// Transactions that wait for a block, and when each is to be confirmed; parents before children.
struct Waiting(Vec<(u64, Transaction)>);

impl Waiting {
    fn builds_on(child: &Transaction, parent: &Transaction) -> bool {
        let txid = parent.compute_txid();
        child.input.iter().any(|input| input.previous_output.txid == txid)
    }

    /// Takes those that are due, except where what they build on is not.
    fn take_due(&mut self, block: u64) -> Vec<Transaction> {
        let (mut due, mut rest) = (Vec::new(), Vec::new());
        for (when, transaction) in self.0.drain(..) {
            let is_held_up = rest.iter().any(|(_, parent)| Self::builds_on(&transaction, parent));
            if when <= block && !is_held_up { due.push(transaction) } else { rest.push((when, transaction)) }
        }
        self.0 = rest;
        due
    }

    /// Takes one that is due no sooner, builds on no other, and that no other builds on.
    fn take_childless(&mut self, block: u64) -> Option<Transaction> {
        let is_alone = |one: &Transaction| {
            let linked = |other: &Transaction| Self::builds_on(other, one) || Self::builds_on(one, other);
            !self.0.iter().any(|(_, other)| linked(other))
        };
        let position = self.0.iter().position(|(when, one)| *when >= block && is_alone(one))?;
        Some(self.0.remove(position).1)
    }
}

/// Compares the estimates for all targets. Gives how many feerates there were.
#[track_caller]
fn same_estimates(pair: &Pair) -> usize {
    let mut feerates = 0;
    for target in TARGETS {
        for mode in [json!("economical"), json!("conservative"), Value::Null] {
            let told = pair.same("estimatesmartfee", &json!([target, mode]));
            feerates += usize::from(told.get("feerate").is_some());
        }
    }
    feerates
}

#[test]
fn estimatesmartfee_tells_what_bitcoind_tells_of_the_same_chain() {
    let Some(mut pair) = Pair::start(HostOptions::default(), &[], BLOCKS) else { return };
    let mut outputs = Outputs::of(&mut pair, 6);
    assert_eq!(same_estimates(&pair), 0);
    let mut numbers = (1_u64..).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33);
    let mut waiting = Waiting(Vec::new());
    let (mut compared, mut last) = (0, Vec::new());
    for block in 0..140_u64 {
        for _ in 0..12 {
            let number = numbers.next().unwrap();
            let feerate = 2 + number % 60;
            let transaction = outputs.transaction(feerate);
            pair.send(&transaction);
            // The better it pays, the sooner it is confirmed; some never are.
            let delay = match feerate {
                45.. => number / 100 % 2,
                20.. => number / 100 % 6,
                6.. => number / 100 % 30,
                _ => 300,
            };
            waiting.0.push((block + delay, transaction));
        }
        if block % 5 == 0 {
            // One that builds on another does not count, and neither does a package.
            let parent = waiting.0.last().unwrap().1.clone();
            let child = pay(OutPoint::new(parent.compute_txid(), 0), parent.output[0].value, 30);
            pair.send(&child);
            waiting.0.push((block + 40, child));
            pair.send_package(&[outputs.transaction(50)]);
        }
        if block % 7 == 3 {
            // One is replaced, another conflicts with a block.
            if let Some(old) = waiting.take_childless(block + 2) {
                let new = pay(old.input[0].previous_output, VALUE, 90);
                pair.send(&new);
                waiting.0.push((block, new));
            }
            if let Some(doomed) = waiting.take_childless(block + 100) {
                waiting.0.push((block, pay(doomed.input[0].previous_output, VALUE, 33)));
            }
        }
        let mut due = waiting.take_due(block);
        if block % 50 == 20 {
            // The host and the node go to another branch of one more block, which confirms what the former tip did.
            pair.fork();
            pair.mine_only(&[]);
            due = [last, due].concat();
        }
        pair.mine_only(&due);
        last = due;
        if block % 4 == 0 {
            compared += same_estimates(&pair);
        }
    }
    assert!(compared > 500, "{compared}");
    // While the chain is behind the clock, nothing counts.
    pair.pass(5 * 3_600);
    for _ in 0..30 {
        pair.send(&outputs.transaction(500));
    }
    pair.mine();
    same_estimates(&pair);
    // What was counted is kept, and what was in the mempool counts as gone.
    for _ in 0..3 {
        pair.send(&outputs.transaction(40));
        pair.mine_only(&[]);
    }
    pair.node.stop();
    pair.node.start_again();
    pair.host = pair.host.restart();
    pair.pass(1);
    assert!(same_estimates(&pair) > 12);
}

/// Somebody else's address.
const STRANGER: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
/// How many rounds of payments make a history, and for how many blocks the cheap ones wait.
const ROUNDS: usize = 40;
const WAIT: usize = 8;

/// Checks that a payment in the mempool pays an estimate, which is rounded up to whole satoshi.
#[track_caller]
fn pays_estimate(client: &mut Client, txid: &Value, estimate: &Value) {
    let entry = client.call("getmempoolentry", json!([txid]));
    let paid = entry["fees"]["base"].as_f64().unwrap() / entry["vsize"].as_f64().unwrap() * 1e3;
    let estimated = estimate["feerate"].as_f64().unwrap();
    assert!((paid / estimated - 1.0).abs() < 0.02, "{paid} is paid where {estimate} is estimated");
}

#[test]
fn sendtoaddress_pays_the_estimate_of_the_embedded_chain_for_its_target() {
    let host = Host::start();
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    let own = wallet.call("getnewaddress", json!([]));
    client.call("generatetoaddress", json!([100 + 2 * ROUNDS + 10, own]));
    let mut waiting = VecDeque::new();
    for _ in 0..ROUNDS {
        let mut pay = |feerate: u32| {
            wallet.call("sendtoaddress", json!([STRANGER, 1, "", "", false, true, null, "unset", null, feerate]))
        };
        let mut block = vec![pay(100)];
        waiting.push_back(pay(10));
        if waiting.len() > WAIT {
            block.extend(waiting.pop_front());
        }
        client.call("generateblock", json!([STRANGER, block]));
    }
    let [soon, usual, late] = [2, 6, 20].map(|target| client.call("estimatesmartfee", json!([target, "economical"])));
    let feerate = |estimate: &Value| estimate["feerate"].as_f64().unwrap_or_else(|| panic!("{estimate}"));
    assert!(feerate(&soon) > 3.0 * feerate(&late), "{soon} {usual} {late}");
    for (target, estimate) in [(2, &soon), (20, &late)] {
        let params = json!([STRANGER, 1, "", "", false, true, target, "economical"]);
        pays_estimate(&mut client, &wallet.call("sendtoaddress", params), estimate);
    }
    // Without a target, for the one of `txconfirmtarget`.
    pays_estimate(&mut client, &wallet.call("sendtoaddress", json!([STRANGER, 1])), &usual);
    let sent = wallet.call("send", json!([{STRANGER: 1}, 2, "economical"]));
    pays_estimate(&mut client, &sent["txid"], &soon);
}
