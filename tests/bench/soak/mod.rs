//! A long mixed load with reloads, backups, crashes and restarts of the node: its cost, and its effect on memory and open files.
//!
//! Half of the kept connections use TLS, half the Unix socket. In the first sixth of the time every block pays the wallet and the wallet
//! pays itself. Then the wallet stays the same, so any later growth has another cause. Sixty lines print the memory and files of the
//! host's process.
//!
//! The verdicts: memory and files are flat if the median of the last third of the time without growth exceeds that of the first third by
//! at most a tenth and a [slack](SLACK_MIB). No call may be lost except one that was in the plugin when its process was killed, or in the
//! node while that was away.

mod calls;
mod troubles;
mod work;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use outrigger_tests::{Authority, Bitcoind, Gate, Host, HostOptions, all_groups, configuration, wait_until};
use serde_json::{Value, json};

use calls::{Tally, Way};

/// The default duration.
const MINUTES: u64 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// The lines of the table.
const SAMPLES: u32 = 60;
/// The wallet grows in the first one of this many parts of the time.
const GROWTH: u32 = 6;
/// The variation that memory and files may have, besides a tenth.
const SLACK_MIB: f64 = 4.0;
const SLACK_FILES: f64 = 8.0;
/// The connections that are kept, and those that are opened and closed.
const KEPT: usize = 4;
const LEAVING: usize = 2;
/// How often the host makes automatic backups, and how many of each wallet it keeps.
const BACKUPS: [&str; 2] = ["backup.every=5s", "backup.keep=3"];

/// The memory and files of the host's process.
struct Held {
    /// Anonymous memory, in KiB, without pages of files.
    own_kib: u64,
    /// Memory including the pages of the databases, in KiB.
    resident_kib: u64,
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
        Self { own_kib: number("RssAnon:"), resident_kib: number("VmRSS:"), files, threads: number("Threads:") }
    }
}

/// What all threads of the load share.
struct Load {
    host: Host,
    authority: Authority,
    /// The folder of the socket, the certificates, the backups and the log.
    folder: tempfile::TempDir,
    /// The configuration without the part that changes.
    text: String,
    /// The gate where the plugin waits in a call.
    gate: Gate,
    node: Option<Mutex<Bitcoind>>,
    address: Value,
    tally: Tally,
    grows: AtomicBool,
    done: AtomicBool,
    reloads: AtomicU64,
}

pub fn run(minutes: Option<u64>, bitcoind: Option<&str>) {
    let load = &Load::start(bitcoind);
    println!(
        "| minute | calls | lost | memory, MiB | own memory, MiB | files | threads |\n|---|---|---|---|---|---|---|"
    );
    let (mut own, mut files) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        for number in 0..KEPT {
            scope.spawn(move || load.keep_calling([Way::Tls, Way::Socket][number % 2]));
        }
        for _ in 0..LEAVING {
            scope.spawn(|| load.come_and_go());
        }
        scope.spawn(|| load.mine());
        scope.spawn(|| load.import());
        scope.spawn(|| load.call_plugin());
        scope.spawn(|| load.reload_and_kill());
        if let Some(node) = &load.node {
            scope.spawn(|| load.restart_node(&mut node.lock().unwrap()));
        }
        let interval = MINUTE * u32::try_from(minutes.unwrap_or(MINUTES)).unwrap() / SAMPLES;
        for sample in 1..=SAMPLES {
            std::thread::sleep(interval);
            let grows = sample * GROWTH < SAMPLES;
            load.grows.store(grows, Ordering::Relaxed);
            let held = Held::of(load.host.process_id());
            let (minute, mib) = ((interval * sample).as_secs_f64() / 60.0, |kib: u64| kib as f64 / 1024.0);
            let (resident, own_mib, tally) = (mib(held.resident_kib), mib(held.own_kib), &load.tally);
            let (calls, lost) = (tally.calls(), tally.lost());
            println!(
                "| {minute:.1} | {calls} | {lost} | {resident:.1} | {own_mib:.1} | {} | {} |",
                held.files, held.threads
            );
            if !grows {
                own.push(own_mib);
                files.push(held.files as f64);
            }
        }
        load.done.store(true, Ordering::Relaxed);
    });
    let are_flat = [is_flat("own memory, MiB", &own, SLACK_MIB), is_flat("open files", &files, SLACK_FILES)];
    let (backups, reloads) = (load.backups(), load.reloads.load(Ordering::Relaxed));
    println!("reloads: {reloads}; backups of the wallet: {backups}");
    let all_explained = load.tally.tell();
    assert!(are_flat == [true; 2] && all_explained && backups > 0 && reloads > 0, "see above");
}

