//! Wakes the thread that makes backups.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

pub struct Bell {
    /// How often it rang; `None` once the host stops.
    rung: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Bell {
    pub fn new() -> Self {
        Self { rung: Mutex::new(Some(0)), changed: Condvar::new() }
    }

    pub fn ring(&self) {
        let mut rung = self.rung.lock();
        *rung = rung.map(|times| times.wrapping_add(1));
        self.changed.notify_all();
    }

    /// Ends all waiting.
    pub fn stop(&self) {
        *self.rung.lock() = None;
        self.changed.notify_all();
    }

    /// Waits for a ring after the count `seen`, at most for `patience`. Returns the count; `None` once the host stops.
    pub fn wait(&self, seen: u64, patience: Duration) -> Option<u64> {
        let deadline = Instant::now().checked_add(patience);
        let mut rung = self.rung.lock();
        while *rung == Some(seen) {
            match deadline {
                Some(deadline) if self.changed.wait_until(&mut rung, deadline).timed_out() => break,
                Some(_) => {}
                None => self.changed.wait(&mut rung),
            }
        }
        *rung
    }
}
