//! The selection for the next block, kept up to date as tip and mempool change.
//!
//! A thread of its own selects after each change; a burst of changes costs one selection. Whoever asks gets what stands,
//! or, where the mempool has changed since, waits for the selection that is due: so nobody gets one of another tip, or one
//! without a transaction that was accepted before.

mod choose;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bitcoin::Amount;
use outrigger_service::chain::Tip;
use outrigger_service::mempool::Selection;
use outrigger_values::amount::Saturating;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use super::mempool::Pool;
use super::params::Settings;
use choose::choose;

/// How long the thread rests after a selection that nobody waits for, so that a burst of changes takes little of a
/// processor.
const REST: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Chosen {
    /// Names tip and transactions.
    pub version: u64,
    /// The tip that a block of it builds on.
    pub tip: Tip,
    /// The transactions, parents before their children.
    pub transactions: Selection,
    /// The sum of their fees.
    pub fees: Amount,
    /// The mempool's sequence when it was made.
    pub sequence: u64,
}

#[derive(Default)]
struct State {
    last: Option<Arc<Chosen>>,
    /// The mempool has changed since the last selection began.
    changed: bool,
    /// How many wait for a selection.
    waiting: usize,
    /// The thread sleeps until something changes.
    idle: bool,
    /// There is no thread, or it must end.
    ended: bool,
}

/// What the thread and those who ask share.
struct Shared {
    pool: Arc<RwLock<Pool>>,
    settings: Settings,
    state: Mutex<State>,
    /// Held while selecting, so that no two selections get one name.
    selecting: Mutex<()>,
    /// The thread is told that there is work.
    work: Condvar,
    /// Those who wait are told that there is a selection.
    done: Condvar,
}

/// The selection and the thread that makes it, which ends when this is dropped.
pub struct Selector {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Selector {
    /// Starts selecting of `pool`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(pool: Arc<RwLock<Pool>>, settings: Settings) -> std::io::Result<Self> {
        let state = Mutex::new(State { changed: true, ..State::default() });
        let (work, done) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { pool, settings, state, selecting: Mutex::new(()), work, done });
        let run = shared.clone();
        let thread = std::thread::Builder::new().name("select".to_owned()).spawn(move || run.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Says that the mempool has changed. Costs next to nothing.
    pub fn changed(&self) {
        let mut state = self.shared.lock();
        state.changed = true;
        if state.idle {
            self.shared.work.notify_one();
        }
    }

    /// The selection of the mempool as it stands, or as it stands when this returns.
    pub fn current(&self) -> Arc<Chosen> {
        let sequence = self.shared.pool().sequence();
        let is_current = |last: &Arc<Chosen>| last.sequence >= sequence;
        let mut state = self.shared.lock();
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
            // The thread has ended; this is the last moment of the node, or the thread failed.
            None => {
                drop(state);
                self.shared.select()
            }
        }
    }
}

impl Drop for Selector {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.work.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there is nothing left to do about it.
            let _ = thread.join();
        }
    }
}

/// Says that the thread has ended, however it did.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.done.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn pool(&self) -> parking_lot::RwLockReadGuard<'_, Pool> {
        self.pool.read()
    }

    fn run(&self) {
        let _ending = Ending(self);
        while self.wait() {
            self.select();
            self.done.notify_all();
        }
    }

    /// Waits until there is something to select: at once if someone waits for it, else after a rest. False at the end.
    fn wait(&self) -> bool {
        let rested = Instant::now() + REST;
        let mut state = self.lock();
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

    /// Selects, and keeps the outcome.
    fn select(&self) -> Arc<Chosen> {
        let _selecting = self.selecting.lock();
        let (chosen, tip, sequence) = {
            let pool = self.pool();
            (choose(&pool, &self.settings), pool.tip(), pool.sequence())
        };
        let is_same = |last: &Chosen| {
            let ids = last.transactions.iter().map(|selected| selected.wtxid);
            last.tip.hash == tip.hash && ids.eq(chosen.iter().map(|selected| selected.wtxid))
        };
        let last = self.lock().last.clone();
        let selected = Arc::new(match last {
            // What is the same keeps its name, so that nobody has to read it again.
            Some(last) if is_same(&last) => {
                let Chosen { version, fees, .. } = *last;
                Chosen { version, tip, transactions: last.transactions.clone(), fees, sequence }
            }
            last => {
                let version = last.map_or(1, |last| last.version + 1);
                let fees = chosen.iter().map(|selected| selected.fee).fold(Amount::ZERO, Amount::saturating_add);
                Chosen { version, tip, transactions: chosen.into(), fees, sequence }
            }
        });
        self.lock().last = Some(selected.clone());
        selected
    }
}
