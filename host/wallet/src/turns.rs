//! A wallet makes its payments one after the other: each keeps its turn from its choice of coins until the wallet has
//! stored that they are spent or locked. Concurrent payments would choose the same coins, and the later one would fail. A
//! payment whose signer hangs loses its turn; if it then spends the same coin as another, the payment that is stored later is
//! refused.

use std::collections::VecDeque;
use std::sync::Arc;
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

/// Held by a payment, released on drop.
pub struct Turn {
    turns: Arc<Turns>,
    number: u64,
}

impl Drop for Turn {
    /// No effect if the turn took longer than `MAX_TURN` and the next waiter has its turn.
    fn drop(&mut self) {
        self.turns.state.lock().turn.take_if(|(turn, _)| *turn == self.number);
        self.turns.next.notify_all();
    }
}

impl Turns {
    /// Waits for the turns before this one, first come, first served. Polls `wanted`; `None` once it returns false.
    pub fn take(self: &Arc<Self>, wanted: &dyn Fn() -> bool) -> Option<Turn> {
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
                return is_wanted.then(|| Turn { turns: self.clone(), number });
            }
            self.next.wait_for(&mut state, LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn turns_are_granted_one_at_a_time_in_order_of_arrival() {
        let turns = Arc::new(Turns::default());
        let first = turns.take(&|| true).unwrap();
        let number = first.number;
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| (turns.take(&|| true), ended.load(Ordering::SeqCst)));
            while turns.state.lock().waiting.is_empty() {
                std::thread::yield_now();
            }
            ended.store(true, Ordering::SeqCst);
            drop(first);
            let (second, has_ended) = second.join().unwrap();
            assert_eq!((second.unwrap().number, has_ended), (number + 1, true));
        });
    }

    #[test]
    fn unwanted_waiter_gets_no_turn_and_does_not_block_others() {
        let turns = Arc::new(Turns::default());
        let first = turns.take(&|| true).unwrap();
        assert!(turns.take(&|| false).is_none());
        drop(first);
        assert!(turns.take(&|| false).is_none());
        assert!(turns.take(&|| true).is_some());
    }

    #[test]
    fn overlong_turn_does_not_block_the_next_waiter_and_its_late_end_ends_no_other_turn() {
        let turns = Arc::new(Turns::default());
        let hanging = turns.take(&|| true).unwrap();
        if let Some((_, since)) = &mut turns.state.lock().turn {
            *since = since.checked_sub(MAX_TURN * 2).unwrap();
        }
        let next = turns.take(&|| true).unwrap();
        drop(hanging);
        assert_eq!(turns.state.lock().turn.map(|(number, _)| number), Some(next.number));
    }
}
