//! The threads that serve connections.
//!
//! Each has a scheduler of its own and keeps the connections that it is given. Threads that share connections wake one
//! another for nearly every request, which costs more than most calls do. The price is that a call that runs on such a
//! thread holds up the connections it shares the thread with, so only calls that are quick may, and a thread that is held
//! up all the same gets no new connection.

use std::cell::OnceCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle, Runtime};

/// The stack of a thread that serves connections, in bytes: calls run on it as on the pool's.
pub const STACK_BYTES: usize = 8 << 20;

/// How long a call may keep a thread until new connections are given to others.
const HELD_UP: Duration = Duration::from_millis(100);

/// The threads, each with its scheduler. They end with [`NetworkThreads::stop`].
#[derive(Debug)]
pub struct NetworkThreads {
    runtimes: Vec<Runtime>,
    seats: Seats,
}

/// Where connections are given to threads. Without threads, the runtime that accepts them serves them.
#[derive(Clone, Debug, Default)]
pub struct Seats(Vec<(Handle, Arc<Desk>)>);

/// What is known of a thread from outside. On a cache line of its own: its thread writes it with every call.
#[derive(Debug)]
#[repr(align(128))]
struct Desk {
    connections: AtomicUsize,
    /// What the clock below counts from.
    epoch: Instant,
    /// When the call that runs on the thread began, in nanoseconds since then; 0 while none does.
    call_since: AtomicU64,
}

thread_local! {
    /// The desk of this thread, where it serves connections.
    static DESK: OnceCell<Arc<Desk>> = const { OnceCell::new() };
}

impl NetworkThreads {
    /// Starts so many threads.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(count: usize) -> io::Result<Self> {
        let (mut runtimes, mut seats) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let desk = Arc::new(Desk::new());
            let own = desk.clone();
            // One that can be relieved: a call that has to wait after all lets another thread take over meanwhile.
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("network")
                .thread_stack_size(STACK_BYTES)
                .on_thread_start(move || DESK.with(|desk| desk.set(own.clone()).unwrap_or_default()))
                .enable_all()
                .build()?;
            seats.push((runtime.handle().clone(), desk));
            runtimes.push(runtime);
        }
        Ok(Self { runtimes, seats: Seats(seats) })
    }

    /// Where connections are given to them.
    pub fn seats(&self) -> Seats {
        self.seats.clone()
    }

    /// Ends the threads; one whose call does not return by then is left behind.
    pub fn stop(self, patience: Duration) {
        let until = Instant::now() + patience;
        for runtime in self.runtimes {
            runtime.shutdown_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

impl Seats {
    /// A place on the thread that has the fewest connections of those that are not held up; none where all are.
    pub(super) fn take(&self) -> Option<Seat> {
        let free = self.0.iter().filter(|(_, desk)| !desk.is_held_up());
        let (handle, desk) = free.min_by_key(|(_, desk)| desk.connections.load(Ordering::Relaxed))?;
        desk.connections.fetch_add(1, Ordering::Relaxed);
        Some(Seat { handle: handle.clone(), desk: desk.clone() })
    }
}

/// A connection's place on a thread.
pub(super) struct Seat {
    pub handle: Handle,
    desk: Arc<Desk>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.desk.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    fn new() -> Self {
        Self { connections: AtomicUsize::new(0), epoch: Instant::now(), call_since: AtomicU64::new(0) }
    }

    fn is_held_up(&self) -> bool {
        let since = self.call_since.load(Ordering::Relaxed);
        since > 0 && self.epoch.elapsed().saturating_sub(Duration::from_nanos(since)) > HELD_UP
    }
}

/// A call that runs on this thread, until the value is dropped.
pub struct CallHere(Arc<Desk>);

impl CallHere {
    /// A call begins here now. None where this thread serves no connections, and is not for such calls.
    pub fn begin(now: Instant) -> Option<Self> {
        let desk = DESK.with(|desk| desk.get().cloned())?;
        let since = now.saturating_duration_since(desk.epoch).as_nanos();
        desk.call_since.store(u64::try_from(since).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
        Some(Self(desk))
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
    use crate::aside::aside;

    #[test]
    fn connections_go_to_the_thread_with_the_fewest_that_is_not_held_up() {
        let threads = NetworkThreads::start(2).expect("threads");
        let seats = threads.seats();
        let at =
            |seat: &Option<Seat>| seats.0.iter().position(|(_, desk)| Arc::ptr_eq(desk, &seat.as_ref().unwrap().desk));
        let (first, second) = (seats.take(), seats.take());
        assert_eq!((at(&first), at(&second)), (Some(0), Some(1)));
        drop(second);
        assert_eq!(at(&seats.take()), Some(1));
        let long_ago = seats.0[1].1.epoch;
        seats.0[1].1.call_since.store(1, Ordering::Relaxed);
        while long_ago.elapsed() <= HELD_UP + Duration::from_millis(1) {}
        assert_eq!(at(&seats.take()), Some(0), "the other is held up");
        seats.0[0].1.call_since.store(1, Ordering::Relaxed);
        assert!(seats.take().is_none());
        threads.stop(Duration::ZERO);
    }

    #[test]
    fn what_takes_long_aside_lets_others_be_served() {
        let threads = NetworkThreads::start(1).expect("threads");
        let handle = threads.seats().take().expect("seat").handle.clone();
        let (tell, hear) = std::sync::mpsc::channel();
        let (told, heard) = std::sync::mpsc::channel();
        handle.clone().spawn(async move {
            let ended = aside(|| {
                // Only this, which the same thread is to serve, can end it.
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
        let seat = threads.seats().take().expect("seat");
        let (desk, handle) = (seat.desk.clone(), seat.handle.clone());
        let (told, heard) = std::sync::mpsc::channel();
        handle.spawn(async move {
            let call = CallHere::begin(Instant::now());
            let during = desk.call_since.load(Ordering::Relaxed);
            drop(call);
            told.send((during, desk.call_since.load(Ordering::Relaxed))).expect("the test waits");
        });
        let (during, after) = heard.recv().expect("told");
        assert!(during > 0 && after == 0, "{during} {after}");
        threads.stop(Duration::from_secs(1));
    }
}
