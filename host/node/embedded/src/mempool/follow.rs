//! Updates the mempool after a change of the tip.

use std::collections::{BTreeSet, HashSet};
use std::sync::OnceLock;

use bitcoin::Txid;
use bitcoin::consensus::serialize;
use outrigger_service::chain::Tip;

use super::{Entry, Offer, Pool, Rejection, Rules, Terms, View};
use crate::decode::NamedBlock;
use outrigger_node::Removal;
use outrigger_values::FeeRate;

impl Pool {
    /// Moves the mempool to another tip. `off` are the disconnected blocks, the highest first; `on` are the connected
    /// blocks, the lowest first.
    pub fn follow(&mut self, view: &View, off: Vec<NamedBlock>, on: Vec<NamedBlock>) {
        self.tip = view.tip;
        on.iter().for_each(|block| self.confirm(block));
        if !off.is_empty() {
            self.rebuild(view, off, &on);
        }
        for txid in on.iter().flat_map(NamedBlock::txids) {
            self.deltas.remove(&txid);
        }
        self.sequence += 1;
        let now = view.node.clock.now();
        if !on.is_empty() {
            self.min_feerate.block(now, self.fullness());
        }
        self.trim(now);
    }

    /// Drops all entries, since the chain cannot be read.
    pub fn clear(&mut self, tip: Tip) {
        self.tip = tip;
        let all = self.ids();
        self.remove_all(all);
        self.sequence += 1;
    }

    /// Removes the block's transactions from the mempool, and every entry that conflicts with them.
    fn confirm(&mut self, block: &NamedBlock) {
        for (tx, ids) in block.transactions().skip(1) {
            if self.graph.remove(&ids.txid).is_some() {
                self.tell_removed(ids.txid, Removal::Confirmed);
            }
            for input in &tx.input {
                let conflict = self.graph.spender(&input.previous_output).copied();
                self.remove_all(conflict);
            }
        }
    }

    /// Rebuilds the mempool after a reorganisation. The transactions of disconnected blocks enter first, then the
    /// former entries; an invalid transaction is dropped. The caller has called [`Self::confirm`] for each new block.
    fn rebuild(&mut self, view: &View, off: Vec<NamedBlock>, on: &[NamedBlock]) {
        let confirmed: HashSet<Txid> = on.iter().flat_map(NamedBlock::txids).collect();
        let here = self.graph.drain();
        let back = off.iter().rev().flat_map(|block| block.transactions().skip(1));
        for (tx, _) in back.filter(|(_, ids)| !confirmed.contains(&ids.txid)) {
            let raw = serialize(tx);
            let offer = Offer::new(tx.clone(), &raw);
            match self.examine(view, &offer, Rules::Alone(Terms::Again(None)), FeeRate::ZERO) {
                Ok(admissible) => {
                    let time = admissible.entry.entered.time;
                    self.add(admissible.entry, time);
                }
                Err(rejection) => {
                    tracing::debug!(txid = %offer.txid, ?rejection, "not put back after a reorganisation")
                }
            }
        }
        let dropped: BTreeSet<_> = here.into_iter().filter_map(|entry| self.put_back(view, entry)).collect();
        dropped.into_iter().for_each(|txid| self.tell_removed(txid, Removal::Dropped));
    }

    /// Puts a former entry back. Returns the txid if the transaction is no longer valid.
    fn put_back(&mut self, view: &View, entry: Entry) -> Option<Txid> {
        let Entry { tx, raw, txid, wtxid, entered, .. } = entry;
        match self.examine(
            view,
            &Offer { tx, raw, txid, wtxid, failed_script: OnceLock::new() },
            Rules::Alone(Terms::Again(Some(entered))),
            FeeRate::ZERO,
        ) {
            Ok(admissible) => self.graph.insert(admissible.entry),
            Err(Rejection::Known) => {}
            Err(rejection) => {
                tracing::debug!(%txid, ?rejection, "dropped after a reorganisation");
                return Some(txid);
            }
        }
        None
    }
}
