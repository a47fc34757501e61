//! The list of methods that a user may call.

use std::collections::BTreeSet;

/// Lists the methods that the caller may call (OpenRPC), and no others, so every user may call it.
const DISCOVER: &str = "rpc.discover";

/// Whether a user with this list of methods may call `method`; a user without a list may call all.
pub(super) fn is_allowed(allowed: Option<&BTreeSet<String>>, method: &str) -> bool {
    method == DISCOVER || allowed.is_none_or(|allowed| allowed.contains(method))
}
