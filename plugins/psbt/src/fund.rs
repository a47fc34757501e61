//! `walletcreatefundedpsbt`.

use outrigger_sdk::params::{Params, Type};
use outrigger_sdk::psbt::Psbt;
use outrigger_sdk::spend::funding_options::take_input_weights;
use outrigger_sdk::spend::options::fee_payers;
use outrigger_sdk::spend::{CoinControl, fund_transaction};
use outrigger_sdk::standard::{output_names, transaction_from_params};
use outrigger_sdk::{RpcError, amount, typed};
use serde_json::{Map, Value, json};

use crate::sign::SignOptions;
use crate::wallet::fill;
use crate::{Context, psbt_version};

/// The options of a call. They may be omitted.
pub fn options(context: &Context<'_>, index: usize) -> Result<Map<String, Value>, RpcError> {
    context.params.given(index).map_or(Ok(Map::new()), |options| typed::object(options).cloned())
}

/// An option; none if it is missing or null.
pub fn given<'v>(options: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    options.get(name).filter(|value| !value.is_null())
}

/// The parameters of `transaction_from_params`. Inputs may be omitted.
pub fn parts(
    inputs: Option<&Value>,
    outputs: &Value,
    lock_time: &Value,
    replaceable: bool,
    version: Option<&Value>,
) -> Params {
    let inputs = inputs.cloned().unwrap_or_else(|| json!([]));
    let version = version.cloned().unwrap_or_default();
    Params(vec![inputs, outputs.clone(), lock_time.clone(), json!(replaceable), version])
}

/// The manifest accepts any type for `inputs`, because this required array may be null.
fn check_inputs(inputs: &Value) -> Result<(), RpcError> {
    match Type::of(inputs) {
        Type::Null | Type::Array => Ok(()),
        other => {
            let got = other.name();
            let mismatch =
                format!("\"Position 1 (inputs)\": \"JSON value of type {got} is not of expected type array\"");
            Err(RpcError::type_error(format!("Wrong type passed:\n{{\n    {mismatch}\n}}")))
        }
    }
}

pub fn wallet_create_funded_psbt(context: &Context<'_>) -> Result<Value, RpcError> {
    let params = &context.params;
    check_inputs(params.get(0))?;
    let wallet = context.wallet()?;
    let mut options = options(context, 3)?;
    let settings = &context.host.wallet.spend_settings(context.scope)?;
    let replaceable = given(&options, "replaceable").map_or(Ok(settings.replaceable), typed::flag)?;
    let parts = parts(params.given(0), params.get(1), params.get(2), replaceable, params.given(5));
    let transaction = transaction_from_params(&parts, context.network()?)?;
    let payers = fee_payers(given(&options, "subtractFeeFromOutputs"), &output_names(params.get(1)))?;
    let control = CoinControl { add_inputs: transaction.input.is_empty(), ..CoinControl::default() };
    take_input_weights(params.get(0), &mut options)?;
    let funded = fund_transaction(context.services(), settings, &transaction, &payers, Some(&options), true, control)?;
    let bip32_derivs = params.flag_or(4, true)?;
    let version = psbt_version::<i32>(context, params.given(6))?;
    let mut psbt = Psbt::of_version(funded.transaction.clone(), version);
    fill(context, &wallet, &mut psbt, false, SignOptions { sighash: None, bip32_derivs, finalize: true })?;
    Ok(json!({
        "psbt": psbt.to_base64(),
        "fee": amount::to_json(funded.fee),
        "changepos": funded.change_position.map_or(json!(-1), |position| json!(position)),
    }))
}
