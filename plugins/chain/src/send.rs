//! Transactions for the mempool: `sendrawtransaction`, `testmempoolaccept` and `submitpackage`.

use std::collections::HashSet;

use bitcoin::{Amount, Script, Transaction, TxOut, Txid};
use outrigger_sdk::amount::{self, COIN};
use outrigger_sdk::params::{Params, Type, decode_hex};
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::service::mempool::{Admission, PackageMember};
use outrigger_sdk::standard::decode::{Form, transaction_in_form};
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::standard::{has_valid_ops, sendable_from_hex, transaction_to_bytes};
use outrigger_sdk::typed::wrong_type;
use outrigger_sdk::{FeeRate, RpcError, RpcErrorCode};
use serde_json::{Map, Value, json};

use crate::mempool::put_sizes;
use crate::{Context, args};

/// The greatest number of transactions in a package.
const MAX_PACKAGE: usize = 25;
/// The reject reason for unknown or spent inputs. testmempoolaccept has other words for it.
const MISSING_INPUTS: &str = "bad-txns-inputs-missingorspent";
/// The default of `maxfeerate`: 0.1 BTC/kvB.
const DEFAULT_MAX_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(COIN / 10);
/// The least feerate that `maxfeerate` must stay below: 1 BTC/kvB.
const FEERATE_BOUND: FeeRate = FeeRate::from_sat_per_kvb(COIN);

/// `maxfeerate`, the second argument. Zero means no limit.
fn max_feerate(context: &Context<'_>) -> Result<FeeRate, RpcError> {
    let Some(value) = context.params.given(1) else { return Ok(DEFAULT_MAX_FEERATE) };
    let feerate = FeeRate::from_btc_per_kvb(value)?;
    if feerate >= FEERATE_BOUND {
        return Err(RpcError::invalid_parameter("Fee rates larger than or equal to 1BTC/kvB are not accepted"));
    }
    Ok(feerate)
}

/// `maxburnamount`, the third argument.
fn max_burn(context: &Context<'_>) -> Result<Amount, RpcError> {
    context.params.given(2).map_or(Ok(Amount::ZERO), amount::from_json)
}

/// Refuses a transaction with an unspendable output above `max_burn`.
fn check_burn(transaction: &Transaction, max_burn: Amount) -> Result<(), RpcError> {
    let is_unspendable = |script: &Script| is_unspendable(script.as_bytes()) || !has_valid_ops(script);
    let burns = |output: &TxOut| is_unspendable(&output.script_pubkey) && output.value > max_burn;
    if transaction.output.iter().any(burns) {
        return Err(verify("Unspendable output exceeds maximum configured by user (maxburnamount)"));
    }
    Ok(())
}

fn verify(message: &str) -> RpcError {
    RpcError::new(RpcErrorCode::VERIFY, message)
}

/// A reason with its details, if there are any.
fn full_reason(reason: &str, detail: &str) -> String {
    if detail.is_empty() { reason.to_owned() } else { format!("{reason}, {detail}") }
}

pub fn send_raw_transaction(context: &mut Context<'_>) -> Result<Value, RpcError> {
    let undecodable = || undecodable("TX decode failed. Make sure the tx has at least one input.");
    let text = args::take_text(&mut context.params, 0)?;
    let max_feerate = max_feerate(context)?;
    let max_burn = max_burn(context)?;
    let bytes = decode_hex(&text).ok_or_else(undecodable)?;
    drop(text);
    check_burn(&transaction_in_form(&bytes, Form::Extended).ok_or_else(undecodable)?, max_burn)?;
    let raw = bytes.into();
    match context.host.mempool.submit(context.scope, raw, max_feerate)? {
        Admission::Accepted { txid, .. } | Admission::Known { txid } => Ok(json!(txid)),
        Admission::Rejected { reason, detail } => {
            Err(RpcError::new(RpcErrorCode::VERIFY_REJECTED, full_reason(&reason, &detail)))
        }
        Admission::MissingInputs => Err(verify(MISSING_INPUTS)),
        Admission::AlreadyInChain => {
            Err(RpcError::new(RpcErrorCode::VERIFY_ALREADY_IN_CHAIN, "Transaction outputs already in utxo set"))
        }
        Admission::Undecodable => Err(undecodable()),
        Admission::FeeTooHigh { .. } => {
            Err(verify("Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)"))
        }
    }
}

