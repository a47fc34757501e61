//! `send` and `sendall`: payments by the wallet. A payment that the wallet cannot sign completely becomes a PSBT.

use std::collections::HashSet;

use bitcoin::secp256k1::rand::thread_rng;
use bitcoin::{OutPoint, Transaction, consensus};
use outrigger_kit::psbt::Psbt;
use outrigger_kit::spend::feerate::feerate;
use outrigger_kit::spend::funding_options::{FundingCall, read_max_depth, take_input_weights};
use outrigger_kit::spend::options::fee_payers;
use outrigger_kit::spend::{CoinControl, SpendError, Sweep, fund_transaction, locktime, sweep};
use outrigger_kit::{given, services, without_nulls};
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::standard::{output_names, transaction_from_params, transaction_to_bytes};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, RpcError, RpcErrorCode, methods, typed};
use serde_json::{Map, Value, json};

use crate::PsbtPlugin;
use crate::sign::{SighashSource, SignOptions, extract, finalize, is_complete};
use crate::wallet::fill;

/// Moves the fee arguments into the options, and refuses the option names of other methods.
fn interpret(
    options: &mut Map<String, Value>,
    conf_target: Option<&Value>,
    estimate_mode: Option<&str>,
    fee_rate: Option<&Value>,
) -> Result<(), RpcError> {
    const RENAMED: [(&str, &str); 6] = [
        ("feeRate", "fee_rate (sat/vB)"),
        ("changeAddress", "change_address"),
        ("changePosition", "change_position"),
        ("includeWatching", "include_watching"),
        ("lockUnspents", "lock_unspents"),
        ("subtractFeeFromOutputs", "subtract_fee_from_outputs"),
    ];
    if options.contains_key("conf_target") || options.contains_key("estimate_mode") {
        if conf_target.is_some() || estimate_mode.is_some() {
            return Err(RpcError::invalid_parameter(
                "Pass conf_target and estimate_mode either as arguments or in the options object, but not both",
            ));
        }
    } else {
        options.extend(conf_target.map(|target| ("conf_target".to_owned(), target.clone())));
        options.extend(estimate_mode.map(|mode| ("estimate_mode".to_owned(), mode.into())));
    }
    if let Some(feerate) = fee_rate
        && options.insert("fee_rate".to_owned(), feerate.clone()).is_some()
    {
        return Err(RpcError::invalid_parameter(
            "Pass the fee_rate either as an argument, or in the options object, but not both",
        ));
    }
    if given(&*options, "conf_target").is_some() {
        let mode = given(&*options, "estimate_mode").map(typed::text).transpose()?;
        if mode.is_none_or(|mode| mode == "unset") {
            return Err(RpcError::invalid_parameter("Specify estimate_mode"));
        }
    }
    match RENAMED.iter().find(|(old, _)| options.contains_key(*old)) {
        Some((old, new)) => Err(RpcError::invalid_parameter(format!("Use {new} instead of {old}"))),
        None => Ok(()),
    }
}

