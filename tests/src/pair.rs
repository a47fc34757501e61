//! A host and a real bitcoind with the same blocks and transactions. A second host mines the blocks.
//!
//! All coins have a script that anyone can spend, so no wallet is needed.

use std::collections::VecDeque;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode::serialize_hex;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness};
use serde_json::{Value, json};

use crate::{Bitcoind, Client, Host, HostOptions, bitcoind, skip, wait_until};

/// The witness script of all coins: OP_TRUE.
const WITNESS_SCRIPT: [u8; 1] = [0x51];

/// The time before the first block, in Unix seconds, and the seconds between blocks.
const BEGIN: u64 = 1_700_000_000;
const SPACING: u64 = 600;

/// Arguments that give Bitcoin Knots the policy of Bitcoin Core.
const CORE_POLICY: [&str; 7] = [
    "-corepolicy=1",
    "-permitephemeral=anchor,send,dust",
    "-mempooltruc=enforce",
    "-mempoolfullrbf=1",
    "-datacarriersize=83",
    "-minrelaytxfee=0.00001",
    "-incrementalrelayfee=0.00001",
];

pub struct Pair {
    pub host: Host,
    pub node: Bitcoind,
    miner: Host,
    time: u64,
    coins: VecDeque<OutPoint>,
}

/// The script of all coins.
pub fn script() -> ScriptBuf {
    ScriptBuf::from_bytes(WITNESS_SCRIPT.to_vec()).to_p2wsh()
}

/// The value of a coin of [`Pair::coin`].
pub const COIN: Amount = Amount::from_int_btc(50);

/// A transaction that spends coins, and pays these amounts to the same script.
pub fn spend(coins: &[OutPoint], values: &[Amount]) -> Transaction {
    let input = |outpoint: &OutPoint| TxIn {
        previous_output: *outpoint,
        script_sig: ScriptBuf::new(),
        sequence: Sequence::ENABLE_RBF_NO_LOCKTIME,
        witness: Witness::from_slice(&[WITNESS_SCRIPT]),
    };
    Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: coins.iter().map(input).collect(),
        output: values.iter().map(|value| TxOut { value: *value, script_pubkey: script() }).collect(),
    }
}

/// An answer of the node with Bitcoin Core's reasons: Bitcoin Knots has its own reason for each rule of version 3.
fn as_core(text: &str) -> String {
    let mut parts = text.split("truc-");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '-');
        format!("{text}TRUC-violation{rest}")
    })
}

impl Pair {
    /// Starts them with a chain of `blocks` blocks; `None`, with a note, if no bitcoind is installed.
    pub fn start(mut options: HostOptions, arguments: &[&str], blocks: u64) -> Option<Self> {
        let program = bitcoind::installed()?;
        let policy: &[&str] = if bitcoind::is_knots(&program) { &CORE_POLICY } else { &[] };
        let (node, _) = Bitcoind::start_with(program, &[policy, arguments].concat());
        options.set.push(format!("release={}", bitcoind::release(&mut node.client())));
        let (host, miner) = (Host::start_with(options), Host::start());
        let mut pair = Self { host, node, miner, time: BEGIN, coins: VecDeque::new() };
        for _ in 0..blocks {
            pair.mine();
        }
        Some(pair)
    }

    /// Whether the node checks packages in another order than the host. If so, prints a note.
    pub fn is_later(&self) -> bool {
        let is_later = bitcoind::release(&mut self.node.client()) > 31;
        if is_later {
            skip("the host checks packages in the order of releases until 31");
        }
        is_later
    }

    pub fn clients(&self) -> [Client; 2] {
        [self.host.client(), self.node.client()]
    }

    /// Makes the same call to both. Their answers must have the same text. Returns the host's.
    #[track_caller]
    pub fn same(&self, method: &str, params: &Value) -> Value {
        let [ours, mut theirs] = self.clients().map(|mut client| match client.try_call(method, params.clone()) {
            Ok(result) => result,
            Err(error) => json!({"code": error.code, "message": error.message}),
        });
        if method == "testmempoolaccept" {
            // Only the node has this member.
            let results = theirs.as_array_mut().into_iter().flatten();
            results.filter_map(Value::as_object_mut).for_each(|result| drop(result.shift_remove("usage")));
        }
        assert_eq!(ours.to_string(), as_core(&theirs.to_string()), "{method} {params}");
        ours
    }

