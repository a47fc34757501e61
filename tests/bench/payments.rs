//! Blocks full of payments, from coins that anyone can spend.

use bitcoin::address::NetworkUnchecked;
use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{Address, Amount, Network, OutPoint, ScriptBuf, Transaction, TxOut};
use outrigger_tests::pair::{self, COIN, script as anyone};
use outrigger_tests::{Client, NOBODY};
use serde_json::{Value, json};

/// The coinbases that fund all payments, and the blocks until the first one is mature.
const COINBASES: usize = 10;
const MATURITY: usize = 100;
/// The payments in a block.
pub const PER_BLOCK: usize = 5_000;
/// The fee of a payment, and of a transaction with thousands of inputs or outputs, in satoshi.
const FEE: u64 = 1_000;
pub const LARGE_FEE: u64 = 200_000;
/// The number of addresses that get a [`Payer`]'s payments, and the amount of each payment, in satoshi.
const ADDRESSES: usize = 500;
const PAID: u64 = 12_345;

/// A transaction that spends coins which anyone can spend.
pub fn spend(coins: &[OutPoint], output: Vec<TxOut>) -> Transaction {
    Transaction { output, ..pair::spend(coins, &[]) }
}

pub fn output(value: u64, script_pubkey: ScriptBuf) -> TxOut {
    TxOut { value: Amount::from_sat(value), script_pubkey }
}

pub fn script_of(address: &Value) -> ScriptBuf {
    let address: Address<NetworkUnchecked> = address.as_str().unwrap().parse().unwrap();
    address.assume_checked().script_pubkey()
}

/// One coin that anyone can spend, and a client of the node that spends it.
pub struct Funds {
    pub client: Client,
    coin: OutPoint,
    satoshi: u64,
}

impl Funds {
    pub fn new(mut client: Client) -> Self {
        let to = Address::from_script(&anyone(), Network::Regtest).unwrap().to_string();
        let hashes = client.call("generatetoaddress", json!([COINBASES, to]));
        client.call("generatetoaddress", json!([MATURITY, NOBODY]));
        let coinbase = |hash: &Value| {
            let block = client.call("getblock", json!([hash]));
            OutPoint::new(block["tx"][0].as_str().unwrap().parse().unwrap(), 0)
        };
        let coinbases: Vec<OutPoint> = hashes.as_array().unwrap().iter().map(coinbase).collect();
        let satoshi = COIN.to_sat() * COINBASES as u64 - LARGE_FEE;
        let merged = spend(&coinbases, vec![output(satoshi, anyone())]);
        let mut funds = Self { client, coin: OutPoint::new(merged.compute_txid(), 0), satoshi };
        funds.mine(&[merged]);
        funds
    }

    /// Mines a block of these transactions, and returns its hash.
    pub fn mine(&mut self, transactions: &[Transaction]) -> Value {
        let transactions: Vec<String> = transactions.iter().map(serialize_hex).collect();
        self.client.call("generateblock", json!([NOBODY, transactions]))["hash"].clone()
    }

    /// A transaction with these outputs, and a last output with the remainder.
    pub fn pay(&mut self, mut outputs: Vec<TxOut>) -> Transaction {
        let last = u32::try_from(outputs.len()).unwrap();
        let paid: u64 = outputs.iter().map(|output| output.value.to_sat()).sum();
        self.satoshi -= paid + LARGE_FEE;
        outputs.push(output(self.satoshi, anyone()));
        let transaction = spend(&[self.coin], outputs);
        self.coin = OutPoint::new(transaction.compute_txid(), last);
        transaction
    }

    /// Pays these amounts in satoshi to these scripts. The first transaction makes the coins. Each further transaction is one payment.
    pub fn payments(&mut self, payments: &[(ScriptBuf, u64)]) -> Vec<Transaction> {
        let coins = payments.iter().map(|(_, satoshi)| output(satoshi + FEE, anyone()));
        let split = self.pay(coins.collect());
        let txid = split.compute_txid();
        let payment = |(vout, (to, satoshi)): (u32, &(ScriptBuf, u64))| {
            spend(&[OutPoint { txid, vout }], vec![output(*satoshi, to.clone())])
        };
        let payments = (0..).zip(payments).map(payment);
        std::iter::once(split).chain(payments).collect()
    }
}

/// Pays a wallet any number of times.
pub struct Payer {
    funds: Funds,
    /// Another node that gets the same blocks.
    follower: Option<Client>,
    addresses: Vec<Value>,
    pub paid: usize,
}

impl Payer {
    pub fn new(client: Client, wallet: &mut Client) -> Self {
        let addresses = (0..ADDRESSES).map(|number| address(wallet, number)).collect();
        Self { funds: Funds::new(client), follower: None, addresses, paid: 0 }
    }

    pub fn check_addresses(&self, wallet: &mut Client) {
        for (number, own) in self.addresses.iter().enumerate() {
            assert_eq!(address(wallet, number), *own, "the wallets are not the same");
        }
    }

    /// Submits all blocks so far, and all later ones, to another node.
    pub fn follow_with(&mut self, follower: Client) {
        self.follower = Some(follower);
        let tip = self.funds.client.call("getblockcount", json!([])).as_u64().unwrap();
        for height in 1..=tip {
            let hash = self.funds.client.call("getblockhash", json!([height]));
            self.submit(&hash);
        }
    }

    /// Stops submitting blocks to the other node.
    pub fn leave(&mut self) {
        self.follower = None;
    }

    /// Submits a block to the other node.
    fn submit(&mut self, hash: &Value) {
        if let Some(follower) = &mut self.follower {
            let block = self.funds.client.call("getblock", json!([hash, 0]));
            assert_eq!(follower.call("submitblock", json!([block])), Value::Null);
        }
    }

    /// Mines blocks with `count` payments.
    pub fn pay(&mut self, count: usize) {
        let last = self.paid + count;
        while self.paid < last {
            let now = self.paid..last.min(self.paid + PER_BLOCK);
            self.paid = now.end;
            let payments: Vec<_> = now.map(|number| (script_of(&self.addresses[number % ADDRESSES]), PAID)).collect();
            let block = self.funds.payments(&payments);
            let hash = self.funds.mine(&block);
            self.submit(&hash);
        }
    }
}

fn address(wallet: &mut Client, number: usize) -> Value {
    wallet.call("getnewaddress", json!([format!("customer {number}"), "bech32"]))
}
