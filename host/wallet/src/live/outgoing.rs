//! A wallet's transactions on their way to the node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bitcoin::Txid;
use bitcoin::absolute::LockTime;
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::Synced;

#[derive(Default)]
pub struct Outgoing {
    /// Transactions that a call is sending. Resends skip them.
    pub sending: BTreeSet<Txid>,
    /// The time of the next resend.
    pub planned: Option<Instant>,
    /// Transactions that may be neither confirmed nor in the mempool, with the node's last answer.
    pub idle: BTreeMap<Txid, Option<Admission>>,
    /// The transactions of `idle` that left the mempool. The node has not judged them since.
    pub evicted: BTreeSet<Txid>,
    /// Counts additions to `idle`.
    pub noted: u64,
}

impl Outgoing {
    /// Notes an idle transaction, and the node's answer if there is one. A transaction that the node accepts may have left the mempool
    /// again by now, so it stays among the evicted ones until the wallet sees it in the mempool.
    pub fn note_idle(&mut self, txid: Txid, answer: Option<Admission>) {
        self.noted += 1;
        if answer.as_ref().is_some_and(|answer| !matches!(answer, Admission::Accepted { .. } | Admission::Known { .. }))
        {
            self.evicted.remove(&txid);
        }
        self.idle.insert(txid, answer);
    }
}

/// A payment that is neither confirmed nor in the mempool.
#[derive(Clone, Debug)]
pub struct Unsent {
    pub txid: Txid,
    /// The mempool refuses it until then.
    pub lock_time: LockTime,
}

impl Unsent {
    /// Whether the block after `tip` may include it.
    pub fn is_final(&self, tip: &Synced) -> bool {
        match self.lock_time {
            LockTime::Blocks(height) => height.to_consensus_u32() <= tip.height,
            LockTime::Seconds(time) => time.to_consensus_u32() < tip.median_time,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum OfferScope {
    /// The node refused these transactions until a later block, or they left its mempool and the node has not judged them since.
    AwaitingBlock,
    All,
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::BlockHash;
    use bitcoin::hashes::Hash;

    #[test]
    fn getwalletinfo_warns_of_no_payment_whose_locktime_lies_ahead() {
        let tip = Synced { hash: BlockHash::all_zeros(), height: 100, time: 0, median_time: 600_000_000 };
        let is_final = |lock_time| {
            Unsent { txid: Txid::all_zeros(), lock_time: LockTime::from_consensus(lock_time) }.is_final(&tip)
        };
        assert_eq!([0, 100, 101].map(is_final), [true, true, false]);
        assert_eq!([599_999_999, 600_000_000].map(is_final), [true, false]);
    }

    #[test]
    fn payment_evicted_while_its_acceptance_is_noted_is_offered_at_the_next_block() {
        let mut outgoing = Outgoing::default();
        let txid = Txid::all_zeros();
        outgoing.evicted.insert(txid);
        outgoing.note_idle(txid, Some(Admission::Known { txid }));
        assert!(outgoing.evicted.contains(&txid));
        outgoing.note_idle(txid, Some(Admission::MissingInputs));
        assert!(outgoing.evicted.is_empty());
    }
}
