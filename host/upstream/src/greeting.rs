//! The greeting: requests that identify the node on each new connection before any other request.
//!
//! Another node may listen at the same address later, of another network or another user. A connection leads to one
//! process, and a process has one chain, so one greeting per connection suffices. A proxy between host and node must
//! not spread the requests of one connection over several nodes.

use std::sync::atomic::AtomicBool;

use bytes::Bytes;

/// Whether the result of the request with this index identifies the node. If not, the next request is sent.
type Check = Box<dyn Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync>;

/// Requests that identify a node.
pub struct Greeting {
    /// Sent in order.
    pub(crate) requests: Vec<Bytes>,
    /// The error names the node's chain and the expected one.
    pub(crate) check: Check,
    /// Whether the last answer had bitcoind's exact form.
    pub(crate) plain: AtomicBool,
}

impl Greeting {
    /// Sends `requests` in order until `check` identifies the node by an index and the JSON text of that result. A node
    /// that the last request does not identify is another one.
    pub fn new(
        requests: Vec<Bytes>,
        check: impl Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        Self { requests, check: Box::new(check), plain: AtomicBool::new(true) }
    }
}
