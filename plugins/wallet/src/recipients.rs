//! The recipients of `sendmany`, and the fee payers among them.

use bitcoin::Network;
use outrigger_kit::spend::Recipient;
use outrigger_kit::spend::options::fee_payers;
use outrigger_sdk::params::Type;
use outrigger_sdk::standard::outputs;
use outrigger_sdk::{RpcError, typed};
use serde_json::Value;

/// Checks `dummy`, which named an account in old releases.
pub fn check_dummy(value: &Value) -> Result<(), RpcError> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) if text.is_empty() => Ok(()),
        Value::String(_) => Err(RpcError::invalid_parameter("Dummy value must be set to \"\"")),
        other => Err(typed::wrong_argument(1, "dummy", other, Type::String)),
    }
}

/// The recipients, in the order of `amounts`. As in Bitcoin Core 29, the fee payers are checked before the addresses.
pub fn read(amounts: &Value, subtract: Option<&Value>, network: Network) -> Result<Vec<Recipient>, RpcError> {
    let names: Vec<&str> = typed::object(amounts)?.keys().map(String::as_str).collect();
    let payers = fee_payers(subtract, &names)?;
    let recipients = outputs(amounts, network)?.into_iter().enumerate().map(|(position, output)| Recipient {
        script: output.script_pubkey,
        amount: output.value,
        subtract_fee: payers.contains(&position),
    });
    Ok(recipients.collect())
}
