//! Submits transactions and blocks.

use std::time::Duration;

use bitcoin::consensus::deserialize;
use bitcoin::{Amount, Transaction, Txid};
use outrigger_node::{NodeError, Result};
use outrigger_service::chain::Verdict;
use outrigger_service::mempool::Admission;
use outrigger_values::{FeeRate, RpcErrorCode};
use serde_json::{Value, json};

use super::answers::{AcceptAnswer, EntryAnswer};
use super::error::AskError;
use super::rpc::Rpc;

/// How long the host looks for a transaction after the node's answer was lost.
const LOST_PATIENCE: Duration = Duration::from_secs(5);

/// A feerate in sendrawtransaction's form: BTC per 1000 virtual bytes, as text.
fn max_feerate(limit: FeeRate) -> Value {
    Value::from(Amount::from_sat(limit.to_sat_per_kvb()).to_string_in(bitcoin::Denomination::Bitcoin))
}

/// Submits a transaction to the mempool. Fails with [`NodeError::OutcomeUnknown`] if the answer was lost and the node does
/// not list the transaction.
pub fn submit(rpc: &Rpc, raw: &[u8], limit: FeeRate) -> Result<Admission> {
    let Ok(transaction) = deserialize::<Transaction>(raw) else { return Ok(Admission::Undecodable) };
    let tried = try_submit(rpc, raw, limit)?;
    if !matches!(tried, Admission::Accepted { .. } | Admission::Known { .. }) {
        return Ok(tried);
    }
    let hex = bitcoin::hex::DisplayHex::to_lower_hex_string(raw);
    match rpc.ask::<Txid>("sendrawtransaction", &json!([hex, max_feerate(limit)])) {
        Ok(_) => Ok(tried),
        Err(error) if error.is_without_effect() => refused(&transaction, error),
        Err(_) if has_after_all(rpc, &transaction) => Ok(tried),
        Err(error) => Err(error.into()),
    }
}

/// Whether the node has the transaction although its answer was lost. If not, it may still have relayed the
/// transaction, or accept it later.
fn has_after_all(rpc: &Rpc, transaction: &Transaction) -> bool {
    let txid = transaction.compute_txid();
    rpc.ask_within::<EntryAnswer>(LOST_PATIENCE, "getmempoolentry", &json!([txid])).is_ok()
}

pub fn try_submit(rpc: &Rpc, raw: &[u8], limit: FeeRate) -> Result<Admission> {
    let Ok(transaction) = deserialize::<Transaction>(raw) else { return Ok(Admission::Undecodable) };
    let hex = bitcoin::hex::DisplayHex::to_lower_hex_string(raw);
    let answers: Vec<AcceptAnswer> = match rpc.ask("testmempoolaccept", &json!([[hex], max_feerate(limit)])) {
        Ok(answers) => answers,
        Err(error) => return refused(&transaction, error),
    };
    let answer =
        answers.into_iter().next().ok_or_else(|| NodeError::Internal("testmempoolaccept: no answer".into()))?;
    if answer.allowed {
        let virtual_size = answer.vsize.unwrap_or(transaction.vsize() as u64);
        return Ok(Admission::Accepted {
            txid: transaction.compute_txid(),
            wtxid: transaction.compute_wtxid(),
            virtual_size,
            fee: answer.fees.map_or(Amount::ZERO, |fees| fees.base.0),
        });
    }
    let reason = answer.reject_reason.unwrap_or_default();
    Ok(match reason.as_str() {
        "txn-already-in-mempool" => Admission::Known { txid: transaction.compute_txid() },
        "txn-already-known" => Admission::AlreadyInChain,
        "missing-inputs" => Admission::MissingInputs,
        "max-fee-exceeded" => Admission::FeeTooHigh { fee: answer.fees.map_or(Amount::ZERO, |fees| fees.base.0) },
        _ => {
            let detail = answer.reject_details.unwrap_or_default();
            // bitcoind's details begin with the reason.
            let detail = detail.strip_prefix(&reason).map_or(detail.as_str(), |rest| rest.trim_start_matches(", "));
            Admission::Rejected { detail: detail.to_owned(), reason }
        }
    })
}

fn refused(transaction: &Transaction, error: AskError) -> Result<Admission> {
    let AskError::Rpc { error: rpc, .. } = &error else { return Err(error.into()) };
    Ok(match rpc.code {
        RpcErrorCode::DESERIALIZATION => Admission::Undecodable,
        RpcErrorCode::VERIFY_ALREADY_IN_CHAIN => Admission::AlreadyInChain,
        RpcErrorCode::VERIFY if rpc.message.contains("missing") || rpc.message.contains("Missing") => {
            Admission::MissingInputs
        }
        RpcErrorCode::VERIFY_REJECTED | RpcErrorCode::VERIFY if rpc.message.contains("txn-already-in-mempool") => {
            Admission::Known { txid: transaction.compute_txid() }
        }
        RpcErrorCode::VERIFY_REJECTED | RpcErrorCode::VERIFY => {
            let (reason, detail) = rpc.message.split_once(", ").unwrap_or((&rpc.message, ""));
            Admission::Rejected { reason: reason.to_owned(), detail: detail.to_owned() }
        }
        _ => return Err(error.into()),
    })
}

pub fn verdict(answer: std::result::Result<Option<String>, AskError>) -> Result<Verdict> {
    let reason = match answer {
        Ok(None) => return Ok(Verdict::Valid),
        Ok(Some(reason)) => reason,
        Err(error) if error.code() == Some(RpcErrorCode::DESERIALIZATION) => return Ok(Verdict::Undecodable),
        Err(error) => return Err(error.into()),
    };
    Ok(match reason.as_str() {
        "duplicate" => Verdict::Duplicate,
        "duplicate-invalid" => Verdict::DuplicateInvalid,
        "duplicate-inconclusive" => Verdict::DuplicateInconclusive,
        "inconclusive" => Verdict::Inconclusive,
        "inconclusive-not-best-prevblk" => Verdict::NotBestPrevious,
        _ => Verdict::Invalid { reason, detail: String::new() },
    })
}
