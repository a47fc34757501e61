//! The greeting: requests that identify the node on each new connection before any other request.
//!
//! Another node may listen at the same address later: one of another network, or of another user on the same machine. A
//! connection leads to one process for all its life, and a process has one chain. So one greeting per connection
//! suffices, and no call reaches a node that was not greeted. A proxy between host and node must not spread the
//! requests of one connection over several nodes.
//!
//! If a proxy without keep-alive ends each connection after its answer, nothing can be sent on a greeted connection.
//! [`Endings`] decides when a request without effects may be sent on another one.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

/// How many greeted connections in a row must end with the answer to make it the rule. A stopping node ends one or two.
pub(crate) const ENOUGH: u32 = 3;

/// How long after a greeting requests without effects may be sent on connections without one.
const VALID: Duration = Duration::from_secs(60);

/// Whether the result identifies the node. If it does not decide, the next request is sent.
type Check = Box<dyn Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync>;

/// Requests that identify a node.
pub struct Greeting {
    /// The bodies of the requests, in order.
    pub(crate) requests: Vec<Bytes>,
    /// Gets the index of a request and its result. The error says what node this is, and what it should be.
    pub(crate) check: Check,
    pub(crate) endings: Endings,
    /// Whether the last answer was in bitcoind's exact form.
    pub(crate) plain: AtomicBool,
}

impl Greeting {
    /// Sends `requests` in order until `check`, which gets the index of a request and the JSON text of its result, has
    /// identified the node. Its error says what the node is instead. A node that the last request does not identify is
    /// another one.
    pub fn new(
        requests: Vec<Bytes>,
        check: impl Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        Self { requests, check: Box::new(check), endings: Endings::default(), plain: AtomicBool::new(true) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Its head announced it.
    Told,
    /// The connection was closed after it.
    Untold,
}

/// Whether the last greeted connections all ended after the node's answer.
#[derive(Default)]
pub(crate) struct Endings {
    in_a_row: AtomicU32,
    /// The last one: when it was greeted, and how it ended.
    last: Mutex<Option<(Instant, Ending)>>,
    /// Whether this has been the rule since a connection was last kept.
    were_the_rule: AtomicBool,
}

impl Endings {
    /// A greeting of this moment was answered by the node, and its connection has ended. Returns whether to log it.
    pub fn note(&self, greeted: Instant, ending: Ending) -> bool {
        *self.last.lock() = Some((greeted, ending));
        self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= ENOUGH && !self.were_the_rule.swap(true, Ordering::Relaxed)
    }

    /// A connection was kept after an answer.
    pub fn note_kept(&self) {
        // Usually there is nothing to change.
        if self.in_a_row.load(Ordering::Relaxed) > 0 || self.were_the_rule() {
            self.forget();
            self.were_the_rule.store(false, Ordering::Relaxed);
        }
    }

    /// Something failed: another node may listen there from now on.
    pub fn forget(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// Whether each connection ends after its answer, and the node was greeted recently.
    pub fn are_the_rule(&self) -> bool {
        self.in_a_row.load(Ordering::Relaxed) >= ENOUGH
            && self.last.lock().is_some_and(|(greeted, _)| greeted.elapsed() < VALID)
    }

    /// Whether the heads of answers announced the ends.
    pub fn are_told(&self) -> bool {
        self.last.lock().is_some_and(|(_, ending)| ending == Ending::Told)
    }

    pub fn were_the_rule(&self) -> bool {
        self.were_the_rule.load(Ordering::Relaxed)
    }
}
