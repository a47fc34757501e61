//! Waits for conditions by polling.

use std::time::{Duration, Instant};

/// After this a test fails. Even on a busy machine the conditions take a fraction of it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Polls until `look` returns a value, and returns it.
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

/// Polls until `holds` is true or the limit has passed. Returns whether it was true in time.
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

/// Polls until `holds` is true.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}
