//! `fundrawtransaction`.

use outrigger_sdk::params::{Type, encode_hex, flag, text};
use outrigger_sdk::spend::options::fee_payers;
use outrigger_sdk::spend::{CoinControl, fund_transaction};
use outrigger_sdk::standard::decode::{Form, transaction_of_form};
use outrigger_sdk::standard::{transaction_from_hex, transaction_to_bytes};
use outrigger_sdk::{CallContext, RpcError, RpcErrorCode, amount, typed};
use serde_json::{Value, json};

pub fn fund_raw_transaction(context: &mut CallContext<'_>) -> Result<Value, RpcError> {
    let params = &context.params;
    // As in bitcoind, a missing wallet is the first error.
    context.wallet()?;
    let hex = text(params.get(0))?;
    let transaction = match params.given(2).map(flag).transpose()? {
        None => transaction_from_hex(hex),
        Some(true) => transaction_of_form(hex, Form::Extended),
        Some(false) => transaction_of_form(hex, Form::Legacy),
    };
    let transaction = transaction.ok_or_else(|| RpcError::new(RpcErrorCode::DESERIALIZATION, "TX decode failed"))?;
    let options = match params.given(1) {
        None => None,
        // Old clients give `includeWatching` alone. It has no effect in a descriptor wallet.
        Some(Value::Bool(_)) if context.rules.boolean_fund_options => None,
        Some(other) if !other.is_object() && !context.rules.boolean_fund_options => return Err(not_options(other)),
        Some(options) => Some(typed::object(options)?),
    };
    let payers = options.and_then(|options| options.get("subtractFeeFromOutputs")).filter(|payers| !payers.is_null());
    let payers = fee_payers(payers, &vec!["dummy"; transaction.output.len()])?;
    let services = context.services();
    let settings = context.host.wallet.spend_settings(context.scope)?;
    let funded = fund_transaction(services, &settings, &transaction, &payers, options, true, CoinControl::default())?;
    Ok(json!({
        "hex": encode_hex(&transaction_to_bytes(&funded.transaction)),
        "fee": amount::to_json(funded.fee),
        "changepos": funded.change_position.map_or(json!(-1), |position| json!(position)),
    }))
}

/// The refusal of a type check, which the manifest cannot declare: releases before 32 take a boolean.
fn not_options(value: &Value) -> RpcError {
    let got = Type::of(value).name();
    let mismatch = format!("\"Position 2 (options)\": \"JSON value of type {got} is not of expected type object\"");
    RpcError::type_error(format!("Wrong type passed:\n{{\n    {mismatch}\n}}"))
}
