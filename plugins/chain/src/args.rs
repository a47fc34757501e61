//! Arguments as Bitcoin Core 29 reads them: a wrong type is -3 and names both types.

use outrigger_sdk::params::Type;
use serde_json::{Map, Value};

use crate::error::ChainError;

fn wrong_type(value: &Value, wanted: &'static str) -> ChainError {
    ChainError::WrongType { got: Type::of(value).name(), wanted }
}

/// The value as text.
pub fn text(value: &Value) -> Result<&str, ChainError> {
    value.as_str().ok_or_else(|| wrong_type(value, "string"))
}

/// The value as a truth value.
pub fn flag(value: &Value) -> Result<bool, ChainError> {
    value.as_bool().ok_or_else(|| wrong_type(value, "bool"))
}

/// The value as an object.
pub fn object(value: &Value) -> Result<&Map<String, Value>, ChainError> {
    value.as_object().ok_or_else(|| wrong_type(value, "object"))
}

/// The value as an array.
pub fn array(value: &Value) -> Result<&[Value], ChainError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong_type(value, "array"))
}

/// The value as an integer of type `T`.
pub fn integer<T: TryFrom<i64>>(value: &Value) -> Result<T, ChainError> {
    let Value::Number(number) = value else { return Err(wrong_type(value, "number")) };
    let integer = number.to_string().parse::<i64>().ok();
    integer.and_then(|integer| T::try_from(integer).ok()).ok_or(ChainError::IntegerOutOfRange)
}

/// A verbosity: a number, or false for 0 and true for 1.
pub fn verbosity(value: Option<&Value>, default: i32) -> Result<i32, ChainError> {
    match value {
        None => Ok(default),
        Some(Value::Bool(flag)) => Ok(i32::from(*flag)),
        Some(value) => integer(value),
    }
}
