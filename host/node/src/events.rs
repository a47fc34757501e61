//! The node's events, in the order in which they happened.

use std::sync::Arc;

use bitcoin::{BlockHash, Transaction, Txid};

/// Why a transaction left the mempool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removal {
    /// A block confirmed it.
    Confirmed,
    /// A block confirmed another transaction that spends one of its inputs.
    Conflict,
    /// Another transaction replaced it (BIP 125).
    Replaced,
    /// It expired, was evicted for space, or a reorganisation made it invalid.
    Dropped,
}

/// A change of the chain or the mempool.
#[derive(Clone, Debug)]
pub enum NodeEvent {
    /// A block became part of the best chain.
    BlockConnected { hash: BlockHash, height: u32 },
    /// A block left the best chain.
    BlockDisconnected { hash: BlockHash, height: u32 },
    /// A submission or a reorganisation came to its end with this tip.
    TipChanged {
        /// The new tip.
        hash: BlockHash,
        height: u32,
    },
    /// A transaction entered the mempool.
    TransactionAdded {
        transaction: Arc<Transaction>,
        /// When it entered, in seconds of the node's time.
        time: u64,
        /// The mempool's sequence with it.
        sequence: u64,
    },
    /// A transaction left the mempool.
    TransactionRemoved {
        txid: Txid,
        reason: Removal,
        /// The mempool's sequence without it.
        sequence: u64,
    },
    /// A node in another process answers again after it was away. What changed meanwhile was told before.
    Reached,
}

/// Receives events.
///
/// Called in order, under the node's write lock: it must only enqueue, and never call the node.
pub trait Observer: Send + Sync {
    /// Takes one event.
    fn notify(&self, event: NodeEvent);
}
