//! The threads that serve connections.
//!
//! Each has its own tokio runtime and keeps its connections. Threads that share connections wake each other for nearly
//! every request, which costs more than most calls. The drawback is that a call on a thread blocks the thread's other
//! connections, so only inline methods run there, and a blocked thread gets no new connection.

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};

/// The stack of a network thread, in bytes: as large as the pool's, since calls run on both.
pub const STACK_BYTES: usize = 8 << 20;

/// How long a call runs until its thread counts as blocked and gets no new connections.
const BLOCKED_AFTER: Duration = Duration::from_millis(100);

/// The threads, each with its runtime. They end with [`NetworkThreads::stop`].
#[derive(Debug)]
pub struct NetworkThreads {
    runtimes: Vec<Runtime>,
    pub workers: Workers,
}

/// Assigns connections to threads. Without threads, the accepting runtime serves them.
#[derive(Clone, Debug, Default)]
pub struct Workers(Vec<(Handle, Arc<WorkerStats>)>);

/// A thread's state for the scheduler. On its own cache line, since the thread writes it with every call.
#[derive(Debug)]
#[repr(align(128))]
struct WorkerStats {
    connections: AtomicUsize,
    /// The origin of `call_since`.
    epoch: Instant,
    /// When the thread's current call began, in nanoseconds since `epoch`; 0 while none runs.
    call_since: AtomicU64,
}

thread_local! {
    /// The stats of this thread, if it serves connections.
    static WORKER: OnceCell<Arc<WorkerStats>> = const { OnceCell::new() };
}

impl NetworkThreads {
    pub fn start(count: usize) -> io::Result<Self> {
        let (mut runtimes, mut workers) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let (connections, call_since) = (AtomicUsize::new(0), AtomicU64::new(0));
            let stats = Arc::new(WorkerStats { connections, epoch: Instant::now(), call_since });
            let own = stats.clone();
            // Multi-threaded, so that `block_in_place` can hand the other tasks to another thread.
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("network")
                .thread_stack_size(STACK_BYTES)
                .on_thread_start(move || WORKER.with(|stats| stats.set(own.clone()).unwrap_or_default()))
                .enable_all()
                .build()?;
            workers.push((runtime.handle().clone(), stats));
            runtimes.push(runtime);
        }
        Ok(Self { runtimes, workers: Workers(workers) })
    }

    /// Ends the threads. A thread whose call does not return in time is left running.
    pub fn stop(self, patience: Duration) {
        let until = Instant::now() + patience;
        for runtime in self.runtimes {
            runtime.shutdown_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

impl Workers {
    /// A slot on the least loaded thread that is not blocked; `None` if all are blocked.
    pub(super) fn take(&self) -> Option<WorkerSlot> {
        let free = self.0.iter().filter(|(_, stats)| !stats.is_blocked());
        let (handle, stats) = free.min_by_key(|(_, stats)| stats.connections.load(Ordering::Relaxed))?;
        stats.connections.fetch_add(1, Ordering::Relaxed);
        Some(WorkerSlot { handle: handle.clone(), stats: stats.clone() })
    }
}

pub(super) struct WorkerSlot {
    pub handle: Handle,
    stats: Arc<WorkerStats>,
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        self.stats.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WorkerStats {
    fn is_blocked(&self) -> bool {
        let since = self.call_since.load(Ordering::Relaxed);
        since > 0 && self.epoch.elapsed().saturating_sub(Duration::from_nanos(since)) > BLOCKED_AFTER
    }
}

/// A call that runs on this thread, until dropped.
pub struct CallHere(Arc<WorkerStats>);

impl CallHere {
    /// Whether this thread serves connections.
    pub fn is_possible() -> bool {
        WORKER.with(|stats| stats.get().is_some())
    }

    /// Marks the start of a call. `None` on a thread that serves no connections.
    pub fn begin(now: Instant) -> Option<Self> {
        let stats = WORKER.with(|stats| stats.get().cloned())?;
        let since = now.saturating_duration_since(stats.epoch).as_nanos();
        stats.call_since.store(u64::try_from(since).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
        Some(Self(stats))
    }
}

impl Drop for CallHere {
    fn drop(&mut self) {
        self.0.call_since.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_base::offload::offload_blocking;

    #[test]
    fn connections_go_to_the_thread_with_the_fewest_that_is_not_held_up() {
        let threads = NetworkThreads::start(2).expect("threads");
        let workers = threads.workers.clone();
        let at = |slot: &Option<WorkerSlot>| {
            workers.0.iter().position(|(_, stats)| Arc::ptr_eq(stats, &slot.as_ref().unwrap().stats))
        };
        let (first, second) = (workers.take(), workers.take());
        assert_eq!((at(&first), at(&second)), (Some(0), Some(1)));
        drop(second);
        assert_eq!(at(&workers.take()), Some(1));
        let long_ago = workers.0[1].1.epoch;
        workers.0[1].1.call_since.store(1, Ordering::Relaxed);
        while long_ago.elapsed() <= BLOCKED_AFTER + Duration::from_millis(1) {}
        assert_eq!(at(&workers.take()), Some(0), "the other is blocked");
        workers.0[0].1.call_since.store(1, Ordering::Relaxed);
        assert!(workers.take().is_none());
        threads.stop(Duration::ZERO);
    }

    #[test]
    fn threads_serve_others_while_long_work_is_aside() {
        let threads = NetworkThreads::start(1).expect("threads");
        let handle = threads.workers.take().expect("slot").handle.clone();
        let (tell, hear) = std::sync::mpsc::channel();
        let (told, heard) = std::sync::mpsc::channel();
        handle.clone().spawn(async move {
            let ended = offload_blocking(|| {
                // Only this task, which the same thread would run, can end it.
                handle.spawn(async move { tell.send(()).expect("the other waits") });
                hear.recv().is_ok()
            });
            told.send(ended).expect("the test waits");
        });
        assert!(heard.recv_timeout(Duration::from_secs(60)).expect("told"));
        threads.stop(Duration::from_secs(1));
    }

    #[test]
    fn a_call_knows_whether_it_runs_on_such_a_thread() {
        assert!(CallHere::begin(Instant::now()).is_none());
        let threads = NetworkThreads::start(1).expect("threads");
        let slot = threads.workers.take().expect("slot");
        let (stats, handle) = (slot.stats.clone(), slot.handle.clone());
        let (told, heard) = std::sync::mpsc::channel();
        handle.spawn(async move {
            let call = CallHere::begin(Instant::now());
            let during = stats.call_since.load(Ordering::Relaxed);
            drop(call);
            told.send((during, stats.call_since.load(Ordering::Relaxed))).expect("the test waits");
        });
        let (during, after) = heard.recv().expect("told");
        assert!(during > 0 && after == 0, "{during} {after}");
        threads.stop(Duration::from_secs(1));
    }
}
