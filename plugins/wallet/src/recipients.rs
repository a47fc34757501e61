//! The recipients of `sendmany`, and which of them pay the fee.

use std::collections::HashSet;

use bitcoin::script::PushBytesBuf;
use bitcoin::{Amount, Network, ScriptBuf, opcodes};
use outrigger_sdk::params::{self, Type};
use outrigger_sdk::spend::Recipient;
use outrigger_sdk::spend::options::fee_payers;
use outrigger_sdk::standard::address;
use outrigger_sdk::{RpcError, amount};
use serde_json::Value;

use crate::arguments::wrong_type;
use crate::error::WalletError;

/// The key of an output that carries data.
const DATA: &str = "data";

/// The argument that named an account once: an empty text, or nothing.
pub fn check_dummy(value: Option<&Value>) -> Result<(), WalletError> {
    match value {
        None => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(Value::String(_)) => Err(WalletError::Dummy),
        Some(other) => {
            let got = Type::of(other).name();
            let mismatch =
                format!("\"Position 1 (dummy)\": \"JSON value of type {got} is not of expected type string\"");
            Err(RpcError::type_error(format!("Wrong type passed:\n{{\n    {mismatch}\n}}")).into())
        }
    }
}

/// The recipients, in the order of their keys. Who pays the fee is judged before the addresses are, as in Bitcoin Core 29.
pub fn read(amounts: &Value, subtract: Option<&Value>, network: Network) -> Result<Vec<Recipient>, WalletError> {
    let amounts = amounts.as_object().ok_or_else(|| wrong_type(amounts, Type::Object))?;
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
        let script = address::to_script(key, network).map_err(|_| WalletError::AddressAmong(key.clone()))?;
        let amount = amount::from_json(value)?;
        if !seen.insert(script.clone()) {
            return Err(WalletError::DuplicatedAddress(key.clone()));
        }
        recipients.push(Recipient { script, amount, subtract_fee });
    }
    Ok(recipients)
}

/// The script of an output that carries data.
fn data_script(value: &Value) -> Result<ScriptBuf, WalletError> {
    let text = match value {
        Value::Number(number) => Value::String(number.to_string()),
        other => other.clone(),
    };
    let data = PushBytesBuf::try_from(params::hex(&text, "Data")?).map_err(|_| RpcError::invalid_parameter("Data"))?;
    Ok(ScriptBuf::builder().push_opcode(opcodes::all::OP_RETURN).push_slice(data).into_script())
}
