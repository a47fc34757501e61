//! The outputs that a transaction spends, from the node and from the request.
//!
//! The request overrides the node, even its amounts. Only the script of a known output must match.

use std::collections::{BTreeSet, HashMap};

use bitcoin::consensus::deserialize;
use bitcoin::{OutPoint, Script, ScriptBuf, Transaction, TxOut, Txid};
use outrigger_service::Host;
use outrigger_service::signer::UNKNOWN_AMOUNT;
use outrigger_service::{ErrorKind, Scope};
use outrigger_standard::asm;
use outrigger_values::params::{self, Type};
use outrigger_values::{RpcError, amount, typed};
use serde_json::{Map, Value};

use crate::{MAX_SPENT_SCRIPTS, SignError};

/// The spent outputs by outpoint.
#[derive(Clone, Debug, Default)]
pub struct Prevouts(HashMap<OutPoint, TxOut>);

impl Prevouts {
    /// Looks up the spent outputs: in mempool transactions, even if another one spends them, then in the UTXO set.
    /// Without a grant for the mempool it uses only the UTXO set.
    pub fn look_up(host: &Host, scope: Scope, tx: &Transaction) -> Result<Self, RpcError> {
        let txids: BTreeSet<Txid> = tx.input.iter().map(|input| input.previous_output.txid).collect();
        let txids: Vec<Txid> = txids.into_iter().collect();
        let in_mempool = match host.mempool.transactions(scope, txids.clone()) {
            Err(error) if error.kind == ErrorKind::NotGranted => Vec::new(),
            answer => answer?,
        };
        let parents: HashMap<Txid, Transaction> = txids
            .into_iter()
            .zip(in_mempool)
            .filter_map(|(txid, found)| Some((txid, deserialize(&found?).ok()?)))
            .collect();

        let mut found = Self::default();
        let mut in_chain = Vec::new();
        for outpoint in tx.input.iter().map(|input| input.previous_output) {
            match parents.get(&outpoint.txid) {
                // An output that a mempool transaction does not have cannot be in the chain either.
                Some(parent) => found.insert(outpoint, parent.output.get(outpoint.vout as usize).cloned()),
                None => in_chain.push(outpoint),
            }
        }
        let coins = host.chain.coins(scope, in_chain.clone())?;
        for (outpoint, coin) in in_chain.into_iter().zip(coins) {
            found.insert(outpoint, coin.map(|coin| coin.output));
        }
        Ok(found)
    }

    /// An output; `None` if unknown.
    pub fn get(&self, outpoint: &OutPoint) -> Option<&TxOut> {
        self.0.get(outpoint)
    }

    fn insert(&mut self, outpoint: OutPoint, output: Option<TxOut>) {
        if let Some(output) = output {
            self.0.insert(outpoint, output);
        }
    }

