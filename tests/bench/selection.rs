//! Coin selection: the same payments from wallets with the same coins, funded by this host and by bitcoind.
//!
//! The time is that of fundrawtransaction over one kept-alive connection, to the last byte of its answer: reading the coins, choosing
//! among them, and adding change. Each coin has an address of its own.

use std::time::Instant;

use outrigger_tests::bitcoind::Bitcoind;
use outrigger_tests::{Client, Host, XPRV};
use serde_json::{Map, Value, json};

use crate::signing::{MINER_ADDRESS, MINER_KEY, mine};
use crate::{median, milliseconds, print_row};

/// The coins of a wallet.
const COINS: usize = 20_000;
/// The coins that one transaction makes.
const PER_TRANSACTION: usize = 2_000;
/// How often a payment is funded.
const REPEATS: usize = 11;
/// The blocks until the first coinbases are mature.
const MATURITY: usize = 100;

/// Runs the section.
pub fn run(bitcoind: Option<&str>, coins: Option<usize>) {
    let coins = coins.unwrap_or(COINS);
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    let host = Host::start();
    let theirs = bitcoind.map(|path| Bitcoind::start_with(path, &["-addresstype=bech32"]).0);
    let clients = std::iter::once(host.client()).chain(theirs.as_ref().map(Bitcoind::client)).collect();
    let mut bench = Bench { clients };
    let mut wallets = bench.fund(coins);
    for (what, amount, feerate) in [
        ("a small payment", "0.001", 5),
        ("a small payment at a high feerate", "0.001", 50),
        ("a payment of some 200 of them", "0.5", 15),
    ] {
        let raw = bench.clients[0].call("createrawtransaction", json!([[], [{MINER_ADDRESS: amount}]]));
        let options = json!({"fee_rate": feerate, "changeAddress": MINER_ADDRESS});
        let times = wallets.iter_mut().map(|wallet| {
            let mut once = || {
                let began = Instant::now();
                wallet.call("fundrawtransaction", json!([raw, options]));
                began.elapsed()
            };
            once();
            median((0..REPEATS).map(|_| once()).collect())
        });
        let times: Vec<_> = times.collect();
        let what = format!("fundrawtransaction of {coins} coins: {what}");
        print_row(&what, "ms", milliseconds(times[0]), times.get(1).copied().map(milliseconds));
    }
    impossible(&mut bench, &mut wallets, coins);
}

/// A payment that needs more inputs than a transaction may have. It is tried once, since bitcoind takes long to refuse it.
fn impossible(bench: &mut Bench, wallets: &mut [Client], coins: usize) {
    let balance = wallets[0].call("getbalance", json!([])).as_f64().unwrap();
    let amount = format!("{:.8}", balance * 0.9);
    let raw = bench.clients[0].call("createrawtransaction", json!([[], [{MINER_ADDRESS: amount}]]));
    let times = wallets.iter_mut().map(|wallet| {
        let began = Instant::now();
        wallet.refused("fundrawtransaction", json!([raw, {"changeAddress": MINER_ADDRESS, "fee_rate": 1}]));
        milliseconds(began.elapsed())
    });
    let times: Vec<f64> = times.collect();
    let what = format!("fundrawtransaction of {coins} coins: a payment of nine tenths of them, which is refused");
    print_row(&what, "ms", times[0], times.get(1).copied());
}

struct Bench {
    /// Ours, then bitcoind's if there is one.
    clients: Vec<Client>,
}

impl Bench {
    /// Makes a wallet in each node with these coins, of 0.0005 to 0.0045 BTC each.
    fn fund(&mut self, coins: usize) -> Vec<Client> {
        let descriptor = self.clients[0].with_checksum(&format!("wpkh({XPRV}/84h/1h/0h/0/*)"));
        let create = |client: &mut Client| {
            let mut wallet = client.create_wallet("w", json!({"blank": true}));
            wallet.import(&json!([{"desc": descriptor, "range": [0, coins], "timestamp": "now"}]));
            wallet
        };
        let wallets = self.clients.iter_mut().map(create).collect();
        let transactions = coins.div_ceil(PER_TRANSACTION);
        mine(&mut self.clients, MATURITY + transactions);
        for number in 0..transactions {
            let first = number * PER_TRANSACTION;
            let last = (first + PER_TRANSACTION).min(coins) - 1;
            let addresses = self.clients[0].call("deriveaddresses", json!([descriptor, [first, last]]));
            let hash = self.clients[0].call("getblockhash", json!([number + 1]));
            let source = self.clients[0].call("getblock", json!([hash]))["tx"][0].clone();
            let value = |place: usize| format!("0.{:08}", 50_000 + place * 7_919 % 400_000);
            let outputs = addresses.as_array().unwrap().iter().enumerate();
            let outputs: Map<String, Value> =
                outputs.map(|(place, to)| (to.as_str().unwrap().to_owned(), json!(value(first + place)))).collect();
            let raw = self.clients[0].call("createrawtransaction", json!([[{"txid": source, "vout": 0}], outputs]));
            let signed = self.clients[0].call("signrawtransactionwithkey", json!([raw, [MINER_KEY]]));
            self.clients[0].call("sendrawtransaction", json!([signed["hex"], 0]));
            mine(&mut self.clients, 1);
        }
        // Confirms all of them.
        mine(&mut self.clients, 6);
        wallets
    }
}
