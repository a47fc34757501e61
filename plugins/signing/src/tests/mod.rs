mod hostile;
mod order;
mod outputs;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode::serialize_hex;
use bitcoin::hashes::Hash;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness};
use outrigger_sdk::RpcError;
use outrigger_sdk::testing::{StubHost, TestPlugin};
use serde_json::{Value, json};

use crate::SigningPlugin;

const WIF: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
const WPKH: &str = "0014751e76e8199196d454941c45d1b3a323f1433bd6";

fn spend(outpoints: &[OutPoint]) -> Transaction {
    let input = |outpoint: &OutPoint| TxIn {
        previous_output: *outpoint,
        script_sig: ScriptBuf::new(),
        sequence: Sequence::MAX,
        witness: Witness::new(),
    };
    Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: outpoints.iter().map(input).collect(),
        output: vec![pays(1_000)],
    }
}

fn pays(value: u64) -> TxOut {
    TxOut { value: Amount::from_sat(value), script_pubkey: ScriptBuf::from_hex(WPKH).unwrap() }
}

fn start() -> (StubHost, TestPlugin<SigningPlugin>) {
    let host = StubHost::new();
    let plugin = host.start(json!({}));
    (host, plugin)
}

fn outpoint(vout: u32) -> OutPoint {
    OutPoint { txid: Txid::from_byte_array([7; 32]), vout }
}

fn sign(plugin: &TestPlugin<SigningPlugin>, tx: &Transaction, prevtxs: Value) -> Result<Value, RpcError> {
    plugin.call("signrawtransactionwithkey", json!([hex(tx), [WIF], prevtxs]))
}

fn hex(tx: &Transaction) -> String {
    serialize_hex(tx)
}
