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

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::BlockHash;
    use bitcoin::hashes::Hash;
    use serde_json::json;

    fn synced() -> Synced {
        Synced { hash: BlockHash::all_zeros(), height: 9, time: 2000, median_time: 1500 }
    }

    #[test]
    fn import_request_timestamp_is_a_number_or_now() {
        assert_eq!(timestamp(&json!({"timestamp": 7}), synced()).unwrap(), 7);
        assert_eq!(timestamp(&json!({"timestamp": -7}), synced()).unwrap(), -7);
        assert_eq!(timestamp(&json!({"timestamp": "now"}), synced()).unwrap(), 1500);
        for (request, code, message) in [
            (json!({}), RpcErrorCode::TYPE, "Missing required timestamp field for key"),
            (json!(5), RpcErrorCode::TYPE, "Missing required timestamp field for key"),
            (
                json!({"timestamp": "soon"}),
                RpcErrorCode::TYPE,
                "Expected number or \"now\" timestamp value for key. got type string",
            ),
            (
                json!({"timestamp": null}),
                RpcErrorCode::TYPE,
                "Expected number or \"now\" timestamp value for key. got type null",
            ),
            (json!({"timestamp": 1.5}), RpcErrorCode::MISC, "JSON integer out of range"),
        ] {
            let error: RpcError = timestamp(&request, synced()).unwrap_err().into();
            assert_eq!(error, RpcError::new(code, message), "{request}");
        }
    }

    #[test]
    fn import_request_timestamp_below_one_is_stored_as_one() {
        assert_eq!([stored_time(-5), stored_time(0), stored_time(1), stored_time(9)], [1, 1, 1, 9]);
    }

    #[test]
    fn import_request_null_is_a_wrong_type() {
        let value = json!({"flag": null, "text": null, "list": null});
        let fields = Fields(value.as_object().unwrap());
        assert!(matches!(fields.flag("flag"), Err(ImportError::Malformed)));
        assert!(matches!(fields.text("text"), Err(ImportError::Malformed)));
        assert!(matches!(fields.list("list"), Err(ImportError::Malformed)));
        assert!(!fields.flag("other").unwrap());
    }
}
