//! Calls that no plugin answers, passed on to a running bitcoind.
//!
//! ```text
//! router -> Passthrough::call   deny list, wallet rule
//!             long_poll           waits here, so that the node has no thread that waits
//!             gather              short calls, together under load
//!             forward             bytes to the node and back; long results as a stream
//!             taps                what the host does before the client has the answer
//! ```
//!
//! Invariants:
//! - Results are cut out of the node's reply between its known beginning and end. A reply with other white space is held whole and
//!   parsed for that.
//! - With wallets of our own, no wallet method ever reaches the node's wallets, and the path upstream is always `/`.
//! - No thread that serves connections waits for the node.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing"))]

mod batch;
mod forward;
mod gather;
mod help;
mod long_poll;
mod passthrough;
mod shared;
mod taps;

pub use batch::read_batch;
pub use help::{NodeHelp, NodeMethod};
pub use long_poll::NodeTip;
pub use passthrough::{Passthrough, Settings, WalletOwner};
pub use taps::Taps;
