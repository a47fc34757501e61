//! JSON values as Bitcoin Core 29 reads them: a wrong type is -3 and names both types.

use serde_json::{Map, Value};

use crate::error::RpcError;
use crate::params::Type;

/// The error of a value of another type than the wanted one.
pub fn wrong_type(value: &Value, wanted: Type) -> RpcError {
    let (got, wanted) = (Type::of(value).name(), wanted.name());
    RpcError::type_error(format!("JSON value of type {got} is not of expected type {wanted}"))
}

/// The value as text, else -3.
pub fn text(value: &Value) -> Result<&str, RpcError> {
    value.as_str().ok_or_else(|| wrong_type(value, Type::String))
}

/// The value as a truth value.
pub fn flag(value: &Value) -> Result<bool, RpcError> {
    value.as_bool().ok_or_else(|| wrong_type(value, Type::Bool))
}

/// The value as an object, else -3.
pub fn object(value: &Value) -> Result<&Map<String, Value>, RpcError> {
    value.as_object().ok_or_else(|| wrong_type(value, Type::Object))
}

/// The value as an array, else -3.
pub fn array(value: &Value) -> Result<&[Value], RpcError> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| wrong_type(value, Type::Array))
}

/// A member of an object that must be there and have this type (`RPCTypeCheckObj`), else -3.
pub fn member<'v>(object: &'v Map<String, Value>, name: &str, wanted: Type) -> Result<&'v Value, RpcError> {
    let value = object.get(name).filter(|value| !value.is_null());
    let value = value.ok_or_else(|| RpcError::type_error(format!("Missing {name}")))?;
    check_member(value, name, wanted)?;
    Ok(value)
}

/// Checks an object of options (`RPCTypeCheckObj`, strict): the types of those that are not null, in the order of `known`, which
/// is by bytes; then that there are no others. One without a type may have any.
///
/// # Errors
/// -3.
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

/// The value as an integer of type `T`: -3 for another JSON type, -1 for a number that does not fit.
pub fn integer<T: TryFrom<i64>>(value: &Value) -> Result<T, RpcError> {
    let Value::Number(number) = value else { return Err(wrong_type(value, Type::Number)) };
    let integer = number.to_string().parse::<i64>().ok();
    integer.and_then(|integer| T::try_from(integer).ok()).ok_or_else(|| RpcError::misc("JSON integer out of range"))
}
