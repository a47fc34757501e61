//! What one client, or all of them together, may take of the edge.

use std::time::Duration;

/// The bounds of the network edge, each with what happens beyond it.
///
/// The timeouts of heads and of idling are looked at a few times within the shorter of the two, so
/// that requests pay for no timer: a connection may outlast them by a quarter of that.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes in a request's body. Beyond: HTTP 413 and the connection is closed.
    /// bitcoind bounds it with `MAX_SIZE`, of the same value.
    pub max_body_bytes: usize,
    /// Bytes in a request's line and headers. Beyond: HTTP 431 and the connection is closed.
    pub max_header_bytes: usize,
    /// Time from the first byte of a request's head to its last. Beyond: the connection is closed.
    pub header_read_timeout: Duration,
    /// Time between two parts of a request's body. Beyond: HTTP 408 and the connection is closed.
    pub body_stall_timeout: Duration,
    /// Time without a byte moved in either direction while no call is in flight. Beyond: the
    /// connection is closed. Waiting for an answer, however long, is not idling.
    pub idle_timeout: Duration,
    /// Time from a connection's beginning until it has shown credentials. Beyond: the connection is closed.
    pub unauthenticated_timeout: Duration,
    /// What wrong credentials cost the address that they came from: the next are answered so much later. bitcoind's figure.
    pub wrong_credentials_delay: Duration,
    /// Bytes of answers that wait for their clients to read, on all connections. Beyond: the connections are reset whose
    /// clients have taken nothing for the longest time.
    pub max_unread_bytes: u64,
    /// Connections open at once. Beyond: the oldest that has not shown credentials is closed; where there is none, HTTP 503
    /// for the first request of a further one, then the connection is closed.
    pub max_connections: usize,
    /// Requests in one batch. Beyond: error -32600 (HTTP 400) and nothing of the batch is executed.
    pub max_batch: usize,
    /// Arrays and objects that a body may nest, the outermost counted. Beyond: error -32700, `Parse
    /// error`, as bitcoind answers; its JSON parser has the same bound.
    pub max_nesting: usize,
    /// The origins of web pages that may open a WebSocket. Others: HTTP 403. Clients that are no browsers name no origin.
    pub websocket_origins: Vec<String>,
    /// Time that calls in flight are given to end at shutdown. Beyond: their connections are closed
    /// and the calls dropped.
    pub shutdown_grace: Duration,
    /// Time for which a thread that has answered looks for the connection's next request before it goes to sleep; zero for
    /// none.
    pub busy_poll: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body_bytes: 0x0200_0000,
            max_header_bytes: 16 * 1024,
            header_read_timeout: Duration::from_secs(30),
            body_stall_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(120),
            unauthenticated_timeout: Duration::from_secs(10),
            wrong_credentials_delay: Duration::from_millis(250),
            max_unread_bytes: 256 << 20,
            max_connections: 512,
            max_batch: 65_536,
            max_nesting: 512,
            websocket_origins: Vec::new(),
            shutdown_grace: Duration::from_secs(10),
            busy_poll: Duration::from_micros(50),
        }
    }
}
