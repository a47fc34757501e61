//! Accessors of JSON values with Bitcoin Core 29's errors: a wrong type is -3, and the message names both types.

use serde_json::{Map, Value};

use crate::error::RpcError;
use crate::params::Type;

/// The error for a value of a wrong type.
pub fn wrong_type(value: &Value, wanted: Type) -> RpcError {
    let (got, wanted) = (Type::of(value).name(), wanted.name());
    RpcError::type_error(format!("JSON value of type {got} is not of expected type {wanted}"))
}

/// The error for the argument `name` of a wrong type; positions count from 1. For methods that check the type themselves.
pub fn wrong_argument(position: usize, name: &str, value: &Value, wanted: Type) -> RpcError {
    let mismatch = wrong_type(value, wanted).message;
    RpcError::type_error(format!("Wrong type passed:\n{{\n    \"Position {position} ({name})\": \"{mismatch}\"\n}}"))
}

/// The value as text. Error -3.
pub fn text(value: &Value) -> Result<&str, RpcError> {
    value.as_str().ok_or_else(|| wrong_type(value, Type::String))
}

/// The value as a boolean. Error -3.
pub fn flag(value: &Value) -> Result<bool, RpcError> {
    value.as_bool().ok_or_else(|| wrong_type(value, Type::Bool))
}

/// The value as an object. Error -3.
pub fn object(value: &Value) -> Result<&Map<String, Value>, RpcError> {
    value.as_object().ok_or_else(|| wrong_type(value, Type::Object))
}

/// The value as an array. Error -3.
pub fn array(value: &Value) -> Result<&[Value], RpcError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong_type(value, Type::Array))
}

/// A required member of this type (`RPCTypeCheckObj`). Error -3.
pub fn member<'v>(object: &'v Map<String, Value>, name: &str, wanted: Type) -> Result<&'v Value, RpcError> {
    let value = object.get(name).filter(|value| !value.is_null());
    let value = value.ok_or_else(|| RpcError::type_error(format!("Missing {name}")))?;
    check_member(value, name, wanted)?;
    Ok(value)
}

/// Checks an object of options (`RPCTypeCheckObj`, strict): first the types of members other than null, in the order of
/// `known`, which must be sorted by bytes; then that all members are known. `None` allows any type. Error -3.
pub fn check_options(object: &Map<String, Value>, known: &[(&str, Option<Type>)]) -> Result<(), RpcError> {
    for (name, wanted) in known {
        if let (Some(value), Some(wanted)) = (object.get(*name).filter(|value| !value.is_null()), wanted) {
            check_member(value, name, *wanted)?;
        }
    }
    match object.keys().find(|key| !known.iter().any(|(name, _)| name == key)) {
        Some(key) => Err(RpcError::type_error(format!("Unexpected key {key}"))),
        None => Ok(()),
    }
}

fn check_member(value: &Value, name: &str, wanted: Type) -> Result<(), RpcError> {
    if Type::of(value) == wanted {
        return Ok(());
    }
    let (got, wanted) = (Type::of(value).name(), wanted.name());
    let message = format!("JSON value of type {got} for field {name} is not of expected type {wanted}");
    Err(RpcError::type_error(message))
}

/// The value as an integer. Error -3 for another JSON type, -1 for a number that does not fit `T`.
pub fn integer<T: TryFrom<i64>>(value: &Value) -> Result<T, RpcError> {
    let Value::Number(number) = value else { return Err(wrong_type(value, Type::Number)) };
    let integer = number.to_string().parse::<i64>().ok();
    integer.and_then(|integer| T::try_from(integer).ok()).ok_or_else(|| RpcError::misc("JSON integer out of range"))
}
