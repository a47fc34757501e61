//! A plugin's health: counters and faults, over all its instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use outrigger_abi::ErrorKind;
use outrigger_isolate::Crash;
use parking_lot::Mutex;

use crate::calls::UnwantedAnswer;
use crate::metrics::PluginMetrics;

/// A plugin's counters, over all its instances.
#[derive(Default)]
pub struct Health {
    pub calls: AtomicU64,
    pub answers: AtomicU64,
    pub errors: AtomicU64,
    /// Calls and events whose code faulted.
    pub faults: AtomicU64,
    /// Calls that the host answered at their deadline.
    pub timeouts: AtomicU64,
    /// Calls whose client went away before the answer.
    pub gone: AtomicU64,
    /// Answers that came late or twice, or to another instance's call.
    pub stale: AtomicU64,
    /// The stale answers that were a second answer, or to another instance's call.
    pub repeated: AtomicU64,
    /// Threads of the pool that are lost to its calls now. The pool counts them.
    pub(crate) lost: AtomicUsize,
    /// Time inside the plugin's `call`, in nanoseconds.
    nanoseconds: AtomicU64,
    last_fault: Mutex<Option<String>>,
    pub metrics: Arc<PluginMetrics>,
}

/// Describes the status other than 0 of a plugin's function, and what an operator or author can do.
pub fn returned(what: &str, status: i32) -> String {
    let advice = if status == ErrorKind::Internal as i32 {
        "the plugin panicked, failed internally, or its process ended: see its lines in the log, and after a repair call reloadplugin"
    } else {
        "a function of a plugin returns 0, also when it refuses a call; its author can repair this"
    };
    format!("{what} returned status {status}: {advice}")
}

/// How many calls an instance must answer with a result after a fault, until it counts as healthy again.
pub const RECOVERED_AFTER: u32 = 16;

/// Whether an instance has recovered from its last fault.
#[derive(Default)]
pub struct Recovery(AtomicU32);

impl Recovery {
    pub fn fault(&self) {
        self.0.store(RECOVERED_AFTER, Ordering::Relaxed);
    }

    /// Counts a call answered with a result. Returns whether it completes the recovery.
    pub fn succeed(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) == Ok(1)
    }

    pub fn is_pending(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Running,
    /// Its code faulted and has not answered enough calls since: its state may be damaged.
    Unhealthy,
    /// The code of a call has not returned by its deadline.
    Stuck,
    /// Its process has ended and is not restarted.
    Crashed,
}

impl State {
    /// `stuck` is the number of overdue calls that have not returned.
    pub fn of(faulted: bool, stuck: usize) -> Self {
        match (faulted, stuck) {
            (false, 0) => Self::Running,
            (true, 0) => Self::Unhealthy,
            _ => Self::Stuck,
        }
    }

    /// The word in `listplugins`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Unhealthy => "unhealthy",
            Self::Stuck => "stuck",
            Self::Crashed => "crashed",
        }
    }
}

impl Health {
    pub fn spent(&self, time: Duration) {
        self.nanoseconds.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn microseconds(&self) -> u64 {
        self.nanoseconds.load(Ordering::Relaxed) / 1000
    }

    pub fn lost_threads(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts a call that the host answered with an error in the plugin's place; `answered` is the outcome.
    pub fn failed(&self, answered: Result<(), UnwantedAnswer>) {
        match answered {
            Ok(()) => self.errors.fetch_add(1, Ordering::Relaxed),
            Err(UnwantedAnswer::Gone) => self.gone.fetch_add(1, Ordering::Relaxed),
            Err(_) => 0,
        };
    }

    /// Counts a fault of the plugin's code; `what` describes it.
    pub fn fault(&self, what: String) {
        *self.last_fault.lock() = Some(what);
        self.faults.fetch_add(1, Ordering::Release);
    }

    /// Describes a crash of the plugin's process, and what an operator can do.
    pub fn crashed(&self, crash: &Crash) {
        let during = crash.method.as_deref();
        let when = during.map_or("outside of calls".to_owned(), |method| format!("during the call of {method}"));
        let advice = "see its lines in the log, and after a repair call reloadplugin, or startplugin if it is stopped";
        *self.last_fault.lock() = Some(format!("its process ended {when} ({}): {advice}", crash.how));
    }

    /// Forgets the last fault, or sets a former one again. Returns the last one.
    pub fn replace_fault(&self, former: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.last_fault.lock(), former)
    }

    pub fn last_fault(&self) -> Option<String> {
        self.last_fault.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_results_after_the_last_fault_are_a_recovery() {
        let recovery = Recovery::default();
        assert!(!recovery.succeed() && !recovery.is_pending());
        recovery.fault();
        assert!((1..RECOVERED_AFTER).all(|_| !recovery.succeed()) && recovery.is_pending());
        recovery.fault();
        assert!((1..RECOVERED_AFTER).all(|_| !recovery.succeed()));
        assert!(recovery.succeed() && !recovery.is_pending() && !recovery.succeed());
    }

    #[test]
    fn last_fault_says_where_what_happened_and_what_to_do() {
        let panicked = returned("the call of acmetip", 18);
        assert!(panicked.starts_with("the call of acmetip returned status 18: the plugin panicked"), "{panicked}");
        assert!(panicked.ends_with("call reloadplugin"), "{panicked}");
        assert!(returned("an event", -1).starts_with("an event returned status -1: a function of a plugin returns 0"));
    }

    #[test]
    fn stuck_weighs_more_than_a_fault() {
        assert_eq!(
            (State::of(false, 0), State::of(true, 0), State::of(true, 1)),
            (State::Running, State::Unhealthy, State::Stuck)
        );
    }
}
