//! The cost of isolation: the same calls with a plugin in the host's process and in a process of its own.
//!
//! The ratio is the isolated plugin's time divided by the other's; for rates, the share of calls that it serves.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, HostOptions, all_groups, built};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::load::{Waits, rates};
use crate::payments::Payer;
use crate::{measure, median, milliseconds};

const CONNECTIONS: usize = 32;
/// The transactions of the wallet that is listed in full, and those of the wallet whose rows are read.
const LISTED: usize = 20_000;
const ROWS: usize = 100_000;
const WALKS: usize = 15;
const LISTINGS: usize = 11;
const TURNS: usize = 3;
const CRASHES: usize = 100;
/// The threads on which a greedy plugin spins, and the calls made meanwhile.
const SPINNING: usize = 4;
const PACED: usize = 3000;

pub fn run() {
    println!("| what | in-process | isolated | unit | ratio |\n|---|---|---|---|---|");
    boundary("a call that does nothing", "faultrelease");
    boundary("one that asks a service three times", "faultask");
    calls();
    listings();
    rows();
    crashes();
    beside_a_greedy_one();
}

fn row(what: &str, unit: &str, [one, other]: [f64; 2]) {
    println!("| {what} | {one:.2} | {other:.2} | {unit} | {:.2} |", other / one);
}

/// Measures both places in turns.
fn in_turns(mut once: impl FnMut(bool) -> Duration) -> [f64; 2] {
    let turns: Vec<[Duration; 2]> = (0..TURNS).map(|_| [false, true].map(&mut once)).collect();
    [0, 1].map(|which| median(turns.iter().map(|turn| turn[which]).collect()).as_secs_f64() * 1e6)
}

/// Calls into a plugin and back: one after another, one a millisecond, and while both processors are busy.
fn boundary(what: &str, method: &str) {
    let time = |pause: &str| in_turns(|isolated| timed(method, pause, isolated));
    row(&format!("{what}, one after the other"), "us", time("0"));
    row(&format!("{what}, one a millisecond"), "us", time("1000"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        row(&format!("{what}, beside two threads that are always busy"), "us", time("0"));
        done.store(true, Ordering::Relaxed);
    });
}

/// The median of `outrigger plugin time`.
fn timed(method: &str, pause: &str, isolated: bool) -> Duration {
    let mut command = Command::new(&built().binary);
    command.args(["plugin", "time", "--pause-us", pause]);
    command.args(isolated.then_some("--isolated")).arg(built().library("outrigger_faulty")).arg(method);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let median = text.split("median ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    let told = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    Duration::from_nanos(median.unwrap_or_else(|| panic!("{}", told())))
}

/// A host with all plugins either in its process or isolated.
fn host(isolated: bool) -> Host {
    let which = if isolated { "all" } else { "none" };
    Host::start_with(HostOptions::with(&[&format!("plugin_defaults.isolated='{which}'")]))
}

fn calls() {
    let hosts = [false, true].map(host);
    let clients: Vec<(Client, Client)> = hosts.iter().map(|host| (host.client(), host.client())).collect();
    let body = json!({"id": 1, "method": "getblockcount", "params": []}).to_string();
    let rates = rates(CONNECTIONS, Waits::Asleep, std::slice::from_ref(&body), &clients);
    row(&format!("getblockcount over {CONNECTIONS} connections"), "a second", [rates[0], rates[1]]);
}

fn listings() {
    let medians = [false, true].map(|isolated| {
        let host = host(isolated);
        let mut wallet = host.new_wallet("w");
        let mut payer = Payer::new(host.client(), &mut wallet);
        payer.pay(LISTED);
        let (time, bytes) = measure(&mut wallet, LISTINGS, "listsinceblock", &json!([]));
        (milliseconds(time), bytes)
    });
    let what = format!("listsinceblock of {LISTED} transactions, {:.1} MB", medians[0].1 as f64 / 1e6);
    row(&what, "ms", medians.map(|(time, _)| time));
}

fn rows() {
    let medians = [false, true].map(|isolated| {
        let how = if isolated { "isolated = true\nsandbox = \"best-effort\"\n" } else { "" };
        let rest = format!("{how}grants = [\"store/1\", \"wallet-read/1\"]\n");
        let options = HostOptions::with_plugin(&all_groups(), built().library("outrigger_keeper"), &rest);
        let host = Host::start_with(options);
        let mut wallet = host.new_wallet("w");
        let mut payer = Payer::new(host.client(), &mut wallet);
        payer.pay(ROWS);
        let times = wallet.call("keeperhistory", json!([WALKS]));
        median(times.as_array().unwrap().iter().map(|time| Duration::from_nanos(time.as_u64().unwrap())).collect())
    });
    row(&format!("{ROWS} rows of a wallet, read by a plugin"), "ms", medians.map(milliseconds));
}

/// The configuration of a test plugin in a process of its own, as the only plugin.
fn alone(library: &str) -> HostOptions {
    let rest = "isolated = true\nsandbox = \"best-effort\"\ndeadline_seconds = 0\ngrants = [\"chain/1\", \"log/1\"]\n";
    HostOptions::with_plugin(&all_groups(), built().library(library), rest)
}

/// The time of a call made right after a plugin's process was killed.
fn crashes() {
    let host = Host::start_with(alone("outrigger_faulty"));
    let mut client = host.client();
    let mut times: Vec<Duration> = (0..CRASHES)
        .map(|_| {
            client.call("faultwho", json!([]));
            let pid = client.plugin("faulty")["pid"].as_i64().unwrap();
            let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
            let began = Instant::now();
            kill_process(pid, Signal::KILL).unwrap();
            // A call that began before the host noticed the end is lost.
            while client.try_call("faultwho", json!([])).is_err() {}
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    let at = |percent: usize| milliseconds(times[times.len() * percent / 100]);
    let what = "a plugin's process is killed: until it answers again, median; 99 of 100 within";
    println!("| {what} | - | {:.2}; {:.2} | ms | - |", at(50), at(99));
}

/// The times of other calls while a plugin spins on several threads; the columns are without and with it.
fn beside_a_greedy_one() {
    let host = Host::start_with(alone("outrigger_hostile"));
    let alone = within(&mut host.client());
    let body = json!({"id": 1, "method": "hostilespin", "params": []}).to_string();
    // Nobody reads these replies, which do not arrive before the host's end.
    let spinning: Vec<_> = (0..SPINNING).map(|_| host.client().begin(&body)).collect();
    // Until the host has recognised the plugin as greedy.
    std::thread::sleep(Duration::from_secs(5));
    let what = format!("getblockcount, 99 of 100 within: alone, and beside a plugin that spins on {SPINNING} threads");
    row(&what, "ms", [alone, within(&mut host.client())]);
    drop(spinning);
}

/// The time within which 99 of 100 calls are answered, at a thousand a second.
fn within(client: &mut Client) -> f64 {
    let mut times: Vec<Duration> = (0..PACED)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            let began = Instant::now();
            client.call("getblockcount", json!([]));
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    milliseconds(times[times.len() * 99 / 100])
}
