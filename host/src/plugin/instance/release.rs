//! Gives plugins their large answers back, away from the threads that serve connections: a plugin's function that releases
//! bytes may not return.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outrigger_sdk::abi::OwnedBytes;

/// A release that takes longer than this is not waited for: another thread goes on with the others.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many threads may be held up by releases. Beyond, bytes are never given back.
const MAX_THREADS: usize = 8;

/// How long a thread waits for more before it ends.
const IDLE: Duration = Duration::from_secs(10);

#[derive(Default)]
struct State {
    waiting: VecDeque<OwnedBytes>,
    /// Since when each thread has been at its last release; none for one that waits for more.
    threads: Vec<(u64, Option<Instant>)>,
    next: u64,
}

struct Releaser {
    state: Mutex<State>,
    arrived: Condvar,
}

static RELEASER: Releaser = Releaser {
    state: Mutex::new(State { waiting: VecDeque::new(), threads: Vec::new(), next: 0 }),
    arrived: Condvar::new(),
};

/// Has the bytes released soon, on another thread.
pub(super) fn give_back(bytes: OwnedBytes) {
    let mut state = RELEASER.lock();
    state.waiting.push_back(bytes);
    let held_up = |(_, since): &(u64, Option<Instant>)| since.is_some_and(|since| since.elapsed() > PATIENCE);
    if !state.threads.iter().all(held_up) {
        drop(state);
        RELEASER.arrived.notify_one();
    } else if state.threads.len() < MAX_THREADS {
        let id = state.next;
        state.next += 1;
        state.threads.push((id, None));
        drop(state);
        if let Err(error) = std::thread::Builder::new().name("release".to_owned()).spawn(move || RELEASER.work(id)) {
            tracing::error!(%error, "answers of plugins cannot be given back for now");
            RELEASER.lock().threads.retain(|(own, _)| *own != id);
        }
    }
}

impl Releaser {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, id: u64) {
        while let Some(bytes) = self.next(id) {
            drop(bytes);
        }
    }

    /// The next bytes to release; none when there were none for a while, and the thread is to end.
    fn next(&self, id: u64) -> Option<OwnedBytes> {
        let mut state = self.lock();
        state.note(id, None);
        loop {
            if let Some(bytes) = state.waiting.pop_front() {
                state.note(id, Some(Instant::now()));
                return Some(bytes);
            }
            let (again, waited) = self.arrived.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = again;
            if waited.timed_out() && state.waiting.is_empty() {
                state.threads.retain(|(own, _)| *own != id);
                return None;
            }
        }
    }
}

impl State {
    fn note(&mut self, id: u64, since: Option<Instant>) {
        if let Some(thread) = self.threads.iter_mut().find(|(own, _)| *own == id) {
            thread.1 = since;
        }
    }
}
