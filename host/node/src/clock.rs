//! A node's clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The system's clock, or the time set by `setmocktime`.
#[derive(Debug, Default)]
pub struct Clock {
    mocked: AtomicU64,
}

impl Clock {
    /// The system's time, in Unix seconds.
    pub fn system() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    /// The current time, in Unix seconds.
    pub fn now(&self) -> u64 {
        match self.mocked.load(Ordering::Relaxed) {
            0 => Self::system(),
            seconds => seconds,
        }
    }

    /// Sets the time in Unix seconds; 0 restores the system's clock.
    pub fn set(&self, seconds: u64) {
        self.mocked.store(seconds, Ordering::Relaxed);
    }
}
