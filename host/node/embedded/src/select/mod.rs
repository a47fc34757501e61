//! The selection for the next block, kept up to date as tip and mempool change.
//!
//! A thread selects after each change, and coalesces a burst of changes. A caller gets the last selection, or waits for
//! the next if the mempool has changed since. So each caller gets a selection for the current tip, which considers all
//! transactions accepted before the call.

mod choose;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bitcoin::Amount;
use outrigger_service::chain::Tip;
use outrigger_service::mempool::Selected;
use outrigger_values::amount::Saturating;
use parking_lot::{Condvar, Mutex, RwLock};

use super::mempool::Pool;
use super::params::Settings;
use choose::choose;

/// The pause after a selection while no caller waits, so that a burst of changes costs little CPU time.
const REST: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct BlockSelection {
    /// Grows whenever the tip or the transactions change.
    pub version: u64,
    pub tip: Tip,
    /// Parents before children.
    pub transactions: Arc<Vec<Selected>>,
    pub fees: Amount,
    /// The mempool's sequence when the thread selected.
    pub sequence: u64,
}

#[derive(Default)]
struct State {
    last: Option<Arc<BlockSelection>>,
    /// Whether the mempool has changed since the last selection began.
    changed: bool,
    /// The number of waiters.
    waiting: usize,
    /// Whether the thread sleeps until the next change.
    idle: bool,
    /// Whether the thread has ended or must end.
    ended: bool,
}

/// State that the thread shares with its callers.
struct Shared {
    pool: Arc<RwLock<Pool>>,
    settings: Settings,
    state: Mutex<State>,
    /// Held while selecting, so that no version is used twice.
    selecting: Mutex<()>,
    /// Wakes the thread.
    work: Condvar,
    /// Wakes the waiters.
    done: Condvar,
}

/// Owns the thread that selects. Dropping it ends the thread.
pub struct Selector {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Selector {
    pub fn start(pool: Arc<RwLock<Pool>>, settings: Settings) -> std::io::Result<Self> {
        let state = Mutex::new(State { changed: true, ..State::default() });
        let (work, done) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { pool, settings, state, selecting: Mutex::new(()), work, done });
        let run = shared.clone();
        let thread = std::thread::Builder::new().name("select".to_owned()).spawn(move || run.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Marks the last selection as outdated after a change of the mempool. Does not wait for a new one.
    pub fn changed(&self) {
        let mut state = self.shared.state.lock();
        state.changed = true;
        if state.idle {
            self.shared.work.notify_one();
        }
    }

    /// The selection from the current mempool. Waits for the thread if the last selection is outdated.
    pub fn current(&self) -> Arc<BlockSelection> {
        let sequence = self.shared.pool.read().sequence;
        let is_current = |last: &Arc<BlockSelection>| last.sequence >= sequence;
        let mut state = self.shared.state.lock();
        if let Some(last) = state.last.as_ref().filter(|last| is_current(last)) {
            return last.clone();
        }
        state.changed = true;
        state.waiting += 1;
        self.shared.work.notify_one();
        while !state.ended && !state.last.as_ref().is_some_and(is_current) {
            self.shared.done.wait(&mut state);
        }
        state.waiting -= 1;
        match state.last.as_ref().filter(|last| is_current(last)) {
            Some(last) => last.clone(),
            // The thread has ended: the node is stopping, or the thread panicked.
            None => {
                drop(state);
                self.shared.select()
            }
        }
    }
}

impl Drop for Selector {
    fn drop(&mut self) {
        self.shared.state.lock().ended = true;
        self.shared.work.notify_all();
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, there is nothing left to do.
            let _ = thread.join();
        }
    }
}

/// Marks the thread as ended on drop, so also after a panic.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.state.lock().ended = true;
        self.0.done.notify_all();
    }
}

impl Shared {
    fn run(&self) {
        let _ending = Ending(self);
        while self.wait() {
            self.select();
            self.done.notify_all();
        }
    }

    /// Waits for a change and, unless a caller waits, for the end of the pause. Returns false if the thread must end.
    fn wait(&self) -> bool {
        let rested = Instant::now() + REST;
        let mut state = self.state.lock();
        loop {
            if state.ended {
                return false;
            }
            let now = Instant::now();
            if state.changed && (state.waiting > 0 || now >= rested) {
                state.changed = false;
                return true;
            } else if now < rested {
                self.work.wait_until(&mut state, rested);
            } else {
                state.idle = true;
                self.work.wait(&mut state);
                state.idle = false;
            }
        }
    }

    fn select(&self) -> Arc<BlockSelection> {
        let _selecting = self.selecting.lock();
        let (chosen, tip, sequence) = {
            let pool = self.pool.read();
            (choose(&pool, &self.settings), pool.tip, pool.sequence)
        };
        let is_same = |last: &BlockSelection| {
            let ids = last.transactions.iter().map(|selected| selected.wtxid);
            last.tip.hash == tip.hash && ids.eq(chosen.iter().map(|selected| selected.wtxid))
        };
        let last = self.state.lock().last.clone();
        let selected = Arc::new(match last {
            // An unchanged selection keeps its version, so that callers need not read it again.
            Some(last) if is_same(&last) => {
                let BlockSelection { version, fees, .. } = *last;
                BlockSelection { version, tip, transactions: last.transactions.clone(), fees, sequence }
            }
            last => {
                let version = last.map_or(1, |last| last.version + 1);
                let fees = chosen.iter().map(|selected| selected.fee).fold(Amount::ZERO, Amount::saturating_add);
                BlockSelection { version, tip, transactions: chosen.into(), fees, sequence }
            }
        });
        self.state.lock().last = Some(selected.clone());
        selected
    }
}
