//! Calls that wait until something happens or their time is over.
//!
//! A waiting call holds no thread. The first one starts a thread, which looks again when a timeout is over, and each second, because
//! an event may be lost. The plugin sends no reply and calls no service under the lock.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outrigger_sdk::service::log::Level;
use outrigger_sdk::{Host, Reply, RpcError};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A call that waits.
pub struct Waiter<W> {
    /// Its reply.
    pub reply: Reply,
    /// What it waits for.
    pub wanted: W,
    /// When its time is over; none without a timeout.
    pub deadline: Option<Instant>,
}

struct Calls<W> {
    /// By the tokens of their replies.
    waiting: HashMap<u64, Waiter<W>>,
    /// Whether calls get their answers at once, because the host stops or another instance takes over.
    closed: bool,
    /// Whether the thread has to end.
    ended: bool,
    thread: Option<JoinHandle<()>>,
}

/// The waiting calls of a plugin.
pub struct Waits<W> {
    host: Host,
    calls: Mutex<Calls<W>>,
    changed: Condvar,
}

impl<W: Send + 'static> Waits<W> {
    /// No call waits yet.
    pub fn new(host: Host) -> Arc<Self> {
        let calls = Calls { waiting: HashMap::new(), closed: false, ended: false, thread: None };
        Arc::new(Self { host, calls: Mutex::new(calls), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Calls<W>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a call. The thread calls `look`, which takes and answers the calls that are due. The caller has to look once itself, since
    /// the call may have been met before it was kept. Returns whether calls no longer wait ([`Waits::close`]).
    pub fn keep(self: &Arc<Self>, waiter: Waiter<W>, look: impl Fn() + Send + 'static) -> bool {
        let mut calls = self.lock();
        calls.waiting.insert(waiter.reply.token(), waiter);
        if calls.thread.is_none() && !calls.closed {
            let waits = self.clone();
            match std::thread::Builder::new().name("waits".into()).spawn(move || waits.run(&look)) {
                Ok(thread) => calls.thread = Some(thread),
                Err(error) => self.host.log(Level::Warn, format!("calls cannot wait: {error}")),
            }
        }
        self.changed.notify_one();
        calls.closed
    }

    /// Takes a call, if it still waits.
    pub fn take(&self, token: u64) -> Option<Waiter<W>> {
        self.lock().waiting.remove(&token)
    }

    /// Takes the calls that `is_met` names, those whose time is over, and all after [`Waits::close`].
    pub fn take_due(&self, is_met: impl Fn(&W) -> bool) -> Vec<Waiter<W>> {
        let now = Instant::now();
        let mut calls = self.lock();
        let closed = calls.closed;
        let is_due = |_: &u64, waiter: &mut Waiter<W>| {
            closed || waiter.deadline.is_some_and(|deadline| deadline <= now) || is_met(&waiter.wanted)
        };
        calls.waiting.extract_if(is_due).map(|(_, waiter)| waiter).collect()
    }

    /// Calls `see` with what each call waits for. It must call no service.
    pub fn each(&self, see: impl FnMut(&W)) {
        self.lock().waiting.values().map(|waiter| &waiter.wanted).for_each(see);
    }

    /// Drops a call after its client has left.
    pub fn cancel(&self, token: u64) {
        // Dropping the reply sends it, so the lock must be free by then.
        drop(self.take(token));
    }

    /// Lets no more calls wait. The caller looks once more, and all are due.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Ends the thread.
    pub fn end(&self) {
        let thread = {
            let mut calls = self.lock();
            calls.ended = true;
            calls.thread.take()
        };
        self.changed.notify_all();
        if let Some(thread) = thread {
            // The SDK's hook has logged any panic of the thread.
            let _ = thread.join();
        }
    }

    fn run(&self, look: &dyn Fn()) {
        let mut calls = self.lock();
        while !calls.ended {
            if calls.waiting.is_empty() {
                calls = self.changed.wait(calls).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let first = calls.waiting.values().filter_map(|waiter| waiter.deadline).min();
            let pause =
                first.map_or(POLL_INTERVAL, |first| first.saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
            if !pause.is_zero() {
                calls = self.changed.wait_timeout(calls, pause).unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(calls);
            // The thread has to survive a panic, because no other thread watches the timeouts.
            if catch_unwind(AssertUnwindSafe(look)).is_err() {
                self.host.log(Level::Error, "checking the calls that wait panicked");
            }
            calls = self.lock();
        }
    }
}

/// The end of a timeout in milliseconds; none for 0, or if the clock cannot represent it.
///
/// # Errors
/// -1 for a negative timeout.
pub fn deadline(timeout: i32) -> Result<Option<Instant>, RpcError> {
    let timeout = u64::try_from(timeout).map_err(|_| RpcError::misc("Negative timeout"))?;
    let deadline = Instant::now().checked_add(Duration::from_millis(timeout));
    Ok(deadline.filter(|_| timeout > 0))
}
