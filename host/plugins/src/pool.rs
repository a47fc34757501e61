//! The bounded pool of threads on which plugins' code runs.
//!
//! Each plugin may take a share of the threads and of the queue, so that a plugin with stuck calls leaves room for
//! others. A thread that is lost to an overdue call is replaced until it returns, and does not count against the share.
//! A wallet may take half of the threads, and wallets take turns, so that many calls of a large wallet do not delay
//! those of others.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use outrigger_base::contain::contain;
use tracing::Span;

/// The stack of a call's thread, in bytes: parsing a valid miniscript overflows the default one.
const STACK_BYTES: usize = 8 << 20;

/// The most threads that are started in place of lost ones.
const MAX_REPLACED: usize = 64;

/// The most threads that wait for calls of their plugins. The pool starts another thread in place of each.
const MAX_LENT: usize = 512;

/// How long a surplus thread waits for work before it ends: plugins that call others need it again soon, and starting a thread takes
/// longer than most calls.
const SPARE_TIME: Duration = Duration::from_secs(1);

thread_local! {
    /// The pool of this thread, and the owner and number of the call that runs on it.
    static RUNS: RefCell<Option<(Arc<SharedPool>, u64, u64)>> = const { RefCell::new(None) };
}

type Work = Box<dyn FnOnce() + Send>;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claimant {
    pub owner: u64,
    /// The call's unique number.
    pub call: u64,
    pub wallet: Option<Arc<str>>,
}

struct Job {
    claimant: Claimant,
    /// Its position in the order of arrivals and turns.
    arrival: u64,
    /// The log span of the thread that submitted it.
    span: Span,
    work: Work,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    /// Jobs in the queue and on threads, by owner; owners without jobs are absent.
    queued: HashMap<u64, usize>,
    running: HashMap<u64, usize>,
    closed: bool,
    /// Threads that have not ended.
    threads: usize,
    /// Threads lost to stuck jobs, by owner. A thread can return before it is counted as lost, so a count may be below
    /// 0 for a moment.
    lost: HashMap<u64, i64>,
    /// The calls on threads with their wallets, except lost ones.
    calls: HashMap<u64, Arc<str>>,
    /// How many threads wait for calls of their plugins, by owner; owners without such threads are absent.
    lent: HashMap<u64, usize>,
    /// How many calls each wallet has on threads; wallets without calls are absent.
    busy_wallets: HashMap<Arc<str>, usize>,
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

    /// Queues an owner's job, unless the queue or the owner's share of it is full, or the pool is stopping.
    pub fn submit(&self, claimant: Claimant, work: impl FnOnce() + Send + 'static) -> Result<(), Overloaded> {
        let (owner, span) = (claimant.owner, Span::current());
        let mut state = self.shared.state.lock();
        let own = state.queued.get(&owner).copied().unwrap_or_default();
        if state.closed || state.jobs.len() >= self.shared.depth || own >= share(self.shared.depth) {
            return Err(Overloaded);
        }
        state.queued.insert(owner, own + 1);
        state.order += 1;
        let arrival = state.order;
        state.jobs.push_back(Job { claimant, arrival, span, work: Box::new(work) });
        drop(state);
        self.shared.arrived.notify_one();
        Ok(())
    }

    pub fn queued(&self) -> usize {
        self.shared.state.lock().jobs.len()
    }

    pub fn share(&self) -> usize {
        share(self.shared.threads)
    }

    /// Starts another thread in place of a thread lost to a stuck call.
    pub fn replace_lost(&self, owner: u64, call: u64) {
        let mut state = self.shared.state.lock();
        state.count_lost(owner, 1);
        state.leave_wallet(call);
        let missing = !state.closed && state.threads < self.shared.wanted(&state);
        // Usually the queue is empty, and no thread need be woken.
        let waits = !state.jobs.is_empty();
        drop(state);
        if missing && let Err(error) = self.add_thread() {
            tracing::error!(%error, "a lost call thread cannot be replaced");
        }
        if waits {
            // The owner and the wallet may each use one more thread now.
            self.shared.arrived.notify_all();
        }
    }

