//! The measured systems: a host or a bitcoind, with a wallet of known content.

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{OutPoint, ScriptBuf};
use outrigger_tests::{Bitcoind, Client};
use serde_json::{Value, json};

use crate::payments::{Funds, LARGE_FEE, PER_BLOCK, output, script_of, spend};

/// Arguments of each bitcoind: no self-checks after each block, which regtest has by default; the REST interface, from which a host
/// reads blocks; and a queue that holds the calls of many clients.
pub const ARGUMENTS: [&str; 4] = ["-checkmempool=0", "-checkblockindex=0", "-rest=1", "-rpcworkqueue=256"];
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
const SMALL_COIN: u64 = 5_000;

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
        let paying = self.funds.pay(vec![output(SMALL_COIN, self.other.clone()); inputs]);
        let txid = paying.compute_txid();
        self.funds.mine(&[paying]);
        let coins: Vec<OutPoint> = (0..).take(inputs).map(|vout| OutPoint { txid, vout }).collect();
        let value = SMALL_COIN * inputs as u64 - LARGE_FEE;
        let mut unsigned = spend(&coins, vec![output(value, self.other.clone())]);
        unsigned.input.iter_mut().for_each(|input| input.witness.clear());
        let signed = ask(&mut self.wallet, "signrawtransactionwithwallet", json!([serialize_hex(&unsigned)]))?;
        assert_eq!(signed["complete"], true, "{}", signed["errors"]);
        Ok(signed["hex"].as_str().unwrap().to_owned())
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
