//! Releases plugins' large answers, away from the network threads: a plugin's release function may not return.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use outrigger_abi::OwnedBytes;
use parking_lot::{Condvar, Mutex, MutexGuard};

use outrigger_base::contain::contain;

/// A release that takes longer counts as stuck: another thread takes over the queue.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many threads may be stuck in releases. Beyond, bytes are leaked.
const MAX_THREADS: usize = 8;

/// How long a thread waits for more before it ends.
const IDLE: Duration = Duration::from_secs(10);

struct ReleaserState<T> {
    waiting: VecDeque<T>,
    /// When each thread's current release began; `None` for a waiting thread.
    threads: Vec<(u64, Option<Instant>)>,
    next: u64,
}

/// Threads that drop queued values. One works and another watches it, and takes over the queue behind a stuck release.
struct Releaser<T: 'static> {
    patience: Duration,
    state: Mutex<ReleaserState<T>>,
    arrived: Condvar,
}

static RELEASER: Releaser<OwnedBytes> = Releaser::new(PATIENCE);

/// Releases the bytes soon, on another thread.
pub(super) fn give_back(bytes: OwnedBytes) {
    RELEASER.give(bytes);
}

impl<T: Send + 'static> Releaser<T> {
    const fn new(patience: Duration) -> Self {
        let state = ReleaserState { waiting: VecDeque::new(), threads: Vec::new(), next: 0 };
        Self { patience, state: Mutex::new(state), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, ReleaserState<T>> {
        self.state.lock()
    }

    fn give(&'static self, item: T) {
        let mut state = self.lock();
        state.waiting.push_back(item);
        self.have_watched(state);
    }

    /// Ensures that a thread empties the queue, now or when the others turn out to be stuck.
    fn have_watched(&'static self, mut state: MutexGuard<'_, ReleaserState<T>>) {
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
            tracing::error!(%error, "plugins' answers cannot be released for now");
            self.lock().threads.retain(|(own, _)| *own != id);
        }
    }

    fn work(&'static self, id: u64) {
        while let Some(item) = self.next(id) {
            contain("giving a plugin's answer back", || drop(item));
        }
    }

    /// The next value; `None` after an idle time, when the thread is to end.
    fn next(&'static self, id: u64) -> Option<T> {
        let mut state = self.lock();
        state.note(id, None);
        loop {
            // While another thread works and is not stuck, it serves the queue.
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

impl<T> ReleaserState<T> {
    fn note(&mut self, id: u64, since: Option<Instant>) {
        if let Some(thread) = self.threads.iter_mut().find(|(own, _)| *own == id) {
            thread.1 = since;
        }
    }

    /// Whether a thread is in a release that is not stuck.
    fn is_served(&self, patience: Duration) -> bool {
        self.threads.iter().any(|(_, since)| since.is_some_and(|since| since.elapsed() <= patience))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Reports its release, and waits until it may end.
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
        // All are queued before the first is found stuck, and nothing later wakes anybody.
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