    /// Compares the mempools: their transactions and their sequence numbers. Returns the transactions' ids.
    #[track_caller]
    pub fn same_mempool(&self) -> Vec<String> {
        let [ours, theirs] = self.clients().map(|mut client| {
            let told = client.call("getrawmempool", json!([false, true]));
            let mut txids: Vec<_> =
                told["txids"].as_array().unwrap().iter().map(|txid| txid.as_str().unwrap().to_owned()).collect();
            txids.sort_unstable();
            (txids, told["mempool_sequence"].to_string())
        });
        assert_eq!(ours, theirs);
        ours.0
    }

    /// Lets time pass, in seconds.
    pub fn pass(&mut self, seconds: u64) {
        self.time += seconds;
        for mut client in self.clients().into_iter().chain([self.miner.client()]) {
            client.call("setmocktime", json!([self.time]));
        }
    }

    /// Mines a block of the mempool's transactions. Gives its hash.
    pub fn mine(&mut self) -> String {
        self.pass(SPACING);
        let address = bitcoin::Address::from_script(&script(), bitcoin::Network::Regtest).unwrap().to_string();
        let hash = self.miner.client().call("generatetoaddress", json!([1, address]))[0].clone();
        self.hand_over(&hash)
    }

    /// Mines a block of these transactions alone. Gives its hash.
    pub fn mine_only(&mut self, transactions: &[Transaction]) -> String {
        self.pass(SPACING);
        let address = bitcoin::Address::from_script(&script(), bitcoin::Network::Regtest).unwrap().to_string();
        let transactions: Vec<_> = transactions.iter().map(serialize_hex).collect();
        let block = self.miner.client().call("generateblock", json!([address, transactions]));
        self.hand_over(&block["hash"])
    }

    /// Makes the miner drop its best block and build a fork. The host and the node keep the block.
    pub fn fork(&mut self) {
        let mut miner = self.miner.client();
        let tip = miner.call("getbestblockhash", json!([]));
        miner.call("invalidateblock", json!([tip]));
    }

    fn hand_over(&mut self, hash: &Value) -> String {
        let mut miner = self.miner.client();
        let raw = miner.call("getblock", json!([hash, 0]));
        let answers = self.clients().map(|mut client| client.call("submitblock", json!([raw])));
        assert_eq!(answers[0], answers[1]);
        let block = miner.call("getblock", json!([hash]));
        self.coins.push_back(OutPoint::new(block["tx"][0].as_str().unwrap().parse().unwrap(), 0));
        hash.as_str().unwrap().to_owned()
    }

    /// The oldest coinbase output that this has not returned yet. The caller must know that it is mature.
    pub fn coin(&mut self) -> OutPoint {
        self.coins.pop_front().unwrap()
    }

    /// Sends a transaction to all three. The host and the node must answer the same.
    #[track_caller]
    pub fn send(&self, transaction: &Transaction) -> Value {
        let params = json!([serialize_hex(transaction), 0]);
        let _ = self.miner.client().try_call("sendrawtransaction", params.clone());
        self.same("sendrawtransaction", &params)
    }

    /// Offers a package to all three. The host and the node must answer the same.
    #[track_caller]
    pub fn send_package(&self, package: &[Transaction]) -> Value {
        let package: Vec<_> = package.iter().map(serialize_hex).collect();
        let _ = self.miner.client().try_call("submitpackage", json!([package, 0]));
        self.same("submitpackage", &json!([package, 0]))
    }

    /// Waits until the node has sent its pending notifications, and both have the same tip.
    pub fn settle(&self) {
        self.node.client().call("syncwithvalidationinterfacequeue", json!([]));
        wait_until("both have the same tip", || {
            let [ours, theirs] = self.clients().map(|mut client| client.call("getbestblockhash", json!([])));
            ours == theirs
        });
    }
}