#[methods(category = "Wallet", long_running, private_keys)]
impl PsbtPlugin {
    /// Sends a payment. If the wallet's keys do not suffice, or the options ask for it, the call returns a PSBT
    /// instead.
    ///
    /// * `outputs` - The outputs: an object, or an array of objects with one key each. A key is an address with an
    ///   amount in BTC, or "data" with hexadecimal for an OP_RETURN output.
    /// * `conf_target` (default: 6) - The confirmation target in blocks, from 1 to 1008.
    /// * `estimate_mode` (default: unset) - unset, economical or conservative.
    /// * `fee_rate` (default: the estimate, or the fallback) - The feerate in satoshi per virtual byte, with at most
    ///   three decimals.
    /// * `options` (default: {}) - The options. A call with named arguments can also pass each option as an argument:
    ///   * `add_inputs` (boolean; default: false where inputs are given) - Whether to add coins if the inputs do not
    ///     suffice.
    ///   * `include_unsafe` (boolean; default: false) - Whether to add unconfirmed coins from other payers.
    ///   * `minconf` (numeric; default: 0) - The least number of confirmations of added coins.
    ///   * `maxconf` (numeric; default: 9999999) - The greatest number of confirmations of added coins.
    ///   * `add_to_wallet` (boolean; default: true) - Whether to send the transaction. If false, the call only
    ///     returns it.
    ///   * `psbt` (boolean; default: false) - Whether to return a PSBT, and not send the transaction.
    ///   * `change_address` (string; default: a fresh one) - The address of the change.
    ///   * `change_position` (numeric; default: random) - The position of the change output.
    ///   * `change_type` (string; default: one that suits the recipients) - The type of a new change address: legacy,
    ///     p2sh-segwit, bech32 or bech32m.
    ///   * `include_watching` (boolean; default: true for wallets without private keys) - Whether to add watch-only
    ///     coins.
    ///   * `lock_unspents` (boolean; default: false) - Whether to lock the spent coins.
    ///   * `inputs` (array; default: []) - The inputs: objects with txid, vout and optionally sequence and weight.
    ///   * `locktime` (numeric; default: 0) - The locktime.
    ///   * `subtract_fee_from_outputs` (array; default: []) - The positions of the outputs that pay the fee in equal
    ///     shares. The change output does not count.
    ///   * `max_tx_weight` (numeric; default: 400000) - The greatest weight of the transaction.
    ///   * `conf_target` (numeric; default: 6) - The confirmation target in blocks, from 1 to 1008.
    ///   * `estimate_mode` (string; default: unset) - unset, economical or conservative.
    ///   * `replaceable` (boolean; default: true) - Whether the transaction signals replaceability (BIP 125).
    ///   * `solving_data` (object) - Solving data of inputs outside the wallet: {"pubkeys": [...], "scripts": [...],
    ///     "descriptors": [...]}. The call uses it only to estimate the fee.
    ///   * `fee_rate` (amount; default: the estimate, or the fallback) - The feerate in satoshi per virtual byte,
    ///     with at most three decimals.
    /// * `version` (default: 2) - The version of the transaction, from 1 to 3. Bitcoin Core has this argument since
    ///   release 30.
    ///
    /// # Result
    /// {"psbt": "str", "txid": "hex", "hex": "hex", "complete": true|false}    (json object) Members that do not
    /// apply are missing.
    ///
    /// # Example
    /// '{"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080": 0.1}' 6 economical
    #[method]
    fn send(
        call: &Call<'_>,
        #[arg(kind = "outputs")] outputs: &Value,
        #[arg(kind = "numeric")] conf_target: Option<&Value>,
        estimate_mode: Option<&str>,
        #[arg(kind = "amount")] fee_rate: Option<&Value>,
        options: Option<&mut Map<String, Value>>,
        #[arg(kind = "numeric")] version: Option<&Value>,
    ) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        let mut options = options.map(std::mem::take).unwrap_or_default();
        interpret(&mut options, conf_target, estimate_mode, fee_rate)?;
        let settings = &call.host.wallet.spend_settings(call.scope)?;
        let replaceable = options.get("replaceable").map_or(Ok(settings.replaceable), typed::flag)?;
        let payers = fee_payers(given(&options, "subtract_fee_from_outputs"), &output_names(outputs))?;
        let lock_time = given(&options, "locktime");
        let inputs = given(&options, "inputs");
        let network = call.network()?;
        let transaction = transaction_from_params(inputs, outputs, lock_time, Some(replaceable), version, network)?;
        let control = CoinControl { add_inputs: transaction.input.is_empty(), ..CoinControl::default() };
        if let Some(weight) = options.get("max_tx_weight") {
            typed::integer::<i32>(weight)?;
        }
        take_input_weights(&inputs.cloned().unwrap_or_default(), &mut options)?;
        let services = services(call);
        call.host.pay.begin_payment(call.scope)?;
        let locked = call.host.wallet.locked_coins(call.scope)?;
        let funded = fund_transaction(services, settings, &transaction, &payers, Some(&options), false, control)?;
        let finished = finish(call, &options, &wallet, funded.transaction.clone());
        if finished.is_err() {
            unlock(call, &locked, &funded.transaction);
            funded.give_back(services);
        }
        finished
    }

    /// Spends all coins of the wallet, or the given inputs. Recipients without an amount share the remainder in equal
    /// parts.
    ///
    /// * `recipients` - Addresses, and objects with an address and an amount in BTC. At least one recipient has no
    ///   amount.
    /// * `conf_target` (default: 6) - The confirmation target in blocks, from 1 to 1008.
    /// * `estimate_mode` (default: unset) - unset, economical or conservative.
    /// * `fee_rate` (default: the estimate, or the fallback) - The feerate in satoshi per virtual byte, with at most
    ///   three decimals.
    /// * `options` (default: {}) - The options. A call with named arguments can also pass each option as an argument:
    ///   * `add_to_wallet` (boolean; default: true) - Whether to send the transaction. If false, the call only
    ///     returns it.
    ///   * `psbt` (boolean; default: false) - Whether to return a PSBT, and not send the transaction.
    ///   * `include_watching` (boolean; default: true for wallets without private keys) - Whether to add watch-only
    ///     coins.
    ///   * `lock_unspents` (boolean; default: false) - Whether to lock the spent coins.
    ///   * `inputs` (array; default: []) - The inputs: objects with txid, vout and optionally sequence and weight.
    ///   * `locktime` (numeric; default: 0) - The locktime.
    ///   * `version` (numeric; default: 2) - The version of the transaction, from 1 to 3. Bitcoin Core has this
    ///     argument since release 30.
    ///   * `send_max` (boolean; default: false) - Whether to leave coins that cost more to spend than their value.
    ///   * `minconf` (numeric; default: 0) - The least number of confirmations of added coins.
    ///   * `maxconf` (numeric; default: 9999999) - The greatest number of confirmations of added coins.
    ///   * `conf_target` (numeric; default: 6) - The confirmation target in blocks, from 1 to 1008.
    ///   * `estimate_mode` (string; default: unset) - unset, economical or conservative.
    ///   * `replaceable` (boolean; default: true) - Whether the transaction signals replaceability (BIP 125).
    ///   * `solving_data` (object) - Solving data of inputs outside the wallet: {"pubkeys": [...], "scripts": [...],
    ///     "descriptors": [...]}. The call uses it only to estimate the fee.
    ///   * `fee_rate` (amount; default: the estimate, or the fallback) - The feerate in satoshi per virtual byte,
    ///     with at most three decimals.
    ///
    /// # Result
    /// {"psbt": "str", "txid": "hex", "hex": "hex", "complete": true|false}    (json object) Members that do not
    /// apply are missing.
    ///
    /// # Example
    /// '["bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]'
    #[method]
    fn sendall(
        call: &Call<'_>,
        recipients: &[Value],
        #[arg(kind = "numeric")] conf_target: Option<&Value>,
        estimate_mode: Option<&str>,
        #[arg(kind = "amount")] fee_rate: Option<&Value>,
        options: Option<&mut Map<String, Value>>,
    ) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        let mut options = options.map(std::mem::take).unwrap_or_default();
        interpret(&mut options, conf_target, estimate_mode, fee_rate)?;
        let sharers = recipients.iter().enumerate().filter(|(_, recipient)| recipient.is_string());
        let sharers: HashSet<usize> = sharers.map(|(position, _)| position).collect();
        let output = |recipient: &Value| recipient.as_str().map_or_else(|| recipient.clone(), |to| json!({to: 0}));
        let outputs: Vec<Value> = recipients.iter().map(output).collect();
        if sharers.is_empty() {
            return Err(RpcError::invalid_parameter("Must provide at least one address without a specified amount"));
        }
        let services = services(call);
        let settings = &call.host.wallet.spend_settings(call.scope)?;
        let network = call.network()?;
        let private_keys_enabled = wallet.signs();
        let funding = FundingCall { network, private_keys_enabled, outputs: outputs.len(), below_minimum: false };
        let mut control = CoinControl::default();
        funding.read_fee(&options, None, &mut control)?;
        funding.read_watching(options.get("include_watching"), &mut control)?;
        if let Some(depth) = options.get("minconf") {
            let depth: i32 = typed::integer(depth)?;
            let negative =
                |_| RpcError::invalid_parameter(format!("Invalid minconf (minconf cannot be negative): {depth}"));
            control.min_depth = u32::try_from(depth).map_err(negative)?;
        }
        read_max_depth(&options, &mut control)?;
        let replaceable = options.get("replaceable").map_or(Ok(settings.replaceable), typed::flag)?;
        let feerate = feerate(services, settings, &control).map_err(|error| {
            let too_low = matches!(error, SpendError::FeerateTooLow(_));
            error.with_code(if too_low { RpcErrorCode::INVALID_PARAMETER } else { RpcErrorCode::WALLET })
        })?;
        let lock_time = given(&options, "locktime");
        // Below release 30, sendall ignores an option `version`.
        let version = options.get("version").filter(|_| !call.rules.lacks("sendall", "version"));
        version.map(typed::integer::<u32>).transpose()?;
        let (inputs, outputs) = (given(&options, "inputs"), Value::Array(outputs));
        let transaction = transaction_from_params(inputs, &outputs, lock_time, Some(replaceable), version, network)?;
        let send_max = options.get("send_max").map_or(Ok(false), typed::flag)?;
        let named = options.contains_key("inputs");
        if named && options.contains_key("send_max") {
            return Err(RpcError::invalid_parameter("Cannot combine send_max with specific inputs."));
        }
        if named && (options.contains_key("minconf") || options.contains_key("maxconf")) {
            return Err(RpcError::invalid_parameter("Cannot combine minconf or maxconf with specific inputs."));
        }
        call.host.pay.begin_payment(call.scope)?;
        let whole = Sweep { transaction, sharers, named, send_max, replaceable };
        let transaction = sweep(services, settings, whole, control, feerate)?;
        let locked = call.host.wallet.locked_coins(call.scope)?;
        if options.get("lock_unspents").map_or(Ok(false), typed::flag)? {
            let coins = transaction.input.iter().map(|input| input.previous_output).collect();
            services.host.book.lock_coins(services.scope, coins, false)?;
        }
        let finished = finish(call, &options, &wallet, transaction.clone());
        if finished.is_err() {
            unlock(call, &locked, &transaction);
        }
        finished
    }
}

