//! The part of ZMTP 3.0 (ZeroMQ RFC 23) that a publisher and a subscriber without authentication (NULL mechanism) need.
//! The existing libraries depend on C++ or on many other crates.
//!
//! `wire.rs` has the messages of both. The subscriber blocks the calling thread. The publisher runs on tokio and never
//! waits: a slow subscriber loses messages.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test"))]

mod endpoint;
mod publisher;
mod subscriber;
mod wire;

pub use endpoint::{BadZmqEndpoint, ZmqEndpoint};
pub use publisher::{MAX_SUBSCRIBERS, PubSocket, hear_all};
pub use subscriber::{Stream, Subscription};
pub use wire::ZmqError;
