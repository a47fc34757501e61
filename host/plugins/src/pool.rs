//! The bounded pool of threads on which plugins' code runs.
//!
//! Each plugin may take a share of the threads and of the queue, so that one that does not end its calls leaves room for
//! the others. A thread that is lost to a call beyond its deadline is replaced until it comes back, and no longer counts as
//! a part of the share.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use outrigger_base::contain::contain;

/// The stack of a call's thread, in bytes: parsing a valid miniscript overflows the default one.
const STACK_BYTES: usize = 8 << 20;

/// The most threads that are started in the place of lost ones.
const MAX_REPLACED: usize = 64;

type Work = Box<dyn FnOnce() + Send>;

struct Job {
    owner: u64,
    work: Work,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs in the queue and on threads, by owner; an owner without any is absent.
    queued: HashMap<u64, usize>,
    running: HashMap<u64, usize>,
    closed: bool,
    /// Threads that have not ended.
    threads: usize,
    /// Threads lost to jobs that do not end, by owner, less those that came back. A thread can come back before it was
    /// missed, so a count may be below 0 for a moment.
    lost: HashMap<u64, i64>,
}

struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
    ended: Condvar,
    depth: usize,
    threads: usize,
}

/// A number of threads behind a bounded queue.
pub struct Pool {
    shared: Arc<Shared>,
}

/// The queue, or the owner's share of it, is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Overloaded;

