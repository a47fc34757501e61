//! Following the chain and the mempool.
//!
//! A wallet reads the chain from its `synced` block to the tip, going back to the fork first where the chain went another
//! way, then takes over what the mempool told. Blocks are written many to a transaction, so that catching up is not one
//! disk synchronisation a block.

mod blocks;
mod mempool;
mod states;
pub mod thread;

pub use blocks::header_time;
