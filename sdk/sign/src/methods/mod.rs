//! The methods `signrawtransactionwithkey`, `signrawtransactionwithwallet` and `combinerawtransaction`, for plugins
//! that answer them. A plugin with its own keys only implements [`KeySource`], as the SDK's example `device` does.
//!
//! This module reads the arguments in bitcoind's order, looks up the spent outputs and builds the result.
//!
//! Invariants: signing with given keys calls no wallet. Given keys are wiped when the call ends.

mod prevouts;
mod result;

use bitcoin::{NetworkKind, ScriptBuf, Transaction, Txid};
use serde_json::Value;

pub use prevouts::Prevouts;
pub use result::SigningResult;

use super::{InputError, KeySource, LocalKeys, Sighash, SolvingSet, WifKey, combine_transactions, sign_transaction};
use outrigger_service::{Host, Scope};
use outrigger_standard::release::Rules;
use outrigger_standard::{sendable_from_hex, transaction_to_bytes};
use outrigger_values::params::encode_hex;
use outrigger_values::{RpcError, RpcErrorCode, typed};

/// The arguments that the signing methods have in common.
pub struct Unsigned<'a> {
    /// `hexstring`
    pub transaction: &'a str,
    /// `prevtxs`
    pub prevtxs: Option<&'a [Value]>,
    /// `sighashtype`
    pub sighash: Option<&'a str>,
}

/// Answers `signrawtransactionwithkey`. `wanted`: whether the client still waits. The error is for the first broken rule. The
/// caller wipes the text of the keys.
pub fn with_key(
    host: &Host,
    scope: Scope,
    unsigned: &Unsigned<'_>,
    privkeys: &[Value],
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<SigningResult, RpcError> {
    let mut tx = unsigned.transaction()?;
    let keys = private_keys(host, scope, privkeys)?;
    let mut prevouts = Prevouts::look_up(host, scope, &tx)?;
    let scripts = prevouts.describe(unsigned.prevtxs, true)?;
    let sighash = unsigned.sighash()?;

    let spent = prevouts.of(&tx)?;
    let has_taproot = spent.iter().flatten().any(|spent| spent.script_pubkey.is_p2tr());
    let mut known = keys.solving(has_taproot);
    for script in scripts {
        known.add_script(script);
    }
    let errors = sign_transaction(&mut tx, &spent, &known, &keys, sighash, wanted)?;
    SigningResult::new(&tx, &spent, errors)
}

/// Answers `signrawtransactionwithwallet` with the solving data of the call's wallet. `keys` gets each distinct spent script, and
/// returns the source of signatures. `wanted`: whether the client still waits. The error is for the first broken rule.
pub fn with_wallet<K: KeySource>(
    host: &Host,
    scope: Scope,
    unsigned: &Unsigned<'_>,
    keys: impl FnOnce(Vec<ScriptBuf>) -> K,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<SigningResult, RpcError> {
    let wallet = host.wallet.info(scope)?;
    let mut tx = unsigned.transaction()?;
    wallet.check_unlocked()?;
    let mut prevouts = Prevouts::look_up(host, scope, &tx)?;
    prevouts.describe(unsigned.prevtxs, false)?;
    let sighash = unsigned.sighash()?;

    let spent = prevouts.of(&tx)?;
    let mut scripts: Vec<ScriptBuf> = spent.iter().flatten().map(|spent| spent.script_pubkey.clone()).collect();
    scripts.sort_unstable();
    scripts.dedup();
    let known = wallet_knows(host, scope, &scripts)?;
    let errors = sign_transaction(&mut tx, &spent, &known, &keys(scripts), sighash, wanted)?;
    SigningResult::new(&tx, &spent, errors)
}

/// Answers `combinerawtransaction`: copies of a transaction with different signatures. `wanted`: whether the client
/// still waits. The error is for the first broken rule.
pub fn combine(
    host: &Host,
    scope: Scope,
    texts: &[Value],
    rules: &Rules,
    wanted: &(dyn Fn() -> bool + Sync),
) -> Result<String, RpcError> {
    if rules.combines_copies_only && texts.len() < 2 {
        return Err(RpcError::undecodable("Missing transactions. At least two transactions required."));
    }
    let mut transactions = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let transaction = sendable_from_hex(typed::text(text)?);
        transactions.push(transaction.ok_or_else(|| {
            RpcError::undecodable(format!("TX decode failed for tx {number}. Make sure the tx has at least one input."))
        })?);
    }
    let (first, others) = transactions.split_first().ok_or_else(|| RpcError::undecodable("Missing transactions"))?;
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
    Ok(encode_hex(&transaction_to_bytes(&combine_transactions(first, others, &spent, wanted)?)))
}

/// The id of a transaction without scriptSigs.
fn unsigned_txid(tx: &Transaction) -> Txid {
    let mut unsigned = tx.clone();
    unsigned.input.iter_mut().for_each(|input| input.script_sig = ScriptBuf::new());
    unsigned.compute_txid()
}

/// Parses `privkeys`. Each key must be for the host's network.
fn private_keys(host: &Host, scope: Scope, texts: &[Value]) -> Result<LocalKeys, RpcError> {
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

impl Unsigned<'_> {
    /// Decodes the transaction. It may lack inputs only if it also lacks outputs.
    fn transaction(&self) -> Result<Transaction, RpcError> {
        sendable_from_hex(self.transaction)
            .ok_or_else(|| RpcError::undecodable("TX decode failed. Make sure the tx has at least one input."))
    }

    fn sighash(&self) -> Result<Sighash, RpcError> {
        self.sighash.map_or(Ok(Sighash::DEFAULT), Sighash::from_name)
    }
}
