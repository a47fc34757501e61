//! The network edge: HTTP, credentials and the JSON-RPC envelope.
//!
//! The path of a request through this crate:
//!
//! ```text
//! server      accepts connections, assigns each a slot and a network thread, drains them at shutdown
//! connection  reads and writes one socket, enforces its timeouts
//!   edge      path and verb, credentials (before the body is read), bounded body
//!     envelope  body text -> calls, in the dialect of each; results -> reply text
//!       gateway   the bottom of jsonrpsee's middleware stack -> the `Dispatch` of the host
//! ```
//!
//! Hostile clients are bounded by `attempts` (password guesses), `slots` (connections without credentials) and `unread`
//! (unread answers). A connection reset cancels the calls of the connection; a client that only closes its sending side
//! still gets its answers.
//!
//! Invariants:
//! - No byte of a body is read before the client has shown valid credentials, except a small amount
//!   that is discarded so that the connection can be kept alive.
//! - Neither parameters nor results are parsed into a tree here. Parameters are a slice of the
//!   request's body, results are the bytes that the dispatcher returned; neither is copied.
//! - A request's id is returned byte for byte, whatever its JSON type.
//! - Bodies are never logged: they carry keys and passphrases.

mod activity;
mod admission;
mod attempts;
mod auth;
mod body;
mod client;
mod connection;
mod conversation;
mod cookie;
mod dispatch;
mod edge;
mod envelope;
mod figures;
mod forwarded;
mod gateway;
mod health;
mod items;
mod limits;
mod listen;
mod pages;
mod peers;
mod proof;
mod proxy_protocol;
mod refusal;
mod rest;
mod result;
mod server;
mod slots;
mod socket;
mod subscriptions;
mod threads;
mod tls;
mod unread;
mod websocket;

pub use auth::{Authenticator, RpcUser, RpcUserError};
pub use client::{Client, HALF_CLOSED_PATIENCE, half_closed};
pub use cookie::{COOKIE_USER, CookieFile};
pub use dispatch::{Answer, Call, Dispatch, Failure, HOST_USER, Held, NO_WALLET, Origin, PLUGIN_USER, Params};
pub use edge::ServerOptions;
pub use envelope::count_calls;
pub use figures::EdgeFigures;
pub use forwarded::read_forwarding;
pub use gateway::{Gateway, RpcService, is_of_plugin, origin_of, request_of};
pub use health::{Readiness, health};
pub use items::{Items, items};
pub use limits::Limits;
pub use listen::{ListenAddress, ListenError, listen, try_unix};
pub use pages::Page;
pub use peers::{Access, Peer};
pub use proxy_protocol::read_proxy_header;
pub use rest::{REST_ENTRY, Rest, RestReply};
pub use result::{ResultStream, ResultText};
pub use server::Server;
pub use subscriptions::{SUBSCRIBE, Tips, UNSUBSCRIBE};
pub use threads::{CallHere, NetworkThreads, STACK_BYTES, Workers};
pub use tls::{Tls, TlsError, TlsSettings};

#[cfg(test)]
mod tests;
