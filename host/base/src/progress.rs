//! How far a call is.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a plugin says of its progress in a call (`getrpcinfo`).
#[derive(Default, Debug)]
pub struct Progress {
    done: AtomicU64,
    /// 0 until the plugin has said anything.
    total: AtomicU64,
}

impl Progress {
    pub fn set(&self, done: u64, total: u64) {
        self.done.store(done.min(total), Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// How much of how much is done.
    pub fn get(&self) -> Option<(u64, u64)> {
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        (total > 0).then_some((done.min(total), total))
    }
}
