//! The greeting: requests that identify the node on each new connection before any other request.
//!
//! A different node may listen at the same address later, on another network or for another user. A connection leads
//! to one process, and a process has one chain, so one greeting per connection suffices. A proxy between host and node
//! must not spread the requests of one connection over several nodes.
//!
//! If a proxy without keep-alive closes each connection after one answer, no greeted connection is left for a request.
//! [`Endings`] decides when a request without effects may use an ungreeted one.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

/// After this many greeted connections in a row have ended with the answer, the host assumes that each one does. A
/// stopping node ends one or two.
pub(crate) const ENOUGH: u32 = 3;

/// How long after a greeting requests without effects may go on ungreeted connections.
const VALID: Duration = Duration::from_secs(60);

/// Whether the result of the request with this index identifies the node. If not, the next request is sent.
type Check = Box<dyn Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync>;

/// Requests that identify a node.
pub struct Greeting {
    /// Sent in order.
    pub(crate) requests: Vec<Bytes>,
    /// The error names the node's chain and the expected one.
    pub(crate) check: Check,
    pub(crate) endings: Endings,
    /// Whether the last answer had bitcoind's exact form.
    pub(crate) plain: AtomicBool,
}

impl Greeting {
    /// Sends `requests` in order until `check` returns true for a request's index and the JSON text of its result. If it
    /// returns false for the last request, too, the node counts as the wrong one.
    pub fn new(
        requests: Vec<Bytes>,
        check: impl Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        Self { requests, check: Box::new(check), endings: Endings::default(), plain: AtomicBool::new(true) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// The answer's head announced it.
    Told,
    /// The connection was closed without announcement.
    Untold,
}

/// Whether the last greeted connections all ended after the node's answer.
#[derive(Default)]
pub(crate) struct Endings {
    in_a_row: AtomicU32,
    /// When the last one was greeted, and how it ended.
    last: Mutex<Option<(Instant, Ending)>>,
    /// Whether [`ENOUGH`] connections in a row have ended since one was last kept.
    were_the_rule: AtomicBool,
}

impl Endings {
    /// Records that the node answered a greeting sent at `greeted`, and the connection ended. Returns whether to log
    /// it.
    pub fn note(&self, greeted: Instant, ending: Ending) -> bool {
        *self.last.lock() = Some((greeted, ending));
        self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= ENOUGH && !self.were_the_rule.swap(true, Ordering::Relaxed)
    }

    /// Records that a connection was kept after an answer.
    pub fn note_kept(&self) {
        if self.in_a_row.load(Ordering::Relaxed) > 0 || self.were_the_rule() {
            self.forget();
            self.were_the_rule.store(false, Ordering::Relaxed);
        }
    }

    /// Records a failure: a different node may listen at the address from now on.
    pub fn forget(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// Whether each connection ends after its answer, and the node was greeted recently.
    pub fn are_the_rule(&self) -> bool {
        self.in_a_row.load(Ordering::Relaxed) >= ENOUGH
            && self.last.lock().is_some_and(|(greeted, _)| greeted.elapsed() < VALID)
    }

    /// Whether the last answer's head announced the end.
    pub fn are_told(&self) -> bool {
        self.last.lock().is_some_and(|(_, ending)| ending == Ending::Told)
    }

    pub fn were_the_rule(&self) -> bool {
        self.were_the_rule.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_the_rule_for_a_minute_after_the_last_greeting() {
        let endings = Endings::default();
        let greeted = Instant::now().checked_sub(VALID).unwrap();
        for _ in 0..ENOUGH {
            endings.note(greeted, Ending::Told);
        }
        assert!(!endings.are_the_rule());
        endings.note(Instant::now(), Ending::Told);
        assert!(endings.are_the_rule());
    }
}
