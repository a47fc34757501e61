//! What a node is asked on each new connection before anything else is sent on it.
//!
//! Another node may come to listen at the same address: one of another network, or of another user on the same machine. A
//! connection leads to one process for all its life, and that process to one chain. So it suffices to ask once for each connection,
//! and no call ever reaches a node that was not asked. Between host and node there must be nothing that spreads the requests of one
//! connection over several nodes.
//!
//! Where something between them ends each connection after its answer, as a proxy without keep-alive, nothing can be sent on a
//! connection that was asked. [`Endings`] says when a request without effects may go on one that was not.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

/// After so many greetings in a row whose connections ended with the answer, it is taken for the rule. A node that is stopping ends
/// one or two.
pub(crate) const ENOUGH: u32 = 3;

/// How long after a greeting requests without effects may go on connections that were not asked.
const VALID: Duration = Duration::from_secs(60);

/// Whether the result of a question tells that this is the node; where it does not tell, the next question is asked.
type Check = Box<dyn Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync>;

/// Questions to a node that tell which one it is.
pub struct Greeting {
    /// The bodies of the requests, in the order in which they are asked.
    pub(crate) requests: Vec<Bytes>,
    /// Takes the number of a question and its result; the error says what node this is, and what it should be.
    pub(crate) check: Check,
    pub(crate) endings: Endings,
    /// Whether the last answer to a question was written as bitcoind writes it.
    pub(crate) plain: AtomicBool,
}

impl Greeting {
    /// Asks `requests` in their order until `check`, with the number of a request and the JSON text of its result, is sure that this is
    /// the node. It fails with what the node is instead. A node of which it is not sure after the last one is another.
    pub fn new(
        requests: Vec<Bytes>,
        check: impl Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        Self { requests, check: Box::new(check), endings: Endings::default(), plain: AtomicBool::new(true) }
    }
}

/// How an answer ended its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// Its head said so.
    Told,
    /// The connection was closed behind it.
    Untold,
}

/// Whether each of the last greetings was answered by the node on a connection that ended then.
#[derive(Default)]
pub(crate) struct Endings {
    in_a_row: AtomicU32,
    /// The last of them: when it was sent, and how its connection ended.
    last: Mutex<Option<(Instant, Ending)>>,
    /// Whether they have been the rule since a connection was last kept.
    were_the_rule: AtomicBool,
}

impl Endings {
    /// A greeting of this moment was answered by the node, and its connection has ended. Whether the log is to be told.
    pub fn note(&self, greeted: Instant, ending: Ending) -> bool {
        *self.last.lock() = Some((greeted, ending));
        self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= ENOUGH && !self.were_the_rule.swap(true, Ordering::Relaxed)
    }

    /// A connection was kept after an answer.
    pub fn note_kept(&self) {
        // Nearly always there is nothing to change.
        if self.in_a_row.load(Ordering::Relaxed) > 0 || self.were_the_rule() {
            self.forget();
            self.were_the_rule.store(false, Ordering::Relaxed);
        }
    }

    /// Something failed: what listens there may be another node from now on.
    pub fn forget(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// Whether each connection ends after its answer, and the node was greeted a short time ago.
    pub fn are_the_rule(&self) -> bool {
        self.in_a_row.load(Ordering::Relaxed) >= ENOUGH
            && self.last.lock().is_some_and(|(greeted, _)| greeted.elapsed() < VALID)
    }

    /// Whether the heads of answers said that their connections end.
    pub fn are_told(&self) -> bool {
        self.last.lock().is_some_and(|(_, ending)| ending == Ending::Told)
    }

    /// Whether they have been the rule since a connection was last kept.
    pub fn were_the_rule(&self) -> bool {
        self.were_the_rule.load(Ordering::Relaxed)
    }
}
