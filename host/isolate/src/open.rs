//! The calls that a runner has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use outrigger_abi::STATUS_OK;
use parking_lot::Mutex;

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
pub struct OpenCalls(Mutex<State>);

impl OpenCalls {
    /// A call is about to be sent. Where `is_lanes`, [`Self::take`] leaves it until its code has returned.
    pub fn begin(&self, token: u64, method: &[u8], is_lanes: bool) {
        let mut state = self.0.lock();
        state.begun += 1;
        let (method, number) = (String::from_utf8_lossy(method).into_owned(), state.begun);
        state.open.insert(token, Open { method, number, is_kept: false, is_lanes });
    }

    /// Its code has returned with this status: the host answers for a fault, and of a success the answer may come later.
    pub fn returned(&self, token: u64, status: i32) {
        match self.0.lock().open.entry(token) {
            Entry::Occupied(open) if status != STATUS_OK => drop(open.remove()),
            Entry::Occupied(mut open) => open.get_mut().is_kept = true,
            Entry::Vacant(_) => {}
        }
    }

    /// It was answered, or nobody waits for it any more. Whether it was one of these.
    pub fn forget(&self, token: u64) -> bool {
        self.0.lock().open.remove(&token).is_some()
    }

    /// The runner has ended in its code. Whether it was one of these.
    pub fn lose(&self, token: u64) -> bool {
        let mut state = self.0.lock();
        let lost = state.open.remove(&token);
        let is_open = lost.is_some();
        if let Some(lost) = lost {
            state.last_method.get_or_insert(lost.method);
        }
        is_open
    }

    /// Those that are left once the runner is gone, each given once.
    pub fn take(&self) -> Vec<u64> {
        let state = &mut *self.0.lock();
        // The oldest is at work: others may have been handed over behind it.
        let running = state.open.values().filter(|open| !open.is_kept).min_by_key(|open| open.number);
        if let (Some(running), None) = (running, &state.last_method) {
            state.last_method = Some(running.method.clone());
        }
        state.open.extract_if(|_, open| open.is_kept || !open.is_lanes).map(|(token, _)| token).collect()
    }

    /// The method that the runner was in at its end.
    pub fn last_method(&self) -> Option<String> {
        self.0.lock().last_method.clone()
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
        assert_eq!((taken, open.last_method().as_deref()), (vec![1, 4], Some("at work")));
        assert!(open.forget(3) && !open.lose(3), "it was not begun");
        assert!(open.lose(2) && !open.lose(2));
        assert!(open.take().is_empty());
    }

    #[test]
    fn method_of_the_first_call_that_is_lost_is_the_last_one() {
        let open = OpenCalls::default();
        open.begin(1, b"first", true);
        open.begin(2, b"second", true);
        assert!(open.lose(1) && open.lose(2));
        assert_eq!((open.take(), open.last_method().as_deref()), (vec![], Some("first")));
    }
}
