//! The calls that a runner has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use outrigger_abi::STATUS_OK;
use parking_lot::Mutex;

/// What a runner is in the middle of.
struct Open {
    method: String,
    /// Whether its code has returned, and it keeps the token.
    is_kept: bool,
}

/// The calls of a runner that were neither answered nor given up, by token.
#[derive(Default)]
pub struct OpenCalls {
    open: Mutex<HashMap<u64, Open>>,
    /// A method that the runner was in at its end.
    last_method: Mutex<Option<String>>,
}

impl OpenCalls {
    /// A call is about to be sent.
    pub fn begin(&self, token: u64, method: &[u8]) {
        let open = Open { method: String::from_utf8_lossy(method).into_owned(), is_kept: false };
        self.open.lock().insert(token, open);
    }

    /// Its code has returned with this status: the host answers for a fault, and of a success the answer may come later.
    pub fn returned(&self, token: u64, status: i32) {
        match self.open.lock().entry(token) {
            Entry::Occupied(open) if status != STATUS_OK => drop(open.remove()),
            Entry::Occupied(mut open) => open.get_mut().is_kept = true,
            Entry::Vacant(_) => {}
        }
    }

    /// It was answered, or nobody waits for it any more. Whether it was one of these.
    pub fn forget(&self, token: u64) -> bool {
        self.open.lock().remove(&token).is_some()
    }

    /// Those that are left once the runner is gone, each given once.
    pub fn take(&self) -> Vec<u64> {
        let open: Vec<_> = self.open.lock().drain().collect();
        if let Some((_, running)) = open.iter().find(|(_, open)| !open.is_kept) {
            self.last_method.lock().get_or_insert_with(|| running.method.clone());
        }
        open.into_iter().map(|(token, _)| token).collect()
    }

    /// A method that the runner was in at its end.
    pub fn last_method(&self) -> Option<String> {
        self.last_method.lock().clone()
    }
}
