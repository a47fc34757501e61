//! Calls that wait for an event or a timeout.
//!
//! A waiting call occupies no thread. The first one starts a shared thread, which checks all calls at each timeout, and every second in
//! case an event was lost. The plugin neither replies nor calls a service while it holds the lock.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use outrigger_sdk::service::log::Level;
use outrigger_sdk::{Host, Reply, RpcError};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A waiting call.
pub struct Waiter<W> {
    /// Its reply.
    pub reply: Reply,
    /// What it waits for.
    pub wanted: W,
    /// When it times out; none without a timeout.
    pub deadline: Option<Instant>,
}

struct Calls<W> {
    /// The waiting calls by the tokens of their replies.
    waiting: HashMap<u64, Waiter<W>>,
    /// Whether all calls are due at once, because the host stops or another instance takes over.
    closed: bool,
    /// Whether the thread must end.
    ended: bool,
    thread: Option<JoinHandle<()>>,
}

/// The waiting calls of a plugin.
pub struct Waits<W, S = ()> {
    /// The plugin's services.
    pub host: Host,
    /// Other data for answers.
    pub state: S,
    look: fn(&Self),
    calls: Mutex<Calls<W>>,
    changed: Condvar,
}

impl<W: Send + 'static, S: Send + Sync + 'static> Waits<W, S> {
    /// Without waiting calls. `look` takes and answers the calls that are due.
    pub fn new(host: Host, state: S, look: fn(&Self)) -> Arc<Self> {
        let calls = Calls { waiting: HashMap::new(), closed: false, ended: false, thread: None };
        Arc::new(Self { host, state, look, calls: Mutex::new(calls), changed: Condvar::new() })
    }

    /// Whether [`Waits::close`] was called, so that all calls are due.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Takes and answers the calls that are due, by the function given to [`Waits::new`].
    pub fn look(&self) {
        (self.look)(self);
    }

    fn lock(&self) -> MutexGuard<'_, Calls<W>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call. The caller must then call [`Waits::look`], or take the call and answer it if it is due: it may have become due before it
    /// was added. Returns whether calls can no longer wait ([`Waits::close`]).
    pub fn keep(self: &Arc<Self>, waiter: Waiter<W>) -> bool {
        let mut calls = self.lock();
        let has_deadline = waiter.deadline.is_some();
        calls.waiting.insert(waiter.reply.token(), waiter);
        if calls.thread.is_none() && !calls.closed {
            let waits = self.clone();
            match std::thread::Builder::new().name("waits".into()).spawn(move || waits.run()) {
                Ok(thread) => calls.thread = Some(thread),
                Err(error) => self.host.log(Level::Warn, format!("cannot start the thread for waiting calls: {error}")),
            }
        }
        // While other calls wait, the thread wakes within a second.
        if calls.waiting.len() == 1 || has_deadline {
            self.changed.notify_one();
        }
        calls.closed
    }

    /// Removes and returns a call; `None` if it no longer waits.
    pub fn take(&self, token: u64) -> Option<Waiter<W>> {
        self.lock().waiting.remove(&token)
    }

    /// Removes and returns the due calls: if `is_met` is true, if they timed out, or all after [`Waits::close`].
    pub fn take_due(&self, is_met: impl Fn(&W) -> bool) -> Vec<Waiter<W>> {
        let now = Instant::now();
        let mut calls = self.lock();
        let closed = calls.closed;
        let is_due = |_: &u64, waiter: &mut Waiter<W>| {
            closed || waiter.deadline.is_some_and(|deadline| deadline <= now) || is_met(&waiter.wanted)
        };
        calls.waiting.extract_if(is_due).map(|(_, waiter)| waiter).collect()
    }

    /// Calls `see` with the `wanted` of each call, under the lock. `see` must not call a service.
    pub fn each(&self, see: impl FnMut(&W)) {
        self.lock().waiting.values().map(|waiter| &waiter.wanted).for_each(see);
    }

    /// Drops a call after its client has left.
    pub fn cancel(&self, token: u64) {
        // Dropping the reply sends it, so the lock must be released first.
        drop(self.take(token));
    }

    /// Makes all calls due, also later ones, and answers them.
    pub fn close(&self) {
        self.lock().closed = true;
        self.look();
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

    fn run(&self) {
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
            // The thread must survive a panic, because no other thread checks the timeouts.
            if catch_unwind(AssertUnwindSafe(|| self.look())).is_err() {
                self.host.log(Level::Error, "the check of the waiting calls panicked");
            }
            calls = self.lock();
        }
    }
}

/// The deadline for a timeout in milliseconds from now; none for 0, or if the clock cannot represent it.
///
/// # Errors
/// -1 for a negative timeout.
pub fn deadline(timeout: i32) -> Result<Option<Instant>, RpcError> {
    let timeout = u64::try_from(timeout).map_err(|_| RpcError::misc("Negative timeout"))?;
    let deadline = Instant::now().checked_add(Duration::from_millis(timeout));
    Ok(deadline.filter(|_| timeout > 0))
}
