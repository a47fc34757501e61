//! The progress of a call.

use std::sync::atomic::{AtomicU64, Ordering};

/// The progress that a plugin reports for a call (`getrpcinfo`).
#[derive(Default, Debug)]
pub struct Progress {
    done: AtomicU64,
    /// 0 until the plugin reports progress.
    total: AtomicU64,
}

impl Progress {
    pub fn set(&self, done: u64, total: u64) {
        self.done.store(done.min(total), Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// The done and the total amount, in the plugin's unit; `None` if the plugin has reported no progress.
    pub fn get(&self) -> Option<(u64, u64)> {
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        (total > 0).then_some((done.min(total), total))
    }
}
