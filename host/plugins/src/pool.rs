//! The bounded pool of threads on which plugins' code runs.
//!
//! Each plugin may take a share of the threads and of the queue, so that a plugin with stuck calls leaves room for
//! others. A thread that is lost to an overdue call is replaced until it returns, and does not count against the share.
//! A wallet may take half of the threads, and wallets take turns, so that many calls of a large wallet do not delay
//! those of others. A call for which another call waits goes first and is bound by no share: the calls that hold the
//! shares may wait for it.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::mem::replace;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::health::Health;
use outrigger_base::contain::contain;
use tracing::Span;

/// The stack of a call's thread, in bytes: parsing a valid miniscript overflows the default one.
const STACK_BYTES: usize = 8 << 20;

/// The most threads that are started in place of lost ones.
const MAX_REPLACED: usize = 64;

/// The most threads that wait for other calls. The pool starts another thread in place of each.
const MAX_LENT: usize = 512;

/// How long a surplus thread waits for work before it ends: plugins that call others need it again soon, and starting a thread takes
/// longer than most calls.
const SPARE_TIME: Duration = Duration::from_secs(1);

thread_local! {
    /// The pool of this thread, and the number of the call that runs on it.
    static RUNS: RefCell<Option<(Arc<SharedPool>, u64)>> = const { RefCell::new(None) };
}

type Work = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
pub struct Claimant {
    pub owner: u64,
    /// The call's unique number.
    pub call: u64,
    pub wallet: Option<Arc<str>>,
    /// Whether another call waits for this one.
    pub nested: bool,
    /// The owner's, where stuck calls on threads are counted.
    pub health: Arc<Health>,
}

struct Job {
    claimant: Claimant,
    /// Its position in the order of arrivals and turns.
    arrival: u64,
    /// The log span of the thread that submitted it.
    span: Span,
    work: Work,
}

/// A call on a thread.
struct Running {
    claimant: Claimant,
    /// Whether its code has not returned in time.
    lost: bool,
    /// Whether it counts as lost in its owner's health.
    stuck: bool,
    /// Whether it waits for another call.
    lent: bool,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    /// The calls on threads, by number.
    running: HashMap<u64, Running>,
    closed: bool,
    /// Threads that have not ended.
    threads: usize,
    /// The last turn of each wallet in the queue or on threads, in the order of arrivals and turns.
    turns: HashMap<Arc<str>, u64>,
    /// The counter of arrivals and turns.
    order: u64,
}

struct SharedPool {
    state: Mutex<PoolState>,
    arrived: Condvar,
    ended: Condvar,
    depth: usize,
    threads: usize,
}

pub struct Pool {
    shared: Arc<SharedPool>,
}

/// The queue or the owner's share of it is full, or too many threads wait.
#[derive(Debug, PartialEq, Eq)]
pub struct Overloaded;

impl Pool {
    /// Starts `threads` threads, at least one. At most `depth` jobs wait.
    pub fn start(threads: usize, depth: usize) -> std::io::Result<Self> {
        let threads = threads.max(1);
        let state = Mutex::default();
        let shared = SharedPool { state, arrived: Condvar::new(), ended: Condvar::new(), depth, threads };
        let pool = Self { shared: Arc::new(shared) };
        for _ in 0..threads {
            pool.add_thread()?;
        }
        Ok(pool)
    }

    fn add_thread(&self) -> std::io::Result<()> {
        let shared = self.shared.clone();
        let mut state = self.shared.state.lock();
        let builder = std::thread::Builder::new().name(format!("call-{}", state.threads)).stack_size(STACK_BYTES);
        builder.spawn(move || shared.work())?;
        state.threads += 1;
        Ok(())
    }

    /// Queues an owner's job, unless the queue or the owner's share of it is full, or the pool is stopping. The pool has a thread for
    /// each nested job: threads in the calls that wait for them bound their number.
    pub fn submit(&self, claimant: Claimant, work: impl FnOnce() + Send + 'static) -> Result<(), Overloaded> {
        let (depth, nested, span) = (self.shared.depth, claimant.nested, Span::current());
        let mut state = self.shared.state.lock();
        let own = || state.jobs.iter().filter(|job| job.claimant.owner == claimant.owner).count();
        if state.closed || !nested && (state.jobs.len() >= depth || own() >= share(depth)) {
            return Err(Overloaded);
        }
        state.order += 1;
        let arrival = state.order;
        state.jobs.push_back(Job { claimant, arrival, span, work: Box::new(work) });
        let needed = if nested {
            state.running.len() + state.jobs.iter().filter(|job| job.claimant.nested).count()
        } else {
            (state.running.len() + 1).min(self.shared.wanted(&state))
        };
        let is_missing = state.threads < needed;
        drop(state);
        self.shared.arrived.notify_one();
        if is_missing {
            self.replace_thread();
        }
        Ok(())
    }

