//! importaddress, importpubkey, importprivkey and rescanblockchain.

use bitcoin::ScriptBuf;
use outrigger_sdk::RpcError;
use outrigger_sdk::service::events::RescanOutcome;
use outrigger_sdk::service::wallet::{Ownership, ScriptInfo, SolvingData};
use outrigger_sdk::standard::to_script;

use super::*;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
const TAPROOT: &str = "bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6";

impl Harness {
    /// Calls a method and ends its rescan with `outcome`. Returns the answer, and the time at which the rescan began.
    fn ended(&self, method: &str, arguments: Value, outcome: RescanOutcome) -> (Result<String, RpcError>, Option<u64>) {
        let call = self.plugin.begin(method, arguments);
        let from_time = self.wallet(|wallet| wallet.rescan).and_then(|(_, from_time)| from_time);
        self.finish_rescan(outcome);
        (call.json().unwrap(), from_time)
    }

    /// Adds a script to the wallet.
    fn know(&self, script: &str, ownership: Ownership, label: Option<&str>) {
        let info = ScriptInfo {
            ownership,
            solvable: true,
            label: label.map(str::to_owned),
            change: false,
            internal: false,
            timestamp: 0,
            descriptor: String::new(),
            parents: Vec::new(),
            solving: SolvingData::default(),
            origins: Vec::new(),
        };
        self.wallet(|wallet| wallet.scripts.insert(ScriptBuf::from_hex(script).unwrap(), info));
    }

    fn label_of(&self, script: &str) -> Option<String> {
        self.wallet(|wallet| wallet.scripts[&ScriptBuf::from_hex(script).unwrap()].label.clone())
    }
}

fn hex(scripts: &[ScriptBuf]) -> Vec<String> {
    scripts.iter().map(|script| script.to_hex_string()).collect()
}

#[test]
fn importaddress_watches_an_address_and_rescans_the_whole_chain() {
    let harness = Harness::new();
    let answer = harness.ended("importaddress", json!([ADDRESS, "l"]), RescanOutcome::Complete);
    assert_eq!(answer, (Ok("null".into()), Some(1)));
    let keys = harness.stored_keys();
    assert_eq!(hex(&keys.script_pubkeys), [K_WPKH]);
    assert_eq!((keys.label.as_str(), keys.internal, keys.solving_data, keys.timestamp), ("l", false, false, 1));
    assert_eq!(harness.plugin.call("importaddress", json!([ADDRESS, "l", false])), Ok(Value::Null));
    let aborted = harness.ended("importaddress", json!([ADDRESS]), RescanOutcome::Aborted).0.unwrap_err();
    assert_eq!((aborted.code.0, aborted.message.as_str()), (-1, "Rescan aborted by user."));
    let unreadable = harness.ended("importaddress", json!([ADDRESS]), RescanOutcome::Unreadable { block_time: 9 });
    let unreadable = unreadable.0.unwrap_err();
    let message = "Rescan was unable to fully rescan the blockchain. Some transactions may be missing.";
    assert_eq!((unreadable.code.0, unreadable.message.as_str()), (-4, message));
}

#[test]
fn importaddress_of_a_script_watches_its_p2sh_form_on_request() {
    let harness = Harness::new();
    harness.plugin.call("importaddress", json!(["51", "", false])).unwrap();
    let keys = harness.stored_keys();
    assert_eq!((hex(&keys.script_pubkeys), hex(&keys.scripts)), (vec!["51".into()], vec!["51".into()]));
    harness.plugin.call("importaddress", json!(["51", "", false, true])).unwrap();
    let p2sh = ScriptBuf::from_hex("51").unwrap().to_p2sh();
    assert_eq!(hex(&harness.stored_keys().script_pubkeys), ["51".to_owned(), p2sh.to_hex_string()]);
}

#[test]
fn importaddress_of_the_wallets_own_address_sets_its_label() {
    let harness = Harness::new();
    harness.know(K_WPKH, Ownership::Spendable, None);
    harness.plugin.call("importaddress", json!([ADDRESS, "mine", false])).unwrap();
    assert!(harness.stored_keys().script_pubkeys.is_empty());
    assert_eq!(harness.label_of(K_WPKH).as_deref(), Some("mine"));
}

