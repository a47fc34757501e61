//! The open calls of a runner: those neither answered nor abandoned.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use outrigger_abi::STATUS_OK;
use parking_lot::{Condvar, Mutex};

/// How long the waiting threads may take to settle their calls after the runner's end.
const SETTLED_WITHIN: Duration = Duration::from_millis(100);

struct OpenCall {
    method: String,
    /// The function has called a service, so the runner has begun the call.
    is_begun: bool,
    /// The function has returned and the plugin will answer later. No thread of the host waits for it.
    is_kept: bool,
}

#[derive(Default)]
struct OpenState {
    open: HashMap<u64, OpenCall>,
    /// The first method that a waiting thread found interrupted by the runner's end.
    last_method: Option<String>,
}

#[derive(Default)]
pub struct OpenCalls {
    state: Mutex<OpenState>,
    settled: Condvar,
}

impl OpenCalls {
    pub fn begin(&self, token: u64, method: &[u8]) {
        let method = String::from_utf8_lossy(method).into_owned();
        self.state.lock().open.insert(token, OpenCall { method, is_begun: false, is_kept: false });
    }

    /// Records that the function calls a service.
    pub fn asks(&self, token: u64) {
        if let Some(open) = self.state.lock().open.get_mut(&token) {
            open.is_begun = true;
        }
    }

    /// Records the function's status. After an error the host answers the call; after a success the plugin may answer later.
    pub fn returned(&self, token: u64, status: i32) {
        match self.state.lock().open.entry(token) {
            Entry::Occupied(open) if status != STATUS_OK => drop(open.remove()),
            Entry::Occupied(mut open) => open.get_mut().is_kept = true,
            Entry::Vacant(_) => {}
        }
    }

    /// Removes a call that was answered, abandoned, or never begun. Returns whether it was open.
    pub fn forget(&self, token: u64) -> bool {
        let removed = self.state.lock().open.remove(&token);
        self.settled.notify_all();
        removed.is_some()
    }

    /// Removes a call that the runner's end interrupted. Returns whether it was open.
    pub fn lose(&self, token: u64) -> bool {
        let mut state = self.state.lock();
        let lost = state.open.remove(&token);
        let is_open = lost.is_some();
        if let Some(lost) = lost {
            state.last_method.get_or_insert(lost.method);
        }
        self.settled.notify_all();
        is_open
    }

    /// Removes the calls whose functions have returned, once the runner is gone.
    pub fn take_kept(&self) -> Vec<u64> {
        self.state.lock().open.extract_if(|_, open| open.is_kept).map(|(token, _)| token).collect()
    }

    /// Removes the calls that the ended runner had begun. A host thread may still run a service function for one of them.
    pub fn take_begun(&self) -> Vec<u64> {
        let mut state = self.state.lock();
        let begun: Vec<_> = state.open.extract_if(|_, open| open.is_begun || open.is_kept).collect();
        let interrupted = begun.iter().find(|(_, open)| !open.is_kept).map(|(_, open)| open.method.clone());
        state.last_method = state.last_method.take().or(interrupted);
        begun.into_iter().map(|(token, _)| token).collect()
    }

    /// A method that the runner was executing when it ended. Waits until the waiting threads have settled their calls.
    pub fn last_method(&self) -> Option<String> {
        let until = Instant::now() + SETTLED_WITHIN;
        let mut state = self.state.lock();
        while state.open.values().any(|open| !open.is_kept) && !self.settled.wait_until(&mut state, until).timed_out() {
        }
        // After the timeout, some thread has not settled its call.
        let unsettled = || state.open.values().find(|open| !open.is_kept).map(|open| open.method.clone());
        state.last_method.clone().or_else(unsettled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_and_begun_calls_are_taken_once_and_others_are_left_to_their_threads() {
        let open = OpenCalls::default();
        open.begin(1, b"kept");
        open.returned(1, STATUS_OK);
        open.begin(2, b"running");
        open.begin(3, b"not begun");
        assert_eq!(open.take_kept(), [1]);
        assert!(open.take_kept().is_empty());
        open.begin(4, b"asking");
        open.asks(4);
        assert!(open.take_kept().is_empty());
        assert_eq!((open.take_begun(), open.lose(4)), (vec![4], false));
        assert!(open.forget(3) && !open.lose(3));
        assert!(open.lose(2) && !open.lose(2));
        assert_eq!(open.last_method().as_deref(), Some("asking"));
    }

    #[test]
    fn last_method_waits_for_the_thread_that_settles_the_call() {
        let open = OpenCalls::default();
        open.begin(1, b"not begun");
        open.begin(2, b"running");
        let last = std::thread::scope(|scope| {
            let last = scope.spawn(|| open.last_method());
            assert!(open.forget(1) && open.lose(2));
            last.join().unwrap()
        });
        assert_eq!(last.as_deref(), Some("running"));
    }
}