    pub fn queued(&self) -> usize {
        self.shared.state.lock().jobs.len()
    }

    pub fn share(&self) -> usize {
        share(self.shared.threads)
    }

    fn replace_thread(&self) {
        if let Err(error) = self.add_thread() {
            tracing::error!(%error, "a call thread cannot be replaced");
        }
    }

    /// Starts another thread in place of the overdue call's. It ends once the call has returned. Returns false if none is needed, since
    /// the call has returned or waits for another one. A stuck call counts in its owner's health.
    pub fn replace_lost(&self, call: u64, is_stuck: bool) -> bool {
        self.change(call, |running| {
            if is_stuck && !replace(&mut running.stuck, true) {
                running.claimant.health.lost.fetch_add(1, Ordering::Relaxed);
            }
            !replace(&mut running.lost, true) && !running.lent
        })
    }

    /// Changes a call on a thread. If `change` says that its thread needs a substitute, starts one.
    fn change(&self, call: u64, change: impl FnOnce(&mut Running) -> bool) -> bool {
        let mut state = self.shared.state.lock();
        let needs_thread = state.running.get_mut(&call).is_some_and(change);
        let is_missing = needs_thread && !state.closed && state.threads < self.shared.wanted(&state);
        // Usually the queue is empty, and no thread need be woken.
        let waits = needs_thread && !state.jobs.is_empty();
        drop(state);
        if is_missing {
            self.replace_thread();
        }
        if waits {
            // The owner and the wallet may each use one more thread now.
            self.shared.arrived.notify_all();
        }
        needs_thread
    }

    /// Finishes the queue and ends the threads. Returns false if some did not end in time; they are left running.
    pub fn stop(&self, patience: Duration) -> bool {
        let mut state = self.shared.state.lock();
        state.closed = true;
        self.shared.arrived.notify_all();
        let deadline = Instant::now() + patience;
        while state.threads > 0 {
            if Instant::now() >= deadline {
                return false;
            }
            self.shared.ended.wait_until(&mut state, deadline);
        }
        true
    }
}

/// Runs `wait`. On a thread of a pool, another thread takes its place meanwhile.
///
/// # Errors
/// [`Overloaded`] if too many threads wait, or too many of this owner.
pub fn lent<T>(wait: impl FnOnce() -> T) -> Result<T, Overloaded> {
    let Some((shared, call)) = RUNS.with_borrow(Clone::clone) else { return Ok(wait()) };
    let state = shared.state.lock();
    let owner = state.running.get(&call).filter(|running| !running.lent).map(|running| running.claimant.owner);
    // A call may wait within a wait, for an inline method that runs on its thread.
    let Some(owner) = owner else {
        drop(state);
        return Ok(wait());
    };
    let lent = || state.running.values().filter(|running| running.lent);
    let own = lent().filter(|running| running.claimant.owner == owner).count();
    if lent().count() >= MAX_LENT || own >= share(MAX_LENT) {
        return Err(Overloaded);
    }
    drop(state);
    let lent = Lent { pool: Pool { shared }, call };
    lent.pool.change(call, |running| {
        running.lent = true;
        !running.lost
    });
    Ok(wait())
}

/// A waiting thread, in whose place another runs until this is dropped.
struct Lent {
    pool: Pool,
    call: u64,
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.change(self.call, |running| {
            running.lent = false;
            false
        });
    }
}

/// How many threads one wallet may use.
fn wallet_share(threads: usize) -> usize {
    (threads / 2).max(1)
}

/// The part of `whole` that one owner may use: three quarters, and less than all if `whole` is more than one.
fn share(whole: usize) -> usize {
    (whole - whole / 4).clamp(1, whole.max(2) - 1)
}

impl PoolState {
    /// Takes the longest waiting job among the nested ones, or else among the owners and wallets within their shares. A job waits since
    /// its arrival, or since its wallet's last turn if that was later.
    fn take(&mut self, shared: &SharedPool) -> Option<Job> {
        let position = if self.closed { 0 } else { self.position(shared)? };
        let job = self.jobs.remove(position)?;
        if let Some(wallet) = &job.claimant.wallet {
            self.order += 1;
            self.turns.insert(wallet.clone(), self.order);
        }
        let claimant = job.claimant.clone();
        self.running.insert(claimant.call, Running { claimant, lost: false, stuck: false, lent: false });
        Some(job)
    }

