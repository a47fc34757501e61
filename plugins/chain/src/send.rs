//! Transactions for the mempool: `sendrawtransaction`, `testmempoolaccept` and `submitpackage`.

use std::collections::HashSet;

use bitcoin::{Amount, Script, Transaction, TxOut, Txid};
use outrigger_kit::without_nulls;
use outrigger_sdk::amount::{self, COIN};
use outrigger_sdk::params::decode_hex;
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::service::mempool::{Admission, PackageMember};
use outrigger_sdk::standard::decode::{Form, transaction_in_form};
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::standard::{has_valid_ops, sendable_from_hex, transaction_to_bytes};
use outrigger_sdk::{Call, FeeRate, RpcError, RpcErrorCode, methods, typed};
use serde_json::{Map, Value, json};

use crate::ChainPlugin;

/// The maximum number of transactions in a package.
const MAX_PACKAGE: usize = 25;
/// The reject reason for unknown or spent inputs, which testmempoolaccept calls `missing-inputs`.
const MISSING_INPUTS: &str = "bad-txns-inputs-missingorspent";
/// The default of `maxfeerate`: 0.1 BTC/kvB.
const DEFAULT_MAX_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(COIN / 10);
/// The exclusive upper limit of `maxfeerate`: 1 BTC/kvB.
const FEERATE_BOUND: FeeRate = FeeRate::from_sat_per_kvb(COIN);

