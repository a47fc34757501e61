//! Deep reorganisations. The host counts and logs them, with the number of each wallet's transactions that left the
//! chain, and announces these transactions to plugins.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bitcoin::Txid;
use outrigger_node::NodeEvent;
use outrigger_service::events::MAX_REORGANISED;

#[derive(Default)]
pub(super) struct Reorganisations {
    /// Disconnected blocks since the last change of the tip.
    disconnected: AtomicU32,
    deep: AtomicU64,
}

impl Reorganisations {
    /// Handles an event. Returns whether it ends a reorganisation of at least `notice` blocks.
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

    pub(super) fn deep(&self) -> u64 {
        self.deep.load(Ordering::Relaxed)
    }
}

/// Blocks, and the wallet's transactions, that left the chain.
#[derive(Default)]
pub(super) struct RemovedBlocks {
    pub(super) blocks: u32,
    pub(super) count: usize,
    /// The first of the `count` transactions, as many as an event holds.
    pub(super) transactions: Vec<Txid>,
}

impl RemovedBlocks {
    pub(super) fn note(&mut self, blocks: u32, transactions: &BTreeSet<Txid>) {
        self.blocks = self.blocks.saturating_add(blocks);
        self.count += transactions.len();
        let room = MAX_REORGANISED.saturating_sub(self.transactions.len());
        self.transactions.extend(transactions.iter().take(room));
    }
}
