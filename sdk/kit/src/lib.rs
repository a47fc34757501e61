//! Code shared by the plugins in `plugins`.
//!
//! - [`spend`]: coin selection, fees, and transactions that a wallet's coins pay for. It asks [`services()`].
//! - [`descriptor`]: output descriptors. [`descriptor_syntax`]: the syntax of a Bitcoin Core release. [`scan_object`]: a descriptor
//!   with a range.
//! - [`given`], [`outpoint`], [`invalid_label`]: arguments. [`without_nulls`]: results with optional members.
//! - [`blocks`]: blocks of the chain.
//! - [`psbt`]: partially signed transactions.
//! - [`parallel`]: work on all processors.
//! - [`waits`]: calls that wait.
//!
//! The crate re-exports other crates. It has no stable interface; other plugins use `outrigger-sdk`.

#![warn(missing_docs)]

pub mod blocks;
pub mod waits;

use outrigger_sdk::bitcoin::OutPoint;
use outrigger_sdk::params::{self, Type};
use outrigger_sdk::serde_json::{Map, Value};
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::{Call, RpcError, RpcErrorCode, typed};

#[doc(inline)]
pub use outrigger_descriptor as descriptor;
#[doc(inline)]
pub use outrigger_memory::parallel;
#[doc(inline)]
pub use outrigger_psbt_format as psbt;
#[doc(inline)]
pub use outrigger_spend as spend;

/// The host's services in a call's scope, for [`spend`].
pub fn services<'a>(call: &Call<'a>) -> spend::Services<'a> {
    spend::Services { host: call.host, scope: call.scope, rules: call.rules }
}

/// The object without its members that are null: the call's release does not have them, or the data does not.
pub fn without_nulls(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object
}

/// A member of an object; `None` if it is missing or null.
pub fn given<'v>(object: impl Into<Option<&'v Map<String, Value>>>, name: &str) -> Option<&'v Value> {
    object.into()?.get(name).filter(|value| !value.is_null())
}

/// The error for a label that stands for all labels.
pub fn invalid_label() -> RpcError {
    RpcError::new(RpcErrorCode::WALLET_INVALID_LABEL, "Invalid label name")
}

/// Parses an outpoint: an object with `txid` and `vout`. If `strict`, it has no other members.
pub fn outpoint(value: &Value, strict: bool) -> Result<OutPoint, RpcError> {
    let object = typed::object(value)?;
    let txid = typed::member(object, "txid", Type::String)?;
    let vout = typed::member(object, "vout", Type::Number)?;
    if strict {
        typed::check_options(object, &[("txid", None), ("vout", None)])?;
    }
    let txid = params::hash(txid, "txid")?;
    let vout: i32 = typed::integer(vout)?;
    let negative = |_| RpcError::invalid_parameter("Invalid parameter, vout cannot be negative");
    Ok(OutPoint { txid, vout: u32::try_from(vout).map_err(negative)? })
}

/// A descriptor's text with its range.
type Scanned<'a> = (&'a str, Option<(u32, u32)>);

/// The descriptor and the range of a scan object: a text, or an object with `desc` and `range`.
pub fn scan_object(value: &Value) -> Result<Scanned<'_>, RpcError> {
    let object = match value {
        Value::String(text) => return Ok((text.as_str(), None)),
        Value::Object(object) => object,
        _ => return Err(RpcError::invalid_parameter("Scan object needs to be either a string or an object")),
    };
    let missing = || RpcError::invalid_parameter("Descriptor needs to be provided in scan object");
    let text = typed::text(given(object, "desc").ok_or_else(missing)?)?;
    Ok((text, given(object, "range").map(params::descriptor_range).transpose()?))
}

/// The descriptor syntax of a release.
pub fn descriptor_syntax(rules: &Rules) -> descriptor::Syntax {
    descriptor::Syntax {
        musig: rules.musig,
        unused: rules.unused,
        strict: rules.strict_descriptors,
        empty_keys: rules.empty_miniscript_keys,
    }
}
