//! Offering transactions to the mempool, or only asking whether it would take them.

use std::collections::HashSet;

use bitcoin::{Amount, Transaction, Txid, Weight};
use outrigger_sdk::FeeRate;
use outrigger_sdk::amount::{self, COIN, Saturating};
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::service::mempool::Admission;
use outrigger_sdk::standard::{has_valid_ops, sendable_from_hex, transaction_to_bytes};
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::limits::MAX_TRIED;
use crate::{Context, Outcome, args};

/// The most that several transactions weigh together.
const MAX_PACKAGE_WEIGHT: Weight = Weight::from_wu(404_000);
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

pub fn send_raw_transaction(context: &Context<'_>) -> Outcome {
    let text = args::text(context.params.get(0))?;
    let max_feerate = max_feerate(context)?;
    let max_burn = context.params.given(2).map_or(Ok(Amount::ZERO), amount::from_json)?;
    let transaction = sendable_from_hex(text).ok_or(ChainError::NothingToSend)?;
    if burns(&transaction, max_burn) {
        return Err(ChainError::Burns);
    }
    let raw = transaction_to_bytes(&transaction).into();
    match context.host.mempool.submit(context.scope, raw, max_feerate)? {
        Admission::Accepted { txid, .. } | Admission::Known { txid } => Ok(json!(txid)),
        Admission::Rejected { reason, detail } => Err(ChainError::Rejected(full_reason(&reason, &detail))),
        Admission::MissingInputs => Err(ChainError::MissingInputs),
        Admission::AlreadyInChain => Err(ChainError::AlreadyInChain),
        Admission::Undecodable => Err(ChainError::NothingToSend),
        Admission::FeeTooHigh { .. } => Err(ChainError::FeeTooHigh),
    }
}

pub fn test_mempool_accept(context: &Context<'_>) -> Outcome {
    let texts = args::array(context.params.get(0))?;
    if texts.is_empty() || texts.len() > MAX_TRIED {
        return Err(ChainError::TriedCount);
    }
    let max_feerate = max_feerate(context)?;
    let mut transactions = Vec::with_capacity(texts.len());
    for text in texts {
        let text = args::text(text)?;
        let transaction = sendable_from_hex(text).ok_or_else(|| ChainError::NothingToTry(text.to_owned()))?;
        transactions.push(transaction);
    }
    let malformed = malformed_package(&transactions);
    let mut earlier = HashSet::new();
    let mut failed = false;
    let mut results = Vec::with_capacity(transactions.len());
    for transaction in &transactions {
        let mut result = Map::new();
        let txid = transaction.compute_txid();
        result.insert("txid".into(), json!(txid));
        result.insert("wtxid".into(), json!(wtxid(transaction)));
        if let Some(malformed) = malformed {
            result.insert("package-error".into(), json!(malformed));
        }
        // The mempool tries each by itself: of one that builds on another of the list, or comes after a refused one,
        // nothing is said, as bitcoind says nothing where it did not come to an end.
        let builds_on_another = transaction.input.iter().any(|input| earlier.contains(&input.previous_output.txid));
        if malformed.is_none() && !failed && !builds_on_another {
            let raw = transaction_to_bytes(transaction).into();
            failed = !describe(&context.host.mempool.try_submit(context.scope, raw, max_feerate)?, &mut result);
        }
        earlier.insert(txid);
        results.push(Value::Object(result));
    }
    Ok(Value::Array(results))
}

/// Why several transactions can never be judged together, in bitcoind's words.
fn malformed_package(transactions: &[Transaction]) -> Option<&'static str> {
    if transactions.len() < 2 {
        return None;
    }
    let weight = transactions.iter().map(Transaction::weight).fold(Weight::ZERO, Weight::saturating_add);
    if weight > MAX_PACKAGE_WEIGHT {
        return Some("package-too-large");
    }
    let mut later: HashSet<Txid> = transactions.iter().map(Transaction::compute_txid).collect();
    if later.len() < transactions.len() {
        return Some("package-contains-duplicates");
    }
    for transaction in transactions {
        if transaction.input.iter().any(|input| later.contains(&input.previous_output.txid)) {
            return Some("package-not-sorted");
        }
        later.remove(&transaction.compute_txid());
    }
    let mut spent = HashSet::new();
    for transaction in transactions {
        if transaction.input.iter().any(|input| spent.contains(&input.previous_output)) {
            return Some("conflict-in-package");
        }
        spent.extend(transaction.input.iter().map(|input| input.previous_output));
    }
    None
}

/// The id with witness. The library would count the marker of the form with witness where there are no inputs.
fn wtxid(transaction: &Transaction) -> String {
    if transaction.input.is_empty() {
        return transaction.compute_txid().to_string();
    }
    transaction.compute_wtxid().to_string()
}

/// Says what became of a trial; whether the transaction would be taken.
fn describe(admission: &Admission, result: &mut Map<String, Value>) -> bool {
    let mut reject = |reason: &str, details: Option<String>| {
        result.insert("allowed".into(), json!(false));
        result.insert("reject-reason".into(), json!(reason));
        if let Some(details) = details {
            result.insert("reject-details".into(), json!(details));
        }
        false
    };
    match admission {
        Admission::Accepted { wtxid, virtual_size, fee, .. } => {
            result.insert("allowed".into(), json!(true));
            result.insert("vsize".into(), json!(virtual_size));
            let feerate = FeeRate::paid(*fee, *virtual_size);
            let fees = json!({
                "base": amount::to_json(*fee),
                "effective-feerate": amount::to_json(feerate),
                "effective-includes": [wtxid],
            });
            result.insert("fees".into(), fees);
            true
        }
        Admission::Known { .. } => reject("txn-already-in-mempool", Some("txn-already-in-mempool".into())),
        Admission::Rejected { reason, detail } => reject(reason, Some(full_reason(reason, detail))),
        Admission::MissingInputs => reject("missing-inputs", None),
        Admission::AlreadyInChain => reject("txn-already-known", Some("txn-already-known".into())),
        Admission::Undecodable => reject("tx-decode-failed", None),
        Admission::FeeTooHigh { .. } => reject("max-fee-exceeded", None),
    }
}
