//! A long mixed load, and what it leaves behind in memory and open files.
//!
//! Connections that are kept call for the tip, transactions, lists, templates and signatures; others come and go, in the
//! middle of a call too; long polls are left waiting; blocks come; a wallet is made, imports a descriptor with a rescan, and is
//! unloaded. In the first sixth of the time every block pays the wallet and the wallet pays itself; then it stays as it is, so
//! that what grows from there on is no wallet. A line a minute tells what the process holds, and at the end what it held in
//! the middle of each third of the time without growth.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use outrigger_tests::{Client, Host, HostOptions};
use serde_json::{Value, json};

/// How long, unless the command says otherwise.
const MINUTES: u64 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// The wallet grows in one minute of so many, at the beginning.
const GROWTH: u64 = 6;
/// An address that is nobody's, which later blocks pay.
const NOBODY: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
/// How often a block comes, and how often a wallet is made.
const BLOCK_EVERY: Duration = Duration::from_millis(500);
const WALLET_EVERY: Duration = Duration::from_secs(5);
/// How long each kept connection rests after a round of calls. The load is long, not heavy.
const PAUSE: Duration = Duration::from_millis(20);
/// The connections that are kept, and those that come and go.
const KEPT: usize = 4;
const LEAVING: usize = 2;

struct Held {
    /// Memory that is its own, in KiB: no page of a file.
    own_kib: u64,
    files: usize,
    threads: u64,
}

impl Held {
    fn of(process: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let number = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        Self { own_kib: number("RssAnon:"), files, threads: number("Threads:") }
    }
}

/// What all threads of the load share.
struct Load {
    host: Host,
    address: Value,
    calls: AtomicU64,
    grows: AtomicBool,
    done: AtomicBool,
}

pub fn run(minutes: Option<u64>) {
    let host = Host::start_with(HostOptions::default());
    let address = host.new_wallet("w").call("getnewaddress", json!([]));
    host.client().call("generatetoaddress", json!([101, address]));
    let load =
        Load { host, address, calls: AtomicU64::new(0), grows: AtomicBool::new(true), done: AtomicBool::new(false) };
    println!("| minute | calls | own memory, MiB | files | threads |\n|---|---|---|---|---|");
    std::thread::scope(|scope| {
        let load = &load;
        for _ in 0..KEPT {
            scope.spawn(|| load.keep_calling());
        }
        for _ in 0..LEAVING {
            scope.spawn(|| load.come_and_go());
        }
        scope.spawn(|| load.mine());
        scope.spawn(|| load.import());
        let (minutes, mut own) = (minutes.unwrap_or(MINUTES), Vec::new());
        for minute in 1..=minutes {
            std::thread::sleep(MINUTE);
            let grows = minute * GROWTH < minutes;
            load.grows.store(grows, Ordering::Relaxed);
            let held = Held::of(load.host.process_id());
            let (calls, mib) = (load.calls.load(Ordering::Relaxed), held.own_kib as f64 / 1024.0);
            println!("| {minute} | {calls} | {mib:.1} | {} | {} |", held.files, held.threads);
            if !grows {
                own.push(mib);
            }
        }
        let thirds = own.chunks(own.len().div_ceil(3).max(1));
        let medians: Vec<String> = thirds.map(|third| format!("{:.1}", median(third))).collect();
        println!("\nown memory while the wallet did not grow, median of each third: {} MiB", medians.join(", "));
        load.done.store(true, Ordering::Relaxed);
    });
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Load {
    fn goes_on(&self) -> bool {
        !self.done.load(Ordering::Relaxed)
    }

    fn call(&self, client: &mut Client, method: &str, params: Value) -> Value {
        self.calls.fetch_add(1, Ordering::Relaxed);
        client.call(method, params)
    }

    /// Asks for everything in turn over connections that are kept.
    fn keep_calling(&self) {
        let (mut client, mut wallet) = (self.host.client(), self.host.client().wallet("w"));
        while self.goes_on() {
            let tip = self.call(&mut client, "getbestblockhash", json!([]));
            self.call(&mut client, "getblock", json!([tip, 2]));
            self.call(&mut client, "getblocktemplate", json!([{"rules": ["segwit"]}]));
            self.call(&mut wallet, "listsinceblock", json!([tip]));
            let last = self.call(&mut wallet, "listtransactions", json!(["*", 1]));
            self.call(&mut wallet, "gettransaction", json!([last[0]["txid"]]));
            let coins = self.call(&mut wallet, "listtransactions", json!(["*", 20]));
            let inputs = json!([{"txid": coins[0]["txid"], "vout": coins[0]["vout"]}]);
            let unsigned = self.call(&mut client, "createrawtransaction", json!([inputs, [{"data": "00"}]]));
            self.call(&mut wallet, "signrawtransactionwithwallet", json!([unsigned]));
            self.calls.fetch_add(1, Ordering::Relaxed);
            client.refused("nosuchmethod", json!([]));
            std::thread::sleep(PAUSE);
        }
    }

    /// Connects, begins calls, and leaves before they are answered.
    fn come_and_go(&self) {
        let client = self.host.client();
        let template = self.call(&mut self.host.client(), "getblocktemplate", json!([{"rules": ["segwit"]}]));
        let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
        let bodies = [
            json!({"id": 1, "method": "getblocktemplate", "params": poll}).to_string(),
            json!({"id": 1, "method": "listsinceblock", "params": []}).to_string(),
            "{\"id\": 1, \"method\": \"getblockcount\"".to_owned(),
        ];
        while self.goes_on() {
            for body in &bodies {
                self.calls.fetch_add(1, Ordering::Relaxed);
                client.post_and_leave(body);
            }
            self.call(&mut self.host.client(), "getblockcount", json!([]));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Pays the wallet with every block, and pays from it, while it is to grow.
    fn mine(&self) {
        let (mut client, mut wallet) = (self.host.client(), self.host.client().wallet("w"));
        while self.goes_on() {
            if self.grows.load(Ordering::Relaxed) {
                self.call(&mut wallet, "sendtoaddress", json!([self.address, "0.1"]));
                self.call(&mut client, "generatetoaddress", json!([1, self.address]));
            } else {
                self.call(&mut client, "generatetoaddress", json!([1, NOBODY]));
            }
            std::thread::sleep(BLOCK_EVERY);
        }
    }

    /// Makes a wallet, has it look through the chain for what pays the other, and unloads it.
    fn import(&self) {
        let (mut client, mut wallet) = (self.host.client(), self.host.client().wallet("w"));
        let info = self.call(&mut wallet, "getaddressinfo", json!([self.address]));
        let mut number = 0;
        while self.goes_on() {
            number += 1;
            let name = format!("watch{number}");
            self.call(&mut client, "createwallet", json!([name, true]));
            let mut watching = client.wallet(&name);
            let request = json!([[{"desc": info["desc"], "timestamp": 0}]]);
            let outcome = self.call(&mut watching, "importdescriptors", request);
            assert_eq!(outcome[0]["success"], true, "{outcome}");
            self.call(&mut client, "unloadwallet", json!([name]));
            std::thread::sleep(WALLET_EVERY);
        }
    }
}
