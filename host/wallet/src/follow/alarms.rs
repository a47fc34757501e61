//! What is due for wallets at a time: they are locked again, tried again, stored. Its thread never waits for the node, so that a
//! wallet is locked in time whatever the node does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::feed::Item;
use super::index::WalletNumber;
use super::thread::Follower;
use crate::Shared;
use crate::error::Result;

/// How often wallets that stand beyond what they have stored are stored, and idle ones give memory back.
const STORE_EVERY: Duration = Duration::from_secs(60);

/// What happens to a wallet at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// It is locked.
    Lock,
    /// It is tried again, as it could not follow.
    Retry,
}

/// What is due at a time, and for which wallet.
type Alarm = (Instant, Due, WalletNumber);

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
enum Next {
    Due(Vec<Alarm>),
    Maintenance,
    Stop,
}

impl Alarms {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(&self, shared: &Arc<Shared>) -> Result<()> {
        let run = shared.clone();
        let run = move || run.follower.alarms.run(&run.follower);
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

    fn next(&self, maintenance: Instant) -> Next {
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

    fn run(&self, follower: &Follower) {
        let mut maintenance = Instant::now() + STORE_EVERY;
        loop {
            match self.next(maintenance) {
                Next::Stop => return,
                Next::Due(alarms) => alarms.into_iter().for_each(|alarm| {
                    if catch_unwind(AssertUnwindSafe(|| ring(follower, alarm))).is_err() {
                        tracing::error!("what was due for a wallet failed");
                    }
                }),
                Next::Maintenance => {
                    maintenance = Instant::now() + STORE_EVERY;
                    if catch_unwind(AssertUnwindSafe(|| follower.run_maintenance())).is_err() {
                        tracing::error!("looking after idle wallets failed");
                    }
                }
            }
        }
    }
}

fn ring(follower: &Follower, (at, due, slot): Alarm) {
    let Some(wallet) = follower.get(slot) else { return };
    match due {
        Due::Lock => wallet.lock_if_due(),
        Due::Retry => {
            if wallet.try_again(at) {
                follower.give(&wallet, Item::Reconcile(1));
            }
        }
    }
}
