//! Many loaded wallets: their cost, and how soon a block reaches the wallets that it pays.
//!
//! `--in-front`: the host is in front of that bitcoind.
//!
//! Each wallet has its eight descriptors with a keypool of [`KEYPOOL`]. A larger keypool takes longer to make, and the script index takes
//! about 15 bytes for each script. A block of 2 MB pays ten wallets. While the host processes it, one client calls the ten, and others
//! call wallets that it does not pay.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bitcoin::hashes::Hash;
use bitcoin::opcodes::all::{OP_2DROP, OP_PUSHNUM_1};
use bitcoin::{Amount, Block, OutPoint, ScriptBuf, Transaction, Txid, Witness};
use outrigger_tests::pair::script as anyone;
use outrigger_tests::{Bitcoind, Client, Host, HostOptions, NOBODY, miner};
use serde_json::json;

use crate::payments::{output, spend};
use crate::{median, memory, milliseconds};

const WALLETS: usize = 5_000;
/// How many unused addresses each of a wallet's eight descriptors keeps.
const KEYPOOL: usize = 2;
const TOUCHED: usize = 10;
/// The block's payments, and the inputs whose witnesses make it 2 MB long.
const PAYMENTS: usize = 5_000;
const PADDING: usize = 8;
/// The items of each of these witnesses, and their length in bytes: the most that one script may drop.
const ITEMS: usize = 380;
const ITEM: usize = 520;
const PAID: u64 = 10_000;
/// The value of the spent coinbase, before the first halving.
const SUBSIDY: u64 = 50 * 100_000_000;
/// How many clients call other wallets meanwhile, and how long before the block they begin.
const CALLERS: usize = 2;
const BEFORE: Duration = Duration::from_secs(5);
const BLOCKS: usize = 5;

pub fn run(wallets: Option<usize>, in_front_of: Option<&str>) {
    let wallets = wallets.unwrap_or(WALLETS).max(2 * TOUCHED);
    let node =
        in_front_of.map(|path| Bitcoind::start_with(path, &["-checkblockindex=0", "-checkmempool=0", "-rest=1"]).0);
    let options = HostOptions::with(&[&format!("wallet.keypool={KEYPOOL}")]);
    let host = Host::start_before(tempfile::tempdir().unwrap(), options, node);
    let mut client = host.client();
    // Ends the initial block download, during which a bitcoind makes no templates.
    client.call("generatetoaddress", json!([1, NOBODY]));
    for number in 0..wallets {
        client.call("createwallet", json!([name(number)]));
    }
    println!("| what | outrigger |\n|---|---|");
    println!("| loaded wallets | {wallets} |");
    standing(&host);
    let mut miner = Miner::new(host.client());
    let (mut touched, mut during) = (Vec::new(), Vec::new());
    for round in 0..BLOCKS {
        let scripts = (0..TOUCHED).map(|number| script(&mut host.client().wallet(&name(number)))).collect();
        let block = miner.block(scripts);
        if round == 0 {
            println!("| the block | {:.2} MB |", (block.len() / 2) as f64 / 1e6);
        }
        let (took, calls) = measure(&host, wallets, &block, round + 1);
        touched.push(took);
        during.extend(calls);
        miner.confirm();
    }
    let touched = milliseconds(median(touched));
    println!("| from its reply until the {TOUCHED} wallets have told of it, median | {touched:.1} ms |");
    println!("| calls of others while the block comes, p50, p99 | {} |", percentiles(during));
    standing(&host);
}

fn name(number: usize) -> String {
    format!("w{number}")
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or_default();
    format!("{:.2} ms, {:.2} ms of {}", milliseconds(at(0.5)), milliseconds(at(0.99)), times.len())
}

fn standing(host: &Host) {
    let process = host.process_id();
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:")).unwrap().trim();
    println!("| threads, memory | {threads}, {:.0} MiB |", memory(process));
}

fn script(wallet: &mut Client) -> ScriptBuf {
    let address = wallet.call("getnewaddress", json!([]));
    let info = wallet.call("getaddressinfo", json!([address]));
    ScriptBuf::from_hex(info["scriptPubKey"].as_str().unwrap()).unwrap()
}

