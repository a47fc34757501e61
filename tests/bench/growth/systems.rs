//! The measured systems: a host or a bitcoind, with a wallet of known content.

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{OutPoint, ScriptBuf, TxOut};
use outrigger_tests::{Bitcoind, Client, pair};
use serde_json::{Value, json};

use crate::payments::{Funds, LARGE_FEE, PER_BLOCK, output, script_of, spend};

/// Arguments of each bitcoind: no self-checks after each block, which regtest has by default; the REST interface, from which a host
/// reads blocks; a queue that holds the calls of many clients; and an index of transactions as the embedded chain's, from which
/// utxoupdatepsbt adds them.
pub const ARGUMENTS: [&str; 5] =
    ["-checkmempool=0", "-checkblockindex=0", "-rest=1", "-rpcworkqueue=256", "-txindex=1"];
/// A bitcoind's settings file, with the settings of the other benchmarks.
const SETTINGS: &str = "rejectparasites=0\n";
/// The label whose addresses get half of the payments.
pub const SHOP: &str = "shop";

/// The number of payments for each address of the shop.
const PAYMENTS_PER_ADDRESS: usize = 10;
/// The smallest payment, and the range above it, in satoshi.
const LEAST: u64 = 20_000;
const SPREAD: usize = 40_000;
/// The value of each coin of a payment with many inputs, and of each output of a foreign transaction, in satoshi.
pub const SMALL_COIN: u64 = 5_000;

/// Makes a call. Returns its result or the reason of the refusal.
pub fn ask(client: &mut Client, method: &str, params: Value) -> Result<Value, String> {
    client.try_call(method, params).map_err(|refused| refused.message)
}

/// A host or a bitcoind, and its wallet.
pub struct System {
    pub funds: Funds,
    pub wallet: Client,
    /// The address that got half of the payments.
    pub popular: Value,
    /// The script of an address without payments.
    other: ScriptBuf,
}

impl System {
    /// A system whose wallet got `size` payments: half to one address, half to many addresses of one label.
    pub fn new(client: Client, size: usize) -> Self {
        let mut funds = Funds::new(client);
        let mut wallet = funds.client.create_wallet("w", json!({}));
        let mut address = |label: &str| wallet.call("getnewaddress", json!([label, "bech32"]));
        let (popular, other) = (address("popular"), script_of(&address("other")));
        let shop: Vec<ScriptBuf> =
            (0..size.div_ceil(PAYMENTS_PER_ADDRESS)).map(|_| script_of(&address(SHOP))).collect();
        let to_popular = script_of(&popular);
        let payment = |number: usize| {
            let to = if number.is_multiple_of(2) { &to_popular } else { &shop[number / 2 % shop.len()] };
            (to.clone(), LEAST + (number * 7_919 % SPREAD) as u64)
        };
        for first in (0..size).step_by(PER_BLOCK) {
            let payments: Vec<_> = (first..size.min(first + PER_BLOCK)).map(payment).collect();
            let block = funds.payments(&payments);
            funds.mine(&block);
        }
        Self { funds, wallet, popular, other }
    }

    /// Continues with a client of the same node after its restart.
    fn go_on_with(&mut self, client: Client) {
        self.funds.client = client;
        self.funds.client.call("loadwallet", json!(["w"]));
        self.wallet = self.funds.client.wallet("w");
    }

    /// The wallet's number of transactions, and its balance.
    pub fn content(&mut self) -> (Value, Value) {
        let info = self.wallet.call("getwalletinfo", json!([]));
        let balances = self.wallet.call("getbalances", json!([]));
        (info["txcount"].clone(), balances["mine"]["trusted"].clone())
    }

    /// A signed transaction that spends `inputs` coins of the wallet, which a new block pays to it.
    pub fn gathering(&mut self, inputs: usize) -> Result<String, String> {
        let coins = self.coins(inputs, inputs, SMALL_COIN);
        let value = SMALL_COIN * inputs as u64 - LARGE_FEE;
        self.sign(&coins, vec![output(value, self.other.clone())])
    }

    /// Coins of the wallet, which a transaction in a new block pays. The other ones of its `outputs` outputs are not the wallet's.
    pub fn coins(&mut self, coins: usize, outputs: usize, value: u64) -> Vec<OutPoint> {
        let mut paid = vec![output(value, self.other.clone()); coins];
        paid.resize(outputs, output(value, pair::script()));
        let paying = self.funds.pay(paid);
        let txid = paying.compute_txid();
        self.funds.mine(&[paying]);
        (0..).take(coins).map(|vout| OutPoint { txid, vout }).collect()
    }

    /// A signed transaction that spends coins of the wallet.
    fn sign(&mut self, coins: &[OutPoint], outputs: Vec<TxOut>) -> Result<String, String> {
        let mut unsigned = spend(coins, outputs);
        unsigned.input.iter_mut().for_each(|input| input.witness.clear());
        let signed = ask(&mut self.wallet, "signrawtransactionwithwallet", json!([serialize_hex(&unsigned)]))?;
        assert_eq!(signed["complete"], true, "{}", signed["errors"]);
        Ok(signed["hex"].as_str().unwrap().to_owned())
    }

    /// Sends payments of the wallet, which spend coins of one transaction with this many outputs. Returns their ids.
    pub fn pay_often(&mut self, payments: usize, outputs: usize) -> Result<Vec<Value>, String> {
        let coins = self.coins(payments, outputs, SMALL_COIN);
        let change = script_of(&ask(&mut self.wallet, "getrawchangeaddress", json!(["bech32"]))?);
        let send = |coin: &OutPoint| {
            let outputs = vec![output(SMALL_COIN / 5, pair::script()), output(SMALL_COIN / 2, change.clone())];
            let signed = self.sign(&[*coin], outputs)?;
            ask(&mut self.funds.client, "sendrawtransaction", json!([signed]))
        };
        coins.iter().map(send).collect()
    }

    /// Sends a payment of the wallet to itself with this many outputs.
    pub fn split(&mut self, outputs: usize) -> Result<(), String> {
        let coins = self.coins(1, 1, SMALL_COIN * outputs as u64 + LARGE_FEE);
        let signed = self.sign(&coins, vec![output(SMALL_COIN, self.other.clone()); outputs])?;
        ask(&mut self.funds.client, "sendrawtransaction", json!([signed])).map(drop)
    }

    /// Sends a foreign transaction with this many outputs to one address of the wallet.
    pub fn stranger_pays(&mut self, outputs: usize) -> Result<(), String> {
        let transaction = self.funds.pay(vec![output(SMALL_COIN, self.other.clone()); outputs]);
        ask(&mut self.funds.client, "sendrawtransaction", json!([serialize_hex(&transaction)])).map(drop)
    }
}

/// A bitcoind with a wallet that got `size` payments. The wallet syncs its writes to disk, except while it is filled.
pub fn bitcoind_with_wallet(path: &str, size: usize) -> (Bitcoind, System) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bitcoin.conf");
    let settings = format!("-conf={}", file.display());
    std::fs::write(&file, format!("{SETTINGS}unsafesqlitesync=1\n")).unwrap();
    let arguments: Vec<&str> = ARGUMENTS.into_iter().chain([&*settings]).collect();
    let (mut node, _) = Bitcoind::start_with(path, &arguments);
    let mut system = System::new(node.client(), size);
    node.stop();
    std::fs::write(&file, SETTINGS).unwrap();
    node.start_again();
    system.go_on_with(node.client());
    (node, system)
}
