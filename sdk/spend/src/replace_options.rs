//! The options of bumpfee and psbtbumpfee.

use bitcoin::Network;
use outrigger_values::params::Type;
use outrigger_values::{RpcError, typed};
use serde_json::Value;

use crate::options::fee_choice;
use crate::replace::Replacement;

/// Reads the options of bumpfee and psbtbumpfee. The error is for the first broken rule, with bitcoind's code.
pub fn replacement(options: Option<&Value>, network: Network) -> Result<Replacement, RpcError> {
    const KNOWN: [(&str, Option<Type>); 7] = [
        ("confTarget", Some(Type::Number)),
        ("conf_target", Some(Type::Number)),
        ("estimate_mode", Some(Type::String)),
        ("fee_rate", None),
        ("original_change_index", Some(Type::Number)),
        ("outputs", None),
        ("replaceable", Some(Type::Bool)),
    ];
    let mut replacement = Replacement::default();
    replacement.control.replaceable = Some(true);
    let Some(options) = options.map(typed::object).transpose()? else { return Ok(replacement) };
    typed::check_options(options, &KNOWN)?;
    if options.contains_key("confTarget") && options.contains_key("conf_target") {
        let message =
            "confTarget and conf_target options should not both be set. Use conf_target (confTarget is deprecated).";
        return Err(RpcError::invalid_parameter(message));
    }
    let given = |name: &str| options.get(name).filter(|value| !value.is_null());
    if let Some(replaceable) = options.get("replaceable") {
        replacement.control.replaceable = Some(typed::flag(replaceable)?);
    }
    let target = given("confTarget").or(given("conf_target"));
    replacement.control.fee = fee_choice(target, given("estimate_mode"), given("fee_rate"), false)?;
    if let Some(outputs) = given("outputs") {
        if outputs.as_array().is_some_and(Vec::is_empty) {
            let message = "Invalid parameter, output argument cannot be an empty array";
            return Err(RpcError::invalid_parameter(message));
        }
        replacement.outputs = outrigger_standard::outputs(outputs, network)?;
    }
    replacement.change_index = options.get("original_change_index").map(typed::integer).transpose()?;
    Ok(replacement)
}
