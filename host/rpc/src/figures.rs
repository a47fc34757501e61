//! Counters and gauges of the network edge, for `/metrics`. Counters never decrease.

use std::sync::atomic::{AtomicU64, AtomicUsize};

#[derive(Debug, Default)]
pub struct EdgeFigures {
    pub open: AtomicUsize,
    pub wrong_credentials: AtomicU64,
    /// Counter: requests refused because too many from their address already waited for the credential check.
    pub refused_attempts: AtomicU64,
    /// Counter: connections without credentials that were closed to make room for others.
    pub displaced: AtomicU64,
    /// Gauge: bytes of unread answers.
    pub unread_bytes: AtomicU64,
    /// Counter: connections reset because unread answers exceeded `max_unread_bytes`.
    pub cut_unread: AtomicU64,
}
