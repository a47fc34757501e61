//! The limits of the network edge.

use std::time::Duration;

/// The limits of the network edge, and what happens beyond them.
///
/// Header and idle timeouts are checked a few times within the shorter of the two, so that requests need no timer. A
/// connection may exceed them by a quarter of that time.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body. Beyond: HTTP 413 and the connection is closed. The default is bitcoind's `MAX_SIZE`.
    pub max_body_bytes: usize,
    /// Bytes of a request's line and headers. Beyond: HTTP 431 and the connection is closed.
    pub max_header_bytes: usize,
    /// Time from the first byte of a request's head to its last. Beyond: the connection is closed.
    pub header_read_timeout: Duration,
    /// Time between two reads of a request's body. Beyond: HTTP 408 and the connection is closed.
    pub body_stall_timeout: Duration,
    /// Time without traffic while no call is in flight. Beyond: the connection is closed. Waiting for an answer is not
    /// idling.
    pub idle_timeout: Duration,
    /// Time from accept until the connection has shown credentials. Beyond: the connection is closed.
    pub unauthenticated_timeout: Duration,
    /// How much each wrong attempt delays the next answer to its address. The default is bitcoind's.
    pub wrong_credentials_delay: Duration,
    /// Bytes of unread answers on all connections. Beyond: the connections that have read nothing for the longest time
    /// are reset.
    pub max_unread_bytes: u64,
    /// Open connections. Beyond: the oldest connection without credentials is closed; if there is none, a further one
    /// gets HTTP 503 for its first request and is closed.
    pub max_connections: usize,
    /// Requests in one batch. Beyond: error -32600 (HTTP 400) and nothing of the batch is executed.
    pub max_batch: usize,
    /// Nesting of arrays and objects in a body, including the outermost. Beyond: error -32700, `Parse error`; bitcoind's
    /// parser has the same limit.
    pub max_nesting: usize,
    /// The origins of web pages that may open a WebSocket. Others: HTTP 403. Only browsers send an origin.
    pub websocket_origins: Vec<String>,
    /// Time that calls in flight get at shutdown. Beyond: their connections are closed and the calls dropped.
    pub shutdown_grace: Duration,
    /// How long a thread spins for the connection's next request after an answer; zero for no spinning.
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