    /// The calls that do not wait for others.
    fn on_threads(&self) -> impl Iterator<Item = &Running> {
        self.running.values().filter(|running| !running.lent)
    }

    fn position(&self, shared: &SharedPool) -> Option<usize> {
        if self.jobs.is_empty() {
            return None;
        }
        let has_room = self.running.len() < shared.wanted(self);
        let (mut owners, mut lost, mut wallets) = (HashMap::new(), HashMap::new(), HashMap::new());
        for Running { claimant: Claimant { owner, wallet, .. }, lost: is_lost, .. } in self.on_threads() {
            if *is_lost {
                let own = lost.entry(owner).or_insert(0);
                *own += 1;
                // One owner must not use up the threads that are replaced.
                if *own <= share(MAX_REPLACED) {
                    continue;
                }
            } else if let Some(wallet) = wallet {
                *wallets.entry(wallet).or_insert(0) += 1;
            }
            *owners.entry(owner).or_insert(0) += 1;
        }
        let is_free = |Claimant { owner, wallet, nested, .. }: &Claimant| {
            let of_wallet = wallet.as_ref().and_then(|wallet| wallets.get(wallet));
            *nested
                || has_room
                    && owners.get(owner).is_none_or(|taken| *taken < share(shared.threads))
                    && of_wallet.is_none_or(|taken| *taken < wallet_share(shared.threads))
        };
        let waits_since = |job: &Job| {
            let last_turn = job.claimant.wallet.as_ref().and_then(|wallet| self.turns.get(wallet));
            last_turn.map_or(job.arrival, |turn| job.arrival.max(*turn))
        };
        let free = self.jobs.iter().enumerate().filter(|(_, job)| is_free(&job.claimant));
        free.min_by_key(|(_, job)| (!job.claimant.nested, waits_since(job))).map(|(position, _)| position)
    }

    /// A call's code has returned.
    fn end(&mut self, call: u64) {
        let Some(Running { claimant: Claimant { wallet, health, .. }, stuck, .. }) = self.running.remove(&call) else {
            return;
        };
        if stuck {
            health.lost.fetch_sub(1, Ordering::Relaxed);
        }
        let queued = self.jobs.iter().map(|job| &job.claimant);
        let mut others = self.running.values().map(|running| &running.claimant).chain(queued);
        // A wallet without calls is removed, so that the map stays bounded.
        if wallet.is_some() && !others.any(|other| other.wallet == wallet) {
            wallet.map(|wallet| self.turns.remove(&wallet));
        }
    }
}

impl SharedPool {
    /// The target number of threads: one more for each lost or waiting one, up to the limits, and for each nested call beyond an owner's
    /// share. So nested calls, which may all wait for one slow plugin, leave threads to others.
    fn wanted(&self, state: &PoolState) -> usize {
        let lent = state.running.len() - state.on_threads().count();
        let lost = state.on_threads().filter(|running| running.lost).count();
        let queued = state.jobs.iter().map(|job| &job.claimant);
        let on_threads = state.on_threads().filter(|running| !running.lost).map(|running| &running.claimant);
        let nested = on_threads.chain(queued).filter(|claimant| claimant.nested).count();
        self.threads + lost.min(MAX_REPLACED) + lent + nested.saturating_sub(share(self.threads))
    }

    fn work(self: &Arc<Self>) {
        while let Some(Job { claimant: Claimant { call, .. }, span, work, .. }) = self.next() {
            RUNS.set(Some((self.clone(), call)));
            // The SDK catches a plugin's panics; `contain` catches the host's.
            span.in_scope(|| contain("a call", work));
            RUNS.set(None);
            let mut state = self.state.lock();
            state.end(call);
            let waits = !state.jobs.is_empty();
            drop(state);
            if waits {
                // A job that waited for the owner's or wallet's share may run now, on a sleeping thread.
                self.arrived.notify_one();
            }
        }
    }

    /// Waits for the next job; `None` if the thread must end.
    fn next(&self) -> Option<Job> {
        let is_spare = |state: &PoolState| state.threads > self.wanted(state);
        let (mut state, mut end) = (self.state.lock(), Instant::now() + SPARE_TIME);
        loop {
            if let Some(job) = state.take(self) {
                return Some(job);
            }
            if state.closed || is_spare(&state) && Instant::now() >= end {
                state.threads -= 1;
                self.ended.notify_all();
                return None;
            }
            if is_spare(&state) {
                self.arrived.wait_until(&mut state, end);
            } else {
                self.arrived.wait(&mut state);
                end = Instant::now() + SPARE_TIME;
            }
        }
    }
}

#[cfg(test)]
mod tests;
