//! Events of chain and mempool, in the order in which they happened.

use std::sync::Arc;

use bitcoin::{BlockHash, Transaction, Txid};

/// Why a transaction left the mempool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removal {
    Confirmed,
    /// It was replaced, expired or was evicted, a block confirmed a conflicting transaction, or a reorganisation made it
    /// invalid.
    Dropped,
}

#[derive(Clone, Debug)]
pub enum NodeEvent {
    /// A block joined the best chain.
    BlockConnected { hash: BlockHash, height: u32 },
    /// A block left the best chain.
    BlockDisconnected { hash: BlockHash, height: u32 },
    /// The new tip after a submission or reorganisation, following the events of its blocks.
    TipChanged { hash: BlockHash, height: u32 },
    TransactionAdded {
        transaction: Arc<Transaction>,
        /// The node's time at its entry, in Unix seconds.
        time: u64,
        /// The mempool's sequence after this event.
        sequence: u64,
    },
    TransactionRemoved {
        txid: Txid,
        reason: Removal,
        /// The mempool's sequence after this event.
        sequence: u64,
    },
    /// A node in another process is reachable again. The events of the outage precede this one.
    Reached,
}

/// Receives events in order, under the node's write lock: it must only enqueue, and never call the node.
pub trait Observer: Send + Sync {
    fn notify(&self, event: NodeEvent);
}
