//! The calls measured at one size of the wallet.

use std::io::{Write, copy, sink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use outrigger_tests::{Bitcoind, Client, Host, HostOptions, NOBODY};
use serde_json::{Value, json};

use super::systems::{ARGUMENTS, SHOP, SMALL_COIN, System, ask, bitcoind_with_wallet};
use super::{Measured, Table};
use crate::{median, milliseconds};

/// A call is repeated at least AT_LEAST times, then until ENOUGH time has passed, and at most AT_MOST times.
const AT_LEAST: usize = 5;
const ENOUGH: Duration = Duration::from_secs(2);
const AT_MOST: usize = 200;
/// The largest depth that listunspent is asked for, which is its default.
const ANY_DEPTH: u32 = 9_999_999;
const LOCKED: usize = 10;
/// The inputs of a payment with many inputs.
const INPUTS: usize = 1_000;
/// The outputs of a foreign transaction: nearly the most that relay allows.
const OUTPUTS: usize = 2_900;
/// The inputs of a transaction that is too large for the mempool, and of an updated PSBT.
const LARGE: usize = 5_000;
const UPDATED: usize = 100;
/// The own unconfirmed payments, the outputs of the transaction that they spend, and how many of them are replaced.
const OWN: usize = 100;
const PARENT: usize = 2_500;
const BUMPED: usize = 20;
/// The own unconfirmed coins that are listed.
const OWN_COINS: usize = 1_000;
/// How many clients list a wallet during calls of another wallet, how long before these calls, and the time of these calls. With fewer
/// than a hundred answers the 99th percentile is the slowest.
const LISTERS: usize = 16;
const BEFORE: Duration = Duration::from_secs(1);
const BESIDE: Duration = Duration::from_secs(5);

/// Measures all calls of wallets with this size.
pub fn run(path: &str, size: usize, table: &mut Table) {
    let embedded = Host::start();
    let node = Bitcoind::start_with(path, &ARGUMENTS).0;
    let in_front = Host::start_before(tempfile::tempdir().unwrap(), HostOptions::default(), Some(node));
    let [ours, before] = [embedded.client(), in_front.client()].map(|client| System::new(client, size));
    let (_bitcoind, theirs) = bitcoind_with_wallet(path, size);
    let mut bench = Bench { systems: [ours, before, theirs], size, table };
    let contents = bench.systems.each_mut().map(System::content);
    assert!(contents.iter().all(|content| *content == contents[0]), "{contents:?}");
    assert_eq!(contents[0].0, json!(size));
    bench.reads();
    bench.one_transaction();
    bench.locks();
    bench.labels();
    bench.backups();
    bench.payments("sendtoaddress");
    bench.many_inputs();
    bench.large_transaction();
    bench.update();
    bench.own_payments();
    bench.own_coins();
    bench.beside_listings();
    bench.stranger();
}

fn repeated(mut once: impl FnMut(usize) -> Result<Duration, String>) -> Result<f64, String> {
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < AT_LEAST || (times.len() < AT_MOST && began.elapsed() < ENOUGH) {
        times.push(once(times.len())?);
    }
    Ok(milliseconds(median(times)))
}

fn timed(client: &mut Client, method: &str, params: &Value) -> Result<Duration, String> {
    let request = json!({"jsonrpc": "1.0", "id": 1, "method": method, "params": params}).to_string();
    let began = Instant::now();
    let reply = client.post(&request);
    let took = began.elapsed();
    if reply.status == 200 {
        return Ok(took);
    }
    let answer: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let told = answer["error"]["message"].as_str();
    Err(told.map_or_else(|| format!("status {}", reply.status), str::to_owned))
}

/// The three systems with wallets of this size.
struct Bench<'a> {
    systems: [System; 3],
    size: usize,
    table: &'a mut Table,
}

