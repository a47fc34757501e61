//! Rows of a wallet: what reading them through the ABI costs beside reading LMDB directly, and what listing them costs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, HostOptions, built, groups};
use serde_json::{Value, json};

use crate::payments::Payer;
use crate::{median, milliseconds};

/// The sizes of the wallet, in transactions, at which something is measured.
const SIZES: [usize; 4] = [1_000, 20_000, 100_000, 200_000];
/// At this one rows are walked.
const WALKED: usize = 100_000;
const LISTED: usize = 100_000;
const WALKS: u32 = 15;
const LISTINGS: usize = 11;
const CALLS: usize = 2000;
/// The last blocks that are listed, and what each of them holds.
const LAST_BLOCKS: usize = 5;
const IN_LAST_BLOCKS: usize = 4;

pub fn run() {
    let config = tempfile::NamedTempFile::new().unwrap();
    let text = std::fs::read_to_string(groups("regtest.toml")).unwrap();
    let plugin = built().library("outrigger_row_walk").display().to_string();
    let entry = format!("\n[[plugins]]\nfile = \"{plugin}\"\ngrants = [\"wallet/1\"]\n");
    std::fs::write(config.path(), text + &entry).unwrap();
    let mut host = Host::start_with(HostOptions { config: Some(config.path().to_owned()), ..HostOptions::default() });
    let mut wallet = host.new_wallet("w");
    let largest = SIZES.into_iter().max().unwrap_or(0);
    let mut payer = Payer::new(host.client(), &mut wallet, largest);
    println!("| wallet | what | median |\n|---|---|---|");
    for size in SIZES {
        let last = LAST_BLOCKS * IN_LAST_BLOCKS;
        payer.pay(size - payer.paid - last);
        let since = wallet.call("getbestblockhash", json!([]));
        for _ in 0..LAST_BLOCKS {
            payer.pay(IN_LAST_BLOCKS);
        }
        let row = |what: &str, value: String| println!("| {size} | {what} | {value} |");
        if size == WALKED {
            walk(&host, &mut wallet, &row);
        }
        if size <= LISTED {
            for (method, params) in [("listsinceblock", json!([])), ("listtransactions", json!(["*", size]))] {
                // A fresh process, which has no memory left over from other listings.
                host = host.restart();
                payer.client = host.client();
                payer.client.call("loadwallet", json!(["w"]));
                wallet = payer.client.wallet("w");
                list(&host, &mut wallet, method, &params, &row);
            }
        }
        let (time, bytes) = measure(&mut wallet, CALLS, "listsinceblock", &json!([since]));
        row(&format!("listsinceblock, the last {LAST_BLOCKS} blocks ({bytes} bytes)"), show(time));
        let listed = wallet.call("listtransactions", json!(["*", 1, size / 2]));
        let (time, bytes) = measure(&mut wallet, CALLS, "gettransaction", &json!([listed[0]["txid"]]));
        row(&format!("gettransaction ({bytes} bytes)"), show(time));
    }
}

fn show(time: Duration) -> String {
    format!("{:.3} ms", milliseconds(time))
}

/// The median time of a call, and the size of its answer.
pub fn measure(client: &mut Client, times: usize, method: &str, params: &Value) -> (Duration, usize) {
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

/// Walks all rows through the ABI and through copies of LMDB's file.
fn walk(host: &Host, wallet: &mut Client, row: &dyn Fn(&str, String)) {
    let (rows, [abi, direct, in_step]) = walks(host, wallet);
    row(&format!("{rows} rows read through the ABI"), show(abi));
    for (direct, how) in [(direct, "by index and search"), (in_step, "by a cursor over index and rows")] {
        let ratio = abi.as_secs_f64() / direct.as_secs_f64();
        row(&format!("the same from LMDB directly, {how}"), format!("{}, ratio {ratio:.3}", show(direct)));
    }
}

/// How long a plugin takes to read all rows.
pub fn rows_through_abi(host: &Host, wallet: &mut Client) -> Duration {
    walks(host, wallet).1[0]
}

/// How many rows there are, and how long they take through the ABI, from LMDB by index and search, and by a cursor.
fn walks(host: &Host, wallet: &mut Client) -> (Value, [Duration; 3]) {
    // Answered once the wallet has followed the chain to its tip.
    wallet.call("getwalletinfo", json!([]));
    let copy = tempfile::tempdir().unwrap();
    for kind in ["direct", "in_step"] {
        let folder = copy.path().join(kind);
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(host.network_folder().join("wallets/w/data.mdb"), folder.join("data.mdb")).unwrap();
    }
    let answer = wallet.call("walkrows", json!([copy.path(), WALKS]));
    let times = |kind: &str| -> Duration {
        let times = answer[kind].as_array().unwrap().iter();
        median(times.map(|time| Duration::from_nanos(time.as_u64().unwrap())).collect())
    };
    (answer["rows"].clone(), ["abi", "direct", "in_step"].map(times))
}

/// Lists everything, and says what memory that takes.
pub fn list(host: &Host, wallet: &mut Client, method: &str, params: &Value, row: &dyn Fn(&str, String)) {
    let before = own_memory(host.process_id());
    let done = AtomicBool::new(false);
    let (bytes, peak) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = 0;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(own_memory(host.process_id()));
            }
            peak
        });
        let (_, bytes) = measure(wallet, 1, method, params);
        done.store(true, Ordering::Relaxed);
        (bytes, watch.join().unwrap())
    });
    let added = peak.saturating_sub(before);
    let (time, _) = measure(wallet, LISTINGS, method, params);
    row(&format!("{method}, everything ({:.1} MB)", bytes as f64 / 1e6), show(time));
    let times = added as f64 / bytes as f64;
    row(&format!("{method}, memory added"), format!("{:.1} MB, {times:.2} replies", added as f64 / 1e6));
}

/// The memory of a process, in bytes, without the pages of files that it maps.
pub fn own_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}