fn undecodable(message: impl Into<String>) -> RpcError {
    RpcError::new(RpcErrorCode::DESERIALIZATION, message)
}

/// Takes the package out of the parameters.
fn take_package(params: &mut Params) -> Result<Vec<Value>, RpcError> {
    match params.0.first_mut().map(Value::take).unwrap_or_default() {
        Value::Array(texts) if texts.is_empty() || texts.len() > MAX_PACKAGE => {
            let message = format!("Array must contain between 1 and {MAX_PACKAGE} transactions.");
            Err(RpcError::invalid_parameter(message))
        }
        Value::Array(texts) => Ok(texts),
        other => Err(wrong_type(&other, Type::Array)),
    }
}

fn decode(text: Value) -> Result<Transaction, RpcError> {
    let Value::String(text) = text else { return Err(wrong_type(&text, Type::String)) };
    sendable_from_hex(&text)
        .ok_or_else(|| undecodable(format!("TX decode failed: {text} Make sure the tx has at least one input.")))
}

pub fn test_mempool_accept(context: &mut Context<'_>) -> Result<Value, RpcError> {
    let texts = take_package(&mut context.params)?;
    let max_feerate = max_feerate(context)?;
    let mut ids = Vec::with_capacity(texts.len());
    let mut raw = Vec::with_capacity(texts.len());
    for text in texts {
        let transaction = decode(text)?;
        ids.push((transaction.compute_txid(), wtxid(&transaction), transaction.weight().to_vbytes_ceil()));
        raw.push(transaction_to_bytes(&transaction).into());
    }
    let outcome = context.host.mempool.try_package(context.scope, raw)?;
    let mut is_over = false;
    let mut results = Vec::with_capacity(ids.len());
    for ((txid, wtxid, bip141), member) in ids.iter().zip(&outcome.members) {
        let mut result = Map::new();
        result.insert("txid".into(), json!(txid));
        result.insert("wtxid".into(), json!(wtxid));
        if outcome.is_policy {
            result.insert("package-error".into(), json!(full_reason(&outcome.reason, &outcome.detail)));
        }
        // Like bitcoind, the answer describes no transaction after the first one with too high a feerate.
        is_over = is_over || !describe_trial(&context.rules, member, *bip141, max_feerate, &mut result);
        results.push(Value::Object(result));
    }
    Ok(Value::Array(results))
}

/// Adds the outcome of a trial to its result. False if the feerate is above `max_feerate`.
fn describe_trial(
    rules: &Rules,
    member: &PackageMember,
    bip141: u64,
    max_feerate: FeeRate,
    result: &mut Map<String, Value>,
) -> bool {
    match member {
        PackageMember::Accepted { virtual_size, fee, .. }
            if max_feerate > FeeRate::ZERO && *fee > max_feerate.fee(*virtual_size) =>
        {
            result.insert("allowed".into(), json!(false));
            result.insert("reject-reason".into(), json!("max-fee-exceeded"));
            return false;
        }
        PackageMember::Accepted { .. } => {
            result.insert("allowed".into(), json!(true));
            describe_fees(rules, member, bip141, result);
        }
        PackageMember::Rejected { reason, detail } => {
            result.insert("allowed".into(), json!(false));
            if reason == MISSING_INPUTS {
                result.insert("reject-reason".into(), json!("missing-inputs"));
            } else {
                result.insert("reject-reason".into(), json!(reason));
                result.insert("reject-details".into(), json!(full_reason(reason, detail)));
            }
        }
        PackageMember::InMempool { .. } | PackageMember::OtherWitness { .. } | PackageMember::NotJudged => {}
    }
    true
}

