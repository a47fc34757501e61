//! Who may write to a wallet: one at a time, and nobody for as long as the node is asked something.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long a thread that follows the node waits for one that writes. A write that takes longer has the wallet queued again.
const FOLLOWER_PATIENCE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct State {
    held: bool,
    /// A thread that follows the node waits: all others write after it.
    follower_waits: bool,
    /// The wallet is queued again when the lock is free.
    requeue: bool,
}

/// The lock of all writes to a wallet.
#[derive(Default)]
pub struct WriteLock {
    state: Mutex<State>,
    free: Condvar,
}

impl WriteLock {
    /// Waits for the right to write.
    pub fn acquire(&self) {
        let mut state = self.state.lock();
        self.free.wait_while(&mut state, |state| state.held || state.follower_waits);
        state.held = true;
    }

    /// Takes the right to write, if nobody has it.
    pub fn try_acquire(&self) -> bool {
        let mut state = self.state.lock();
        let free = !state.held && !state.follower_waits;
        state.held |= free;
        free
    }

    /// Takes the right to write for the thread that follows the node for the wallet. False where another keeps it for long:
    /// [`Self::release`] then says that the wallet has to be queued again.
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

    /// Gives the right to write back. Whether the wallet has to be queued again.
    #[must_use]
    pub fn release(&self) -> bool {
        let mut state = self.state.lock();
        state.held = false;
        let requeue = std::mem::take(&mut state.requeue);
        drop(state);
        self.free.notify_all();
        requeue
    }

    /// Whether the wallet is going to be queued again when the lock is free.
    pub fn awaits_requeue(&self) -> bool {
        self.state.lock().requeue
    }
}
