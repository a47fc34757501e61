//! Gives plugins their large answers back, away from the threads that serve connections: a plugin's function that releases
//! bytes may not return.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use outrigger_abi::OwnedBytes;
use parking_lot::{Condvar, Mutex, MutexGuard};

use outrigger_base::contain::contain;

/// A release that takes longer than this is not waited for: another thread goes on with the others.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many threads may be held up by releases. Beyond, bytes are never given back.
const MAX_THREADS: usize = 8;

/// How long a thread waits for more before it ends.
const IDLE: Duration = Duration::from_secs(10);

struct State<T> {
    waiting: VecDeque<T>,
    /// Since when each thread has been at its last release; none for one that waits for more.
    threads: Vec<(u64, Option<Instant>)>,
    next: u64,
}

/// Threads that drop what they are given. One works and another watches it: what waits behind a release that does not return is
/// taken over.
struct Releaser<T: 'static> {
    patience: Duration,
    state: Mutex<State<T>>,
    arrived: Condvar,
}

static RELEASER: Releaser<OwnedBytes> = Releaser::new(PATIENCE);

/// Has the bytes released soon, on another thread.
pub(super) fn give_back(bytes: OwnedBytes) {
    RELEASER.give(bytes);
}

impl<T: Send + 'static> Releaser<T> {
    const fn new(patience: Duration) -> Self {
        let state = State { waiting: VecDeque::new(), threads: Vec::new(), next: 0 };
        Self { patience, state: Mutex::new(state), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock()
    }

    fn give(&'static self, item: T) {
        let mut state = self.lock();
        state.waiting.push_back(item);
        self.have_watched(state);
    }

    /// Sees to it that a thread is there which takes what waits, now or when the others turn out to be held up.
    fn have_watched(&'static self, mut state: MutexGuard<'_, State<T>>) {
        let is_watched = state.threads.iter().any(|(_, since)| since.is_none());
        if is_watched || state.threads.len() >= MAX_THREADS {
            drop(state);
            self.arrived.notify_one();
            return;
        }
        let id = state.next;
        state.next += 1;
        state.threads.push((id, None));
        drop(state);
        if let Err(error) = std::thread::Builder::new().name("release".to_owned()).spawn(move || self.work(id)) {
            tracing::error!(%error, "answers of plugins cannot be given back for now");
            self.lock().threads.retain(|(own, _)| *own != id);
        }
    }

    fn work(&'static self, id: u64) {
        while let Some(item) = self.next(id) {
            contain("giving a plugin's answer back", || drop(item));
        }
    }

    /// The next thing to release; none when there was none for a while, and the thread is to end.
    fn next(&'static self, id: u64) -> Option<T> {
        let mut state = self.lock();
        state.note(id, None);
        loop {
            // While another thread works and is not held up, the rest is its business.
            let taken = if state.is_served(self.patience) { None } else { state.waiting.pop_front() };
            if let Some(item) = taken {
                state.note(id, Some(Instant::now()));
                if state.waiting.is_empty() {
                    drop(state);
                } else {
                    self.have_watched(state);
                }
                return Some(item);
            }
            let limit = if state.waiting.is_empty() { IDLE } else { self.patience };
            let waited = self.arrived.wait_for(&mut state, limit);
            if waited.timed_out() && limit == IDLE && state.waiting.is_empty() {
                state.threads.retain(|(own, _)| *own != id);
                return None;
            }
        }
    }
}

impl<T> State<T> {
    fn note(&mut self, id: u64, since: Option<Instant>) {
        if let Some(thread) = self.threads.iter_mut().find(|(own, _)| *own == id) {
            thread.1 = since;
        }
    }

    /// Whether a thread is at a release that has not taken too long.
    fn is_served(&self, patience: Duration) -> bool {
        self.threads.iter().any(|(_, since)| since.is_some_and(|since| since.elapsed() <= patience))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Says that it is being released, and waits until it may be.
    struct Item {
        begun: Sender<u32>,
        number: u32,
        may_end: Receiver<()>,
    }

    impl Drop for Item {
        fn drop(&mut self) {
            let _ = self.begun.send(self.number);
            let _ = self.may_end.recv();
        }
    }

    #[test]
    fn release_that_waits_behind_a_stuck_one_is_given_to_another_thread() {
        let releaser: &'static Releaser<Item> = Box::leak(Box::new(Releaser::new(Duration::from_millis(20))));
        let (begun, order) = channel();
        let mut ends = Vec::new();
        // All are there before the first is found to be stuck, and nothing comes afterwards that could wake anybody.
        for number in 0..5 {
            let (end, may_end) = channel();
            releaser.give(Item { begun: begun.clone(), number, may_end });
            ends.push(end);
        }
        let order: Vec<u32> = (0..5).map(|_| order.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
        assert_eq!(order, [0, 1, 2, 3, 4]);
        drop(ends);
    }
}
