//! A wallet with any number of payments: blocks full of transactions that pay it, made here and submitted to the host as a miner
//! does.

use bitcoin::absolute::LockTime;
use bitcoin::{Amount, Block, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness, transaction};
use outrigger_tests::{Client, miner};
use serde_json::{Value, json};

const PER_BLOCK: usize = 5000;
/// The number of addresses that get the payments.
const ADDRESSES: usize = 500;
/// The blocks after which a coinbase is mature.
const MATURITY: usize = 100;
/// The amounts that a payment sends to the wallet and to others, in satoshi.
const PAID: u64 = 12_345;
const ELSEWHERE: u64 = 6_789;

pub struct Payer {
    client: Client,
    /// Another node that gets the same blocks.
    follower: Option<Client>,
    addresses: Vec<Value>,
    scripts: Vec<ScriptBuf>,
    /// Coins that anyone can spend.
    coins: Vec<OutPoint>,
    pub paid: usize,
}

/// The script of coins that anyone can spend.
pub fn anyone() -> ScriptBuf {
    ScriptBuf::from_bytes(vec![0x51])
}

pub fn spend(inputs: &[OutPoint], outputs: Vec<TxOut>) -> Transaction {
    let input = |outpoint: &OutPoint| TxIn {
        previous_output: *outpoint,
        script_sig: ScriptBuf::new(),
        sequence: Sequence::MAX,
        witness: Witness::new(),
    };
    Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: inputs.iter().map(input).collect(),
        output: outputs,
    }
}

pub fn output(value: u64, script_pubkey: ScriptBuf) -> TxOut {
    TxOut { value: Amount::from_sat(value), script_pubkey }
}

impl Payer {
    /// Prepares enough coins for `payments` payments to `wallet`.
    pub fn new(mut client: Client, wallet: &mut Client, payments: usize) -> Self {
        let addresses: Vec<Value> = (0..ADDRESSES).map(|number| address(wallet, number)).collect();
        let scripts = addresses
            .iter()
            .map(|address| {
                let info = wallet.call("getaddressinfo", json!([address]));
                ScriptBuf::from_hex(info["scriptPubKey"].as_str().unwrap()).unwrap()
            })
            .collect();
        let blocks = payments.div_ceil(PER_BLOCK) + 1;
        let coinbases: Vec<Txid> = (0..blocks).map(|_| mine(&mut client, None, Vec::new())).collect();
        for _ in 0..MATURITY {
            mine(&mut client, None, Vec::new());
        }
        let mut payer = Self { client, follower: None, addresses, scripts, coins: Vec::new(), paid: 0 };
        for coinbase in coinbases {
            payer.split(OutPoint { txid: coinbase, vout: 0 });
        }
        payer
    }

    /// Splits a coin into many.
    fn split(&mut self, coin: OutPoint) {
        let parts = vec![output(PAID + ELSEWHERE, anyone()); PER_BLOCK];
        let split = spend(&[coin], parts);
        let txid = split.compute_txid();
        mine(&mut self.client, self.follower.as_mut(), vec![split]);
        self.coins.extend((0..).take(PER_BLOCK).map(|vout| OutPoint { txid, vout }));
    }

    pub fn check_addresses(&self, wallet: &mut Client) {
        for (number, own) in self.addresses.iter().enumerate() {
            assert_eq!(address(wallet, number), *own, "the wallets are not the same");
        }
    }

    /// Submits all blocks so far, and all later ones, to another node.
    pub fn follow_with(&mut self, mut follower: Client) {
        let tip = self.client.call("getblockcount", json!([])).as_u64().unwrap();
        for height in 1..=tip {
            let hash = self.client.call("getblockhash", json!([height]));
            let block = self.client.call("getblock", json!([hash, 0]));
            assert!(follower.call("submitblock", json!([block])).is_null());
        }
        self.follower = Some(follower);
    }

    /// Stops submitting blocks to the other node.
    pub fn leave(&mut self) {
        self.follower = None;
    }

    fn payments(&mut self, count: usize) -> Vec<Transaction> {
        let payment = |_| {
            let coin = self.coins.pop().expect("enough coins were prepared");
            let script = self.scripts[self.paid % self.scripts.len()].clone();
            self.paid += 1;
            spend(&[coin], vec![output(PAID, script), output(ELSEWHERE, anyone())])
        };
        (0..count).map(payment).collect()
    }

    /// Makes `count` payments, and waits until the wallet has followed.
    pub fn pay(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let now = left.min(PER_BLOCK);
            let payments = self.payments(now);
            mine(&mut self.client, self.follower.as_mut(), payments);
            left -= now;
        }
    }
}

fn address(wallet: &mut Client, number: usize) -> Value {
    wallet.call("getnewaddress", json!([format!("customer {number}"), "bech32"]))
}

/// The next block, with only a coinbase.
fn bare(template: &Value) -> Block {
    let mut block: Block = miner::assemble(template, anyone());
    // A block without witnesses needs no commitment.
    block.txdata.truncate(1);
    block.txdata[0].output.truncate(1);
    block.txdata[0].input[0].witness = Witness::new();
    block
}

/// Mines a block with these transactions. Returns its coinbase, which anyone can spend.
pub fn mine(client: &mut Client, follower: Option<&mut Client>, transactions: Vec<Transaction>) -> Txid {
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let mut block = bare(&template);
    block.txdata.extend(transactions);
    miner::set_merkle_root(&mut block);
    miner::grind(&mut block);
    for node in [Some(client), follower].into_iter().flatten() {
        let answer = node.call("submitblock", json!([miner::hex(&block)]));
        assert!(answer.is_null(), "a block was refused: {answer}");
    }
    block.txdata[0].compute_txid()
}
