//! Benchmarks against a real bitcoind, in one run:
//!
//! ```text
//! cargo run --release --manifest-path tests/bench/Cargo.toml -- [NAME] [--bitcoind PATH]
//! ```
//!
//! Without a name: the start and single calls. `passed`, `rescans` and `growth` need the bitcoind; the others then measure this host
//! alone.
//!
//! | name | what is measured |
//! |---|---|
//! | rows | rows of large wallets |
//! | plugins | the plugin platform |
//! | isolated | plugins in processes of their own beside the same in the host's |
//! | template | templates, blocks and transactions |
//! | history `[--in-front]` | the history of large wallets |
//! | import | imports, rescans and large wallets |
//! | signing | signing |
//! | selection `[--coins N]` | coin selection |
//! | load | many calls at a time, and what waiting connections cost |
//! | passed | what passing calls on costs |
//! | rescans | rescans, headers and new blocks in front of a bitcoind |
//! | polling | what busy polling gains |
//! | scale | in front of a large chain and mempool, and many that wait |
//! | wallets `[--wallets N] [--in-front]` | many loaded wallets |
//! | growth `[--largest N] [--wallets N]` | how the cost of wallet calls grows with the wallet |
//! | soak `[--minutes N]` | a long mixed load |
//!
//! Prints medians beside bitcoind's, with their ratio, and the machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark that cannot run has nothing to say")]

mod false_node;
mod growth;
mod history;
mod import;
mod isolated;
mod load;
mod passed;
mod payments;
mod plugins;
mod rescans;
mod rows;
mod scale;
mod selection;
mod signing;
mod soak;
mod template;
mod transactions;
mod wallets;

use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, built};
use serde_json::{Value, json};

const STARTS: usize = 11;

/// How often a call is measured, after a tenth of that to warm up.
const CALLS: usize = 5000;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn time_call(client: &mut Client, method: &str, params: &Value) -> Duration {
    let mut once = || {
        let began = Instant::now();
        client.call(method, params.clone());
        began.elapsed()
    };
    for _ in 0..CALLS / 10 {
        once();
    }
    median((0..CALLS).map(|_| once()).collect())
}

fn memory(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

struct Row {
    what: String,
    unit: &'static str,
    ours: f64,
    theirs: Option<f64>,
}

impl Row {
    fn print(&self) {
        let theirs = self.theirs.map_or("-".to_owned(), |theirs| format!("{theirs:.3}"));
        let ratio = self.theirs.map_or("-".to_owned(), |theirs| format!("{:.1}x", theirs / self.ours));
        println!("| {} | {:.3} | {theirs} | {} | {ratio} |", self.what, self.ours, self.unit);
    }
}

/// More a second is better: the ratio is the other way round.
fn print_rates(what: String, rates: &[f64]) {
    let theirs = rates.get(1).map_or("-".to_owned(), |rate| format!("{rate:.0}"));
    let ratio = rates.get(1).map_or("-".to_owned(), |rate| format!("{:.1}x", rates[0] / rate));
    println!("| {what} | {:.0} | {theirs} | a second | {ratio} |", rates[0]);
}

/// Allows this process, and those it starts, as many open files as the system lets it.
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
        Some("rows") => rows::run(),
        Some("plugins") => plugins::run(),
        Some("isolated") => isolated::run(),
        Some("template") => template::run(bitcoind),
        Some("history") => history::run(bitcoind, in_front),
        Some("import") => import::run(bitcoind),
        Some("signing") => signing::run(bitcoind),
        Some("selection") => selection::run(bitcoind, option("--coins").map(|coins| coins.parse().unwrap())),
        Some("load") => load::run(bitcoind),
        Some("passed") => passed::run(bitcoind),
        Some("rescans") => rescans::run(bitcoind),
        Some("scale") => scale::run(bitcoind),
        Some("polling") => load::polling(),
        Some("wallets") => {
            let wallets = option("--wallets").map(|wallets| wallets.parse().unwrap());
            wallets::run(wallets, bitcoind.filter(|_| in_front));
        }
        Some("growth") => {
            let number = |name| option(name).map(|number| number.parse().unwrap());
            growth::run(bitcoind, number("--largest"), number("--wallets"));
        }
        Some("soak") => soak::run(minutes),
        _ => calls(bitcoind),
    }
}

fn calls(path: Option<&str>) {
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
    let row = |what: &str, unit, ours, theirs| Row { what: what.to_owned(), unit, ours, theirs }.print();
    row("start to first answer", "ms", milliseconds(start), theirs_start.map(milliseconds));
    row("idle memory", "MiB", memory(host.process_id()), theirs.as_ref().map(|theirs| memory(theirs.process_id())));
    let address = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
    let mut ours_client = host.client();
    let mut theirs_client = theirs.as_ref().map(outrigger_tests::Bitcoind::client);
    for client in [Some(&mut ours_client), theirs_client.as_mut()].into_iter().flatten() {
        client.call("generatetoaddress", json!([101, address]));
    }
    let calls = [
        ("getblockcount", json!([])),
        ("getblockchaininfo", json!([])),
        ("getblocktemplate", json!([{"rules": ["segwit"]}])),
        ("listwallets", json!([])),
    ];
    for (method, params) in &calls {
        let ours = milliseconds(time_call(&mut ours_client, method, params));
        let theirs = theirs_client.as_mut().map(|client| milliseconds(time_call(client, method, params)));
        row(&format!("{method}, one kept-alive connection"), "ms", ours, theirs);
    }
}

fn machine() {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("Machine: {cores} cores,{}. Medians.\n", name.trim_start_matches(|c: char| c == ':' || c.is_whitespace()));
}
