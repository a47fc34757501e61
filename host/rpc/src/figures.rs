//! What the network edge counts for the metrics.

use std::sync::atomic::{AtomicU64, AtomicUsize};

/// What the network edge counts. All counts but the gauges only grow.
#[derive(Debug, Default)]
pub struct EdgeFigures {
    /// Connections that are open. A gauge.
    pub open: AtomicUsize,
    /// Requests with wrong credentials.
    pub wrong_credentials: AtomicU64,
    /// Requests whose credentials were not looked at, since too many of their address waited for that.
    pub refused_attempts: AtomicU64,
    /// Connections that were closed before they had shown credentials, to make room for others.
    pub displaced: AtomicU64,
    /// Bytes of answers that wait for their clients to read. A gauge.
    pub unread_bytes: AtomicU64,
    /// Connections that were reset since answers that were not read took too much.
    pub cut_unread: AtomicU64,
}
