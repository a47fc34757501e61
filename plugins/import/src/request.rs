//! Reads the fields of a request. A wrong type of any field gives the error [`malformed`]. A field that is present and null has
//! a wrong type.

use outrigger_kit::descriptor::{Checksum, Descriptor, Syntax, without_private_keys};
use outrigger_sdk::RpcError;
use outrigger_sdk::params::{Type, int64};
use outrigger_sdk::service::wallet::Synced;
use serde_json::{Map, Value};

/// The fields of a request.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub fn of(request: &'a Value) -> Result<Self, RpcError> {
        request.as_object().map(Self).ok_or_else(malformed)
    }

    pub fn has(self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    /// A boolean, false by default.
    pub fn flag(self, name: &str) -> Result<bool, RpcError> {
        self.get(name).map_or(Some(false), Value::as_bool).ok_or_else(malformed)
    }

    pub fn text(self, name: &str) -> Result<Option<&'a str>, RpcError> {
        self.get(name).map(text).transpose()
    }

    /// An array, empty by default.
    pub fn list(self, name: &str) -> Result<&'a [Value], RpcError> {
        let list = self.get(name).map(|value| value.as_array().ok_or_else(malformed)).transpose()?;
        Ok(list.map(Vec::as_slice).unwrap_or_default())
    }
}

pub fn malformed() -> RpcError {
    RpcError::misc("Missing required fields")
}

pub fn text(value: &Value) -> Result<&str, RpcError> {
    value.as_str().ok_or_else(malformed)
}

/// An error whose message quotes the request, with public keys in place of private keys.
pub fn refuse_quoting(message: &str) -> RpcError {
    RpcError::not_found(without_private_keys(message))
}

/// The descriptors of a text with a checksum, one for each path. The errors show no private keys.
pub fn descriptors(text: &str, network: bitcoin::Network, syntax: Syntax) -> Result<Vec<Descriptor>, RpcError> {
    Descriptor::parse_as(text, network, Checksum::Required, syntax)
        .map_err(|error| RpcError::not_found(error.to_string()))
}

/// The creation time of a request in seconds, as the client gave it. `now` is the median time of the wallet's last block.
pub fn timestamp(request: &Value, synced: Synced) -> Result<i64, RpcError> {
    match request.get("timestamp") {
        None => Err(RpcError::type_error("Missing required timestamp field for key")),
        Some(value @ Value::Number(_)) => int64(value),
        Some(Value::String(text)) if text == "now" => Ok(i64::from(synced.median_time)),
        Some(other) => Err(RpcError::type_error(format!(
            "Expected number or \"now\" timestamp value for key. got type {}",
            Type::of(other).name()
        ))),
    }
}

/// The earliest creation time that the wallet stores, in seconds. It is before the first block of any chain.
pub const EARLIEST_TIME: u64 = 1;

/// A creation time as the wallet stores it.
pub fn stored_time(timestamp: i64) -> u64 {
    u64::try_from(timestamp).unwrap_or(0).max(EARLIEST_TIME)
}
