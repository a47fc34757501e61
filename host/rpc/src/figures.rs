//! Counters and gauges of the network edge, for `/metrics`.

use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Counters and gauges of the network edge. Counters never decrease.
#[derive(Debug, Default)]
pub struct EdgeFigures {
    /// Gauge: open connections.
    pub open: AtomicUsize,
    /// Counter: requests with wrong credentials.
    pub wrong_credentials: AtomicU64,
    /// Counter: requests refused unchecked, because too many from their address already waited for a credential check.
    pub refused_attempts: AtomicU64,
    /// Counter: connections without credentials that were closed to make room for others.
    pub displaced: AtomicU64,
    /// Gauge: bytes of answers that clients have not read yet.
    pub unread_bytes: AtomicU64,
    /// Counter: connections reset because unread answers exceeded `max_unread_bytes`.
    pub cut_unread: AtomicU64,
}