/// Unlocks the coins that a failed payment locked. Ignores errors, because the client gets the error of the payment.
fn unlock(call: &Call<'_>, before: &[OutPoint], transaction: &Transaction) {
    let spent: HashSet<OutPoint> = transaction.input.iter().map(|input| input.previous_output).collect();
    let mut coins = call.host.wallet.locked_coins(call.scope).unwrap_or_default();
    coins.retain(|coin| spent.contains(coin) && !before.contains(coin));
    let _ = call.host.book.unlock_coins(call.scope, coins);
}

/// Signs the payment (`FinishTransaction` of Bitcoin Core). Sends a complete transaction unless the options forbid it. For an
/// incomplete transaction, the result is a PSBT.
fn finish(
    call: &Call<'_>,
    options: &Map<String, Value>,
    wallet: &WalletInfo,
    mut transaction: Transaction,
) -> Result<Value, RpcError> {
    if !options.contains_key("locktime") {
        locktime::set(services(call), wallet, &mut transaction, &mut thread_rng())?;
    }
    let mut psbt = Psbt::of_version(transaction, call.rules.psbt_v2);
    let sign_options = SignOptions { sighash: None, bip32_derivs: true, finalize: true };
    fill(call, wallet, &mut psbt, false, sign_options)?;
    // With a locked wallet the result is an unsigned PSBT.
    if !wallet.locked {
        fill(call, wallet, &mut psbt, true, SignOptions { bip32_derivs: false, ..sign_options })?;
    }
    finalize(call, &mut psbt, SighashSource::Fields)?;
    let complete = is_complete(&psbt);
    let as_psbt = options.get("psbt").map_or(Ok(false), typed::flag)?;
    let add_to_wallet = options.get("add_to_wallet").map_or(Ok(true), typed::flag)?;
    let sends = complete && add_to_wallet && !as_psbt;
    let signed = complete.then(|| extract(&psbt));
    if let Some(signed) = signed.as_ref().filter(|_| sends) {
        // As in bitcoind, the wallet keeps the transaction even if the mempool refuses it, and offers it again later.
        call.host.pay.send(call.scope, Blob(consensus::serialize(signed)), Vec::new())?;
    }
    Ok(without_nulls(json!({
        "psbt": (!sends).then(|| psbt.to_base64()),
        "txid": signed.as_ref().map(Transaction::compute_txid),
        "hex": signed.filter(|_| !sends).map(|signed| encode_hex(&transaction_to_bytes(&signed))),
        "complete": complete,
    })))
}
