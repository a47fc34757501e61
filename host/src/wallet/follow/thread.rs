//! The thread that follows the node for all loaded wallets, and locks those whose time has come.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::node::observer::NodeEvent;
use crate::wallet::live::Wallet;
use crate::wallet::lock;

/// How many events are taken over in one write at most.
const MAX_BATCH: usize = 1000;
/// How soon a wallet that could not follow is tried again.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    events: VecDeque<NodeEvent>,
    /// How many were ever enqueued, and how many of these have been taken over.
    pushed: u64,
    done: u64,
    stopping: bool,
    /// Whether the thread should look at the wallets' deadlines.
    nudged: bool,
}

/// The queue between the node and the wallets, and the wallets.
#[derive(Default)]
pub struct Follower {
    state: Mutex<State>,
    work: Condvar,
    progress: Condvar,
    /// The loaded wallets, in the order in which they were loaded.
    pub wallets: RwLock<Vec<Arc<Wallet>>>,
}

impl Follower {
    /// Takes an event from the node. Only enqueues.
    pub fn push(&self, event: NodeEvent) {
        let mut state = lock(&self.state);
        state.events.push_back(event);
        state.pushed += 1;
        self.work.notify_one();
    }

    /// Makes the thread look at the wallets' deadlines.
    pub fn nudge(&self) {
        lock(&self.state).nudged = true;
        self.work.notify_one();
    }

    /// Waits until everything that was enqueued before this call has been taken over. Whether it has: false when the
    /// thread stops.
    pub fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        let target = state.pushed;
        while state.done < target && !state.stopping {
            state = self.progress.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.done >= target
    }

    /// Makes the thread return after what it is doing.
    pub fn stop(&self) {
        lock(&self.state).stopping = true;
        self.work.notify_all();
        self.progress.notify_all();
    }

    /// The loaded wallets.
    pub fn loaded(&self) -> Vec<Arc<Wallet>> {
        self.wallets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The thread.
    pub fn run(&self) {
        while let Some(events) = self.next_batch() {
            for wallet in self.loaded() {
                wallet.lock_if_due();
                take_over(&wallet, &events);
            }
            lock(&self.state).done += events.len() as u64;
            self.progress.notify_all();
        }
    }

    /// The next events, none of them when only time has passed; none when the thread is to stop.
    fn next_batch(&self) -> Option<Vec<NodeEvent>> {
        let due = self.next_deadline();
        let mut state = lock(&self.state);
        while state.events.is_empty() && !state.stopping && !state.nudged {
            let now = Instant::now();
            state = match due {
                Some(due) if due <= now => break,
                Some(due) => self.work.wait_timeout(state, due - now).unwrap_or_else(PoisonError::into_inner).0,
                None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        if state.stopping {
            return None;
        }
        state.nudged = false;
        let count = state.events.len().min(MAX_BATCH);
        Some(state.events.drain(..count).collect())
    }

    fn next_deadline(&self) -> Option<Instant> {
        let retry = |wallet: &Arc<Wallet>| lock(&wallet.lag).as_ref().map(|_| Instant::now() + RETRY);
        self.loaded().iter().flat_map(|wallet| [wallet.lock_deadline(), retry(wallet)]).flatten().min()
    }
}

/// Takes events over for one wallet. One that failed before is brought in step as a whole: the events it missed are gone.
fn take_over(wallet: &Wallet, events: &[NodeEvent]) {
    let lagging = lock(&wallet.lag).is_some();
    if events.is_empty() && !lagging {
        return;
    }
    let result = if lagging { wallet.reconcile() } else { wallet.follow(events) };
    let mut lag = lock(&wallet.lag);
    match result {
        Ok(()) => {
            if lag.take().is_some() {
                tracing::info!(wallet = wallet.name(), "the wallet has caught up with the chain again");
            }
        }
        Err(error) => {
            tracing::error!(wallet = wallet.name(), %error, "the wallet cannot follow the chain; it will be tried again");
            *lag = Some(error.to_string());
        }
    }
}
