//! A running bitcoind as the host's node: headers mirrored on disk, a digest of its mempool in memory, everything else
//! live.
//!
//! Invariants:
//! - A hint only triggers a read. Only reads change the state.
//! - Every header is checked for linkage and proof of work before it is stored; a change of the best chain is one
//!   transaction.
//! - The mirror records its chain. The host refuses to open it for another chain.
//! - The host does not follow a node that rewinds beyond the limit, until the operator allows a block (`rewind`).
//! - Heights, depths and fork points of a call come from one moment of the mirror. Coins, mempool and fees are live.
//! - Nothing here runs on a network thread, and no lock except the sync's is held during a request to the node.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test"))]

mod answers;
mod blocks;
mod chain;
mod error;
mod filters;
mod headers;
mod hints;
mod mempool;
mod mirror;
mod needs;
mod node;
mod probe;
mod proof;
pub mod results;
mod returns;
mod rewind;
mod rpc;
mod search;
mod signals;
mod snapshot;
mod standing;
mod submit;
mod sync;
mod template;
pub mod zmq;

pub use answers::NetworkAnswer;
pub use error::{AskError, OpenError, SyncError};
pub use filters::LAYOUT as FILTERS_LAYOUT;
pub use hints::ZmqSetting;
pub use mirror::LAYOUT as HEADERS_LAYOUT;
pub use needs::{NEEDS, Need};
pub use node::{BitcoindNode, Settings};
pub use probe::{chain_of, cookie_of, default_ports, foreign, greeting};
pub use rpc::Rpc;
pub use search::abilities;
pub use standing::RewindLimit;
pub use sync::Follower;