/// The argument `maxfeerate`. Zero means no limit.
fn max_feerate(value: Option<&Value>) -> Result<FeeRate, RpcError> {
    let Some(value) = value else { return Ok(DEFAULT_MAX_FEERATE) };
    let feerate = FeeRate::from_btc_per_kvb(value)?;
    if feerate >= FEERATE_BOUND {
        return Err(RpcError::invalid_parameter("Fee rates larger than or equal to 1BTC/kvB are not accepted"));
    }
    Ok(feerate)
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

#[methods(category = "Rawtransactions")]
impl ChainPlugin {
    /// Offers a transaction to the mempool.
    ///
    /// * `hexstring` - The transaction.
    /// * `maxfeerate` (default: 0.10) - The highest feerate to accept, in BTC per 1000 virtual bytes; 0 for any.
    /// * `maxburnamount` (default: 0.00) - The highest amount of an unspendable output to accept, in BTC.
    ///
    /// # Result
    /// "txid"    (string) The transaction's id.
    #[method]
    fn sendrawtransaction(
        call: &Call<'_>,
        #[arg(kind = "hex")] hexstring: String,
        #[arg(kind = "amount")] maxfeerate: Option<&Value>,
        #[arg(kind = "amount")] maxburnamount: Option<&Value>,
    ) -> Result<Txid, RpcError> {
        let undecodable = || RpcError::undecodable("TX decode failed. Make sure the tx has at least one input.");
        let max_feerate = max_feerate(maxfeerate)?;
        let max_burn = maxburnamount.map_or(Ok(Amount::ZERO), amount::from_json)?;
        let bytes = decode_hex(&hexstring).ok_or_else(undecodable)?;
        // Frees the text early, because it may have many megabytes.
        drop(hexstring);
        check_burn(&transaction_in_form(&bytes, Form::Extended).ok_or_else(undecodable)?, max_burn)?;
        let raw = bytes.into();
        match call.host.mempool.submit(call.scope, raw, max_feerate)? {
            Admission::Accepted { txid, .. } | Admission::Known { txid } => Ok(txid),
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

    /// Tests whether the mempool would accept transactions, without a change to the mempool. In a list, parents come
    /// before children. Each transaction has to pay its own fee, and none may replace others.
    ///
    /// * `rawtxs` - 1 to 25 transactions in hexadecimal.
    /// * `maxfeerate` (default: 0.10) - The highest feerate to accept, in BTC per 1000 virtual bytes; 0 for any.
    ///
    /// # Result
    /// [{"txid": "txid", "wtxid": "wtxid", "allowed": bool, "vsize": n, "fees": {...}, "reject-reason": "text",
    /// "reject-details": "text"}, ...]    (json array)
    ///
    /// # Example
    /// '["0200000001..."]'
    #[method]
    fn testmempoolaccept(
        call: &Call<'_>,
        rawtxs: Vec<Value>,
        #[arg(kind = "amount")] maxfeerate: Option<&Value>,
    ) -> Result<Value, RpcError> {
        check_package(&rawtxs)?;
        let max_feerate = max_feerate(maxfeerate)?;
        let mut ids = Vec::with_capacity(rawtxs.len());
        let mut raw = Vec::with_capacity(rawtxs.len());
        for text in rawtxs {
            let transaction = decode(&text)?;
            ids.push((transaction.compute_txid(), wtxid(&transaction), transaction.weight().to_vbytes_ceil()));
            raw.push(transaction_to_bytes(&transaction).into());
        }
        let outcome = call.host.mempool.try_package(call.scope, raw)?;
        let mut is_over = false;
        let package_error = outcome.is_policy.then(|| full_reason(&outcome.reason, &outcome.detail));
        let results = ids.iter().zip(&outcome.members).map(|((txid, wtxid, bip141), member)| {
            let mut result = json!({"txid": txid, "wtxid": wtxid, "package-error": package_error});
            // As in bitcoind, the answer describes no transaction after the first one whose feerate is too high.
            is_over = is_over || !describe_trial(&call.rules, member, *bip141, max_feerate, &mut result);
            without_nulls(result)
        });
        Ok(results.collect())
    }

    /// Offers a transaction and its unconfirmed parents to the mempool. The child may pay the fees of its parents.
    ///
    /// * `package` - 1 to 25 transactions in hexadecimal. The child comes last.
    /// * `maxfeerate` (default: 0.10) - The highest feerate of a transaction to accept, in BTC per 1000 virtual
    ///   bytes; 0 for any.
    /// * `maxburnamount` (default: 0.00) - The highest amount of an unspendable output to accept, in BTC.
    ///
    /// # Result
    /// {"package_msg": "text", "tx-results": {"wtxid": {"txid": "txid", "vsize": n, "fees": {...}}, ...},
    /// "replaced-transactions": ["txid", ...]}    (json object)
    ///
    /// # Example
    /// '["0200000001...", "0200000001..."]'
    #[method]
    fn submitpackage(
        call: &Call<'_>,
        package: Vec<Value>,
        #[arg(kind = "amount")] maxfeerate: Option<&Value>,
        #[arg(kind = "amount")] maxburnamount: Option<&Value>,
    ) -> Result<Value, RpcError> {
        check_package(&package)?;
        let max_feerate = max_feerate(maxfeerate)?;
        let max_burn = maxburnamount.map_or(Ok(Amount::ZERO), amount::from_json)?;
        let mut transactions = Vec::with_capacity(package.len());
        for text in package {
            let transaction = decode(&text)?;
            check_burn(&transaction, max_burn)?;
            transactions.push(transaction);
        }
        if transactions.len() > 1 && !is_child_with_parents(&transactions) {
            let message = "package topology disallowed. not child-with-parents or parents depend on each other.";
            return Err(verify(message));
        }
        let raw = transactions.iter().map(transaction_to_bytes).map(Into::into).collect();
        let outcome = call.host.mempool.submit_package(call.scope, raw, max_feerate)?;
        let message = if outcome.reason.is_empty() {
            "success".to_owned()
        } else {
            full_reason(&outcome.reason, &outcome.detail)
        };
        let mut results = Map::new();
        for (transaction, member) in transactions.iter().zip(&outcome.members) {
            let mut result = json!({"txid": transaction.compute_txid()});
            match member {
                PackageMember::OtherWitness { wtxid } => result["other-wtxid"] = json!(wtxid),
                PackageMember::Rejected { reason, detail } => result["error"] = json!(full_reason(reason, detail)),
                PackageMember::NotJudged if call.rules.names_unvalidated => {
                    result["error"] = json!("package-not-validated");
                }
                PackageMember::NotJudged => continue,
                PackageMember::Accepted { .. } | PackageMember::InMempool { .. } => {
                    describe_fees(&call.rules, member, transaction.weight().to_vbytes_ceil(), &mut result);
                }
            }
            results.insert(wtxid(transaction), without_nulls(result));
        }
        Ok(json!({"package_msg": message, "tx-results": results, "replaced-transactions": outcome.replaced}))
    }
}

fn check_package(texts: &[Value]) -> Result<(), RpcError> {
    if texts.is_empty() || texts.len() > MAX_PACKAGE {
        let message = format!("Array must contain between 1 and {MAX_PACKAGE} transactions.");
        return Err(RpcError::invalid_parameter(message));
    }
    Ok(())
}

fn decode(text: &Value) -> Result<Transaction, RpcError> {
    let text = typed::text(text)?;
    sendable_from_hex(text).ok_or_else(|| {
        RpcError::undecodable(format!("TX decode failed: {text} Make sure the tx has at least one input."))
    })
}

/// Adds the outcome for a transaction to its result. Returns false if its feerate is above `max_feerate`.
fn describe_trial(
    rules: &Rules,
    member: &PackageMember,
    bip141: u64,
    max_feerate: FeeRate,
    result: &mut Value,
) -> bool {
    match member {
        PackageMember::Accepted { virtual_size, fee, .. }
            if max_feerate > FeeRate::ZERO && *fee > max_feerate.fee(*virtual_size) =>
        {
            result["allowed"] = json!(false);
            result["reject-reason"] = json!("max-fee-exceeded");
            return false;
        }
        PackageMember::Accepted { .. } => {
            result["allowed"] = json!(true);
            describe_fees(rules, member, bip141, result);
        }
        PackageMember::Rejected { reason, detail } => {
            result["allowed"] = json!(false);
            if reason == MISSING_INPUTS {
                result["reject-reason"] = json!("missing-inputs");
            } else {
                result["reject-reason"] = json!(reason);
                result["reject-details"] = json!(full_reason(reason, detail));
            }
        }
        PackageMember::InMempool { .. } | PackageMember::OtherWitness { .. } | PackageMember::NotJudged => {}
    }
    true
}

/// Adds the sizes and the fees of a transaction that the mempool would accept, accepted or already has.
fn describe_fees(rules: &Rules, member: &PackageMember, bip141: u64, result: &mut Value) {
    let (PackageMember::Accepted { virtual_size, fee, .. } | PackageMember::InMempool { virtual_size, fee }) = member
    else {
        return;
    };
    result["vsize_adjusted"] = json!(rules.adjusted_sizes.then_some(virtual_size));
    result["vsize"] = json!(virtual_size);
    result["vsize_bip141"] = json!(rules.adjusted_sizes.then_some(bip141));
    result["fees"] = json!({"base": amount::to_json(*fee)});
    if let PackageMember::Accepted { feerate, included, .. } = member {
        result["fees"]["effective-feerate"] = amount::to_json(*feerate);
        result["fees"]["effective-includes"] = json!(included);
    }
}

/// Whether the package is a child with its parents: the last transaction spends from every other, and no parent spends from
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
