//! Code shared by the plugins in `plugins`.
//!
//! - [`spend`]: coin selection, fees, and transactions that a wallet's coins pay for. It asks [`services()`].
//! - [`descriptor`]: output descriptors. [`descriptor_syntax`]: the syntax of a Bitcoin Core release.
//! - [`psbt`]: partially signed transactions.
//! - [`parallel`]: work on all processors.
//! - [`waits`]: calls that wait.
//!
//! The crate re-exports other crates. It has no stable interface; other plugins use `outrigger-sdk`.

#![warn(missing_docs)]

pub mod waits;

use outrigger_sdk::Call;
use outrigger_sdk::standard::release::Rules;

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

/// The descriptor syntax of a release.
pub fn descriptor_syntax(rules: &Rules) -> descriptor::Syntax {
    descriptor::Syntax { musig: rules.musig, unused: rules.unused, strict: rules.strict_descriptors }
}
