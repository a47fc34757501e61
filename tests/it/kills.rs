//! A host is killed at random instants while blocks arrive, reorganise and confirm transactions. It loses no block that it has
//! acknowledged.
//!
//! Several hosts run at the same time. `OUTRIGGER_KILLS` sets how often they are killed in total, `OUTRIGGER_KILLS_SEED` seeds the
//! instants.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{Amount, Block, OutPoint, ScriptBuf, Txid};
use outrigger_tests::pair::{script, spend};
use outrigger_tests::{Client, Host, miner};
use serde_json::{Value, json};

const KILLS: u64 = 40;
const HOSTS: u64 = 4;
/// The longest time from a start to the kill, in microseconds.
const MAX_LIFE: u64 = 400_000;
/// The spendable outputs at the beginning.
const OUTPUTS: usize = 1_000;
const OUTPUT_VALUE: u64 = 4_000_000;
const FEE: u64 = 1_000;

/// The script that commits to the witnesses of a block without transactions.
const EMPTY_COMMITMENT: &str = "6a24aa21a9ede2f61c3f71d1defd3fa999dfa36953755c690689799962b48bebd836974e8cf9";

/// A sequence of numbers that is the same for the same seed (xorshift64*).
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().unwrap())
}

/// The state that the host has acknowledged, and must keep.
#[derive(Default)]
struct Answered {
    /// Blocks that submitblock accepted (null), with their heights.
    valid: BTreeMap<String, u64>,
    /// Blocks with another answer that the host still keeps.
    stored: Vec<String>,
    /// Spendable outputs, with their values.
    outputs: Vec<(OutPoint, u64)>,
}

/// The time from a start of the host to its kill, with the work of its client.
struct Life<'a> {
    client: Client,
    numbers: &'a mut Numbers,
    answered: &'a mut Answered,
}

impl Life<'_> {
    /// Works until the host is gone.
    fn run(mut self) {
        while self.step().is_some() {}
    }

    fn step(&mut self) -> Option<()> {
        match self.numbers.below(10) {
            0..4 => self.pay(),
            4..8 => self.extend(),
            _ => self.reorganise(),
        }
    }

    fn template(&mut self) -> Option<Value> {
        let template = self.client.call_while_alive("getblocktemplate", json!([{"rules": ["segwit"]}]))?;
        Some(template.unwrap())
    }

    fn pay(&mut self) -> Option<()> {
        // A kill loses the mempool, and so the outputs of its transactions.
        if self.answered.outputs.is_empty() {
            return self.extend();
        }
        let index = usize::try_from(self.numbers.below(self.answered.outputs.len() as u64)).unwrap();
        let (outpoint, value) = self.answered.outputs.swap_remove(index);
        let tx = spend(&[outpoint], &[Amount::from_sat(value - FEE)]);
        let txid = tx.compute_txid();
        // The host refuses a chain of transactions that is too long. The output may be spent later.
        let is_sent = self.client.call_while_alive("sendrawtransaction", json!([serialize_hex(&tx)]))?.is_ok();
        if is_sent && value > 2 * FEE {
            self.answered.outputs.push((OutPoint { txid, vout: 0 }, value - FEE));
        }
        Some(())
    }

    /// Submits a block on the tip.
    fn extend(&mut self) -> Option<()> {
        let template = self.template()?;
        let block = miner::build(&template, self.script());
        self.submit(&block, template["height"].as_u64().unwrap())
    }

    /// Submits a longer branch that replaces the tip.
    fn reorganise(&mut self) -> Option<()> {
        let mut template = self.template()?;
        let height = template["height"].as_u64().unwrap();
        let depth = 1 + self.numbers.below(2);
        let fork = self.client.call_while_alive("getblockhash", json!([height - 1 - depth]))?.unwrap();
        template["previousblockhash"] = fork;
        template["transactions"] = json!([]);
        template["default_witness_commitment"] = json!(EMPTY_COMMITMENT);
        for height in height - depth..=height {
            template["height"] = json!(height);
            template["coinbasevalue"] = json!(5_000_000_000_u64 >> (height / 150).min(63));
            let block = miner::build(&template, self.script());
            self.submit(&block, height)?;
            template["previousblockhash"] = json!(block.block_hash().to_string());
            template["curtime"] = json!(template["curtime"].as_u64().unwrap() + 1);
        }
        Some(())
    }

    fn submit(&mut self, block: &Block, height: u64) -> Option<()> {
        let answer = self.client.call_while_alive("submitblock", json!([miner::hex(block)]))?.unwrap();
        let hash = block.block_hash().to_string();
        match answer.as_str() {
            None => drop(self.answered.valid.insert(hash, height)),
            Some("inconclusive") => self.answered.stored.push(hash),
            Some(reason) => panic!("block {hash} was refused: {reason}"),
        }
        Some(())
    }

    /// An output script that no other block has.
    fn script(&mut self) -> ScriptBuf {
        let tag = self.numbers.below(u64::from(u32::MAX)).to_le_bytes();
        ScriptBuf::from_bytes([&[0x04, tag[0], tag[1], tag[2], tag[3], 0x75, 0x51][..]].concat())
    }
}

