//! Reading the fields of a request. A wrong type is [`ImportError::Malformed`] whatever the field is; a field that is
//! there and null has a wrong type.

use outrigger_sdk::params::{Type, descriptor_range, int64};
use outrigger_sdk::service::wallet::Synced;
use outrigger_sdk::{RpcError, RpcErrorCode};
use serde_json::{Map, Value};

use crate::error::ImportError;

/// The fields of a request.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Whether the field is there.
    pub fn has(self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The field, if it is there.
    pub fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    /// A truth value, false where it is not there.
    pub fn flag(self, name: &str) -> Result<bool, ImportError> {
        self.get(name).map_or(Some(false), Value::as_bool).ok_or(ImportError::Malformed)
    }

    /// Text, if it is there.
    pub fn text(self, name: &str) -> Result<Option<&'a str>, ImportError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value.as_str().map(Some).ok_or(ImportError::Malformed),
        }
    }

    /// A list, empty where it is not there.
    pub fn list(self, name: &str) -> Result<&'a [Value], ImportError> {
        match self.get(name) {
            None => Ok(&[]),
            Some(value) => value.as_array().map(Vec::as_slice).ok_or(ImportError::Malformed),
        }
    }
}

/// An item of a list as text.
pub fn item(value: &Value) -> Result<&str, ImportError> {
    value.as_str().ok_or(ImportError::Malformed)
}

/// The first and the last index of the field `range`. A number that is no whole one of 64 bits is of a wrong type.
pub fn index_range(value: &Value) -> Result<(u32, u32), ImportError> {
    descriptor_range(value).map_err(|error| match error.code {
        RpcErrorCode::MISC => ImportError::Malformed,
        _ => ImportError::Argument(error),
    })
}

/// The creation time of a request, in seconds, as it was given; `now` is the median time of the wallet's last block.
///
/// # Errors
/// -3 when there is none or it is no time, -1 for a number that is not a whole one of 64 bits.
pub fn timestamp(request: &Value, synced: Synced) -> Result<i64, ImportError> {
    match request.as_object().and_then(|fields| fields.get("timestamp")) {
        None => Err(ImportError::NoTimestamp),
        Some(value @ Value::Number(_)) => int64(value).map_err(|error: RpcError| error.into()),
        Some(Value::String(text)) if text == "now" => Ok(i64::from(synced.median_time)),
        Some(other) => Err(ImportError::Timestamp(Type::of(other))),
    }
}

/// The least time that is stored and scanned from, in seconds.
const LEAST_TIME: u64 = 1;

/// A creation time as it is stored: at least 1.
pub fn stored_time(timestamp: i64) -> u64 {
    u64::try_from(timestamp).unwrap_or(0).max(LEAST_TIME)
}
