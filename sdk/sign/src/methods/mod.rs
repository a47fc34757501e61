//! The methods `signrawtransactionwithkey`, `signrawtransactionwithwallet` and `combinerawtransaction`, for plugins
//! that answer them. A plugin with its own keys only implements [`KeySource`], as the SDK's example `device` does.
//!
//! This module reads the arguments in bitcoind's order, looks up the spent outputs and builds the result.
//!
//! Invariants: signing with given keys calls no wallet. Given keys and their text are wiped when the call ends.

mod prevouts;
mod result;

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{NetworkKind, ScriptBuf, Transaction, Txid};
use serde_json::Value;
use zeroize::Zeroize;

pub use prevouts::Prevouts;
use prevouts::undecodable;
pub use result::SigningResult;

use super::{
    InputError, KeySource, LocalKeys, Sighash, SolvingSet, WifKey, combine_transactions, sign_transaction_while,
};
use outrigger_service::{Host, Scope};
use outrigger_standard::decode::{Form, transaction_of_form};
use outrigger_standard::release::Rules;
use outrigger_standard::transaction_from_hex;
use outrigger_values::params::Params;
use outrigger_values::{RpcError, RpcErrorCode, typed};

const PRIVKEYS: usize = 1;

/// Answers `signrawtransactionwithkey`: hexstring, privkeys, prevtxs, sighashtype. `wanted`: whether the client still
/// waits. The error is the first rule that the request breaks.
pub fn with_key(
    host: &Host,
    scope: Scope,
    params: Params,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<SigningResult, RpcError> {
    let params = SecretParams(params);
    let params = &params.0;
    let mut tx = transaction(params)?;
    let keys = private_keys(host, scope, params.get(PRIVKEYS))?;
    let mut prevouts = Prevouts::look_up(host, scope, &tx)?;
    let scripts = prevouts.describe(params.get(2), true)?;
    let sighash = sighash(params, 3)?;

    let spent = prevouts.of(&tx)?;
    let has_taproot = spent.iter().flatten().any(|spent| spent.script_pubkey.is_p2tr());
    let mut known = keys.solving(has_taproot);
    for script in scripts {
        known.add_script(script);
    }
    let errors = sign_transaction_while(&mut tx, &spent, &known, &keys, sighash, wanted)?;
    SigningResult::new(&tx, &spent, errors)
}

/// Answers `signrawtransactionwithwallet`: hexstring, prevtxs, sighashtype. The solving data comes from the call's
/// wallet. `keys` gets each distinct spent script, and returns the source of signatures. `wanted`: whether the client
/// still waits. The error is the first rule that the request breaks.
pub fn with_wallet<K: KeySource>(
    host: &Host,
    scope: Scope,
    params: &Params,
    keys: impl FnOnce(Vec<ScriptBuf>) -> K,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<SigningResult, RpcError> {
    let wallet = host.wallet.info(scope)?;
    let mut tx = transaction(params)?;
    wallet.check_unlocked()?;
    let mut prevouts = Prevouts::look_up(host, scope, &tx)?;
    prevouts.describe(params.get(1), false)?;
    let sighash = sighash(params, 2)?;

    let spent = prevouts.of(&tx)?;
    let mut scripts: Vec<ScriptBuf> = spent.iter().flatten().map(|spent| spent.script_pubkey.clone()).collect();
    scripts.sort_unstable();
    scripts.dedup();
    let known = wallet_knows(host, scope, &scripts)?;
    let errors = sign_transaction_while(&mut tx, &spent, &known, &keys(scripts), sighash, wanted)?;
    SigningResult::new(&tx, &spent, errors)
}

/// Answers `combinerawtransaction`: copies of a transaction with different signatures. `wanted`: whether the client
/// still waits. The error is the first rule that the request breaks.
pub fn combine(
    host: &Host,
    scope: Scope,
    params: &Params,
    rules: &Rules,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<String, RpcError> {
    let texts = typed::array(params.get(0))?;
    if rules.combines_copies_only && texts.len() < 2 {
        return Err(undecodable("Missing transactions. At least two transactions required."));
    }
    let mut transactions = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let transaction = transaction_of_form(typed::text(text)?, Form::Extended);
        transactions.push(transaction.ok_or_else(|| {
            undecodable(format!("TX decode failed for tx {number}. Make sure the tx has at least one input."))
        })?);
    }
    let (first, others) = transactions.split_first().ok_or_else(|| undecodable("Missing transactions"))?;
    if rules.combines_copies_only {
        let id = unsigned_txid(first);
        if let Some(other) = others.iter().position(|other| unsigned_txid(other) != id) {
            let number = other.saturating_add(2);
            return Err(RpcError::invalid_parameter(format!(
                "Transaction number {number} not compatible with first transaction"
            )));
        }
    }
    let spent = Prevouts::look_up(host, scope, first)?.of(first)?;
    if spent.contains(&None) {
        return Err(RpcError::new(RpcErrorCode::VERIFY, InputError::NotFound.to_string()));
    }
    Ok(serialize_hex(&combine_transactions(first, others, &spent, wanted)?))
}

/// The id of a transaction without scriptSigs.
fn unsigned_txid(tx: &Transaction) -> Txid {
    let mut unsigned = tx.clone();
    unsigned.input.iter_mut().for_each(|input| input.script_sig = ScriptBuf::new());
    unsigned.compute_txid()
}

/// Parses `privkeys`. Each key must be for the host's network.
fn private_keys(host: &Host, scope: Scope, argument: &Value) -> Result<LocalKeys, RpcError> {
    let texts = typed::array(argument)?;
    let network = NetworkKind::from(host.chain.network(scope)?);
    let mut keys = LocalKeys::default();
    for text in texts {
        let key = WifKey::parse(typed::text(text)?, network);
        keys.add(key.map_err(|error| RpcError::not_found(error.to_string()))?);
    }
    Ok(keys)
}

fn wallet_knows(host: &Host, scope: Scope, scripts: &[ScriptBuf]) -> Result<SolvingSet, RpcError> {
    let found = host.wallet.scripts(scope, scripts.to_vec())?;
    let mut known = SolvingSet::default();
    for (script, info) in scripts.iter().zip(found) {
        if let Some(info) = info {
            known.add(script, info.solving);
        }
    }
    Ok(known)
}

/// Parses `hexstring`. A transaction without inputs has nothing to sign, and no unambiguous serialisation.
fn transaction(params: &Params) -> Result<Transaction, RpcError> {
    let tx = transaction_from_hex(typed::text(params.get(0))?).filter(|tx| !tx.input.is_empty());
    tx.ok_or_else(|| undecodable("TX decode failed. Make sure the tx has at least one input."))
}

/// Parses `sighashtype` at a position.
fn sighash(params: &Params, position: usize) -> Result<Sighash, RpcError> {
    match params.given(position) {
        None => Ok(Sighash::DEFAULT),
        Some(name) => Ok(Sighash::from_name(typed::text(name)?)?),
    }
}

/// Arguments with private keys, wiped on drop.
struct SecretParams(Params);

impl Drop for SecretParams {
    fn drop(&mut self) {
        let Some(Value::Array(keys)) = self.0.0.get_mut(PRIVKEYS) else {
            return;
        };
        for key in keys {
            if let Value::String(text) = key {
                text.zeroize();
            }
        }
    }
}
