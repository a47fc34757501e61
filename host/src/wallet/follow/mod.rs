//! Following the chain and the mempool.
//!
//! A loaded wallet takes over what the node tells, event by event. What it was not told of (at load, or after a write
//! that failed) it reads: from its `synced` block to the tip, going back to the fork first where the chain went another
//! way, and then the whole mempool. The two may overlap: events that do not continue from where a wallet stands are passed
//! over. Many blocks are written in one transaction, so that catching up is not one disk synchronisation a block.

mod blocks;
mod mempool;
mod states;
pub mod thread;

pub use blocks::header_time;
