//! The bounded pool of threads on which plugins' code runs.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The stack of a call's thread, in bytes: parsing a valid miniscript overflows the default one.
const STACK_BYTES: usize = 8 << 20;

type Job = Box<dyn FnOnce() + Send>;

struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
    /// Threads that have not ended.
    threads: usize,
}

struct Shared {
    queue: Mutex<Queue>,
    arrived: Condvar,
    ended: Condvar,
    depth: usize,
}

/// A fixed number of threads behind a bounded queue.
pub struct Pool {
    shared: Arc<Shared>,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Overloaded;

impl Pool {
    /// Starts `threads` threads; at most `depth` jobs wait.
    ///
    /// # Errors
    /// When the system gives no more threads.
    pub fn start(threads: usize, depth: usize) -> std::io::Result<Self> {
        let queue = Mutex::new(Queue { jobs: VecDeque::new(), closed: false, threads: 0 });
        let pool = Self { shared: Arc::new(Shared { queue, arrived: Condvar::new(), ended: Condvar::new(), depth }) };
        for index in 0..threads.max(1) {
            let shared = pool.shared.clone();
            let builder = std::thread::Builder::new().name(format!("call-{index}")).stack_size(STACK_BYTES);
            builder.spawn(move || shared.work())?;
            pool.shared.lock().threads += 1;
        }
        Ok(pool)
    }

    /// Queues a job, unless the queue is full or the pool is stopping.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Overloaded> {
        let mut queue = self.shared.lock();
        if queue.closed || queue.jobs.len() >= self.shared.depth {
            return Err(Overloaded);
        }
        queue.jobs.push_back(Box::new(job));
        drop(queue);
        self.shared.arrived.notify_one();
        Ok(())
    }

    /// Finishes what is queued and ends the threads. False when some did not end in time; they are left behind.
    pub fn stop(&self, patience: Duration) -> bool {
        let mut queue = self.shared.lock();
        queue.closed = true;
        self.shared.arrived.notify_all();
        let deadline = Instant::now() + patience;
        while queue.threads > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.shared.ended.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let mut queue = self.lock();
            let job = loop {
                if let Some(job) = queue.jobs.pop_front() {
                    break job;
                }
                if queue.closed {
                    queue.threads -= 1;
                    self.ended.notify_all();
                    return;
                }
                queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            drop(queue);
            // The SDK catches panics of a plugin; this is for the host's own, which must not cost a thread.
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_err() {
                tracing::error!("a call ended in a panic of the host");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_full_queue_refuses_and_a_panic_costs_no_thread() {
        let pool = Pool::start(1, 1).unwrap();
        let (release, gate) = mpsc::channel::<()>();
        let (started, entered) = mpsc::channel();
        pool.submit(move || {
            started.send(()).unwrap();
            gate.recv().unwrap();
            panic!("asked for");
        })
        .unwrap();
        entered.recv().unwrap();
        let (done, finished) = mpsc::channel();
        pool.submit(move || done.send(7).unwrap()).unwrap();
        assert_eq!(pool.submit(|| {}), Err(Overloaded));
        release.send(()).unwrap();
        assert_eq!(finished.recv(), Ok(7));
        assert!(pool.stop(Duration::from_secs(60)));
        assert_eq!(pool.submit(|| {}), Err(Overloaded));
    }

    #[test]
    fn a_job_that_does_not_end_is_left_behind() {
        let pool = Pool::start(1, 1).unwrap();
        let (release, gate) = mpsc::channel::<()>();
        pool.submit(move || {
            let _ = gate.recv();
        })
        .unwrap();
        assert!(!pool.stop(Duration::from_millis(1)));
        drop(release);
        assert!(pool.stop(Duration::from_secs(60)));
    }
}
