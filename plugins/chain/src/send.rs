//! Offering transactions to the mempool, or only asking whether it would take them.

use std::collections::HashSet;

use bitcoin::{Amount, Transaction, Txid};
use outrigger_sdk::FeeRate;
use outrigger_sdk::amount::{self, COIN};
use outrigger_sdk::params::{Params, Type, decode_hex};
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::service::mempool::{Admission, PackageMember};
use outrigger_sdk::standard::decode::{Form, transaction_in_form};
use outrigger_sdk::standard::{has_valid_ops, sendable_from_hex, transaction_to_bytes};
use outrigger_sdk::typed::wrong_type;
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::limits::MAX_TRIED;
use crate::{Context, Outcome, args};

/// The reason of one whose inputs are unknown or spent, which testmempoolaccept words otherwise.
const MISSING_INPUTS: &str = "bad-txns-inputs-missingorspent";
/// The feerate above which a transaction is refused unless told otherwise: 0.1 BTC/kvB.
const DEFAULT_MAX_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(COIN / 10);
/// The feerate from which a client's bound is refused: 1 BTC/kvB.
const FEERATE_BOUND: FeeRate = FeeRate::from_sat_per_kvb(COIN);

/// The bound on the feerate in the second argument; zero is no bound.
fn max_feerate(context: &Context<'_>) -> Result<FeeRate, ChainError> {
    let Some(value) = context.params.given(1) else { return Ok(DEFAULT_MAX_FEERATE) };
    let feerate = FeeRate::from_btc_per_kvb(value)?;
    if feerate >= FEERATE_BOUND { Err(ChainError::FeerateBound) } else { Ok(feerate) }
}

/// Whether a transaction has an output that can never be spent and holds more than `most`.
fn burns(transaction: &Transaction, most: Amount) -> bool {
    transaction.output.iter().any(|output| {
        let script = &output.script_pubkey;
        (is_unspendable(script.as_bytes()) || !has_valid_ops(script)) && output.value > most
    })
}

/// A reason with its details, where there are any.
fn full_reason(reason: &str, detail: &str) -> String {
    if detail.is_empty() { reason.to_owned() } else { format!("{reason}, {detail}") }
}

pub fn send_raw_transaction(context: &mut Context<'_>) -> Outcome {
    let text = args::take_text(&mut context.params, 0)?;
    let max_feerate = max_feerate(context)?;
    let max_burn = context.params.given(2).map_or(Ok(Amount::ZERO), amount::from_json)?;
    let bytes = decode_hex(&text).ok_or(ChainError::NothingToSend)?;
    drop(text);
    if burns(&transaction_in_form(&bytes, Form::Extended).ok_or(ChainError::NothingToSend)?, max_burn) {
        return Err(ChainError::Burns);
    }
    let raw = bytes.into();
    match context.host.mempool.submit(context.scope, raw, max_feerate)? {
        Admission::Accepted { txid, .. } | Admission::Known { txid } => Ok(json!(txid)),
        Admission::Rejected { reason, detail } => Err(ChainError::Rejected(full_reason(&reason, &detail))),
        Admission::MissingInputs => Err(ChainError::MissingInputs),
        Admission::AlreadyInChain => Err(ChainError::AlreadyInChain),
        Admission::Undecodable => Err(ChainError::NothingToSend),
        Admission::FeeTooHigh { .. } => Err(ChainError::FeeTooHigh),
    }
}

/// Takes the transactions that are judged together out of the parameters.
fn package(params: &mut Params) -> Result<Vec<Value>, ChainError> {
    match params.0.first_mut().map(Value::take).unwrap_or_default() {
        Value::Array(texts) if texts.is_empty() || texts.len() > MAX_TRIED => Err(ChainError::TriedCount),
        Value::Array(texts) => Ok(texts),
        other => Err(wrong_type(&other, Type::Array).into()),
    }
}

fn decode(text: Value) -> Result<Transaction, ChainError> {
    let Value::String(text) = text else { return Err(wrong_type(&text, Type::String).into()) };
    sendable_from_hex(&text).ok_or(ChainError::NothingToTry(text))
}

