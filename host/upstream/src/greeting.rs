//! What a node is asked on each new connection before anything else is sent on it.
//!
//! Another node may come to listen at the same address: one of another network, or of another user on the same machine. A
//! connection leads to one process for all its life, and that process to one chain. So it suffices to ask once for each connection,
//! and no call ever reaches a node that was not asked. Between host and node there must be nothing that spreads the requests of one
//! connection over several nodes.

use bytes::Bytes;

/// Whether the result of a question tells that this is the node; where it does not tell, the next question is asked.
type Check = Box<dyn Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync>;

/// Questions to a node that tell which one it is.
pub struct Greeting {
    /// The bodies of the requests, in the order in which they are asked.
    pub(crate) requests: Vec<Bytes>,
    /// Takes the number of a question and its result; the error says what node this is, and what it should be.
    pub(crate) check: Check,
}

impl Greeting {
    /// Asks `requests` in their order until `check`, with the number of a request and the JSON text of its result, is sure that this is
    /// the node. It fails with what the node is instead. A node of which it is not sure after the last one is another.
    pub fn new(
        requests: Vec<Bytes>,
        check: impl Fn(usize, &[u8]) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Self {
        Self { requests, check: Box::new(check) }
    }
}
