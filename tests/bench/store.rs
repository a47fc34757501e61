//! Reads of a plugin's store, compared with LMDB itself.
//!
//! The ratio is the plugin's time divided by LMDB's.

use std::time::{Duration, Instant};

use heed::types::Bytes;
use heed::{Database, EnvOpenOptions};
use outrigger_tests::{Client, Host, HostOptions, built};
use serde_json::json;

use crate::median;

const ROWS: u64 = 1_000_000;
const READS: u64 = 200_000;
const TURNS: usize = 5;
/// The number of rows read at a time.
const TOGETHER: [u64; 3] = [1, 100, 1000];
const PAGE: u32 = 1000;
const MAP: usize = 1 << 30;

/// The key of a row, in the format of the plugin `keeper`.
fn key(row: u64) -> [u8; 16] {
    let mixed = (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&mixed.to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

/// LMDB in this process, with the same rows.
struct Plain {
    env: heed::Env,
    rows: Database<Bytes, Bytes>,
    _folder: tempfile::TempDir,
}

impl Plain {
    #[allow(unsafe_code, reason = "opening a memory map")]
    fn filled() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: nobody else has the file.
        let env = unsafe { EnvOpenOptions::new().map_size(MAP).open(folder.path()) }.unwrap();
        let mut txn = env.write_txn().unwrap();
        let rows: Database<Bytes, Bytes> = env.create_database(&mut txn, None).unwrap();
        for row in 0..ROWS {
            rows.put(&mut txn, &key(row), &[row as u8; 64]).unwrap();
        }
        txn.commit().unwrap();
        Self { env, rows, _folder: folder }
    }

    /// The time to read and copy a row by its key, in nanoseconds.
    fn gets(&self, together: u64) -> f64 {
        let began = Instant::now();
        let mut bytes = 0;
        for first in (0..READS).step_by(together as usize) {
            let txn = self.env.read_txn().unwrap();
            for read in first..first + together {
                let value = self.rows.get(&txn, &key(read.wrapping_mul(7919) % ROWS)).unwrap().unwrap();
                bytes += std::hint::black_box(value.to_vec()).len() as u64;
            }
        }
        assert_eq!(bytes, READS * 64);
        began.elapsed().as_nanos() as f64 / READS as f64
    }

    /// The time to read and copy a row in a walk over all rows, in nanoseconds.
    fn walk(&self) -> f64 {
        let began = Instant::now();
        let txn = self.env.read_txn().unwrap();
        let bytes: usize =
            self.rows.iter(&txn).unwrap().map(|row| std::hint::black_box(row.unwrap().1.to_vec()).len()).sum();
        assert_eq!(bytes as u64, ROWS * 64);
        began.elapsed().as_nanos() as f64 / ROWS as f64
    }
}

fn middle(mut once: impl FnMut() -> f64) -> f64 {
    let times = (0..TURNS).map(|_| Duration::from_nanos((once() * 1000.0) as u64)).collect();
    median(times).as_nanos() as f64 / 1000.0
}

pub fn run() {
    println!("| {ROWS} rows | LMDB | in-process | isolated | unit | ratios |\n|---|---|---|---|---|---|");
    let plain = Plain::filled();
    let hosts = [false, true].map(|isolated| {
        let how = if isolated { "isolated = true\nsandbox = \"best-effort\"\n" } else { "isolated = false\n" };
        let rest = format!("{how}grants = [\"store/1\"]\n");
        let host = Host::start_with(HostOptions::with_plugin("", built().library("outrigger_keeper"), &rest));
        host.client().call("keeperfill", json!([ROWS]));
        host
    });
    let mut clients: Vec<Client> = hosts.iter().map(Host::client).collect();
    let mut row = |what: &str, plain: f64, method: &str, params: serde_json::Value| {
        let mut ask = |which: usize| middle(|| clients[which].call(method, params.clone()).as_f64().unwrap());
        let (ours, isolated) = (ask(0), ask(1));
        let (one, other) = (ours / plain, isolated / plain);
        println!("| {what} | {plain:.0} | {ours:.0} | {isolated:.0} | ns a row | {one:.2}; {other:.2} |");
    };
    for together in TOGETHER {
        let what = format!("get, {together} at a time");
        row(&what, middle(|| plain.gets(together)), "keepergets", json!([ROWS, READS, together]));
    }
    row(&format!("range, {PAGE} at a time"), middle(|| plain.walk()), "keeperwalk", json!([PAGE]));
}
