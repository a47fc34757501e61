//! Code shared by the plugins in `plugins`.
//!
//! - [`spend`]: coin selection, fees, and transactions that a wallet's coins pay for. It asks [`services()`].
//! - [`descriptor`]: output descriptors. [`descriptor_syntax`]: the syntax of a Bitcoin Core release. [`scan_object`]: a descriptor
//!   with a range.
//! - [`blocks`]: blocks of the chain.
//! - [`psbt`]: partially signed transactions.
//! - [`parallel`]: work on all processors.
//! - [`waits`]: calls that wait.
//!
//! The crate re-exports other crates. It has no stable interface; other plugins use `outrigger-sdk`.

#![warn(missing_docs)]

pub mod blocks;
pub mod waits;

use outrigger_sdk::serde_json::Value;
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::{Call, RpcError, params, typed};

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

/// A descriptor's text with its range.
type Scanned<'a> = (&'a str, Option<(u32, u32)>);

/// The descriptor and the range of a scan object: a text, or an object with `desc` and `range`.
pub fn scan_object(value: &Value) -> Result<Scanned<'_>, RpcError> {
    let object = match value {
        Value::String(text) => return Ok((text.as_str(), None)),
        Value::Object(object) => object,
        _ => return Err(RpcError::invalid_parameter("Scan object needs to be either a string or an object")),
    };
    let given = |name: &str| object.get(name).filter(|value| !value.is_null());
    let missing = || RpcError::invalid_parameter("Descriptor needs to be provided in scan object");
    let text = typed::text(given("desc").ok_or_else(missing)?)?;
    Ok((text, given("range").map(params::descriptor_range).transpose()?))
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
