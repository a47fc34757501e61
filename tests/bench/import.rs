//! Imports, rescans and large wallets, on the same chain in this host and in bitcoind.
//!
//! bitcoind has an index of block filters, and descriptor wallets, since this build has no others: importmulti is compared with its
//! importdescriptors of the same keys. Each import uses a new wallet.

use std::time::{Duration, Instant};

use bitcoin::bip32::Xpriv;
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::{Address, CompressedPublicKey, Network, NetworkKind, PrivateKey};
use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

use crate::{median, milliseconds, print_row};
use outrigger_tests::bitcoind::Bitcoind;

const BLOCKS: usize = 20_000;
const BLOCKS_PER_CALL: usize = 500;
/// How often each rescan, each large import and each load is measured.
const RESCANS: usize = 7;
const IMPORTS: usize = 3;
const LOADS: usize = 11;
/// A measurement that takes longer than this is not repeated.
const ENOUGH: Duration = Duration::from_secs(20);
/// The keys imported in one call, and the scripts of one descriptor.
const KEYS: u32 = 10_000;
const RANGE: u32 = 100_000;

/// Without the last two, a bitcoind on regtest checks its index and mempool after each block.
const ARGUMENTS: [&str; 3] = ["-blockfilterindex=1", "-checkblockindex=0", "-checkmempool=0"];

pub fn run(bitcoind: Option<&str>) {
    let host = Host::start();
    let theirs = bitcoind.map(|path| Bitcoind::start_with(path, &ARGUMENTS).0);
    let clients = std::iter::once(host.client()).chain(theirs.as_ref().map(Bitcoind::client)).collect();
    let mut bench = Bench { clients, wallets: 0 };
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    bench.mine(101, &address(&key(1)));
    bench.many();
    bench.mine(BLOCKS - 101, &address(&key(1)));
    bench.rescans();
    bench.scans();
    bench.loads();
}

