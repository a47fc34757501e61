//! Which methods a user may call.

use std::collections::BTreeSet;

/// The method that tells a client what it may call. It shows each user no more than that, so every user may call it.
const DISCOVER: &str = "rpc.discover";

/// Whether a user with this list of methods, or with none, may call `method`.
pub(super) fn is_allowed(allowed: Option<&BTreeSet<String>>, method: &str) -> bool {
    method == DISCOVER || allowed.is_none_or(|allowed| allowed.contains(method))
}