impl Pool {
    /// Starts `threads` threads; at most `depth` jobs wait.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn start(threads: usize, depth: usize) -> std::io::Result<Self> {
        let threads = threads.max(1);
        let state = Mutex::default();
        let shared = Shared { state, arrived: Condvar::new(), ended: Condvar::new(), depth, threads };
        let pool = Self { shared: Arc::new(shared) };
        for _ in 0..threads {
            pool.add_thread()?;
        }
        Ok(pool)
    }

    fn add_thread(&self) -> std::io::Result<()> {
        let shared = self.shared.clone();
        let mut state = self.shared.lock();
        let builder = std::thread::Builder::new().name(format!("call-{}", state.threads)).stack_size(STACK_BYTES);
        builder.spawn(move || shared.work())?;
        state.threads += 1;
        Ok(())
    }

    /// Queues a job of an owner, unless the queue or the owner's share of it is full, or the pool is stopping.
    pub fn submit(&self, owner: u64, work: impl FnOnce() + Send + 'static) -> Result<(), Overloaded> {
        let mut state = self.shared.lock();
        let own = state.queued.get(&owner).copied().unwrap_or_default();
        if state.closed || state.jobs.len() >= self.shared.depth || own >= share(self.shared.depth) {
            return Err(Overloaded);
        }
        state.queued.insert(owner, own + 1);
        state.jobs.push_back(Job { owner, work: Box::new(work) });
        drop(state);
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// How many jobs wait for a thread.
    pub fn queued(&self) -> usize {
        self.shared.lock().jobs.len()
    }

    /// How many jobs of one owner run at a time.
    pub fn share(&self) -> usize {
        share(self.shared.threads)
    }

    /// A thread is lost to a job of an owner that does not end: another takes its place.
    pub fn replace_lost(&self, owner: u64) {
        let mut state = self.shared.lock();
        state.count_lost(owner, 1);
        let missing = !state.closed && state.threads < self.shared.wanted(&state);
        drop(state);
        if missing && let Err(error) = self.add_thread() {
            tracing::error!(%error, "a lost call thread cannot be replaced");
        }
        // The owner has a thread more to take.
        self.shared.arrived.notify_all();
    }

    /// The job that an owner's lost thread runs is about to end after all: one thread too many ends.
    pub fn found_lost(&self, owner: u64) {
        self.shared.lock().count_lost(owner, -1);
        self.shared.arrived.notify_all();
    }

    /// Finishes what is queued and ends the threads. False when some did not end in time; they are left behind.
    pub fn stop(&self, patience: Duration) -> bool {
        let mut state = self.shared.lock();
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

/// Runs work whose panic must not cost its thread. The SDK catches panics of a plugin; this is for the host's own.
pub fn contained(work: impl FnOnce()) {
    contain("a call", work);
}

/// The part of `whole` that one owner may take: three quarters, but never all where there is more than one.
fn share(whole: usize) -> usize {
    (whole - whole / 4).clamp(1, whole.max(2) - 1)
}

impl State {
    /// Takes the first job whose owner has not used up its share of the threads.
    fn take(&mut self, share: usize) -> Option<Job> {
        let free = |job: &Job| self.taken(job.owner) < share;
        let position = if self.closed { 0 } else { self.jobs.iter().position(free)? };
        let job = self.jobs.remove(position)?;
        less(&mut self.queued, job.owner);
        *self.running.entry(job.owner).or_default() += 1;
        Some(job)
    }
}

impl State {
    /// How much of its share an owner has taken: its threads but for the lost ones.
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

/// Counts one less for an owner.
fn less(counts: &mut HashMap<u64, usize>, owner: u64) {
    if let Some(count) = counts.get_mut(&owner) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&owner);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The counts are whole after every operation, so a panic elsewhere cannot have damaged them.
        self.state.lock()
    }

    /// How many threads there should be: one more for each that is lost.
    fn wanted(&self, state: &State) -> usize {
        let lost: i64 = state.lost.values().sum();
        self.threads + usize::try_from(lost).unwrap_or_default().min(MAX_REPLACED)
    }

    fn work(&self) {
        while let Some(Job { owner, work }) = self.next() {
            contained(work);
            let mut state = self.lock();
            let full = state.taken(owner) >= share(self.threads);
            less(&mut state.running, owner);
            drop(state);
            if full {
                // A job that had to wait for this one's owner may run now, on a thread that sleeps.
                self.arrived.notify_one();
            }
        }
    }

    /// Waits for the next job; none when the thread is to end.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.take(share(self.threads)) {
                return Some(job);
            }
            if state.closed || state.threads > self.wanted(&state) {
                state.threads -= 1;
                self.ended.notify_all();
                return None;
            }
            self.arrived.wait(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{self, Receiver, Sender};

    /// Submits a job of an owner that says when it runs and ends when its gate is dropped.
    fn gated(pool: &Pool, owner: u64, started: &Sender<u64>) -> Sender<()> {
        let (gate, closed): (_, Receiver<()>) = mpsc::channel();
        let started = started.clone();
        let work = move || {
            started.send(owner).unwrap();
            let _ = closed.recv();
        };
        pool.submit(owner, work).unwrap();
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
            panic!("asked for");
        };
        pool.submit(1, work).unwrap();
        entered.recv().unwrap();
        let (done, finished) = mpsc::channel();
        pool.submit(1, move || done.send(7).unwrap()).unwrap();
        assert_eq!(pool.submit(2, || {}), Err(Overloaded));
        release.send(()).unwrap();
        assert_eq!(finished.recv(), Ok(7));
        assert!(pool.stop(Duration::from_secs(60)));
        assert_eq!(pool.submit(1, || {}), Err(Overloaded));
    }

    #[test]
    fn one_owner_leaves_threads_and_places_to_the_others() {
        let pool = Pool::start(4, 8).unwrap();
        let (started, running) = mpsc::channel();
        let gates: Vec<_> = (0..3).map(|_| gated(&pool, 1, &started)).collect();
        assert_eq!((0..3).map(|_| running.recv().unwrap()).collect::<Vec<_>>(), [1, 1, 1]);
        let waiting: Vec<_> = (0..6).map(|_| gated(&pool, 1, &started)).collect();
        assert_eq!(pool.submit(1, || {}), Err(Overloaded), "six of eight places are one owner's share");
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
        pool.replace_lost(1);
        drop(gated(&pool, 2, &started));
        assert_eq!(running.recv(), Ok(2));
        // What is lost is no part of its owner's share, here the only place.
        drop(gated(&pool, 1, &started));
        assert_eq!(running.recv(), Ok(1));
        pool.found_lost(1);
        drop(lost);
        let one_is_left = |state: &State| state.threads == 1;
        let mut state = pool.shared.lock();
        while !one_is_left(&state) {
            pool.shared.ended.wait(&mut state);
        }
        drop(state);
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
