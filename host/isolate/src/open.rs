//! The calls that a runner has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use outrigger_abi::STATUS_OK;
use parking_lot::{Condvar, Mutex};

/// How long the threads of lanes may take to settle their calls, at a runner's end.
const SETTLED_WITHIN: Duration = Duration::from_millis(100);

/// What a runner is in the middle of.
struct Open {
    method: String,
    /// Its place among all that have begun.
    number: u64,
    /// Whether its code has returned, and it keeps the token.
    is_kept: bool,
    /// Whether the thread that waits for its code settles it when the runner ends: it knows whether the code had begun.
    is_lanes: bool,
}

#[derive(Default)]
struct State {
    open: HashMap<u64, Open>,
    /// How many have begun.
    begun: u64,
    /// The method that the runner was in at its end.
    last_method: Option<String>,
}

/// The calls of a runner that were neither answered nor given up, by token.
#[derive(Default)]
pub struct OpenCalls {
    state: Mutex<State>,
    /// Signals that a lane's thread has settled a call.
    settled: Condvar,
}

impl OpenCalls {
    /// A call is about to be sent. Where `is_lanes`, [`Self::take`] leaves it until its code has returned.
    pub fn begin(&self, token: u64, method: &[u8], is_lanes: bool) {
        let mut state = self.state.lock();
        state.begun += 1;
        let (method, number) = (String::from_utf8_lossy(method).into_owned(), state.begun);
        state.open.insert(token, Open { method, number, is_kept: false, is_lanes });
    }

    /// Its code has returned with this status: the host answers for a fault, and of a success the answer may come later.
    pub fn returned(&self, token: u64, status: i32) {
        match self.state.lock().open.entry(token) {
            Entry::Occupied(open) if status != STATUS_OK => drop(open.remove()),
            Entry::Occupied(mut open) => open.get_mut().is_kept = true,
            Entry::Vacant(_) => {}
        }
    }

    /// It was answered, or nobody waits for it any more. Whether it was one of these.
    pub fn forget(&self, token: u64) -> bool {
        self.remove(token).is_some()
    }

    /// The runner has ended in its code. Whether it was one of these.
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

    fn remove(&self, token: u64) -> Option<Open> {
        let removed = self.state.lock().open.remove(&token);
        self.settled.notify_all();
        removed
    }

    /// Those that are left once the runner is gone, each given once.
    pub fn take(&self) -> Vec<u64> {
        let state = &mut *self.state.lock();
        let mut running = state.open.values().filter(|open| !open.is_kept && !open.is_lanes);
        if let (Some(running), None) = (running.next(), &state.last_method) {
            state.last_method = Some(running.method.clone());
        }
        state.open.extract_if(|_, open| open.is_kept || !open.is_lanes).map(|(token, _)| token).collect()
    }

    /// A method that the runner was in at its end, once the lanes' threads have settled their calls.
    pub fn last_method(&self) -> Option<String> {
        let until = Instant::now() + SETTLED_WITHIN;
        let mut state = self.state.lock();
        while state.open.values().any(|open| open.is_lanes && !open.is_kept)
            && !self.settled.wait_until(&mut state, until).timed_out()
        {}
        // A thread that is held up elsewhere has told nothing yet. The first of its calls is the one that had begun.
        let first = || state.open.values().min_by_key(|open| open.number).map(|open| open.method.clone());
        state.last_method.clone().or_else(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_calls_are_given_once_and_those_of_a_lane_are_left_to_it() {
        let open = OpenCalls::default();
        open.begin(1, b"kept", true);
        open.returned(1, STATUS_OK);
        open.begin(2, b"at work", true);
        open.begin(3, b"behind it", true);
        open.begin(4, b"elsewhere", false);
        let mut taken = open.take();
        taken.sort_unstable();
        assert_eq!(taken, [1, 4]);
        assert!(open.forget(3) && !open.lose(3), "it was not begun");
        assert!(open.lose(2) && !open.lose(2));
        assert!(open.take().is_empty());
        assert_eq!(open.last_method().as_deref(), Some("elsewhere"));
    }

    #[test]
    fn last_method_is_the_first_one_that_a_lane_has_lost() {
        let open = OpenCalls::default();
        for (token, method) in [(1, b"answered"), (2, b"at work "), (3, b"behind 1"), (4, b"behind 2")] {
            open.begin(token, method, true);
        }
        assert!(open.take().is_empty(), "the lane's thread has not said how far it came");
        let last = std::thread::scope(|scope| {
            let last = scope.spawn(|| open.last_method());
            assert!(open.forget(1) && open.lose(2) && open.lose(3) && open.forget(4));
            last.join().unwrap()
        });
        assert_eq!(last.as_deref(), Some("at work "));
    }
}
