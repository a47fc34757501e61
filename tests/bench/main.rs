//! Benchmarks against a real bitcoind, in one run:
//!
//! ```text
//! cargo run --release --manifest-path tests/bench/Cargo.toml -- [NAME] [--bitcoind PATH]
//! ```
//!
//! Without a name: the start and idle memory. `passed`, `rescans` and `growth` need the bitcoind; the others otherwise measure
//! this host alone.
//!
//! | name | what is measured |
//! |---|---|
//! | isolated | plugins in processes of their own, compared with the host's process |
//! | chains | wrappers, observers, and calls of the next plugin |
//! | policies | signing with wallet policies |
//! | follow | a plugin that follows 20,000 blocks |
//! | template | templates, blocks and transactions |
//! | history `[--in-front]` | the history of large wallets |
//! | import | imports, rescans and large wallets |
//! | signing | signing |
//! | selection `[--coins N]` | coin selection |
//! | load | many calls at a time, and what waiting connections cost |
//! | passed | the cost of passing calls on |
//! | rescans | rescans, headers and new blocks in front of a bitcoind |
//! | wallets `[--wallets N] [--in-front]` | many loaded wallets |
//! | subscribers | how soon 1,000 subscriptions report a payment and a block |
//! | growth `[--largest N] [--wallets N]` | how the cost of wallet calls grows with the wallet |
//! | tls | the cost of TLS for a call on a kept-alive connection |
//! | store | reads of a plugin's store, compared with LMDB |
//! | storm | wrong passwords through proxies, and a client with the right one meanwhile |
//! | soak `[--minutes N]` | a long mixed load with reloads, backups, crashes, and restarts of the bitcoind |
//!
//! Prints medians next to bitcoind's, with their ratio, and the machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot run has nothing to say")]

mod chains;
mod follow;
mod growth;
mod history;
mod import;
mod isolated;
mod load;
mod passed;
mod payments;
mod policies;
mod rescans;
mod selection;
mod signing;
mod soak;
mod store;
mod storm;
mod subscribers;
mod template;
mod tls;
mod transactions;
mod wallets;

use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, built};
use serde_json::{Value, json};

const STARTS: usize = 11;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The median time of a call, after a tenth as many calls to warm up, and the size of its answer.
fn measure(client: &mut Client, times: usize, method: &str, params: &Value) -> (Duration, usize) {
    let request = json!({"jsonrpc": "1.0", "id": 1, "method": method, "params": params}).to_string();
    let mut bytes = 0;
    let mut once = || {
        let began = Instant::now();
        let reply = client.post(&request);
        let spent = began.elapsed();
        assert_eq!(reply.status, 200, "{method}: {}", reply.body);
        bytes = reply.body.len();
        spent
    };
    for _ in 0..times / 10 {
        once();
    }
    let time = median((0..times).map(|_| once()).collect());
    (time, bytes)
}

fn memory(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

fn print_row(what: &str, unit: &str, ours: f64, theirs: Option<f64>) {
    let ratio = theirs.map_or("-".to_owned(), |theirs| format!("{:.1}x", theirs / ours));
    let theirs = theirs.map_or("-".to_owned(), |theirs| format!("{theirs:.3}"));
    println!("| {what} | {ours:.3} | {theirs} | {unit} | {ratio} |");
}

/// Prints rates, where more is better: the ratio is inverted.
fn print_rates(what: String, rates: &[f64]) {
    let theirs = rates.get(1).map_or("-".to_owned(), |rate| format!("{rate:.0}"));
    let ratio = rates.get(1).map_or("-".to_owned(), |rate| format!("{:.1}x", rates[0] / rate));
    println!("| {what} | {:.0} | {theirs} | a second | {ratio} |", rates[0]);
}

/// Raises the limit of open files of this process and its children to the system's maximum.
fn raise_file_limit() {
    let mut files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    files.current = files.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, files).unwrap();
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name| arguments.iter().position(|argument| argument == name).and_then(|at| arguments.get(at + 1));
    let (path, minutes) = (option("--bitcoind"), option("--minutes").map(|minutes| minutes.parse().unwrap()));
    built();
    machine();
    let bitcoind = path.map(String::as_str);
    let in_front = arguments.iter().any(|argument| argument == "--in-front");
    match arguments.get(1).map(String::as_str) {
        Some("chains") => chains::run(),
        Some("policies") => policies::run(),
        Some("subscribers") => subscribers::run(),
        Some("follow") => follow::run(),
        Some("isolated") => isolated::run(),
        Some("template") => template::run(bitcoind),
        Some("history") => history::run(bitcoind, in_front),
        Some("import") => import::run(bitcoind),
        Some("signing") => signing::run(bitcoind),
        Some("selection") => selection::run(bitcoind, option("--coins").map(|coins| coins.parse().unwrap())),
        Some("load") => load::run(bitcoind),
        Some("passed") => passed::run(bitcoind),
        Some("rescans") => rescans::run(bitcoind),
        Some("wallets") => {
            let wallets = option("--wallets").map(|wallets| wallets.parse().unwrap());
            wallets::run(wallets, bitcoind.filter(|_| in_front));
        }
        Some("growth") => {
            let number = |name| option(name).map(|number| number.parse().unwrap());
            growth::run(bitcoind, number("--largest"), number("--wallets"));
        }
        Some("tls") => tls::run(),
        Some("store") => store::run(),
        Some("storm") => storm::run(),
        Some("soak") => soak::run(minutes, bitcoind),
        _ => start(bitcoind),
    }
}

fn start(path: Option<&str>) {
    let starts = (0..STARTS).map(|_| {
        let began = Instant::now();
        let host = Host::start();
        host.client().call("getblockcount", json!([]));
        began.elapsed()
    });
    let start = median(starts.collect());
    let theirs_start = path.map(|path| median((0..3).map(|_| outrigger_tests::Bitcoind::start(path).1).collect()));
    let host = Host::start();
    let theirs = path.map(|path| outrigger_tests::Bitcoind::start(path).0);
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    print_row("start to first answer", "ms", milliseconds(start), theirs_start.map(milliseconds));
    let theirs = theirs.as_ref().map(|theirs| memory(theirs.process_id()));
    print_row("idle memory", "MiB", memory(host.process_id()), theirs);
}

fn machine() {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("Machine: {cores} cores,{}. Medians.\n", name.trim_start_matches(|c: char| c == ':' || c.is_whitespace()));
}
