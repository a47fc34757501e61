//! Arguments as Bitcoin Core 29 reads them.

pub use outrigger_sdk::typed::{array, flag, integer, object, text};

use outrigger_sdk::RpcError;
use serde_json::Value;

/// A verbosity: a number, or false for 0 and true for 1.
pub fn verbosity(value: Option<&Value>, default: i32) -> Result<i32, RpcError> {
    match value {
        None => Ok(default),
        Some(Value::Bool(flag)) => Ok(i32::from(*flag)),
        Some(value) => integer(value),
    }
}