impl Bench<'_> {
    /// Measures one time on each system.
    fn row(&mut self, what: &str, measure: impl FnMut(&mut System) -> Result<f64, String>) {
        let measured = self.systems.each_mut().map(measure);
        self.table.print(what, self.size, &measured);
    }

    /// Measures two times on each system.
    fn two_rows(&mut self, what: [String; 2], measure: impl FnMut(&mut System) -> Result<[f64; 2], String>) {
        let both = self.systems.each_mut().map(measure);
        for (at, what) in what.iter().enumerate() {
            let measured = both.each_ref().map(|times| times.clone().map(|times| times[at]));
            self.table.print(what, self.size, &measured);
        }
    }

    fn call(&mut self, what: &str, method: &str, params: &Value) {
        self.row(what, |system| repeated(|_| timed(&mut system.wallet, method, params)));
    }

    fn reads(&mut self) {
        let ten_coins = json!([1, ANY_DEPTH, [], true, {"maximumCount": 10}]);
        for (what, method, params) in [
            ("getbalances", "getbalances", json!([])),
            ("getwalletinfo", "getwalletinfo", json!([])),
            ("listunspent, maximumCount 10", "listunspent", ten_coins),
            ("listunspent, everything", "listunspent", json!([])),
            ("listtransactions, 10", "listtransactions", json!(["*", 10])),
            ("listsinceblock, everything", "listsinceblock", json!([])),
            ("getreceivedbylabel", "getreceivedbylabel", json!([SHOP])),
            ("getaddressesbylabel", "getaddressesbylabel", json!([SHOP])),
            ("listlabels", "listlabels", json!([])),
        ] {
            self.call(what, method, &params);
        }
    }

    /// Calls with one transaction from the middle of the history.
    fn one_transaction(&mut self) {
        let middle = json!(["*", 1, self.size / 2]);
        self.row("gettransaction", |system| {
            let listed = ask(&mut system.wallet, "listtransactions", middle.clone())?;
            let params = json!([listed[0]["txid"]]);
            repeated(|_| timed(&mut system.wallet, "gettransaction", &params))
        });
    }

    fn locks(&mut self) {
        let some = json!([1, ANY_DEPTH, [], true, {"maximumCount": self.size.div_ceil(LOCKED)}]);
        self.row(&format!("listlockunspent, one in {LOCKED} coins locked"), |system| {
            let listed = ask(&mut system.wallet, "listunspent", some.clone())?;
            let coin = |listed: &Value| json!({"txid": listed["txid"], "vout": listed["vout"]});
            let coins: Vec<Value> = listed.as_array().unwrap().iter().map(coin).collect();
            ask(&mut system.wallet, "lockunspent", json!([false, coins]))?;
            let time = repeated(|_| timed(&mut system.wallet, "listlockunspent", &json!([])));
            system.wallet.call("lockunspent", json!([true]));
            time
        });
    }

    /// Calls with a label, whose addresses got half of the payments.
    fn labels(&mut self) {
        self.row("setlabel of an address with half of the payments", |system| {
            repeated(|number| {
                let params = json!([system.popular, format!("popular {}", number % 2)]);
                timed(&mut system.wallet, "setlabel", &params)
            })
        });
    }

    fn backups(&mut self) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backup");
        self.row("backupwallet", |system| {
            repeated(|_| {
                let time = timed(&mut system.wallet, "backupwallet", &json!([file]));
                // No file exists if the call was refused.
                let _ = std::fs::remove_file(&file);
                time
            })
        });
    }

    /// Payments, confirmed by a block.
    fn payments(&mut self, what: &str) {
        let params = json!({"address": NOBODY, "amount": "0.0001", "fee_rate": 2});
        self.row(what, |system| {
            let time = repeated(|_| timed(&mut system.wallet, "sendtoaddress", &params));
            system.funds.client.call("generatetoaddress", json!([1, NOBODY]));
            time
        });
    }

    /// A payment that spends many coins, and the block that confirms it. An earlier block pays the coins to the wallet.
    fn many_inputs(&mut self) {
        let what = [
            format!("sendrawtransaction of {INPUTS} inputs of the wallet"),
            "the block that confirms it, until getwalletinfo answers".to_owned(),
        ];
        self.two_rows(what, |system| {
            let mut confirmations = Vec::new();
            let sent = repeated(|_| {
                let transaction = system.gathering(INPUTS)?;
                let sent = timed(&mut system.funds.client, "sendrawtransaction", &json!([transaction]))?;
                let mined = timed(&mut system.funds.client, "generatetoaddress", &json!([1, NOBODY]))?;
                confirmations.push(mined + timed(&mut system.wallet, "getwalletinfo", &json!([]))?);
                Ok(sent)
            })?;
            Ok([sent, milliseconds(median(confirmations))])
        });
    }

    /// The block with a transaction that spends more coins than relay allows.
    fn large_transaction(&mut self) {
        let what = format!("the block with a transaction of {LARGE} inputs of the wallet, until getwalletinfo answers");
        self.row(&what, |system| {
            repeated(|_| {
                let transaction = system.gathering(LARGE)?;
                let mined = timed(&mut system.funds.client, "generateblock", &json!([NOBODY, [transaction]]))?;
                Ok(mined + timed(&mut system.wallet, "getwalletinfo", &json!([]))?)
            })
        });
    }

    fn update(&mut self) {
        self.row(&format!("utxoupdatepsbt of {UPDATED} inputs"), |system| {
            let coins = system.coins(UPDATED, UPDATED, SMALL_COIN);
            let inputs: Vec<Value> =
                coins.iter().map(|coin| json!({"txid": coin.txid.to_string(), "vout": coin.vout})).collect();
            let psbt = ask(&mut system.funds.client, "createpsbt", json!([inputs, [{NOBODY: "0.001"}]]))?;
            repeated(|_| timed(&mut system.funds.client, "utxoupdatepsbt", &json!([psbt])))
        });
    }

    /// Calls with unconfirmed payments of the wallet, and the block that confirms them.
    fn own_payments(&mut self) {
        let what = ["getbalances", "bumpfee"]
            .map(|call| format!("{call}, with {OWN} own unconfirmed payments from a transaction of {PARENT} outputs"));
        self.two_rows(what, |system| {
            let payments = system.pay_often(OWN, PARENT)?;
            let balances = repeated(|_| timed(&mut system.wallet, "getbalances", &json!([])))?;
            let bump = |txid| timed(&mut system.wallet, "bumpfee", &json!([txid, {"fee_rate": 18}]));
            let bumped = payments.iter().take(BUMPED).map(bump).collect::<Result<Vec<_>, _>>()?;
            system.funds.client.call("generatetoaddress", json!([1, NOBODY]));
            Ok([balances, milliseconds(median(bumped))])
        });
    }

    fn own_coins(&mut self) {
        self.row(&format!("listunspent of {OWN_COINS} own unconfirmed coins alone"), |system| {
            system.split(OWN_COINS)?;
            let time = repeated(|_| timed(&mut system.wallet, "listunspent", &json!([0, 0])));
            system.funds.client.call("generatetoaddress", json!([1, NOBODY]));
            time
        });
    }

    /// Calls of another wallet while many clients list this one.
    fn beside_listings(&mut self) {
        let size = self.size;
        let what = ["p50", "p99"]
            .map(|part| format!("getbalances of another wallet beside {LISTERS} clients of listtransactions, {part}"));
        self.two_rows(what, |system| {
            let everything = json!(["*", size]);
            timed(&mut system.wallet, "listtransactions", &everything)?;
            ask(&mut system.funds.client, "createwallet", json!(["another"]))?;
            let mut another = system.wallet.wallet("another");
            let times = while_listed(&system.wallet, &everything, || balances(&mut another));
            system.funds.client.call("unloadwallet", json!(["another"]));
            let mut times = times?;
            times.sort_unstable();
            Ok([50, 99].map(|percent| milliseconds(times[times.len() * percent / 100])))
        });
    }

    /// Calls with an unconfirmed foreign transaction that has many outputs to one address of the wallet.
    fn stranger(&mut self) {
        let beside = format!("with {OUTPUTS} unconfirmed coins of a stranger's");
        let [balances, coins, payment] =
            ["getbalances", "listunspent, minconf 0", "sendtoaddress"].map(|call| format!("{call}, {beside}"));
        let sent = self.systems.each_mut().map(|system| system.stranger_pays(OUTPUTS));
        if sent.iter().any(Result::is_err) {
            let refused: Measured = sent.map(|sent| Err(sent.err().unwrap_or_else(|| "another refused".to_owned())));
            [balances, coins, payment].iter().for_each(|what| self.table.print(what, self.size, &refused));
            return;
        }
        self.call(&balances, "getbalances", &json!([]));
        self.call(&coins, "listunspent", &json!([0]));
        self.payments(&payment);
    }
}

/// The times of a wallet's getbalances calls, made for a while.
fn balances(wallet: &mut Client) -> Result<Vec<Duration>, String> {
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < AT_LEAST || began.elapsed() < BESIDE {
        times.push(timed(wallet, "getbalances", &json!([]))?);
    }
    Ok(times)
}

/// Runs `act` while many clients list a wallet.
fn while_listed<T>(wallet: &Client, params: &Value, act: impl FnOnce() -> T) -> T {
    let body = json!({"jsonrpc": "1.0", "id": 1, "method": "listtransactions", "params": params}).to_string();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..LISTERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    discard(wallet, &body);
                }
            });
        }
        thread::sleep(BEFORE);
        let outcome = act();
        stop.store(true, Ordering::Relaxed);
        outcome
    })
}

/// Makes a call on a new connection, and discards its answer as it reads it.
fn discard(wallet: &Client, body: &str) {
    let request = wallet.request(body).replacen("\r\n", "\r\nConnection: close\r\n", 1);
    let mut stream = wallet.connect();
    // A server at its limits may cut off an answer.
    let _ = stream.write_all(request.as_bytes()).and_then(|()| copy(&mut stream, &mut sink()));
}
