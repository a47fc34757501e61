//! A queue of turns, first come, first served.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long a turn blocks others. After that, the next waiter gets its turn.
const MAX_TURN: Duration = Duration::from_secs(60);
/// How often a waiter checks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Default)]
struct State {
    last: u64,
    waiting: VecDeque<u64>,
    /// The current turn, and its start.
    turn: Option<(u64, Instant)>,
}

#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    next: Condvar,
}

impl Turns {
    /// Waits for a turn and returns its number; `None` once the waiter is not `wanted` any more.
    pub fn take(&self, wanted: &dyn Fn() -> bool) -> Option<u64> {
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        state.waiting.push_back(number);
        loop {
            let is_free = state.turn.is_none_or(|(_, since)| since.elapsed() > MAX_TURN);
            let is_wanted = wanted();
            if !is_wanted || (is_free && state.waiting.front() == Some(&number)) {
                state.waiting.retain(|waiting| *waiting != number);
                if is_wanted {
                    state.turn = Some((number, Instant::now()));
                }
                // Another waiter may be the first now.
                self.next.notify_all();
                return is_wanted.then_some(number);
            }
            self.next.wait_for(&mut state, LOOK);
        }
    }

    /// Ends a turn. No effect if the turn took longer than `MAX_TURN` and the next waiter has its turn.
    pub fn end(&self, number: u64) {
        self.state.lock().turn.take_if(|(turn, _)| *turn == number);
        self.next.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn turns_are_granted_one_at_a_time_in_order_of_arrival() {
        let turns = Turns::default();
        let first = turns.take(&|| true).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| (turns.take(&|| true), ended.load(Ordering::SeqCst)));
            while turns.state.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            ended.store(true, Ordering::SeqCst);
            turns.end(first);
            assert_eq!(second.join().unwrap(), (Some(first + 1), true));
        });
        // A late end does not end another turn.
        turns.end(first);
        assert!(turns.state.lock().turn.is_some());
    }

    #[test]
    fn unwanted_waiter_gets_no_turn_and_does_not_block_others() {
        let turns = Turns::default();
        let first = turns.take(&|| true).unwrap();
        assert_eq!(turns.take(&|| false), None);
        turns.end(first);
        assert_eq!(turns.take(&|| false), None);
        assert!(turns.take(&|| true).is_some());
    }

    #[test]
    fn overlong_turn_does_not_block_the_next_waiter() {
        let turns = Turns::default();
        let hanging = turns.take(&|| true).unwrap();
        if let Some((_, since)) = &mut turns.state.lock().turn {
            *since = since.checked_sub(MAX_TURN * 2).unwrap();
        }
        let next = turns.take(&|| true).unwrap();
        turns.end(hanging);
        assert_eq!(turns.state.lock().turn.map(|(number, _)| number), Some(next));
    }
}
