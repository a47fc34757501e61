//! The list of methods that a user may call.

use std::collections::BTreeSet;

/// Lists (OpenRPC) only methods that the user may call, so every user may call it.
const DISCOVER: &str = "rpc.discover";

/// Whether a user with this list may call `method`; `None` allows all methods.
pub(super) fn is_allowed(allowed: Option<&BTreeSet<String>>, method: &str) -> bool {
    method == DISCOVER || allowed.is_none_or(|allowed| allowed.contains(method))
}
