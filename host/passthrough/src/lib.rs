//! Forwards calls that no plugin answers to a running bitcoind.
//!
//! ```text
//! router -> Passthrough::call   deny list, wallet rule
//!             long_poll           waits here, so that no thread of the node waits
//!             gather              coalesces short calls under load
//!             forward             bytes to the node and back; long results as a stream
//!             taps                hooks of the host before the client has the answer
//! ```
//!
//! Invariants:
//! - Results are sliced out of the node's reply between a fixed prefix and suffix. A reply in another form is held in
//!   memory and parsed.
//! - If the host's wallets answer, no wallet method reaches the node's wallets, and the path upstream is always `/`.
//! - No network thread blocks on the node.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test"))]

mod batch;
mod forward;
mod gather;
mod help;
mod long_poll;
mod passthrough;
mod shared;
mod taps;

pub use help::{DUMP_CONVERSIONS, NodeHelp, NodeMethod};
pub use long_poll::NodeTip;
pub use passthrough::{Passthrough, Settings};
pub use taps::{Submission, Taps};