fn key(number: u32) -> PrivateKey {
    let mut bytes = [1; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    PrivateKey { compressed: true, network: NetworkKind::Test, inner: SecretKey::from_slice(&bytes).unwrap() }
}

fn address(key: &PrivateKey) -> String {
    let public = CompressedPublicKey::from_private_key(&Secp256k1::new(), key).unwrap();
    Address::p2wpkh(&public, Network::Regtest).to_string()
}

/// The descriptor with this number. An import gives it as many scripts as needed.
fn ranged(number: u8) -> String {
    format!("wpkh({}/*)", Xpriv::new_master(Network::Regtest, &[number; 32]).unwrap())
}

struct Bench {
    /// Ours, then bitcoind's if there is one.
    clients: Vec<Client>,
    wallets: u32,
}

impl Bench {
    /// Mines blocks here, and submits them to bitcoind.
    fn mine(&mut self, count: usize, address: &str) {
        let mut left = count;
        while left > 0 {
            let now = left.min(BLOCKS_PER_CALL);
            let hashes = self.clients[0].call("generatetoaddress", json!([now, address]));
            for hash in hashes.as_array().unwrap() {
                if let [ours, theirs] = self.clients.as_mut_slice() {
                    let block = ours.call("getblock", json!([hash, 0]));
                    assert_eq!(theirs.call("submitblock", json!([block])), Value::Null);
                }
            }
            left -= now;
        }
        if let Some(theirs) = self.clients.get_mut(1) {
            while theirs.call("getindexinfo", json!([]))["basic block filter index"]["synced"] != true {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// A client of a new wallet without keys in a node.
    fn blank(&mut self, node: usize) -> Client {
        self.wallets += 1;
        self.clients[node].create_wallet(&format!("w{}", self.wallets), json!({"blank": true}))
    }

    /// The median time of importing these requests into new wallets of a node, `times` times or until a long time has passed.
    fn import(&mut self, node: usize, times: usize, method: &str, requests: &Value) -> Duration {
        let body = json!({"id": 1, "method": method, "params": [requests]}).to_string();
        let once = |bench: &mut Self| {
            let mut wallet = bench.blank(node);
            let began = Instant::now();
            let reply = wallet.post(&body);
            let took = began.elapsed();
            let answer: Value = serde_json::from_str(&reply.body).unwrap();
            let all = answer["result"].as_array().unwrap_or_else(|| panic!("{method}: {}", reply.body));
            assert!(all.iter().all(|one| one["success"] == true), "{method}: {}", all[0]);
            took
        };
        let mut all: Vec<Duration> = Vec::new();
        while all.len() < times && all.iter().sum::<Duration>() < ENOUGH {
            all.push(once(self));
        }
        median(all)
    }

    /// Measures an import in both, each with its own method.
    fn compare(&mut self, what: &str, times: usize, ours: (&str, &Value), theirs: &Value) {
        let (method, requests) = ours;
        let ours = milliseconds(self.import(0, times, method, requests));
        let theirs = (self.clients.len() > 1).then(|| milliseconds(self.import(1, times, "importdescriptors", theirs)));
        print_row(what, "ms", ours, theirs);
    }

    /// Many keys and many scripts, on a short chain.
    fn many(&mut self) {
        let keys: Vec<PrivateKey> = (10..10 + KEYS).map(key).collect();
        let descriptors = keys.iter().map(|key| {
            let text = self.clients[0].with_checksum(&format!("wpkh({})", key.to_wif()));
            json!({"desc": text, "timestamp": "now"})
        });
        let descriptors = Value::Array(descriptors.collect());
        let script = |key: &PrivateKey| json!({"scriptPubKey": {"address": address(key)}, "keys": [key.to_wif()], "timestamp": "now"});
        let scripts = Value::Array(keys.iter().map(script).collect());
        let what = format!("importdescriptors, {KEYS} keys in one call");
        self.compare(&what, IMPORTS, ("importdescriptors", &descriptors), &descriptors);
        let what = format!("importmulti, {KEYS} keys in one call");
        self.compare(&what, IMPORTS, ("importmulti", &scripts), &descriptors);
        let text = self.clients[0].with_checksum(&ranged(1));
        let range = json!([{"desc": text, "timestamp": "now", "range": [0, RANGE - 1]}]);
        let what = format!("importdescriptors, a range of {RANGE}");
        self.compare(&what, IMPORTS, ("importdescriptors", &range), &range);
    }

    /// Imports that rescan the whole chain.
    fn rescans(&mut self) {
        let paid = self.clients[0].with_checksum(&format!("wpkh({})", key(1).to_wif()));
        let unpaid = self.clients[0].with_checksum(&format!("wpkh({})", key(2).to_wif()));
        let many = self.clients[0].with_checksum(&ranged(2));
        for (what, request) in [
            ("that every block pays", json!([{"desc": paid, "timestamp": 0}])),
            ("that no block pays", json!([{"desc": unpaid, "timestamp": 0}])),
            ("of 1000 scripts that no block pays", json!([{"desc": many, "timestamp": 0, "range": [0, 999]}])),
        ] {
            let what = format!("importing a descriptor {what}, {BLOCKS} blocks");
            self.compare(&what, RESCANS, ("importdescriptors", &request), &request);
        }
    }

    /// Scans of all unspent outputs, one for each block: for one script without outputs, and for many scripts.
    fn scans(&mut self) {
        let many = ranged(2);
        for (what, object) in [
            ("one script", json!(format!("addr({})", address(&key(2))))),
            ("1000 scripts", json!({"desc": many, "range": [0, 999]})),
        ] {
            let scan = |client: &mut Client| {
                let once = || {
                    let began = Instant::now();
                    let found = client.call("scantxoutset", json!(["start", [object]]));
                    assert_eq!((&found["success"], &found["txouts"]), (&json!(true), &json!(BLOCKS)));
                    began.elapsed()
                };
                milliseconds(median(std::iter::repeat_with(once).take(RESCANS).collect()))
            };
            let times: Vec<f64> = self.clients.iter_mut().map(scan).collect();
            let what = format!("scantxoutset for {what} among {BLOCKS} outputs");
            print_row(&what, "ms", times[0], times.get(1).copied());
        }
    }

    /// Loads of a wallet with as many transactions as there are blocks.
    fn loads(&mut self) {
        let paid = self.clients[0].with_checksum(&format!("wpkh({})", key(1).to_wif()));
        let request = json!([{"desc": paid, "timestamp": 0}]);
        let load = |bench: &mut Self, node: usize| {
            bench.import(node, 1, "importdescriptors", &request);
            let name = json!([format!("w{}", bench.wallets)]);
            let client = &mut bench.clients[node];
            let once = || {
                client.call("unloadwallet", name.clone());
                let began = Instant::now();
                client.call("loadwallet", name.clone());
                began.elapsed()
            };
            let took = median(std::iter::repeat_with(once).take(LOADS).collect());
            let info = client.wallet(name[0].as_str().unwrap()).call("getwalletinfo", json!([]));
            assert_eq!(info["txcount"], json!(BLOCKS));
            milliseconds(took)
        };
        let ours = load(self, 0);
        let theirs = (self.clients.len() > 1).then(|| load(self, 1));
        print_row(&format!("loadwallet, {BLOCKS} transactions"), "ms", ours, theirs);
    }
}
