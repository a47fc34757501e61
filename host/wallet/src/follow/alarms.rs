//! What is due for wallets at a time: they are locked, follow the node again after a failure, or offer transactions again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::index::WalletNumber;
use crate::error::Result;

/// What happens to a wallet at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// It is locked.
    Lock,
    /// It is tried again, as it could not follow.
    Retry,
    /// Its unconfirmed transactions are offered to the node again.
    Resend,
}

/// What is due at a time, and for which wallet.
pub type Alarm = (Instant, Due, WalletNumber);

#[derive(Default)]
struct State {
    alarms: BinaryHeap<Reverse<Alarm>>,
    stopping: bool,
    thread: Option<JoinHandle<()>>,
}

/// The alarms that are set.
#[derive(Default)]
pub struct Alarms {
    state: Mutex<State>,
    changed: Condvar,
}

/// What the thread has to do next.
pub enum Next {
    /// These alarms.
    Due(Vec<Alarm>),
    /// Maintenance.
    Maintenance,
    /// Nothing more.
    Stop,
}

impl Alarms {
    /// Starts the thread that does what is due.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(&self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.state.lock().thread = Some(thread::Builder::new().name("wallet alarms".into()).spawn(run)?);
        Ok(())
    }

    /// Makes something happen to a wallet at a time.
    pub fn set(&self, at: Instant, due: Due, slot: WalletNumber) {
        self.state.lock().alarms.push(Reverse((at, due, slot)));
        self.changed.notify_one();
    }

    /// How many alarms are set that have wallets tried again.
    #[cfg(test)]
    pub fn retries(&self) -> usize {
        self.state.lock().alarms.iter().filter(|Reverse((_, due, _))| matches!(due, Due::Retry)).count()
    }

    /// Ends the thread.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        let thread = state.thread.take();
        drop(state);
        self.changed.notify_all();
        if let Some(thread) = thread {
            // It contains its panics, so this does not fail.
            let _ = thread.join();
        }
    }

    /// Waits for what has to be done next, which is maintenance from that time on.
    pub fn next(&self, maintenance: Instant) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return Next::Stop;
            }
            let now = Instant::now();
            let mut due = Vec::new();
            while let Some(Reverse(alarm)) = state.alarms.peek().copied().filter(|Reverse((at, ..))| *at <= now) {
                state.alarms.pop();
                due.push(alarm);
            }
            if !due.is_empty() {
                return Next::Due(due);
            }
            if maintenance <= now {
                return Next::Maintenance;
            }
            let until = state.alarms.peek().map_or(maintenance, |Reverse((at, ..))| maintenance.min(*at));
            self.changed.wait_for(&mut state, until - now);
        }
    }
}
