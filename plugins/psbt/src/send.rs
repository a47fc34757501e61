//! `send` and `sendall`: payments by the wallet. A payment that the wallet cannot sign completely becomes a PSBT.

use std::collections::HashSet;

use bitcoin::secp256k1::rand::thread_rng;
use bitcoin::{Transaction, consensus};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::psbt::{Psbt, PsbtVersion};
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::spend::feerate::feerate;
use outrigger_sdk::spend::funding_options::{FundingCall, read_max_depth, take_input_weights};
use outrigger_sdk::spend::options::fee_payers;
use outrigger_sdk::spend::{CoinControl, SpendError, Sweep, fund_transaction, locktime, sweep};
use outrigger_sdk::standard::{output_names, transaction_from_params, transaction_to_bytes};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{RpcError, RpcErrorCode, typed};
use serde_json::{Map, Value, json};

use crate::Context;
use crate::fund::{given, options, parts};
use crate::sign::{SighashSource, SignOptions, extract, finalize, is_complete};
use crate::wallet::fill;

/// Moves the fee arguments into the options, and refuses the option names of other methods.
fn interpret(context: &Context<'_>, options: &mut Map<String, Value>) -> Result<(), RpcError> {
    const RENAMED: [(&str, &str); 6] = [
        ("feeRate", "fee_rate (sat/vB)"),
        ("changeAddress", "change_address"),
        ("changePosition", "change_position"),
        ("includeWatching", "include_watching"),
        ("lockUnspents", "lock_unspents"),
        ("subtractFeeFromOutputs", "subtract_fee_from_outputs"),
    ];
    let params = &context.params;
    if options.contains_key("conf_target") || options.contains_key("estimate_mode") {
        if params.given(1).is_some() || params.given(2).is_some() {
            return Err(RpcError::invalid_parameter(
                "Pass conf_target and estimate_mode either as arguments or in the options object, but not both",
            ));
        }
    } else {
        options.extend(params.given(1).map(|target| ("conf_target".to_owned(), target.clone())));
        options.extend(params.given(2).map(|mode| ("estimate_mode".to_owned(), mode.clone())));
    }
    match params.given(3) {
        Some(_) if options.contains_key("fee_rate") => {
            return Err(RpcError::invalid_parameter(
                "Pass the fee_rate either as an argument, or in the options object, but not both",
            ));
        }
        Some(feerate) => drop(options.insert("fee_rate".to_owned(), feerate.clone())),
        None => {}
    }
    if given(options, "conf_target").is_some() {
        let mode = given(options, "estimate_mode").map(typed::text).transpose()?;
        if mode.is_none_or(|mode| mode == "unset") {
            return Err(RpcError::invalid_parameter("Specify estimate_mode"));
        }
    }
    match RENAMED.iter().find(|(old, _)| options.contains_key(*old)) {
        Some((old, new)) => Err(RpcError::invalid_parameter(format!("Use {new} instead of {old}"))),
        None => Ok(()),
    }
}

pub fn send(context: &Context<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    let params = &context.params;
    let mut options = options(context, 4)?;
    interpret(context, &mut options)?;
    let settings = &context.host.wallet.spend_settings(context.scope)?;
    let replaceable = options.get("replaceable").map_or(Ok(settings.replaceable), typed::flag)?;
    let outputs = params.get(0);
    let payers = fee_payers(given(&options, "subtract_fee_from_outputs"), &output_names(outputs))?;
    let lock_time = given(&options, "locktime").unwrap_or(&Value::Null);
    let inputs = given(&options, "inputs");
    let parts = parts(inputs, outputs, lock_time, replaceable, params.given(5));
    let transaction = transaction_from_params(&parts, context.network()?)?;
    let control = CoinControl { add_inputs: transaction.input.is_empty(), ..CoinControl::default() };
    if let Some(weight) = options.get("max_tx_weight") {
        typed::integer::<i32>(weight)?;
    }
    take_input_weights(&inputs.cloned().unwrap_or_default(), &mut options)?;
    let services = context.services();
    context.host.pay.begin_payment(context.scope)?;
    let funded = fund_transaction(services, settings, &transaction, &payers, Some(&options), false, control)?;
    let finished = finish(context, &options, &wallet, funded.transaction.clone());
    if finished.is_err() {
        funded.give_back(services);
    }
    finished
}

