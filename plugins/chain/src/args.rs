//! Arguments as Bitcoin Core 29 reads them.

pub use outrigger_sdk::typed::{array, flag, integer, object, text};

use outrigger_sdk::RpcError;
use outrigger_sdk::params::{Params, Type};
use outrigger_sdk::typed::wrong_type;
use serde_json::Value;

/// Takes the text at `index` out of the parameters, so that the caller can free it early: it may have many megabytes.
pub fn take_text(params: &mut Params, index: usize) -> Result<String, RpcError> {
    match params.0.get_mut(index).map(Value::take).unwrap_or_default() {
        Value::String(text) => Ok(text),
        other => Err(wrong_type(&other, Type::String)),
    }
}

/// A verbosity: a number, or false for 0 and true for 1.
pub fn verbosity(value: Option<&Value>, default: i32) -> Result<i32, RpcError> {
    match value {
        None => Ok(default),
        Some(Value::Bool(flag)) => Ok(i32::from(*flag)),
        Some(value) => integer(value),
    }
}