    /// Called when a lost thread's job is about to end after all. A surplus thread ends then.
    pub fn found_lost(&self, owner: u64) {
        self.shared.state.lock().count_lost(owner, -1);
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
    let Some((shared, owner, call)) = RUNS.with_borrow(Clone::clone) else { return Ok(wait()) };
    let mut state = shared.state.lock();
    let own = state.lent.get(&owner).copied().unwrap_or_default();
    if state.lent.values().sum::<usize>() >= MAX_LENT || own >= share(MAX_LENT) {
        return Err(Overloaded);
    }
    state.lent.insert(owner, own + 1);
    drop(state);
    let pool = Pool { shared };
    pool.replace_lost(owner, call);
    let _lent = Lent { pool, owner };
    Ok(wait())
}

/// A waiting thread, in whose place another runs until this is dropped.
struct Lent {
    pool: Pool,
    owner: u64,
}

impl Drop for Lent {
    fn drop(&mut self) {
        less(&mut self.pool.shared.state.lock().lent, &self.owner);
        self.pool.found_lost(self.owner);
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
    /// Takes the longest waiting job among the owners and wallets within their shares. A job waits since its arrival, or
    /// since its wallet's last turn if that was later.
    fn take(&mut self, threads: usize) -> Option<Job> {
        let position = if self.closed { 0 } else { self.position(threads)? };
        let job = self.jobs.remove(position)?;
        let Claimant { owner, call, wallet } = &job.claimant;
        less(&mut self.queued, owner);
        *self.running.entry(*owner).or_default() += 1;
        if let Some(wallet) = wallet {
            self.order += 1;
            self.turns.insert(wallet.clone(), self.order);
            *self.busy_wallets.entry(wallet.clone()).or_default() += 1;
            self.calls.insert(*call, wallet.clone());
        }
        Some(job)
    }

    fn position(&self, threads: usize) -> Option<usize> {
        let is_free = |job: &Job| {
            let of_wallet = job.claimant.wallet.as_ref().and_then(|wallet| self.busy_wallets.get(wallet));
            self.taken(job.claimant.owner) < share(threads)
                && of_wallet.copied().unwrap_or_default() < wallet_share(threads)
        };
        let waits_since = |job: &Job| {
            let last_turn = job.claimant.wallet.as_ref().and_then(|wallet| self.turns.get(wallet));
            last_turn.map_or(job.arrival, |turn| job.arrival.max(*turn))
        };
        let free = self.jobs.iter().enumerate().filter(|(_, job)| is_free(job));
        free.min_by_key(|(_, job)| waits_since(job)).map(|(position, _)| position)
    }

    /// Stops counting a call against its wallet's share.
    fn leave_wallet(&mut self, call: u64) {
        let Some(wallet) = self.calls.remove(&call) else { return };
        less(&mut self.busy_wallets, &wallet);
        // A wallet without calls is removed, so that the map stays bounded.
        if !self.busy_wallets.contains_key(&wallet)
            && !self.jobs.iter().any(|job| job.claimant.wallet.as_ref() == Some(&wallet))
        {
            self.turns.remove(&wallet);
        }
    }

    /// How many threads count against an owner's share.
    fn taken(&self, owner: u64) -> usize {
        let running = self.running.get(&owner).copied().unwrap_or_default();
        let lost = self.lost.get(&owner).copied().unwrap_or_default();
        running.saturating_sub(usize::try_from(lost).unwrap_or_default())
    }

    fn count_lost(&mut self, owner: u64, change: i64) {
        let lost = self.lost.entry(owner).or_default();
        *lost += change;
        if *lost == 0 {
            self.lost.remove(&owner);
        }
    }
}

/// Subtracts one; zero removes the entry.
fn less<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl SharedPool {
    /// The target number of threads: one more for each lost or waiting one, up to the limits.
    fn wanted(&self, state: &PoolState) -> usize {
        let lost: i64 = state.lost.values().sum();
        let lent: usize = state.lent.values().sum();
        let stuck = usize::try_from(lost).unwrap_or_default().saturating_sub(lent);
        self.threads + stuck.min(MAX_REPLACED) + lent
    }

    fn work(self: &Arc<Self>) {
        while let Some(Job { claimant: Claimant { owner, call, wallet }, span, work, .. }) = self.next() {
            RUNS.set(Some((self.clone(), owner, call)));
            // The SDK catches a plugin's panics; `contain` catches the host's.
            span.in_scope(|| contain("a call", work));
            RUNS.set(None);
            let mut state = self.state.lock();
            let of_wallet = wallet.and_then(|wallet| state.busy_wallets.get(&wallet).copied()).unwrap_or_default();
            let full = state.taken(owner) >= share(self.threads) || of_wallet >= wallet_share(self.threads);
            less(&mut state.running, &owner);
            state.leave_wallet(call);
            drop(state);
            if full {
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
            let has_room = state.closed || state.running.values().sum::<usize>() < self.wanted(&state);
            if has_room && let Some(job) = state.take(self.threads) {
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
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{self, Receiver, Sender};

    /// An owner's call about this wallet.
    fn call(owner: u64, wallet: Option<&str>) -> Claimant {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Claimant { owner, call: NEXT.fetch_add(1, Ordering::Relaxed), wallet: wallet.map(Arc::from) }
    }

    /// Submits a job that reports its start and ends when its gate is dropped.
    fn gated(pool: &Pool, owner: u64, started: &Sender<u64>) -> Sender<()> {
        let (gate, closed): (_, Receiver<()>) = mpsc::channel();
        let started = started.clone();
        let work = move || {
            started.send(owner).unwrap();
            let _ = closed.recv();
        };
        pool.submit(call(owner, None), work).unwrap();
        gate
    }

    #[test]
    fn a_full_queue_refuses_and_a_panic_costs_no_thread() {
        let pool = Pool::start(1, 1).unwrap();
        let (release, gate) = mpsc::channel::<()>();
        let (started, entered) = mpsc::channel();
        let work = move || {
            started.send(()).unwrap();
            gate.recv().unwrap();
            panic!("requested by the test");
        };
        pool.submit(call(1, None), work).unwrap();
        entered.recv().unwrap();
        let (done, finished) = mpsc::channel();
        pool.submit(call(1, None), move || done.send(7).unwrap()).unwrap();
        assert_eq!(pool.submit(call(2, None), || {}), Err(Overloaded));
        release.send(()).unwrap();
        assert_eq!(finished.recv(), Ok(7));
        assert!(pool.stop(Duration::from_secs(60)));
        assert_eq!(pool.submit(call(1, None), || {}), Err(Overloaded));
    }

    #[test]
    fn one_owner_leaves_threads_and_places_to_the_others() {
        let pool = Pool::start(4, 8).unwrap();
        let (started, running) = mpsc::channel();
        let gates: Vec<_> = (0..3).map(|_| gated(&pool, 1, &started)).collect();
        assert_eq!((0..3).map(|_| running.recv().unwrap()).collect::<Vec<_>>(), [1, 1, 1]);
        let waiting: Vec<_> = (0..6).map(|_| gated(&pool, 1, &started)).collect();
        assert_eq!(pool.submit(call(1, None), || {}), Err(Overloaded), "six of eight places are one owner's share");
        drop(gated(&pool, 2, &started));
        assert_eq!(running.recv(), Ok(2), "the fourth thread and the seventh place are another's");
        drop((gates, waiting));
        assert_eq!((0..6).map(|_| running.recv().unwrap()).collect::<Vec<_>>(), [1; 6]);
        assert!(pool.stop(Duration::from_secs(60)));
    }

    #[test]
    fn a_lost_thread_is_replaced_until_it_comes_back() {
        let pool = Pool::start(1, 8).unwrap();
        let (started, running) = mpsc::channel();
        let lost = gated(&pool, 1, &started);
        assert_eq!(running.recv(), Ok(1));
        pool.replace_lost(1, u64::MAX);
        drop(gated(&pool, 2, &started));
        assert_eq!(running.recv(), Ok(2));
        // A lost thread does not count against its owner's share, here of one.
        drop(gated(&pool, 1, &started));
        assert_eq!(running.recv(), Ok(1));
        pool.found_lost(1);
        drop(lost);
        let mut state = pool.shared.state.lock();
        while state.threads != 1 {
            pool.shared.ended.wait(&mut state);
        }
        drop(state);
        assert!(pool.stop(Duration::from_secs(60)));
    }

    #[test]
    fn one_wallet_takes_half_of_the_threads_and_wallets_take_turns() {
        let pool = Pool::start(4, 64).unwrap();
        let (started, running) = mpsc::channel();
        let submit = |wallet: &'static str| {
            let (gate, closed): (_, Receiver<()>) = mpsc::channel();
            let started = started.clone();
            let claimant = call(wallet.len() as u64, Some(wallet));
            let number = claimant.call;
            let work = move || {
                started.send(wallet).unwrap();
                let _ = closed.recv();
            };
            pool.submit(claimant, work).unwrap();
            (gate, number)
        };
        let mut large: Vec<_> = (0..4).map(|_| submit("large")).collect();
        assert_eq!([running.recv(), running.recv()], [Ok("large"); 2]);
        // The other half is for others, also for later ones.
        let one = submit("one");
        assert_eq!(running.recv(), Ok("one"));
        let another = submit("ones");
        assert_eq!(running.recv(), Ok("ones"));
        // All threads are taken. The next free ones take the calls that have waited longest, since their arrival or
        // since their wallet's last turn.
        let later: Vec<_> = ["one", "large", "fresh"].map(submit).into();
        drop(another);
        assert_eq!(running.recv(), Ok("one"));
        drop(large.remove(0));
        assert_eq!(running.recv(), Ok("large"));
        // A lost call does not count against its wallet's share.
        pool.replace_lost(5, large[0].1);
        assert_eq!(running.recv(), Ok("fresh"));
        drop(one);
        assert_eq!(running.recv(), Ok("large"));
        drop((large, later));
        assert_eq!(running.recv(), Ok("large"));
        assert!(pool.stop(Duration::from_secs(60)));
    }

    #[test]
    fn pool_stop_leaves_a_job_behind_that_does_not_end() {
        let pool = Pool::start(1, 1).unwrap();
        let (started, running) = mpsc::channel();
        let gate = gated(&pool, 1, &started);
        running.recv().unwrap();
        assert!(!pool.stop(Duration::from_millis(1)));
        drop(gate);
        assert!(pool.stop(Duration::from_secs(60)));
    }

    #[test]
    fn pool_shares_leave_threads_to_others_where_there_are_several() {
        assert_eq!([1, 2, 3, 4, 8, 256].map(share), [1, 1, 2, 3, 6, 192]);
    }
}
