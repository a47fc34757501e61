//! Constructs a transaction from the arguments of `createrawtransaction` and `createpsbt`.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use bitcoin::absolute::LockTime;
use bitcoin::script::PushBytesBuf;
use bitcoin::transaction::Version;
use bitcoin::{Amount, Network, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness, opcodes};
use outrigger_values::{RpcError, RpcErrorCode, amount, params, typed};
use serde_json::{Map, Value};

use super::address::to_script;

const DATA: &str = "data";

/// The version of a transaction if the argument is omitted.
const VERSION: u32 = 2;
/// The standard versions of transactions.
const VERSIONS: RangeInclusive<u32> = 1..=3;

/// Builds a transaction from the arguments of a method. The error names the first violated rule, with bitcoind's code and message.
pub fn transaction_from_params(
    inputs: Option<&Value>,
    outputs: &Value,
    lock_time: Option<&Value>,
    replaceable: Option<bool>,
    version: Option<&Value>,
    network: Network,
) -> Result<Transaction, RpcError> {
    let version: u32 = version.map_or(Ok(VERSION), typed::integer)?;
    let lock_time = self::lock_time(lock_time)?;
    if !VERSIONS.contains(&version) {
        let message = format!(", version out of range({}~{})", VERSIONS.start(), VERSIONS.end());
        return Err(invalid(&message));
    }
    let inputs = inputs.map(typed::array).transpose()?.unwrap_or_default();
    let input = self::inputs(inputs, lock_time, replaceable)?;
    let output = self::outputs(outputs, network)?;
    let transaction = Transaction { version: Version(version.cast_signed()), lock_time, input, output };
    if replaceable == Some(true) && !transaction.input.is_empty() && !transaction.is_explicitly_rbf() {
        return Err(invalid(" combination: Sequence number(s) contradict replaceable option"));
    }
    Ok(transaction)
}

fn invalid(what: &str) -> RpcError {
    RpcError::invalid_parameter(format!("Invalid parameter{what}"))
}

fn lock_time(value: Option<&Value>) -> Result<LockTime, RpcError> {
    let Some(value) = value else { return Ok(LockTime::ZERO) };
    let lock_time: i64 = typed::integer(value)?;
    let lock_time = u32::try_from(lock_time).map_err(|_| invalid(", locktime out of range"))?;
    Ok(LockTime::from_consensus(lock_time))
}

fn inputs(values: &[Value], lock_time: LockTime, replaceable: Option<bool>) -> Result<Vec<TxIn>, RpcError> {
    let default = match replaceable {
        None | Some(true) => Sequence::ENABLE_RBF_NO_LOCKTIME,
        Some(false) if lock_time != LockTime::ZERO => Sequence::ENABLE_LOCKTIME_NO_RBF,
        Some(false) => Sequence::MAX,
    };
    values.iter().map(|value| input(typed::object(value)?, default)).collect()
}

fn input(object: &Map<String, Value>, default: Sequence) -> Result<TxIn, RpcError> {
    let field = |name: &str| object.get(name).unwrap_or(&Value::Null);
    let txid = params::hash_text(typed::text(field("txid"))?, "txid")?;
    if !field("vout").is_number() {
        return Err(invalid(", missing vout key"));
    }
    let vout: i32 = typed::integer(field("vout"))?;
    let vout = u32::try_from(vout).map_err(|_| invalid(", vout cannot be negative"))?;
    let sequence = match field("sequence") {
        value @ Value::Number(_) => {
            let sequence: i64 = typed::integer(value)?;
            let sequence = u32::try_from(sequence);
            Sequence(sequence.map_err(|_| invalid(", sequence number is out of range"))?)
        }
        _ => default,
    };
    let previous_output = OutPoint::new(txid, vout);
    Ok(TxIn { previous_output, script_sig: ScriptBuf::new(), sequence, witness: Witness::new() })
}

/// The outputs as key-value pairs: an object's members, or those of an array of objects with one member each.
fn pairs(value: &Value) -> Result<Vec<(&String, &Value)>, RpcError> {
    if let Value::Object(object) = value {
        return Ok(object.iter().collect());
    }
    let mut pairs = Vec::new();
    for value in typed::array(value)? {
        let Value::Object(object) = value else {
            return Err(invalid(", key-value pair not an object as expected"));
        };
        let mut members = object.iter();
        match (members.next(), members.next()) {
            (Some(pair), None) => pairs.push(pair),
            _ => return Err(invalid(", key-value pair must contain exactly one key")),
        }
    }
    Ok(pairs)
}

/// The keys of outputs in order. Empty if the value is invalid, which [`transaction_from_params`] refuses.
pub fn output_names(value: &Value) -> Vec<&str> {
    pairs(value).unwrap_or_default().into_iter().map(|(name, _)| name.as_str()).collect()
}

/// Parses createrawtransaction's outputs. The error names the first violated rule, with bitcoind's code.
pub fn outputs(value: &Value, network: Network) -> Result<Vec<TxOut>, RpcError> {
    if value.is_null() {
        return Err(invalid(", output argument must be non-null"));
    }
    // Some clients send arrays and objects as JSON text.
    let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    let value = parsed.as_ref().filter(|parsed: &&Value| parsed.is_array() || parsed.is_object()).unwrap_or(value);
    let mut paid = HashSet::new();
    let mut carries_data = false;
    let mut outputs = Vec::new();
    for (key, value) in pairs(value)? {
        if key == DATA {
            if std::mem::replace(&mut carries_data, true) {
                return Err(invalid(", duplicate key: data"));
            }
            outputs.push(data_output(value)?);
            continue;
        }
        let value = amount::from_json(value)?;
        let script_pubkey = to_script(key, network).map_err(|_| {
            RpcError::new(RpcErrorCode::INVALID_ADDRESS_OR_KEY, format!("Invalid Bitcoin address: {key}"))
        })?;
        if !paid.insert(script_pubkey.clone()) {
            return Err(invalid(&format!(", duplicated address: {key}")));
        }
        outputs.push(TxOut { value, script_pubkey });
    }
    Ok(outputs)
}

fn data_output(value: &Value) -> Result<TxOut, RpcError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        // bitcoind reads the value true as the text `1`.
        Value::Bool(true) => "1".to_owned(),
        _ => String::new(),
    };
    let data = params::hex(&Value::String(text), "Data")?;
    let data = PushBytesBuf::try_from(data).map_err(|_| RpcError::undecodable("TX decode failed"))?;
    let script_pubkey = ScriptBuf::builder().push_opcode(opcodes::all::OP_RETURN).push_slice(data).into_script();
    Ok(TxOut { value: Amount::ZERO, script_pubkey })
}