pub fn send_all(context: &Context<'_>) -> Result<Value, RpcError> {
    let wallet = context.wallet()?;
    let params = &context.params;
    let mut options = options(context, 4)?;
    interpret(context, &mut options)?;
    let mut sharers = HashSet::new();
    let mut recipients = Vec::new();
    for (position, recipient) in typed::array(params.get(0))?.iter().enumerate() {
        recipients.push(match recipient {
            Value::String(to) => {
                sharers.insert(position);
                json!({to.as_str(): 0})
            }
            other => other.clone(),
        });
    }
    if sharers.is_empty() {
        return Err(RpcError::invalid_parameter("Must provide at least one address without a specified amount"));
    }
    let services = context.services();
    let settings = &context.host.wallet.spend_settings(context.scope)?;
    let network = context.network()?;
    let private_keys_enabled = wallet.private_keys_enabled;
    let call = FundingCall { network, private_keys_enabled, outputs: recipients.len(), below_minimum: false };
    let mut control = CoinControl::default();
    call.read_fee(&options, None, &mut control)?;
    call.read_watching(options.get("include_watching"), &mut control)?;
    if let Some(depth) = options.get("minconf") {
        let depth: i32 = typed::integer(depth)?;
        let negative =
            |_| RpcError::invalid_parameter(format!("Invalid minconf (minconf cannot be negative): {depth}"));
        control.min_depth = u32::try_from(depth).map_err(negative)?;
    }
    read_max_depth(&options, &mut control)?;
    let replaceable = options.get("replaceable").map_or(Ok(settings.replaceable), typed::flag)?;
    let feerate = feerate(services, settings, &control).map_err(|error| {
        let too_low = matches!(error, SpendError::FeerateTooLow { .. });
        error.with_code(if too_low { RpcErrorCode::INVALID_PARAMETER } else { RpcErrorCode::WALLET })
    })?;
    let lock_time = given(&options, "locktime").unwrap_or(&Value::Null);
    // Below release 30, sendall ignores an option `version`.
    let version = options.get("version").filter(|_| !context.rules.lacks("sendall", "version"));
    version.map(typed::integer::<u32>).transpose()?;
    let parts = parts(given(&options, "inputs"), &Value::Array(recipients), lock_time, replaceable, version);
    let transaction = transaction_from_params(&parts, network)?;
    let send_max = options.get("send_max").map_or(Ok(false), typed::flag)?;
    let named = options.contains_key("inputs");
    if named && options.contains_key("send_max") {
        return Err(RpcError::invalid_parameter("Cannot combine send_max with specific inputs."));
    }
    if named && (options.contains_key("minconf") || options.contains_key("maxconf")) {
        return Err(RpcError::invalid_parameter("Cannot combine minconf or maxconf with specific inputs."));
    }
    context.host.pay.begin_payment(context.scope)?;
    let whole = Sweep { transaction, sharers, named, send_max, replaceable };
    let transaction = sweep(services, settings, whole, control, feerate)?;
    if options.get("lock_unspents").map_or(Ok(false), typed::flag)? {
        let coins = transaction.input.iter().map(|input| input.previous_output).collect();
        services.host.book.lock_coins(services.scope, coins, false)?;
    }
    finish(context, &options, &wallet, transaction)
}

/// Signs the payment (`FinishTransaction` of Bitcoin Core). Sends a complete transaction unless the options forbid it. The result
/// of an incomplete transaction is a PSBT.
fn finish(
    context: &Context<'_>,
    options: &Map<String, Value>,
    wallet: &WalletInfo,
    mut transaction: Transaction,
) -> Result<Value, RpcError> {
    if !options.contains_key("locktime") {
        locktime::set(context.services(), wallet, &mut transaction, &mut thread_rng())?;
    }
    let mut psbt = Psbt::of_version(transaction, PsbtVersion::of(&context.rules));
    let sign_options = SignOptions { sighash: None, bip32_derivs: true, finalize: true };
    fill(context, wallet, &mut psbt, false, sign_options)?;
    // With a locked wallet the result is an unsigned PSBT.
    if !wallet.locked {
        fill(context, wallet, &mut psbt, true, SignOptions { bip32_derivs: false, ..sign_options })?;
    }
    finalize(context, &mut psbt, SighashSource::Fields)?;
    let complete = is_complete(&psbt);
    let as_psbt = options.get("psbt").map_or(Ok(false), typed::flag)?;
    let add_to_wallet = options.get("add_to_wallet").map_or(Ok(true), typed::flag)?;
    let mut result = Map::new();
    if as_psbt || !complete || !add_to_wallet {
        result.insert("psbt".into(), json!(psbt.to_base64()));
    }
    if complete {
        let signed = extract(&psbt);
        result.insert("txid".into(), json!(signed.compute_txid()));
        if add_to_wallet && !as_psbt {
            // As in bitcoind, the wallet keeps the transaction even if the mempool refuses it, and offers it again later.
            context.host.pay.send(context.scope, Blob(consensus::serialize(&signed)), Vec::new())?;
        } else {
            result.insert("hex".into(), json!(encode_hex(&transaction_to_bytes(&signed))));
        }
    }
    result.insert("complete".into(), json!(complete));
    Ok(Value::Object(result))
}
