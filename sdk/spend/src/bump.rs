//! Bump fees: the cost of raising the unconfirmed ancestors of coins to a feerate, so that a payment that spends them
//! is mined at its own feerate (`MiniMiner` of Bitcoin Core).

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use bitcoin::{SignedAmount, Txid};
use outrigger_service::Result;
use outrigger_service::mempool::{ClusterLimits, MempoolEntry};
use outrigger_values::{FeeFrac, FeeRate};

use crate::Services;
use crate::coin::fee;

/// The most transactions in the clusters (`MiniMiner` of Bitcoin Core).
const MAX_CLUSTER: usize = 500;

/// The clusters of some mempool transactions: all transactions connected with them.
#[derive(Debug, Default)]
pub struct Unconfirmed {
    entries: HashMap<Txid, MempoolEntry>,
    /// Whether the clusters exceed [`MAX_CLUSTER`] and are incomplete.
    too_many: bool,
    /// The node's cluster limits; `None` before Bitcoin Core 31.
    pub(crate) limits: Option<ClusterLimits>,
}

impl Unconfirmed {
    /// Reads the clusters of these transactions from the mempool.
    pub fn connected(services: Services<'_>, txids: impl IntoIterator<Item = Txid>) -> Result<Self> {
        let mut found = Self::default();
        let mut seen: HashSet<Txid> = txids.into_iter().collect();
        let mut asked: Vec<Txid> = seen.iter().copied().collect();
        if !asked.is_empty() {
            found.limits = services.host.mempool.info(services.scope)?.clusters;
        }
        while !asked.is_empty() {
            let answer = services.host.mempool.entries(services.scope, std::mem::take(&mut asked))?;
            for entry in answer.into_iter().flatten() {
                asked.extend(entry.depends.iter().chain(&entry.spent_by).filter(|txid| seen.insert(**txid)));
                found.entries.insert(entry.txid, entry);
            }
            if found.entries.len() > MAX_CLUSTER {
                found.too_many = true;
                break;
            }
        }
        Ok(found)
    }

    /// The clusters of these entries, without a mempool service.
    #[cfg(test)]
    pub(crate) fn of(entries: Vec<MempoolEntry>) -> Self {
        Self { entries: entries.into_iter().map(|entry| (entry.txid, entry)).collect(), too_many: false, limits: None }
    }

    /// The mempool entry of a transaction of the cluster.
    pub fn entry(&self, txid: Txid) -> Option<&MempoolEntry> {
        self.entries.get(&txid)
    }

    /// The number of mempool ancestors of a transaction, and the greatest number of descendants of any of them. Both counts
    /// include the transaction itself. Both are 0 if it is not in the mempool.
    pub fn ancestry(&self, txid: Txid) -> (u64, u64) {
        let ancestors = self.ancestors([txid]);
        let count = self.entries.get(&txid).map_or(0, |entry| entry.ancestor_count);
        let descendants =
            ancestors.iter().filter_map(|txid| self.entries.get(txid)).map(|entry| entry.descendant_count);
        (count, descendants.max().unwrap_or(0))
    }

    fn ancestors(&self, txids: impl IntoIterator<Item = Txid>) -> HashSet<Txid> {
        closure(&self.entries, txids, |entry| entry.depends.iter())
    }

    /// All transactions in the clusters of these transactions.
    pub(crate) fn clusters(&self, txids: impl IntoIterator<Item = Txid>) -> impl Iterator<Item = &MempoolEntry> {
        let all = closure(&self.entries, txids, |entry| entry.depends.iter().chain(&entry.spent_by));
        all.into_iter().filter_map(|txid| self.entries.get(&txid))
    }

