//! Signing requests: any JSON as the arguments, and any transaction with outputs that it may spend.

use outrigger_sdk::params::encode_hex;
use outrigger_sdk::standard::transaction_from_hex;
use outrigger_sdk::testing::{StubHost, TestPlugin, WalletState};
use outrigger_signing::SigningPlugin;
use serde_json::{Value, json};

/// The key 1, compressed, for test chains.
const WIF: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
/// Scripts that the key can sign for, and others.
const SCRIPTS: [&str; 4] = [
    "0014751e76e8199196d454941c45d1b3a323f1433bd6",
    "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac",
    "5120da4710964f7852695de2da025290e24af6d8c281de5a0b902b7135fd9fd74d21",
    "51210279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f8179851ae",
];
/// The most inputs for which the target invents outputs.
const MAX_INPUTS: usize = 16;

fn start() -> (StubHost, TestPlugin<SigningPlugin>) {
    let host = StubHost::new();
    host.wallet.set(Some(WalletState::empty("w")));
    let plugin = host.start(json!({}));
    (host, plugin)
}

pub fn signing(bytes: &[u8]) {
    let (_host, plugin) = start();
    if let Ok(Value::Array(arguments)) = serde_json::from_slice(bytes) {
        for method in ["signrawtransactionwithkey", "signrawtransactionwithwallet"] {
            drop(plugin.call_json(method, Value::Array(arguments.clone())));
        }
        return;
    }
    let text = encode_hex(bytes);
    let Some(tx) = transaction_from_hex(&text) else { return };
    let prevtx = |(input, script): (&bitcoin::TxIn, &&str)| {
        let outpoint = input.previous_output;
        json!({"txid": outpoint.txid, "vout": outpoint.vout, "scriptPubKey": script, "amount": 1,
            "redeemScript": script})
    };
    let prevtxs: Vec<Value> = tx.input.iter().take(MAX_INPUTS).zip(SCRIPTS.iter().cycle()).map(prevtx).collect();
    let Ok(answer) = plugin.call("signrawtransactionwithkey", json!([text, [WIF], prevtxs])) else { return };
    // A second call does not change the signed transaction.
    let again = plugin.call("signrawtransactionwithkey", json!([answer["hex"], [WIF], prevtxs]));
    assert_eq!(again, Ok(answer));
}