/// A host with outputs to spend.
fn prepare(host: &Host, answered: &mut Answered) {
    let mut client = host.client();
    let mut mine = |height: u64| {
        let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
        let block = miner::build(&template, script());
        assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
        answered.valid.insert(block.block_hash().to_string(), height);
        OutPoint { txid: block.txdata[0].compute_txid(), vout: 0 }
    };
    let funding = mine(1);
    (2..=101).for_each(|height| _ = mine(height));
    let tx = spend(&[funding], &[Amount::from_sat(OUTPUT_VALUE); OUTPUTS]);
    let txid: Txid = tx.compute_txid();
    host.client().call("sendrawtransaction", json!([serialize_hex(&tx), 0]));
    // Deep enough that no reorganisation returns the transaction to the mempool, which a kill loses.
    (102..=104).for_each(|height| _ = mine(height));
    answered.outputs.extend((0..).take(OUTPUTS).map(|vout| (OutPoint { txid, vout }, OUTPUT_VALUE)));
}

/// Checks that the chain is consistent and has all blocks of `answered`, or only the last ones unless `everything` is set.
fn check(client: &mut Client, answered: &Answered, everything: bool) {
    let height = client.call("getblockcount", json!([])).as_u64().unwrap();
    let best = client.call("getbestblockhash", json!([]));
    let highest = answered.valid.values().max().unwrap();
    assert!(height >= *highest, "the tip is at {height}, and a block at {highest} was answered null");
    let lowest = if everything { 0 } else { height.saturating_sub(20) };
    let mut expected = best;
    for height in (lowest..=height).rev() {
        assert_eq!(client.call("getblockhash", json!([height])), expected, "height {height}");
        let header = client.call("getblockheader", json!([expected]));
        assert_eq!(header["height"], json!(height));
        expected = header["previousblockhash"].clone();
    }
    let recent = |height: &u64| everything || *height + 20 > *highest;
    for (hash, _) in answered.valid.iter().filter(|(_, height)| recent(height)) {
        let hex = client.call("getblock", json!([hash, 0]));
        assert!(hex.as_str().unwrap().len() > 160, "{hash}");
    }
    for hash in &answered.stored {
        client.call("getblock", json!([hash, 0]));
    }
}

/// Lets a client work with a host for `life`, then kills the host and starts it again.
pub fn cut_short(mut host: Host, life: Duration, work: impl FnOnce(Client) + Send) -> Host {
    std::thread::scope(|scope| {
        let client = host.client();
        let (begun, begins) = mpsc::channel();
        scope.spawn(move || {
            begun.send(()).unwrap();
            work(client);
        });
        begins.recv().unwrap();
        // Not a wait for an event: the kill happens at this instant.
        std::thread::sleep(life);
        host.kill();
    });
    host.start_again()
}

/// Spreads OUTRIGGER_KILLS kills, or `kills` by default, over several hosts, each with numbers of its own.
pub fn share(hosts: u64, kills: u64, seed: u64, kill_often: fn(u64, Numbers)) {
    let (kills, seed) = (setting("OUTRIGGER_KILLS", kills), setting("OUTRIGGER_KILLS_SEED", seed));
    eprintln!("OUTRIGGER_KILLS_SEED={seed}");
    std::thread::scope(|scope| {
        for number in 0..hosts.min(kills) {
            // The first hosts take the remainder.
            let share = kills / hosts + u64::from(number < kills % hosts);
            scope.spawn(move || kill_often(share, Numbers((seed ^ (number << 32)).max(1))));
        }
    });
}

/// Kills one host this many times, with a client that works meanwhile.
fn kill_often(kills: u64, mut numbers: Numbers) {
    let mut host = Host::start();
    let mut answered = Answered::default();
    prepare(&host, &mut answered);
    for _ in 0..kills {
        let life = Duration::from_micros(numbers.below(MAX_LIFE));
        let (numbers, answered_by) = (&mut numbers, &mut answered);
        host = cut_short(host, life, |client| Life { client, numbers, answered: answered_by }.run());
        check(&mut host.client(), &answered, false);
    }
    check(&mut host.client(), &answered, true);
    assert!(answered.valid.len() > 101, "no life was long enough to do anything");
}

#[test]
fn chain_keeps_every_answered_block_through_kills_at_any_instant() {
    share(HOSTS, KILLS, 0x6f75_7472, kill_often);
}
