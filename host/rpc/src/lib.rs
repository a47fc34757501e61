//! The network edge: HTTP, credentials and the JSON-RPC envelope.
//!
//! A request's way through this module:
//!
//! ```text
//! server      accepts connections, gives each a place and a network thread, drains them at shutdown
//! connection  reads and writes its socket there, times it out
//!   edge      path and verb, credentials (before the body is read), bounded body
//!     envelope  body text -> calls, in the dialect of each; results -> reply text
//!       gateway   the bottom of jsonrpsee's middleware stack -> the `Dispatch` of the host
//! ```
//!
//! Invariants:
//! - No byte of a body is read for a client that has not shown valid credentials, save a small amount
//!   that is thrown away so that the connection can be kept.
//! - Neither parameters nor results are turned into a document tree here. Parameters are a slice of
//!   the request's body, results are written as the dispatcher handed them over; both uncopied.
//! - A request's id is given back as it came, whatever JSON kind it is of.
//! - Nothing a client sends is logged: bodies carry keys and passphrases.

mod activity;
mod attempts;
mod auth;
mod busy_poll;
mod client;
mod connection;
mod cookie;
mod dispatch;
mod edge;
mod envelope;
mod figures;
mod framing;
mod gateway;
mod limits;
mod method_list;
mod peers;
mod places;
mod proof;
mod server;
mod threads;
mod unread;

pub use auth::{Authenticator, RpcUser};
pub use client::Client;
pub use cookie::CookieFile;
pub use dispatch::{Call, Dispatch, Failure, Params};
pub use envelope::count_calls;
pub use figures::EdgeFigures;
pub use framing::first_ambiguous_head;
pub use gateway::{Ended, Gateway, ended, user_of};
pub use limits::Limits;
pub use peers::Peers;
#[cfg(test)]
pub use server::Drained;
pub use server::Server;
pub use threads::{CallHere, NetworkThreads, STACK_BYTES, Workers};

#[cfg(test)]
mod tests;
