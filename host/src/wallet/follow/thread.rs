//! The threads that follow the node, one for each loaded wallet: it takes over what the node tells, and locks the wallet
//! when its time has come. What a wallet is busy with holds up no other.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::node::observer::NodeEvent;
use crate::wallet::error::Result;
use crate::wallet::live::Wallet;
use crate::wallet::lock;

/// How many events are taken over in one write at most.
const MAX_BATCH: usize = 1000;
/// How soon a wallet that could not follow is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The loaded wallets, in the order in which they were loaded.
#[derive(Default)]
pub struct Follower {
    wallets: RwLock<Vec<Arc<Wallet>>>,
}

impl Follower {
    /// Takes an event from the node for all loaded wallets. Only enqueues.
    pub fn push(&self, event: &NodeEvent) {
        for wallet in self.wallets.read().unwrap_or_else(PoisonError::into_inner).iter() {
            wallet.feed.push(event.clone());
        }
    }

    /// The loaded wallets.
    pub fn loaded(&self) -> Vec<Arc<Wallet>> {
        self.wallets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a wallet is among the loaded ones.
    pub fn has(&self, wallet: &Wallet) -> bool {
        let wallets = self.wallets.read().unwrap_or_else(PoisonError::into_inner);
        wallets.iter().any(|other| std::ptr::eq(&**other, wallet))
    }

    /// Makes a wallet one of the loaded ones, and starts its thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn add(&self, wallet: &Arc<Wallet>) -> Result<()> {
        let followed = wallet.clone();
        let thread = thread::Builder::new().name("wallet".into()).spawn(move || run(&followed))?;
        lock(&wallet.feed.state).thread = Some(thread);
        self.wallets.write().unwrap_or_else(PoisonError::into_inner).push(wallet.clone());
        Ok(())
    }

    /// Takes a wallet off the loaded ones.
    pub fn remove(&self, wallet: &Wallet) {
        let mut wallets = self.wallets.write().unwrap_or_else(PoisonError::into_inner);
        wallets.retain(|other| !std::ptr::eq(&**other, wallet));
    }
}

#[derive(Default)]
struct State {
    events: VecDeque<NodeEvent>,
    /// How many were ever enqueued, and how many of these have been taken over.
    pushed: u64,
    done: u64,
    stopping: bool,
    /// Whether the thread should look at the wallet's deadlines.
    nudged: bool,
    thread: Option<JoinHandle<()>>,
}

/// The queue between the node and a wallet.
#[derive(Default)]
pub struct Feed {
    state: Mutex<State>,
    work: Condvar,
    progress: Condvar,
}

impl Feed {
    /// Takes an event. Only enqueues.
    pub fn push(&self, event: NodeEvent) {
        let mut state = lock(&self.state);
        state.events.push_back(event);
        state.pushed += 1;
        self.work.notify_one();
    }

    /// Makes the thread look at the wallet's deadlines.
    pub fn nudge(&self) {
        lock(&self.state).nudged = true;
        self.work.notify_one();
    }

    /// Whether everything that was enqueued has been taken over.
    pub fn is_done(&self) -> bool {
        let state = lock(&self.state);
        state.done >= state.pushed
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

    /// Waits until the stopped thread has returned.
    pub fn join(&self) {
        let thread = lock(&self.state).thread.take();
        if let Some(thread) = thread {
            // It panicked when this fails, and has said so.
            let _ = thread.join();
        }
    }

    /// The next events, none of them when only time has passed; none when the thread is to stop.
    fn next_batch(&self, due: Option<Instant>) -> Option<Vec<NodeEvent>> {
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

    fn note_done(&self, count: usize) {
        lock(&self.state).done += count as u64;
        self.progress.notify_all();
    }
}

/// A wallet's thread.
fn run(wallet: &Wallet) {
    while let Some(events) = wallet.feed.next_batch(next_deadline(wallet)) {
        wallet.lock_if_due();
        take_over(wallet, &events);
        wallet.feed.note_done(events.len());
    }
}

fn next_deadline(wallet: &Wallet) -> Option<Instant> {
    let retry = lock(&wallet.lag).as_ref().map(|_| Instant::now() + RETRY);
    [wallet.lock_deadline(), retry].into_iter().flatten().min()
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
