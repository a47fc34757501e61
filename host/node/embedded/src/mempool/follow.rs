//! How the mempool follows the chain.

use std::collections::HashSet;

use bitcoin::consensus::serialize;
use bitcoin::{OutPoint, SignedAmount, Transaction, Txid};
use outrigger_service::chain::Tip;

use super::{Entry, Offer, Pool, Rejection, Terms, View};
use crate::decode::NamedBlock;
use outrigger_node::events::{NodeEvent, Removal};

impl Pool {
    /// Goes to another tip. `off` are the blocks that left the best chain, the highest first; `on` those that came to
    /// it, the lowest first.
    pub fn follow(&mut self, view: &View, off: Vec<NamedBlock>, on: Vec<NamedBlock>, events: &mut Vec<NodeEvent>) {
        self.tip = view.tip;
        if off.is_empty() {
            for block in &on {
                self.confirm(block, events);
            }
        } else {
            self.rebuild(view, off, &on, events);
        }
        if !self.deltas.is_empty() {
            for txid in on.iter().flat_map(NamedBlock::txids) {
                if self.deltas.remove(&txid).is_some() {
                    self.records.prioritised(&txid, SignedAmount::ZERO);
                }
            }
        }
        self.sequence += 1;
        let now = view.node.time();
        if !on.is_empty() {
            self.min_feerate.block(now, self.fullness());
        }
        self.trim(now, events);
    }

    /// Forgets everything, because the chain could not be consulted.
    pub fn clear(&mut self, tip: Tip, events: &mut Vec<NodeEvent>) {
        self.tip = tip;
        let all = self.ids();
        self.remove_all(all, Removal::Dropped, events);
        self.sequence += 1;
    }

    /// Takes out what a block confirms, and what conflicts with it.
    fn confirm(&mut self, block: &NamedBlock, events: &mut Vec<NodeEvent>) {
        for (tx, ids) in block.transactions().skip(1) {
            self.remove_one(&ids.txid, Removal::Confirmed, events);
            let conflicts: Vec<_> =
                tx.input.iter().filter_map(|input| self.graph.spender(&input.previous_output)).copied().collect();
            if !conflicts.is_empty() {
                self.remove_all(conflicts, Removal::Conflict, events);
            }
        }
    }

    /// After a reorganisation: puts back what the chain no longer holds, in its order, then what was here before;
    /// drops what is valid no longer.
    fn rebuild(&mut self, view: &View, off: Vec<NamedBlock>, on: &[NamedBlock], events: &mut Vec<NodeEvent>) {
        let chain = Confirmed::by(on);
        let here = self.graph.drain();
        let back = off.iter().rev().flat_map(|block| block.transactions().skip(1));
        for (tx, _) in back.filter(|(_, ids)| !chain.txids.contains(&ids.txid)) {
            let raw = serialize(tx);
            let offer = Offer::new(tx.clone(), &raw);
            match self.examine(view, &offer, Terms::Again(None)) {
                Ok(admissible) => {
                    let time = admissible.entry.time;
                    self.add(admissible.entry);
                    let sequence = self.sequence;
                    events.push(NodeEvent::TransactionAdded { transaction: offer.tx, time, sequence });
                }
                Err(rejection) => {
                    tracing::debug!(txid = %offer.txid, ?rejection, "not put back after a reorganisation")
                }
            }
        }
        for entry in here {
            self.put_back(view, entry, &chain, events);
        }
    }

    fn put_back(&mut self, view: &View, entry: Entry, chain: &Confirmed, events: &mut Vec<NodeEvent>) {
        let entry_time = entry.entry_time();
        let Entry { tx, raw, txid, wtxid, .. } = entry;
        let reason = if chain.txids.contains(&txid) {
            Removal::Confirmed
        } else if chain.conflicts(&tx) {
            Removal::Conflict
        } else {
            let offer = Offer { tx, raw, txid, wtxid };
            match self.examine(view, &offer, Terms::Again(Some(entry_time))) {
                Ok(admissible) => {
                    self.graph.insert(admissible.entry);
                    return;
                }
                Err(Rejection::Known) => return,
                Err(rejection) => {
                    tracing::debug!(%txid, ?rejection, "dropped after a reorganisation");
                    Removal::Dropped
                }
            }
        };
        self.sequence += 1;
        self.moves += 1;
        self.records.removed(&txid);
        events.push(NodeEvent::TransactionRemoved { txid, reason, sequence: self.sequence });
    }
}

/// What some blocks confirm.
struct Confirmed {
    txids: HashSet<Txid>,
    spent: HashSet<OutPoint>,
}

impl Confirmed {
    fn by(blocks: &[NamedBlock]) -> Self {
        let transactions = blocks.iter().flat_map(|block| &block.txdata);
        Self {
            txids: blocks.iter().flat_map(NamedBlock::txids).collect(),
            spent: transactions.flat_map(|tx| &tx.input).map(|input| input.previous_output).collect(),
        }
    }

    fn conflicts(&self, tx: &Transaction) -> bool {
        tx.input.iter().any(|input| self.spent.contains(&input.previous_output))
    }
}
