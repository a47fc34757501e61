//! The order of checks: of several errors, the plugin reports the same one as bitcoind.

use bitcoin::OutPoint;
use outrigger_sdk::testing::{StubHost, TestPlugin, WalletState};
use outrigger_sdk::{RpcError, RpcErrorCode};
use serde_json::{Value, json};

use super::{hex, spend};
use crate::SigningPlugin;

const LOCKED: &str = "Error: Please enter the wallet passphrase with walletpassphrase first.";
const WITH_WALLET: &str = "signrawtransactionwithwallet";
const UNDECODABLE: &str = "TX decode failed. Make sure the tx has at least one input.";

fn start(wallet: Option<WalletState>) -> (StubHost, TestPlugin<SigningPlugin>) {
    let host = StubHost::new();
    host.wallet.set(wallet);
    let plugin = host.start(json!({}));
    (host, plugin)
}

fn wallet(locked: bool) -> Option<WalletState> {
    let mut state = WalletState::empty("w");
    state.info.encrypted = locked;
    state.info.locked = locked;
    Some(state)
}

#[track_caller]
fn fails(plugin: &TestPlugin<SigningPlugin>, method: &str, params: Value, code: i32, message: &str) {
    let answer = plugin.call(method, params.clone());
    assert_eq!(answer, Err(RpcError::new(RpcErrorCode(code), message)), "{params}");
}

#[test]
fn signrawtransactionwithwallet_checks_in_order() {
    let tx = hex(&spend(&[OutPoint::null()]));
    let method = WITH_WALLET;
    let no_wallet = "No wallet is loaded. Load a wallet using loadwallet or create a new one with createwallet. (Note: A default wallet is no longer automatically created)";
    let (_host, none) = start(None);
    fails(&none, method, json!(["zz"]), -18, no_wallet);
    let (_host, locked) = start(wallet(true));
    fails(&locked, method, json!(["zz", [5], "x"]), -22, UNDECODABLE);
    fails(&locked, method, json!([tx, [5], "x"]), -13, LOCKED);
    let (_host, open) = start(wallet(false));
    fails(&open, method, json!([tx, [{}], "x"]), -3, "Missing scriptPubKey");
    fails(&open, method, json!([tx, [], "x"]), -8, "'x' is not a valid sighash parameter.");
}

#[test]
fn a_transaction_without_inputs_is_complete_if_it_has_no_outputs_either() {
    let (_host, plugin) = start(wallet(false));
    let (empty, output) = ("02000000000000000000", "02000000000100e1f50500000000015100000000");
    for (method, arguments) in [("signrawtransactionwithkey", json!([empty, []])), (WITH_WALLET, json!([empty]))] {
        assert_eq!(plugin.call(method, arguments), Ok(json!({"hex": empty, "complete": true})));
    }
    assert_eq!(plugin.call("combinerawtransaction", json!([[empty, empty]])), Ok(json!(empty)));
    fails(&plugin, "signrawtransactionwithkey", json!([output, []]), -22, UNDECODABLE);
    fails(&plugin, WITH_WALLET, json!([output]), -22, UNDECODABLE);
}

#[test]
fn combinerawtransaction_refuses_no_transactions_bad_ones_and_unknown_inputs() {
    let tx = hex(&spend(&[OutPoint::null()]));
    let (_host, plugin) = start(None);
    let fails = |params, code, message| fails(&plugin, "combinerawtransaction", params, code, message);
    fails(json!([[]]), -22, "Missing transactions");
    let undecodable = "TX decode failed for tx 1. Make sure the tx has at least one input.";
    fails(json!([[tx, "zz"]]), -22, undecodable);
    fails(json!([[tx]]), -25, "Input not found or already spent");
}