#[test]
fn importpubkey_watches_the_forms_that_pay_to_the_key() {
    let harness = Harness::new();
    harness.plugin.call("importpubkey", json!([K, "", false])).unwrap();
    let keys = harness.stored_keys();
    let nested = ScriptBuf::from_hex(K_WPKH).unwrap().to_p2sh().to_hex_string();
    assert_eq!(hex(&keys.script_pubkeys), [K_WPKH.to_owned(), nested, K_PKH.to_owned()]);
    assert!(keys.solving_data && !keys.internal && !keys.keypool);
    assert_eq!(keys.public_keys.len(), 1);
}

#[test]
fn importprivkey_keeps_labels_unless_one_is_given() {
    let harness = Harness::new();
    harness.know(K_PKH, Ownership::WatchOnly, Some("old"));
    harness.know(K_WPKH, Ownership::WatchOnly, None);
    harness.plugin.call("importprivkey", json!([K_WIF, null, false])).unwrap();
    let keys = harness.stored_keys();
    assert_eq!((keys.private_keys[0].expose(), keys.internal, keys.timestamp), (K_WIF, true, 1));
    assert_eq!((harness.label_of(K_PKH).unwrap(), harness.label_of(K_WPKH).unwrap()), ("old".into(), String::new()));
    harness.plugin.call("importprivkey", json!([K_WIF, "new", false])).unwrap();
    assert_eq!(harness.label_of(K_PKH).as_deref(), Some("new"));
}

#[test]
fn single_imports_fail_with_the_messages_of_bitcoind() {
    let harness = Harness::new();
    harness.refused("importaddress", json!(["x"]), -5, "Invalid Bitcoin address or script");
    harness.refused("importaddress", json!([""]), -5, "Invalid Bitcoin address or script");
    harness.refused("importaddress", json!([ADDRESS, "*"]), -11, "Invalid label name");
    let message = "Cannot use the p2sh flag with an address - use a script instead";
    harness.refused("importaddress", json!([ADDRESS, "", true, true]), -5, message);
    assert!(to_script(TAPROOT, bitcoin::Network::Regtest).is_ok());
    harness.refused("importaddress", json!([TAPROOT]), -5, "Bech32m addresses cannot be imported into legacy wallets");
    harness.refused("importpubkey", json!(["x"]), -5, "Pubkey \"x\" must be a hex string");
    let message = "Pubkey \"aa\" must have a length of either 33 or 65 bytes";
    harness.refused("importpubkey", json!(["aa"]), -5, message);
    let bad = "05".repeat(33);
    let message = format!("Pubkey \"{bad}\" must be cryptographically valid.");
    harness.refused("importpubkey", json!([bad]), -5, &message);
    harness.refused("importprivkey", json!(["x"]), -5, "Invalid private key encoding");
    harness.wallet(|wallet| wallet.info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    harness.refused("importprivkey", json!([K_WIF]), -13, message);
    let watching = Harness::watch_only();
    let message = "Cannot import private keys to a wallet with private keys disabled";
    watching.refused("importprivkey", json!([K_WIF]), -4, message);
}

#[test]
fn rescanblockchain_returns_the_heights() {
    let harness = Harness::new();
    let heights = |arguments: Value| {
        let answer = harness.ended("rescanblockchain", arguments, RescanOutcome::Complete).0.unwrap();
        (answer, harness.wallet(|wallet| wallet.rescan_heights))
    };
    let expected = |first: u32, last: u32| format!(r#"{{"start_height":{first},"stop_height":{last}}}"#);
    assert_eq!(heights(json!([])), (expected(0, 1), Some((0, None))));
    assert_eq!(heights(json!([1, 1])), (expected(1, 1), Some((1, Some(1)))));
    let failed = |outcome| harness.ended("rescanblockchain", json!([]), outcome).0.unwrap_err();
    let aborted = failed(RescanOutcome::Aborted);
    assert_eq!((aborted.code.0, aborted.message.as_str()), (-1, "Rescan aborted."));
    let unreadable = failed(RescanOutcome::Unreadable { block_time: 1 });
    let message = "Rescan failed. Potentially corrupted data files.";
    assert_eq!((unreadable.code.0, unreadable.message.as_str()), (-1, message));
    harness.refused("rescanblockchain", json!([2]), -8, "Invalid start_height");
    harness.refused("rescanblockchain", json!([1, 0]), -8, "stop_height must be greater than start_height");
    harness.wallet(|wallet| wallet.info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    harness.refused("rescanblockchain", json!([-1]), -13, message);
}