    /// The bump fees at a feerate: simulates a miner who takes every package that pays it. `replaced` are transactions
    /// that the payment replaces; they and their descendants do not count. `None` if the cluster is too large.
    pub fn bump_fees(&self, feerate: FeeRate, replaced: impl IntoIterator<Item = Txid>) -> Option<BumpFees> {
        if self.too_many {
            return None;
        }
        let gone = closure(&self.entries, replaced, |entry| entry.spent_by.iter());
        let mut waiting: HashMap<Txid, Waiting> = HashMap::new();
        for (txid, entry) in self.entries.iter().filter(|(txid, _)| !gone.contains(*txid)) {
            let own = FeeFrac { fee: entry.modified_fee, size: entry.virtual_size };
            let with = FeeFrac { fee: entry.ancestor_fees, size: entry.ancestor_size };
            let ancestors = self.ancestors([*txid]).into_iter().collect();
            waiting.insert(*txid, Waiting { own, with, ancestors });
        }
        mine(&mut waiting, feerate);
        Some(BumpFees { waiting, feerate })
    }
}

/// Those of these transactions that are among the entries, and all entries reachable from them by `next`.
pub fn closure<'a, I: Iterator<Item = &'a Txid>>(
    entries: &'a HashMap<Txid, MempoolEntry>,
    txids: impl IntoIterator<Item = Txid>,
    next: impl Fn(&'a MempoolEntry) -> I,
) -> HashSet<Txid> {
    let mut open: Vec<Txid> = txids.into_iter().filter(|txid| entries.contains_key(txid)).collect();
    let mut all: HashSet<Txid> = open.iter().copied().collect();
    while let Some(entry) = open.pop().and_then(|txid| entries.get(&txid)) {
        open.extend(next(entry).filter(|txid| entries.contains_key(*txid) && all.insert(**txid)));
    }
    all
}

/// A transaction that the simulated miner has not taken. Its fees include the deltas of prioritisetransaction.
#[derive(Debug)]
struct Waiting {
    own: FeeFrac,
    /// The transaction with its unmined ancestors.
    with: FeeFrac,
    /// The transaction and its ancestors.
    ancestors: Vec<Txid>,
}

impl Waiting {
    /// The miner's score: a child with a high fee pays for its ancestors, but an ancestor does not pay for its child.
    fn score(&self) -> FeeFrac {
        self.own.min(self.with)
    }
}

/// Takes the best package again and again, as long as it pays the feerate.
fn mine(waiting: &mut HashMap<Txid, Waiting>, feerate: FeeRate) {
    loop {
        let best = waiting.iter().max_by_key(|(txid, one)| (one.score(), Reverse(**txid)));
        let Some((_, best)) = best else { return };
        if best.with.fee < fee(feerate, best.with.size) {
            return;
        }
        for txid in best.ancestors.clone() {
            let Some(Waiting { own, .. }) = waiting.remove(&txid) else { continue };
            for left in waiting.values_mut().filter(|left| left.ancestors.contains(&txid)) {
                left.with.size = left.with.size.saturating_sub(own.size);
                left.with.fee -= own.fee;
            }
        }
    }
}

/// The transactions that the simulated miner does not take at a feerate, and their bump fees.
#[derive(Debug)]
pub struct BumpFees {
    waiting: HashMap<Txid, Waiting>,
    feerate: FeeRate,
}

impl BumpFees {
    /// The fee missing for this transaction and its ancestors. Zero if the mempool does not have it.
    pub fn of(&self, txid: Txid) -> SignedAmount {
        self.waiting.get(&txid).map_or(SignedAmount::ZERO, |waiting| self.missing(waiting.with))
    }

    /// The fee missing for these transactions and their ancestors together. Common ancestors count once.
    pub fn combined(&self, txids: impl IntoIterator<Item = Txid>) -> SignedAmount {
        let waiting = txids.into_iter().filter_map(|txid| self.waiting.get(&txid));
        let all: HashSet<Txid> = waiting.flat_map(|waiting| waiting.ancestors.iter().copied()).collect();
        let packages = all.iter().filter_map(|txid| self.waiting.get(txid)).map(|waiting| waiting.own);
        let none = FeeFrac { fee: SignedAmount::ZERO, size: 0 };
        self.missing(packages.fold(none, |sum, own| FeeFrac { fee: sum.fee + own.fee, size: sum.size + own.size }))
    }

    fn missing(&self, package: FeeFrac) -> SignedAmount {
        (fee(self.feerate, package.size) - package.fee).max(SignedAmount::ZERO)
    }
}