/// Adds the size and the fees of an accepted transaction, or of one in the mempool.
fn describe_fees(rules: &Rules, member: &PackageMember, bip141: u64, result: &mut Map<String, Value>) {
    let (PackageMember::Accepted { virtual_size, fee, .. } | PackageMember::InMempool { virtual_size, fee }) = member
    else {
        return;
    };
    put_sizes(rules, *virtual_size, bip141, |key, value| result.insert(key.to_owned(), value));
    let mut fees = Map::from_iter([("base".to_owned(), amount::to_json(*fee))]);
    if let PackageMember::Accepted { feerate, included, .. } = member {
        fees.insert("effective-feerate".into(), amount::to_json(*feerate));
        fees.insert("effective-includes".into(), json!(included));
    }
    result.insert("fees".into(), Value::Object(fees));
}

pub fn submit_package(context: &mut Context<'_>) -> Result<Value, RpcError> {
    let texts = take_package(&mut context.params)?;
    let max_feerate = max_feerate(context)?;
    let max_burn = max_burn(context)?;
    let mut transactions = Vec::with_capacity(texts.len());
    for text in texts {
        let transaction = decode(text)?;
        check_burn(&transaction, max_burn)?;
        transactions.push(transaction);
    }
    if transactions.len() > 1 && !is_child_with_parents(&transactions) {
        let message = "package topology disallowed. not child-with-parents or parents depend on each other.";
        return Err(verify(message));
    }
    let raw = transactions.iter().map(transaction_to_bytes).map(Into::into).collect();
    let outcome = context.host.mempool.submit_package(context.scope, raw, max_feerate)?;
    let message =
        if outcome.reason.is_empty() { "success".to_owned() } else { full_reason(&outcome.reason, &outcome.detail) };
    let mut results = Map::new();
    for (transaction, member) in transactions.iter().zip(&outcome.members) {
        let mut result = Map::from_iter([("txid".to_owned(), json!(transaction.compute_txid()))]);
        match member {
            PackageMember::OtherWitness { wtxid } => drop(result.insert("other-wtxid".into(), json!(wtxid))),
            PackageMember::Rejected { reason, detail } => {
                result.insert("error".into(), json!(full_reason(reason, detail)));
            }
            PackageMember::NotJudged if context.rules.names_unvalidated => {
                result.insert("error".into(), json!("package-not-validated"));
            }
            PackageMember::NotJudged => continue,
            PackageMember::Accepted { .. } | PackageMember::InMempool { .. } => {
                describe_fees(&context.rules, member, transaction.weight().to_vbytes_ceil(), &mut result);
            }
        }
        results.insert(wtxid(transaction), Value::Object(result));
    }
    Ok(json!({"package_msg": message, "tx-results": results, "replaced-transactions": outcome.replaced}))
}

/// Whether the package is a child with its parents: the last transaction spends from each other one, and no parent spends from
/// another parent.
fn is_child_with_parents(transactions: &[Transaction]) -> bool {
    let Some((child, parents)) = transactions.split_last() else { return false };
    let txids: HashSet<Txid> = parents.iter().map(Transaction::compute_txid).collect();
    let spent: HashSet<Txid> = child.input.iter().map(|input| input.previous_output.txid).collect();
    let spends_from_parent =
        |parent: &Transaction| parent.input.iter().any(|input| txids.contains(&input.previous_output.txid));
    txids.is_subset(&spent) && !parents.iter().any(spends_from_parent)
}

/// The wtxid. rust-bitcoin hashes a transaction without inputs in the segwit form, but bitcoind does not.
fn wtxid(transaction: &Transaction) -> String {
    if transaction.input.is_empty() {
        return transaction.compute_txid().to_string();
    }
    transaction.compute_wtxid().to_string()
}
