//! The plugin platform: a call into a plugin and back, and replacing a plugin under load.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, HostOptions, built};
use serde_json::json;

use super::{median, milliseconds};

const RELOADS: usize = 100;

/// Calls per second beside it, by two clients.
const RATE: u32 = 1000;

pub fn run() {
    call_overhead();
    reload_under_load();
}

/// What a call costs that does nothing, and one that answers an object of one number.
fn call_overhead() {
    for (library, method) in [("outrigger_faulty", "faultrelease"), ("outrigger_acme_mining", "getacmepolicy")] {
        let output = Command::new(&built().binary)
            .args(["plugin", "time"])
            .arg(built().library(library))
            .arg(method)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        println!("into a plugin and back: {}", String::from_utf8_lossy(&output.stdout).trim());
    }
}

fn reload_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let (file, config) = (folder.path().join("plugin.so"), folder.path().join("config.toml"));
    std::fs::copy(built().library("outrigger_faulty"), &file).unwrap();
    let text = format!("[[plugins]]\nfile = \"{}\"\ngrants = [\"chain/1\", \"log/1\"]\n", file.display());
    std::fs::write(&config, text).unwrap();
    let host = Host::start_with(HostOptions { config: Some(config), ..HostOptions::default() });
    let done = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..2).map(|_| load(host.client(), done.clone())).collect();
    let mut client = host.client();
    let reloads = (0..RELOADS).map(|_| {
        let began = Instant::now();
        client.call("reloadplugin", json!(["faulty"]));
        began.elapsed()
    });
    let reload = median(reloads.collect());
    done.store(true, Ordering::Relaxed);
    let mut times: Vec<Duration> = callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
    times.sort_unstable();
    let (calls, slowest) = (times.len(), times.last().copied().unwrap_or_default());
    println!(
        "{RELOADS} reloads (median {:.1} ms) beside {calls} calls at {RATE} a second: none lost; median {:.3} ms, slowest {:.1} ms",
        milliseconds(reload),
        milliseconds(median(times)),
        milliseconds(slowest)
    );
}

/// Calls at half the rate until told to end; a call that fails ends the benchmark. Gives how long each took.
fn load(mut client: Client, done: Arc<AtomicBool>) -> std::thread::JoinHandle<Vec<Duration>> {
    let gap = Duration::from_secs(1) * 2 / RATE;
    std::thread::spawn(move || {
        let mut times = Vec::new();
        let mut next = Instant::now();
        while !done.load(Ordering::Relaxed) {
            next += gap;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let began = Instant::now();
            client.call("faultwho", json!([]));
            times.push(began.elapsed());
        }
        times
    })
}
