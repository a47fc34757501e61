//! A running bitcoind as the host's node: its headers mirrored on disk, its mempool as a digest in memory, all else asked live.
//!
//! ```text
//! BitcoindNode   Node for services, wallets, metrics
//!   hints          one thread follows the node; others hear its ZMQ notifications (zmq), or wait at it for a block
//!   sync           asks for the best block, fetches headers, emits events
//!   rewind         whether a chain of the node that goes back is followed
//!   standing       how far the node may go back, and whether it is behind
//!   mirror         headers and best chain, LMDB
//!   filters        block filters that were fetched, LMDB; matching looks for scripts in one
//!   mempool        ids and what each transaction may concern
//!   template       the next block as the node would make it
//!   snapshot       one moment of the mirror; blocks and coins by hash, live
//!   blocks         blocks and transactions of the node, proven (proof) to be those that were asked for
//!   rpc            asks the node and waits; REST where the node answers it
//!   needs          the methods that are asked, by purpose
//! ```
//!
//! Invariants:
//! - Reading is the truth: whatever hints at a change only says that there is something to read.
//! - Every header is checked for linkage and proof of work before it is stored; a change of the best chain is one transaction.
//! - The mirror notes its chain and is refused on another one.
//! - A node that goes back further than it may is not followed until the operator allows a block (`rewind`).
//! - Heights, depths and fork points of a call come from one moment of the mirror. Coins, mempool and fees are live.
//! - Nothing here runs on a thread that serves connections, and no lock is held while the node is asked, but that of the sync.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing"))]

mod answers;
mod blocks;
mod chain;
mod error;
mod filters;
mod headers;
mod hints;
mod matching;
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
mod snapshot;
mod source;
mod standing;
mod submit;
mod sync;
mod template;
pub mod zmq;

pub use error::{AskError, OpenError, SyncError};
pub use hints::ZmqSetting;
pub use needs::{NEEDS, Need};
pub use node::{BitcoindNode, Settings};
pub use probe::{chain_of, cookie_of, default_ports, foreign, greeting};
pub use rpc::Rpc;
pub use standing::RewindLimit;
pub use sync::Follower;
