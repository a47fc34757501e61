//! ZMTP 3.0 (ZeroMQ RFC 23): as much as a publisher and a subscriber need without authentication (NULL mechanism), since no
//! library offers it without C++ or a tree of other crates.
//!
//! `wire.rs` holds what both sides send; the subscriber waits on a thread of its caller, the publisher runs on tokio and never
//! waits: a subscriber that does not take its messages loses them.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing"))]

mod endpoint;
mod publisher;
mod subscriber;
mod wire;

pub use endpoint::{BadZmqEndpoint, ZmqEndpoint};
pub use publisher::{MAX_SUBSCRIBERS, PubSocket, hear_all};
pub use subscriber::{Stream, Subscription};
pub use wire::ZmqError;
