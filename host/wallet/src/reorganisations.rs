//! Deep reorganisations are told: to the log and the metrics, with how many of each wallet's transactions they took out of the chain,
//! and to the plugins, with which these are.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bitcoin::Txid;
use outrigger_node::NodeEvent;
use outrigger_service::events::MAX_REORGANISED;
use parking_lot::Mutex;

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
pub(super) struct Retreat(Mutex<Undone>);

/// The blocks and the wallet's transactions that left the chain.
#[derive(Default)]
pub(super) struct Undone {
    pub(super) blocks: u32,
    /// How many transactions left it.
    pub(super) count: usize,
    /// The first of them, as many as are told.
    pub(super) transactions: Vec<Txid>,
}

impl Retreat {
    /// The wallet went back so many blocks, with these of its transactions.
    pub(super) fn note(&self, blocks: u32, transactions: &BTreeSet<Txid>) {
        let mut undone = self.0.lock();
        undone.blocks = undone.blocks.saturating_add(blocks);
        undone.count += transactions.len();
        let room = MAX_REORGANISED.saturating_sub(undone.transactions.len());
        undone.transactions.extend(transactions.iter().take(room));
    }

    /// What was noted so far; it begins anew.
    pub(super) fn take(&self) -> Undone {
        std::mem::take(&mut self.0.lock())
    }
}