pub fn test_mempool_accept(context: &mut Context<'_>) -> Outcome {
    let texts = package(&mut context.params)?;
    let max_feerate = max_feerate(context)?;
    let mut ids = Vec::with_capacity(texts.len());
    let mut raw = Vec::with_capacity(texts.len());
    for text in texts {
        let transaction = decode(text)?;
        ids.push((transaction.compute_txid(), wtxid(&transaction)));
        raw.push(transaction_to_bytes(&transaction).into());
    }
    let outcome = context.host.mempool.try_package(context.scope, raw)?;
    let mut is_over = false;
    let mut results = Vec::with_capacity(ids.len());
    for ((txid, wtxid), member) in ids.iter().zip(&outcome.members) {
        let mut result = Map::new();
        result.insert("txid".into(), json!(txid));
        result.insert("wtxid".into(), json!(wtxid));
        if outcome.is_policy {
            result.insert("package-error".into(), json!(full_reason(&outcome.reason, &outcome.detail)));
        }
        // After one that pays too much nothing more is said.
        is_over = is_over || describe_trial(member, max_feerate, &mut result).is_err();
        results.push(Value::Object(result));
    }
    Ok(Value::Array(results))
}

/// The client's bound on feerates is broken.
struct TooHigh;

/// Says what became of a trial.
fn describe_trial(
    member: &PackageMember,
    max_feerate: FeeRate,
    result: &mut Map<String, Value>,
) -> Result<(), TooHigh> {
    match member {
        PackageMember::Accepted { virtual_size, fee, .. }
            if max_feerate > FeeRate::ZERO && *fee > max_feerate.fee(*virtual_size) =>
        {
            result.insert("allowed".into(), json!(false));
            result.insert("reject-reason".into(), json!("max-fee-exceeded"));
            return Err(TooHigh);
        }
        PackageMember::Accepted { .. } => {
            result.insert("allowed".into(), json!(true));
            describe_fees(member, result);
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
    Ok(())
}

/// Says what a transaction pays that is in the mempool, or would be.
fn describe_fees(member: &PackageMember, result: &mut Map<String, Value>) {
    let (PackageMember::Accepted { virtual_size, fee, .. } | PackageMember::InMempool { virtual_size, fee }) = member
    else {
        return;
    };
    result.insert("vsize".into(), json!(virtual_size));
    let mut fees = Map::from_iter([("base".to_owned(), amount::to_json(*fee))]);
    if let PackageMember::Accepted { feerate, included, .. } = member {
        fees.insert("effective-feerate".into(), amount::to_json(*feerate));
        fees.insert("effective-includes".into(), json!(included));
    }
    result.insert("fees".into(), Value::Object(fees));
}

pub fn submit_package(context: &mut Context<'_>) -> Outcome {
    let texts = package(&mut context.params)?;
    let max_feerate = max_feerate(context)?;
    let max_burn = context.params.given(2).map_or(Ok(Amount::ZERO), amount::from_json)?;
    let mut transactions = Vec::with_capacity(texts.len());
    for text in texts {
        let transaction = decode(text)?;
        if burns(&transaction, max_burn) {
            return Err(ChainError::Burns);
        }
        transactions.push(transaction);
    }
    if transactions.len() > 1 && !is_tree(&transactions) {
        return Err(ChainError::PackageTopology);
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
            PackageMember::NotJudged => continue,
            PackageMember::Accepted { .. } | PackageMember::InMempool { .. } => describe_fees(member, &mut result),
        }
        results.insert(wtxid(transaction), Value::Object(result));
    }
    Ok(json!({"package_msg": message, "tx-results": results, "replaced-transactions": outcome.replaced}))
}

/// Whether the last transaction builds on each of the others, and none of those on another.
fn is_tree(transactions: &[Transaction]) -> bool {
    let Some((child, parents)) = transactions.split_last() else { return false };
    let txids: HashSet<Txid> = parents.iter().map(Transaction::compute_txid).collect();
    let spent: HashSet<Txid> = child.input.iter().map(|input| input.previous_output.txid).collect();
    let builds_on_another =
        |parent: &Transaction| parent.input.iter().any(|input| txids.contains(&input.previous_output.txid));
    txids.is_subset(&spent) && !parents.iter().any(builds_on_another)
}

/// The id with witness. The library would count the marker of the form with witness where there are no inputs.
fn wtxid(transaction: &Transaction) -> String {
    if transaction.input.is_empty() {
        return transaction.compute_txid().to_string();
    }
    transaction.compute_wtxid().to_string()
}
