//! Waiting for what comes sooner or later.

use std::time::{Duration, Instant};

/// After this a test gives up. What is waited for takes a fraction of it even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a test waits before it looks again.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Looks again and again until something is found, and gives it.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Looks again and again until something holds, for a time. Whether it does: for what may not come at all.
pub fn comes_within(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    true
}

/// Looks again and again until something holds.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}
