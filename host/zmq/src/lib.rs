//! ZMTP 3.0 (ZeroMQ RFC 23): the part that a publisher and a subscriber without authentication need (NULL mechanism),
//! since every library needs C++ or a tree of other crates.
//!
//! `wire.rs` has the common messages. The subscriber blocks a thread of its caller. The publisher runs on tokio and
//! never waits: a slow subscriber loses messages.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test"))]

mod endpoint;
mod publisher;
mod subscriber;
mod wire;

pub use endpoint::{BadZmqEndpoint, ZmqEndpoint};
pub use publisher::{MAX_SUBSCRIBERS, PubSocket, hear_all};
pub use subscriber::{Stream, Subscription};
pub use wire::ZmqError;
