//! HTTP and JSON-RPC client for a running bitcoind, with a connection pool.
//!
//! ```text
//! Upstream   one node: address, credentials, concurrent requests
//!   pool       all connections, and the idle ones
//!   reply      a reply's body; its end returns the connection to the pool
//!   greeting   identifies the node on each new connection, so that no call with effects reaches the wrong node
//!   envelope   encodes a call; slices result or error out of a reply
//! methods    the only list of bitcoind's methods
//! ```
//!
//! Everything is asynchronous and, except for busy polling, never blocks a thread.
//!
//! Invariants:
//! - A request is repeated only if nothing of it was written, or if its method has no effects and the connection ended
//!   before any byte of the reply.
//! - With a greeting, a connection carries other requests only after the node has identified itself. If each of the
//!   last greeted connections ended after its answer, requests without effects go on ungreeted connections: for a
//!   minute, and until anything fails.
//! - Credentials are never logged. The cookie is read again when the node refuses it, since bitcoind makes a new one at
//!   each start.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test"))]

mod credentials;
mod endpoint;
mod envelope;
mod error;
mod greeting;
mod methods;
mod pool;
mod reply;
#[cfg(test)]
mod tests;
mod upstream;

pub use credentials::{CredentialsError, Login};
pub use endpoint::{BadEndpoint, Endpoint};
pub use envelope::{Outcome, PREFIX, SUFFIX, batch_request, read_batch, read_reply, request};
pub use error::{LOST, NO_BITCOIND, UpstreamError, lost_message};
pub use greeting::Greeting;
pub use http::StatusCode;
pub use methods::{Method, MethodSet, is_read_only, may_have_effects, method, methods, traits};
pub use reply::{Reply, ReplyBody};
pub use upstream::{Figures, Upstream};
