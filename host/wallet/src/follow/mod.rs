//! Following the chain and the mempool.
//!
//! What the node tells is compared with all loaded wallets at once, by an index over what they are interested in
//! (`live/index.rs`, `passing.rs`). A wallet that it leaves untouched moves on in memory; one that it concerns takes it over,
//! event by event, on one of a few threads (`work_queue.rs`). What a wallet was not told of (at load, or after a write
//! that failed) it reads: from its `synced` block to the tip, going back to the fork first where the chain went another
//! way, and then the whole mempool; far from the tip it has the node search the blocks (`leap.rs`). The two may overlap: events that do not continue from where a wallet stands are passed
//! over. Many blocks are written in one transaction, so that catching up is not one disk synchronisation a block.
//!
//! Where a wallet stands in memory may be ahead of where it is stored; the blocks between leave it untouched, and after a
//! crash it reads them again. Whatever is written stores where it stands in the same transaction.

pub mod alarms;
mod blocks;
mod decoded;
pub mod interests;
mod leap;
mod maintenance;
mod mempool;
mod passing;
pub mod resends;
pub mod states;
pub mod thread;
pub mod together;
mod work_queue;
mod worker;

pub use decoded::previous;
pub use work_queue::MAX_THREADS;
