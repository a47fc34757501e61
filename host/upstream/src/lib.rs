//! HTTP and JSON-RPC towards a running bitcoind: its address and credentials, and connections that are kept for the next request.
//!
//! ```text
//! Upstream   one node: address, credentials, how many requests at a time
//!   pool       how many connections there are, and those that are idle
//!   reply      a reply's body; the connection goes back to the pool at its end
//!   greeting   what a node is asked on each new connection, so that no call reaches another one
//!   envelope   a call as bytes, and the result or error in the bytes of a reply
//! methods    what is known of bitcoind's methods: the only list of them
//! ```
//!
//! All of it is asynchronous and never blocks a thread. It knows nothing of chains, wallets and plugins.
//!
//! Invariants:
//! - A request is sent again only if nothing of it was written, or if its method is known to have no effects and the connection
//!   ended before any byte of the reply.
//! - Where a greeting is set, nothing is sent on a connection before the node at its other end has answered it as it must. Requests
//!   without effects are, where each of the last greetings ended its connection: for a minute, and until anything fails.
//! - Credentials are never logged. The cookie is read again when the node refuses it, since each start of bitcoind makes another.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing"))]

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
pub use envelope::{Outcome, PREFIX, SUFFIX, put_request, read_reply, request, request_length};
pub use error::UpstreamError;
pub use greeting::Greeting;
pub use http::StatusCode;
pub use methods::{Method, MethodSet, is_read_only, may_have_effects, method, methods};
pub use reply::{Reply, ReplyBody};
pub use upstream::{Figures, Upstream};
