//! The write lock of a wallet. No thread holds it while it asks the node.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long a follower thread waits for a writer before it queues the wallet again.
const FOLLOWER_PATIENCE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct State {
    held: bool,
    /// A follower thread waits. It goes before all other waiters.
    follower_waits: bool,
    /// The wallet is queued again on release.
    requeue: bool,
}

#[derive(Default)]
pub struct WriteLock {
    state: Mutex<State>,
    free: Condvar,
}

impl WriteLock {
    /// Waits for the lock.
    pub fn acquire(&self) {
        let mut state = self.state.lock();
        self.free.wait_while(&mut state, |state| state.held || state.follower_waits);
        state.held = true;
    }

    /// Takes the lock if it is free.
    pub fn try_acquire(&self) -> bool {
        let mut state = self.state.lock();
        let free = !state.held && !state.follower_waits;
        state.held |= free;
        free
    }

    /// Takes the lock for a follower thread. False after [`FOLLOWER_PATIENCE`]: [`Self::release`] then asks for the wallet to be
    /// queued again.
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

    /// Releases the lock. Returns whether the wallet has to be queued again.
    #[must_use]
    pub fn release(&self) -> bool {
        let mut state = self.state.lock();
        state.held = false;
        let requeue = std::mem::take(&mut state.requeue);
        drop(state);
        self.free.notify_all();
        requeue
    }

    /// Whether the wallet is queued again on release.
    pub fn awaits_requeue(&self) -> bool {
        self.state.lock().requeue
    }
}
