//! Following the chain and the mempool.
//!
//! Events of the node are compared with all loaded wallets at once, by an index of their interests (`live/index.rs`,
//! `passing.rs`). A wallet that an event does not touch moves its position in memory. A wallet that it may touch
//! processes it in order, on one of a few threads (`work_queue.rs`).
//!
//! After a load or a failed write, a wallet has missed events. It then reads the chain from its `synced` block to the
//! tip, after a rewind to the fork if there was a reorganisation, and then the whole mempool. Far from the tip, the
//! node searches the blocks (`leap.rs`). Reading and events may overlap: events that do not extend the wallet's
//! position are skipped. One write transaction covers many blocks, so that catching up does not cost an fsync per
//! block.
//!
//! A position in memory may be ahead of the stored one. The blocks between do not touch the wallet, and after a crash
//! it reads them again. Every write stores the position, too.

mod blocks;
mod decoded;
pub mod interests;
mod leap;
mod mempool;
mod passing;
pub mod states;
pub mod thread;
pub mod together;
mod work_queue;
pub mod worker;

pub use decoded::{header_time, previous, synced_at};
pub use work_queue::THREADS;
