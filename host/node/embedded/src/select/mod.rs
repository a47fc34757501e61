//! The selection for the next block. A caller makes it if tip or mempool have changed since the last one.

mod choose;

use std::sync::Arc;

use bitcoin::Amount;
use outrigger_service::chain::Tip;
use outrigger_service::mempool::Selected;
use outrigger_values::amount::Saturating;

use super::EmbeddedNode;
use choose::choose;

#[derive(Debug)]
pub struct BlockSelection {
    /// Grows whenever the tip or the transactions change.
    pub version: u64,
    pub tip: Tip,
    /// Parents before children.
    pub transactions: Arc<Vec<Selected>>,
    pub fees: Amount,
    /// The mempool's sequence at the selection.
    pub sequence: u64,
}

impl EmbeddedNode {
    /// The selection from the current mempool. Callers at the same time share one.
    pub(super) fn select(&self) -> Arc<BlockSelection> {
        let mut last = self.selected.lock();
        let pool = self.pool.read();
        if let Some(last) = last.as_ref().filter(|last| last.sequence == pool.sequence) {
            return last.clone();
        }
        let (chosen, tip, sequence) = (choose(&pool, &self.settings), pool.tip, pool.sequence);
        drop(pool);
        let is_same = |last: &&BlockSelection| {
            let ids = last.transactions.iter().map(|selected| selected.wtxid);
            last.tip.hash == tip.hash && ids.eq(chosen.iter().map(|selected| selected.wtxid))
        };
        let selection = match last.as_deref().filter(is_same) {
            // An unchanged selection keeps its version, so that callers need not read it again.
            Some(BlockSelection { version, transactions, fees, .. }) => {
                BlockSelection { version: *version, tip, transactions: transactions.clone(), fees: *fees, sequence }
            }
            None => {
                let version = last.as_ref().map_or(1, |last| last.version + 1);
                let fees = chosen.iter().map(|selected| selected.fee).fold(Amount::ZERO, Amount::saturating_add);
                BlockSelection { version, tip, transactions: chosen.into(), fees, sequence }
            }
        };
        last.insert(Arc::new(selection)).clone()
    }
}
