//! A wallet with as many payments as asked for: blocks full of transactions that pay it, made here and handed to the host
//! as a miner hands them in.

use bitcoin::absolute::LockTime;
use bitcoin::{Amount, Block, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness, transaction};
use outrigger_tests::{Client, miner};
use serde_json::json;

/// How many payments a block holds.
const PER_BLOCK: usize = 5000;
/// How many addresses they go to.
const ADDRESSES: usize = 500;
/// After so many further blocks a coinbase can be spent.
const MATURITY: usize = 100;
/// What each payment brings, and what it gives to somebody else, in satoshi.
const PAID: u64 = 12_345;
const ELSEWHERE: u64 = 6_789;

/// Pays a wallet.
pub struct Payer {
    /// A client of the host, which may have been restarted.
    pub client: Client,
    scripts: Vec<ScriptBuf>,
    /// Coins that anybody can spend.
    coins: Vec<OutPoint>,
    /// How many payments there have been.
    pub paid: usize,
}

/// The script of coins that anybody can spend.
fn anyone() -> ScriptBuf {
    ScriptBuf::from_bytes(vec![0x51])
}

fn spend(inputs: &[OutPoint], outputs: Vec<TxOut>) -> Transaction {
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

fn output(value: u64, script_pubkey: ScriptBuf) -> TxOut {
    TxOut { value: Amount::from_sat(value), script_pubkey }
}

impl Payer {
    /// Prepares enough coins for `payments` payments to `wallet`.
    pub fn new(mut client: Client, wallet: &mut Client, payments: usize) -> Self {
        let scripts = (0..ADDRESSES)
            .map(|number| {
                let address = wallet.call("getnewaddress", json!([format!("customer {number}")]));
                let info = wallet.call("getaddressinfo", json!([address]));
                ScriptBuf::from_hex(info["scriptPubKey"].as_str().unwrap()).unwrap()
            })
            .collect();
        let blocks = payments.div_ceil(PER_BLOCK) + 1;
        let coinbases: Vec<Txid> = (0..blocks).map(|_| mine(&mut client, Vec::new())).collect();
        for _ in 0..MATURITY {
            mine(&mut client, Vec::new());
        }
        let mut payer = Self { client, scripts, coins: Vec::new(), paid: 0 };
        for coinbase in coinbases {
            payer.split(OutPoint { txid: coinbase, vout: 0 });
        }
        payer
    }

    /// Makes one coin into many.
    fn split(&mut self, coin: OutPoint) {
        let parts = vec![output(PAID + ELSEWHERE, anyone()); PER_BLOCK];
        let split = spend(&[coin], parts);
        let txid = split.compute_txid();
        mine(&mut self.client, vec![split]);
        self.coins.extend((0..).take(PER_BLOCK).map(|vout| OutPoint { txid, vout }));
    }

    /// Pays so many times, and lets the wallet follow.
    pub fn pay(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let now = left.min(PER_BLOCK);
            let payments = (0..now)
                .map(|_| {
                    let coin = self.coins.pop().expect("enough coins were prepared");
                    let script = self.scripts[self.paid % self.scripts.len()].clone();
                    self.paid += 1;
                    spend(&[coin], vec![output(PAID, script), output(ELSEWHERE, anyone())])
                })
                .collect();
            mine(&mut self.client, payments);
            left -= now;
        }
    }
}

/// Mines a block with these transactions, and gives its coinbase, which anybody can spend.
fn mine(client: &mut Client, transactions: Vec<Transaction>) -> Txid {
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let mut block: Block = miner::assemble(&template, anyone());
    // Without witnesses a block needs no commitment to them.
    block.txdata.truncate(1);
    block.txdata[0].output.truncate(1);
    block.txdata[0].input[0].witness = Witness::new();
    block.txdata.extend(transactions);
    miner::set_merkle_root(&mut block);
    miner::grind(&mut block);
    let answer = client.call("submitblock", json!([miner::hex(&block)]));
    assert!(answer.is_null(), "a block was refused: {answer}");
    block.txdata[0].compute_txid()
}