/// Prints the medians of the thirds. Returns whether the last one is within the slack.
fn is_flat(what: &str, values: &[f64], slack: f64) -> bool {
    let medians: Vec<f64> = values.chunks(values.len().div_ceil(3).max(1)).map(median).collect();
    let (first, last) = (medians[0], medians[medians.len() - 1]);
    let is_flat = last <= first * 1.1 + slack;
    let word = if is_flat { "flat" } else { "NOT FLAT" };
    println!("{what}, median of each third while the wallet did not grow: {medians:.1?}: {word}");
    is_flat
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Load {
    fn start(bitcoind: Option<&str>) -> Self {
        let node = bitcoind.map(|path| Bitcoind::start_with(path, &["-txindex=1", "-blockfilterindex=1"]).0);
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let authority = Authority::new(&file("authority.pem"));
        authority.issue(&["127.0.0.1"], "host").write(&file("certificate.pem"), &file("key.pem"));
        std::fs::create_dir(file("backups")).unwrap();
        let path = folder.path().display();
        let tls = format!("[rpc.tls]\ncertificate = \"{path}/certificate.pem\"\nkey = \"{path}/key.pem\"\n");
        let text = node.as_ref().map_or_else(all_groups, configuration) + &tls;
        let gate = Gate::new();
        let options = HostOptions::configured(&(text.clone() + &troubles::changing(0, &gate)));
        let set = BACKUPS.iter().map(|&set| set.to_owned()).chain([format!("backup.folder={path}/backups")]);
        let (set, listen) = (set.collect(), Some(format!("127.0.0.1:0 unix:{path}/rpc.sock")));
        let host = Host::start_with(HostOptions { set, listen, log: Some(file("log")), ..options });
        let mut load = Self {
            host,
            authority,
            folder,
            text,
            gate,
            node: node.map(Mutex::new),
            address: Value::Null,
            tally: Tally::default(),
            grows: AtomicBool::new(true),
            done: AtomicBool::new(false),
            reloads: AtomicU64::new(0),
        };
        load.address = load.prepare();
        load
    }

    /// Makes a wallet with coins, and returns one of its addresses.
    fn prepare(&self) -> Value {
        let (mut client, mut wallet) = (self.caller(Way::Socket, ""), self.caller(Way::Socket, "w"));
        client.call("createwallet", json!({"wallet_name": "w", "load_on_startup": true})).unwrap();
        let address = wallet.call("getnewaddress", json!([])).unwrap();
        client.call("generatetoaddress", json!([101, address])).unwrap();
        wait_until("the wallet has its coins", || {
            let trusted = wallet.call("getbalances", json!([])).unwrap()["mine"]["trusted"].as_f64();
            trusted.is_some_and(|trusted| trusted > 0.0)
        });
        address
    }

    fn goes_on(&self) -> bool {
        !self.done.load(Ordering::Relaxed)
    }

    /// The number of backups that the host has made of the wallet. Their files are numbered.
    fn backups(&self) -> u64 {
        let folder = self.folder.path().join("backups/regtest/wallets/w");
        let number = |name: &Path| name.to_str()?.split('-').next()?.parse().ok();
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        names.filter_map(|entry| number(Path::new(&entry.file_name()))).max().unwrap_or(0)
    }
}
