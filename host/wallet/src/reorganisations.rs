//! Deep reorganisations are told: to the log and the metrics, with how many of each wallet's transactions they took out of the chain.
//! listsinceblock tells which these are.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use outrigger_node::NodeEvent;

/// The blocks that leave the best chain, as the node tells them.
#[derive(Default)]
pub(super) struct Reorganisations {
    /// How many left it since the last tip was told.
    disconnected: AtomicU32,
    /// How many deep reorganisations there were.
    deep: AtomicU64,
}

impl Reorganisations {
    /// Takes an event. Whether a reorganisation of at least `notice` blocks has come to its end.
    pub(super) fn take(&self, event: &NodeEvent, notice: Option<u32>) -> bool {
        match event {
            NodeEvent::BlockDisconnected { .. } => {
                self.disconnected.fetch_add(1, Ordering::Relaxed);
                false
            }
            NodeEvent::TipChanged { height, .. } => {
                let blocks = self.disconnected.swap(0, Ordering::Relaxed);
                let is_deep = notice.is_some_and(|notice| blocks >= notice);
                if is_deep {
                    self.deep.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(blocks, height, "a deep reorganisation: blocks left the best chain");
                }
                is_deep
            }
            _ => false,
        }
    }

    /// How many deep ones there were.
    pub(super) fn deep(&self) -> u64 {
        self.deep.load(Ordering::Relaxed)
    }
}

/// What a wallet went back since it last stood at the tip.
#[derive(Default)]
pub(super) struct Retreat {
    blocks: AtomicU32,
    transactions: AtomicU64,
}

impl Retreat {
    /// The wallet went back so many blocks, with so many of its transactions.
    pub(super) fn note(&self, blocks: u32, transactions: usize) {
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
        self.transactions.fetch_add(transactions as u64, Ordering::Relaxed);
    }

    /// The blocks and transactions so far; it begins anew.
    pub(super) fn take(&self) -> (u32, u64) {
        (self.blocks.swap(0, Ordering::Relaxed), self.transactions.swap(0, Ordering::Relaxed))
    }
}