/// Submits a block during calls of other wallets. Returns the time until the paid wallets have told of it, and the times of those calls
/// since the block came.
fn measure(host: &Host, wallets: usize, block: &str, payments: usize) -> (Duration, Vec<Duration>) {
    let (came, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (came, done) = (&came, &done);
                scope.spawn(move || {
                    let mut during = Vec::new();
                    let mut number = caller;
                    while !done.load(Ordering::Relaxed) {
                        number += CALLERS;
                        let other = TOUCHED + number * 7 % (wallets - TOUCHED);
                        let mut client = host.client().wallet(&name(other));
                        let began = Instant::now();
                        let after = came.load(Ordering::Relaxed);
                        client.call("getbalances", json!([]));
                        if after {
                            during.push(began.elapsed());
                        }
                    }
                    during
                })
            })
            .collect();
        thread::sleep(BEFORE);
        came.store(true, Ordering::Relaxed);
        assert!(host.client().call("submitblock", json!([block])).is_null());
        let began = Instant::now();
        for number in 0..TOUCHED {
            let info = host.client().wallet(&name(number)).call("getwalletinfo", json!([]));
            assert_eq!(info["txcount"], payments);
        }
        let touched = began.elapsed();
        thread::sleep(Duration::from_millis(200));
        done.store(true, Ordering::Relaxed);
        (touched, callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect())
    })
}

struct Miner {
    client: Client,
    coinbases: Vec<Txid>,
}

impl Miner {
    fn new(client: Client) -> Self {
        let mut miner = Self { client, coinbases: Vec::new() };
        for number in 0..BLOCKS + 100 {
            let (block, coinbase) = miner.bare(|_| Vec::new());
            if number < BLOCKS {
                miner.coinbases.push(coinbase);
            }
            assert!(miner.client.call("submitblock", json!([block])).is_null());
        }
        miner
    }

    /// The next block with these transactions, and its coinbase, which anyone can spend.
    fn bare(&mut self, transactions: impl FnOnce(i64) -> Vec<Transaction>) -> (String, Txid) {
        let template = self.client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
        let mut block: Block = miner::assemble(&template, anyone());
        block.txdata.truncate(1);
        block.txdata.extend(transactions(template["height"].as_i64().unwrap()));
        let coinbase = &mut block.txdata[0];
        coinbase.output.truncate(1);
        coinbase.output[0].value = Amount::from_sat(SUBSIDY);
        coinbase.input[0].witness = Witness::from_slice(&[[0_u8; 32]]);
        if let Some(root) = block.witness_root() {
            let commitment = Block::compute_witness_commitment(&root, &[0; 32]);
            let script = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed], commitment.to_byte_array().as_slice()].concat();
            block.txdata[0].output.push(output(0, ScriptBuf::from_bytes(script)));
        }
        miner::set_merkle_root(&mut block);
        miner::grind(&mut block);
        (miner::hex(&block), block.txdata[0].compute_txid())
    }

    /// A block that pays these scripts and many others, after a block that makes the coins for it.
    fn block(&mut self, mut scripts: Vec<ScriptBuf>) -> String {
        let coin = OutPoint { txid: self.coinbases.remove(0), vout: 0 };
        let mut parts = vec![output(2 * PAID, anyone()); PAYMENTS];
        parts.extend(vec![output(PAID, dropping().to_p2wsh()); PADDING]);
        let split = spend(&[coin], parts);
        let txid = split.compute_txid();
        let (block, _) = self.bare(|_| vec![split]);
        assert!(self.client.call("submitblock", json!([block])).is_null());
        let height = self.client.call("getblockcount", json!([])).as_u64().unwrap();
        let other = |number: usize| {
            let mut bytes = vec![0, 20];
            bytes.extend_from_slice(&height.to_le_bytes());
            bytes.extend_from_slice(&(number as u64).to_le_bytes());
            bytes.extend_from_slice(&[7; 4]);
            ScriptBuf::from_bytes(bytes)
        };
        let mut payments: Vec<Transaction> = (0..PAYMENTS)
            .map(|number| {
                let coin = OutPoint { txid, vout: u32::try_from(number).unwrap() };
                let own = if number % (PAYMENTS / TOUCHED) == 7 { scripts.pop() } else { None };
                let to = own.unwrap_or_else(|| other(number));
                spend(&[coin], vec![output(PAID, to), output(PAID, other(PAYMENTS + number))])
            })
            .collect();
        assert!(scripts.is_empty());
        payments.extend((0..PADDING).map(|number| {
            let coin = OutPoint { txid, vout: u32::try_from(PAYMENTS + number).unwrap() };
            let mut padding = spend(&[coin], vec![output(PAID, anyone())]);
            padding.input[0].witness.clear();
            for _ in 0..ITEMS {
                padding.input[0].witness.push([1; ITEM]);
            }
            padding.input[0].witness.push(dropping().as_bytes());
            padding
        }));
        self.bare(|_| payments).0
    }

    fn confirm(&mut self) {
        let (block, _) = self.bare(|_| Vec::new());
        assert!(self.client.call("submitblock", json!([block])).is_null());
    }
}

/// A witness script that drops its whole stack.
fn dropping() -> ScriptBuf {
    let mut script = ScriptBuf::new();
    for _ in 0..ITEMS / 2 {
        script.push_opcode(OP_2DROP);
    }
    script.push_opcode(OP_PUSHNUM_1);
    script
}
