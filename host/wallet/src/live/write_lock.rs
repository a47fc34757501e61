//! The write lock of a wallet. No thread queries the node while it holds the lock.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long a follower thread waits for a writer before the wallet is queued again.
const FOLLOWER_PATIENCE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct State {
    held: bool,
    /// A follower thread waits. It has priority over other waiters.
    follower_waits: bool,
    /// The wallet is to be queued again on release.
    requeue: bool,
}

#[derive(Default)]
pub struct WriteLock {
    state: Mutex<State>,
    free: Condvar,
}

impl WriteLock {
    pub fn acquire(&self) {
        let mut state = self.state.lock();
        self.free.wait_while(&mut state, |state| state.held || state.follower_waits);
        state.held = true;
    }

    pub fn try_acquire(&self) -> bool {
        let mut state = self.state.lock();
        let free = !state.held && !state.follower_waits;
        state.held |= free;
        free
    }

    /// Acquires the lock for a follower thread. After [`FOLLOWER_PATIENCE`] it returns false, and [`Self::release`]
    /// then returns true.
    pub fn acquire_for_following(&self) -> bool {
        let mut state = self.state.lock();
        if state.held {
            let deadline = Instant::now() + FOLLOWER_PATIENCE;
            state.follower_waits = true;
            let waited = self.free.wait_while_until(&mut state, |state| state.held, deadline);
            state.follower_waits = false;
            if waited.timed_out() && state.held {
                state.requeue = true;
                return false;
            }
        }
        state.held = true;
        true
    }

    /// Returns whether the wallet has to be queued again.
    #[must_use]
    pub fn release(&self) -> bool {
        let mut state = self.state.lock();
        state.held = false;
        let requeue = std::mem::take(&mut state.requeue);
        drop(state);
        self.free.notify_all();
        requeue
    }

    pub fn awaits_requeue(&self) -> bool {
        self.state.lock().requeue
    }
}
