//! Methods that Bitcoin Core has removed.
//!
//! Of these only `generate` is still answered with a text of its own, which says what takes its place; the others are unknown.

use outrigger_sdk::{Code, RpcError};

use crate::rpc::{Call, Params};

/// The method that mined blocks for the wallet.
const GENERATE: &str = "generate";

/// What Bitcoin Core says of it.
const GENERATE_REPLACED: &str =
    "generate\n\nhas been replaced by the -generate cli option. Refer to -help for more information.\n";

/// The answer to a call that nobody serves: -32601, but for `generate` with arguments, whose number is wrong first (-1).
pub fn refusal(call: &Call) -> RpcError {
    match &*call.method {
        GENERATE if is_empty(&call.params) => RpcError::new(Code::METHOD_NOT_FOUND, GENERATE_REPLACED),
        GENERATE => RpcError::misc(GENERATE_REPLACED),
        _ => RpcError::new(Code::METHOD_NOT_FOUND, "Method not found"),
    }
}

/// Whether no argument is given: nothing, or an array or object without a member.
fn is_empty(params: &Params) -> bool {
    let text = params.as_bytes().trim_ascii();
    text.get(1..text.len().saturating_sub(1)).unwrap_or_default().trim_ascii().is_empty()
}
