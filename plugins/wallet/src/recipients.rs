//! The recipients of `sendmany`, and the fee payers among them.

use std::collections::HashSet;

use bitcoin::script::PushBytesBuf;
use bitcoin::{Amount, Network, ScriptBuf, opcodes};
use outrigger_kit::spend::Recipient;
use outrigger_kit::spend::options::fee_payers;
use outrigger_sdk::params::{self, Type};
use outrigger_sdk::{RpcError, amount, typed};
use serde_json::Value;

use crate::arguments::{duplicated_address, listed_address};

/// The key in `amounts` for an OP_RETURN output.
const DATA: &str = "data";

/// Checks `dummy`, which named an account in old releases.
pub fn check_dummy(value: &Value) -> Result<(), RpcError> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) if text.is_empty() => Ok(()),
        Value::String(_) => Err(RpcError::invalid_parameter("Dummy value must be set to \"\"")),
        other => {
            let got = Type::of(other).name();
            let mismatch =
                format!("\"Position 1 (dummy)\": \"JSON value of type {got} is not of expected type string\"");
            Err(RpcError::type_error(format!("Wrong type passed:\n{{\n    {mismatch}\n}}")))
        }
    }
}

/// The recipients, in the order of `amounts`. As in Bitcoin Core 29, the fee payers are checked before the addresses.
pub fn read(amounts: &Value, subtract: Option<&Value>, network: Network) -> Result<Vec<Recipient>, RpcError> {
    let amounts = typed::object(amounts)?;
    let names: Vec<&str> = amounts.keys().map(String::as_str).collect();
    let payers = fee_payers(subtract, &names)?;
    let mut seen = HashSet::new();
    let mut recipients = Vec::new();
    for (position, (key, value)) in amounts.iter().enumerate() {
        let subtract_fee = payers.contains(&position);
        if key == DATA {
            recipients.push(Recipient { script: data_script(value)?, amount: Amount::ZERO, subtract_fee });
            continue;
        }
        let script = listed_address(key, network)?;
        let amount = amount::from_json(value)?;
        if !seen.insert(script.clone()) {
            return Err(duplicated_address(key));
        }
        recipients.push(Recipient { script, amount, subtract_fee });
    }
    Ok(recipients)
}

fn data_script(value: &Value) -> Result<ScriptBuf, RpcError> {
    let text = match value {
        Value::Number(number) => Value::String(number.to_string()),
        other => other.clone(),
    };
    let data = PushBytesBuf::try_from(params::hex(&text, "Data")?).map_err(|_| RpcError::invalid_parameter("Data"))?;
    Ok(ScriptBuf::builder().push_opcode(opcodes::all::OP_RETURN).push_slice(data).into_script())
}
