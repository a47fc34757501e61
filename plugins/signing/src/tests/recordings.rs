//! Replays signing requests that were recorded with a real bitcoind: the answers are the same bytes.
//!
//! The recordings are of Bitcoin Core 29 with Knots' additions. Where the plugin completes more, that is listed here.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::{Block, Network, OutPoint, TxOut};
use outrigger_sdk::descriptor::{Checksum, Descriptor};
use outrigger_sdk::script::ScriptError;
use outrigger_sdk::service::chain::Coin;
use outrigger_sdk::service::wallet::{Ownership, ScriptInfo};
use outrigger_sdk::testing::{StubHost, TestPlugin, WalletState};
use serde_json::{Value, json};

use super::MANIFEST;
use crate::SigningPlugin;

/// Requests that this plugin completes and the recorded bitcoind did not: 0.21 derived the P2WPKH redeem scripts of given keys,
/// and the plugin derives their BIP 86 outputs as well.
const COMPLETED_BEYOND: [&str; 2] = ["chain sh-wpkh: keys, nothing else", "tr of the BIP 86 tweak, both forms given"];

/// How refusals begin that the host makes, before a call reaches a plugin.
const TYPES: &str = "Wrong type passed:";

fn data(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "data", name].iter().collect();
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The UTXO set at the end of the recorded chain.
fn coins() -> HashMap<OutPoint, TxOut> {
    let mut coins = HashMap::new();
    for line in data("chain.hex").lines() {
        let block: Block = deserialize_hex(line).unwrap();
        for tx in &block.txdata {
            for input in &tx.input {
                coins.remove(&input.previous_output);
            }
            let txid = tx.compute_txid();
            for (vout, output) in (0..).zip(&tx.output) {
                coins.insert(OutPoint { txid, vout }, output.clone());
            }
        }
    }
    coins
}

/// A wallet that holds a descriptor with private keys.
fn wallet(text: &str) -> WalletState {
    let mut state = WalletState::empty("recorded");
    for descriptor in Descriptor::parse(text, Network::Regtest, Checksum::Required).unwrap() {
        for script in descriptor.expand(0).unwrap().scripts {
            let info = ScriptInfo {
                ownership: Ownership::Spendable,
                solvable: true,
                label: None,
                change: false,
                internal: false,
                timestamp: 1,
                descriptor: script.definite,
                parents: Vec::new(),
                solving: script.solving,
                origins: Vec::new(),
            };
            state.scripts.insert(script.script_pubkey, info);
        }
        state.keys.extend(descriptor.private_branches().private_keys(0).into_iter().map(|(_, key)| key));
    }
    state
}

/// Hosts for the rows: with and without the recorded chain.
struct Hosts {
    empty: (StubHost, TestPlugin<SigningPlugin>),
    chain: (StubHost, TestPlugin<SigningPlugin>),
}

impl Hosts {
    fn new() -> Self {
        let start = || {
            let host = StubHost::new();
            let plugin = host.start(MANIFEST, json!({}));
            (host, plugin)
        };
        let chain = start();
        for (outpoint, output) in coins() {
            chain.0.chain.add_coin(outpoint, Coin { output, height: 1, coinbase: false });
        }
        Self { empty: start(), chain }
    }

    /// The plugin's answer to a row's request: the result's text, or the error.
    fn answer(&self, row: &Value) -> Result<String, Value> {
        let (host, plugin) = if row["chain"] == json!(true) { &self.chain } else { &self.empty };
        host.wallet.set(row["wallet_descriptors"][0].as_str().map(wallet));
        plugin
            .call_json(row["method"].as_str().unwrap(), row["params"].clone())
            .map_err(|error| json!({"code": error.code.0, "message": error.message}))
    }
}

/// The recorded answer, converted to what this plugin answers.
fn expected(row: &Value) -> Result<String, Value> {
    match row.get("error") {
        Some(error) => Err(error.clone()),
        None => {
            let mut reply = row["reply"].as_object().unwrap().clone();
            // Only Knots has these.
            reply.shift_remove("fee");
            reply.shift_remove("feerate");
            Ok(serde_json::to_string(&reply).unwrap())
        }
    }
}

#[test]
fn signing_answers_recorded_rows_byte_for_byte() {
    let hosts = Hosts::new();
    let recording = Value::from_str(&data("signing.json")).unwrap();
    let rows = recording["rows"].as_array().unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let name = row["name"].as_str().unwrap();
        if row["error"]["message"].as_str().is_some_and(|message| message.starts_with(TYPES)) {
            continue;
        }
        let answer = hosts.answer(row);
        if COMPLETED_BEYOND.contains(&name) {
            assert!(answer.as_ref().is_ok_and(|json| json.contains(r#""complete":true"#)), "{name}: {answer:?}");
            assert!(expected(row).is_ok_and(|json| json.contains(r#""complete":false"#)), "{name}");
            continue;
        }
        if answer != expected(row) {
            wrong.push(format!("{name}\n  ours:     {answer:?}\n  recorded: {:?}", expected(row)));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows differ\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert!(rows.len() > 1000, "only {} rows", rows.len());
}

#[test]
fn signing_errors_of_inputs_have_the_recorded_texts() {
    let hosts = Hosts::new();
    let recording = Value::from_str(&data("signing-texts.json")).unwrap();
    let mut seen = HashSet::new();
    for row in recording["rows"].as_array().unwrap() {
        let answer = hosts.answer(row);
        assert_eq!(answer, expected(row), "{}", row["name"]);
        let answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
        let errors = answer["errors"].as_array().unwrap();
        seen.extend(errors.iter().map(|error| error["error"].as_str().unwrap().to_owned()));
    }
    // Core has a message for this error, but no script leads to it.
    let unreachable = [ScriptError::UnknownError];
    let unseen: Vec<_> = ScriptError::ALL.iter().filter(|error| !seen.contains(error.signing_text())).collect();
    assert_eq!(unseen, unreachable.iter().collect::<Vec<_>>());
}

#[test]
fn signing_requests_of_the_chain_are_signed_as_recorded() {
    let hosts = Hosts::new();
    let recording = Value::from_str(&data("signing-chain.json")).unwrap();
    for row in recording["rows"].as_array().unwrap() {
        let mut row = row.clone();
        row["chain"] = json!(true);
        assert_eq!(hosts.answer(&row), expected(&row), "{}", row["name"]);
    }
}