    /// Adds the outputs of the argument `prevtxs`. Each element is checked, even if the transaction does not spend it.
    /// Returns the redeem and witness scripts; without `with_scripts` they are neither checked nor returned. The error
    /// is for the first broken rule.
    pub fn describe(&mut self, prevtxs: Option<&[Value]>, with_scripts: bool) -> Result<Vec<ScriptBuf>, RpcError> {
        let mut scripts = Vec::new();
        for element in prevtxs.unwrap_or_default() {
            let element = element
                .as_object()
                .ok_or_else(|| RpcError::undecodable(r#"expected object with {"txid'","vout","scriptPubKey"}"#))?;
            let script_pubkey = self.describe_one(element)?;
            if with_scripts && (script_pubkey.is_p2sh() || script_pubkey.is_p2wsh()) {
                scripts.extend(given_scripts(element, &script_pubkey)?);
            }
        }
        Ok(scripts)
    }

    fn describe_one(&mut self, element: &Map<String, Value>) -> Result<ScriptBuf, RpcError> {
        let field = |name: &str| element.get(name).unwrap_or(&Value::Null);
        // bitcoind checks members in byte order.
        for (name, wanted) in [("scriptPubKey", Type::String), ("txid", Type::String), ("vout", Type::Number)] {
            typed::member(element, name, wanted)?;
        }
        let txid = params::hash(field("txid"), "txid")?;
        let vout = u32::try_from(params::int32(field("vout"))?)
            .map_err(|_| RpcError::undecodable("vout cannot be negative"))?;
        let outpoint = OutPoint { txid, vout };
        let script_pubkey = ScriptBuf::from_bytes(params::hex(field("scriptPubKey"), "scriptPubKey")?);
        if let Some(known) = self.0.get(&outpoint)
            && known.script_pubkey != script_pubkey
        {
            let (known, given) = (asm(&known.script_pubkey), asm(&script_pubkey));
            return Err(RpcError::undecodable(format!(
                "Previous output scriptPubKey mismatch:\n{known}\nvs:\n{given}"
            )));
        }
        let value = match element.get("amount") {
            Some(value) => amount::from_json(value)?,
            None => UNKNOWN_AMOUNT,
        };
        self.0.insert(outpoint, TxOut { value, script_pubkey: script_pubkey.clone() });
        Ok(script_pubkey)
    }

    /// The spent outputs in the order of the inputs. Fails with [`SignError::TooLarge`] if their scripts are too long
    /// in total: inputs may name the same output repeatedly.
    pub fn of(&self, tx: &Transaction) -> Result<Vec<Option<TxOut>>, SignError> {
        let mut room = MAX_SPENT_SCRIPTS;
        let mut spent = Vec::with_capacity(tx.input.len());
        for input in &tx.input {
            let output = self.0.get(&input.previous_output);
            let size = output.map_or(0, |output| output.script_pubkey.len());
            room = room.checked_sub(size).ok_or(SignError::TooLarge)?;
            spent.push(output.cloned());
        }
        Ok(spent)
    }
}

/// The script that an element gives for its output, and its P2WSH program. For old clients, the redeem script may be
/// named `witnessScript`, the witness script `redeemScript`, or both names have the same script.
fn given_scripts(element: &Map<String, Value>, script_pubkey: &Script) -> Result<[ScriptBuf; 2], RpcError> {
    let redeem_script = optional_text(element, "redeemScript")?;
    let witness_script = optional_text(element, "witnessScript")?;
    let script = match (witness_script, redeem_script) {
        (Some(_), _) => hex_script(element, "witnessScript")?,
        (None, Some(_)) => hex_script(element, "redeemScript")?,
        (None, None) => return Err(RpcError::invalid_parameter("Missing redeemScript/witnessScript")),
    };
    let program = ScriptBuf::new_p2wsh(&script.wscript_hash());
    if witness_script.is_some()
        && redeem_script.is_some()
        && witness_script != redeem_script
        && hex_script(element, "redeemScript")? != program
    {
        return Err(RpcError::invalid_parameter("redeemScript does not correspond to witnessScript"));
    }
    let matches = if script_pubkey.is_p2wsh() {
        program.as_script() == script_pubkey
    } else {
        let pays_to = |script: &Script| ScriptBuf::new_p2sh(&script.script_hash()).as_script() == script_pubkey;
        pays_to(&script) || pays_to(&program)
    };
    if matches {
        Ok([script, program])
    } else {
        Err(RpcError::invalid_parameter("redeemScript/witnessScript does not match scriptPubKey"))
    }
}

/// A member that is text, null or absent.
fn optional_text<'a>(element: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, RpcError> {
    match element.get(name).filter(|value| !value.is_null()) {
        Some(_) => Ok(typed::member(element, name, Type::String)?.as_str()),
        None => Ok(None),
    }
}

fn hex_script(element: &Map<String, Value>, name: &str) -> Result<ScriptBuf, RpcError> {
    params::hex(element.get(name).unwrap_or(&Value::Null), name).map(ScriptBuf::from_bytes)
}
