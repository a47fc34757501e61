//! Who may write to a wallet: one at a time, and nobody for as long as the node is asked something.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::live::Wallet;

/// How long a thread that follows the node waits for one that writes. A write that takes longer gets it another turn.
const FOLLOWER_PATIENCE: Duration = Duration::from_millis(50);

#[derive(Default)]
struct State {
    held: bool,
    /// A thread that follows the node waits: whoever else would write comes after it.
    follower_waits: bool,
    /// The wallet gets another turn when the lock is free.
    requeue: bool,
}

/// The lock of all writes to a wallet.
#[derive(Default)]
pub struct WriteLock {
    state: Mutex<State>,
    free: Condvar,
}

/// The right to write to a wallet, until it is dropped.
pub struct WriteGuard<'w> {
    wallet: &'w Wallet,
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        let lock = &self.wallet.write_lock;
        let mut state = lock.state.lock();
        state.held = false;
        let requeue = std::mem::take(&mut state.requeue);
        drop(state);
        lock.free.notify_all();
        if requeue {
            self.wallet.shared.follower.requeue(self.wallet);
        }
    }
}

impl Wallet {
    /// Waits for the right to write.
    pub(crate) fn lock_writes(&self) -> WriteGuard<'_> {
        let lock = &self.write_lock;
        let mut state = lock.state.lock();
        lock.free.wait_while(&mut state, |state| state.held || state.follower_waits);
        state.held = true;
        WriteGuard { wallet: self }
    }

    /// The right to write, if nobody has it.
    pub(crate) fn try_lock_writes(&self) -> Option<WriteGuard<'_>> {
        let mut state = self.write_lock.state.lock();
        if state.held || state.follower_waits {
            return None;
        }
        state.held = true;
        Some(WriteGuard { wallet: self })
    }

    /// The right to write, for the thread that follows the node for the wallet. Where another keeps it for long there is none,
    /// and the wallet gets another turn afterwards.
    pub(crate) fn lock_for_following(&self) -> Option<WriteGuard<'_>> {
        let lock = &self.write_lock;
        let mut state = lock.state.lock();
        if state.held {
            let deadline = Instant::now() + FOLLOWER_PATIENCE;
            state.follower_waits = true;
            let waited = lock.free.wait_while_until(&mut state, |state| state.held, deadline);
            state.follower_waits = false;
            if waited.timed_out() && state.held {
                state.requeue = true;
                return None;
            }
        }
        state.held = true;
        Some(WriteGuard { wallet: self })
    }

    /// Whether the wallet is going to get another turn from the one who writes to it.
    pub(super) fn awaits_requeue(&self) -> bool {
        self.write_lock.state.lock().requeue
    }
}
