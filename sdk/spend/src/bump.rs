//! Bump fees: the cost of raising the unconfirmed ancestors of coins to a feerate, so that a payment that spends them
//! is mined at its own feerate (`MiniMiner` of Bitcoin Core).

use std::collections::{HashMap, HashSet};

use bitcoin::{SignedAmount, Txid};
use outrigger_service::Result;
use outrigger_service::mempool::{ClusterLimits, MempoolEntry};
use outrigger_values::FeeRate;

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
            let (size, fees) = (entry.virtual_size, entry.modified_fee);
            let ancestors: Vec<Txid> = self.ancestors([*txid]).into_iter().collect();
            let with = Package { size: entry.ancestor_size, fees: entry.ancestor_fees };
            waiting.insert(*txid, Waiting { own: Package { size, fees }, with, ancestors });
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Package {
    /// The virtual size.
    size: u64,
    /// The fees, with the deltas of prioritisetransaction.
    fees: SignedAmount,
}

impl Package {
    fn pays_less(&self, other: &Self) -> bool {
        i128::from(self.fees.to_sat()) * i128::from(other.size)
            < i128::from(other.fees.to_sat()) * i128::from(self.size)
    }
}

/// A transaction that the simulated miner has not taken.
#[derive(Debug)]
struct Waiting {
    own: Package,
    /// The transaction with its unmined ancestors.
    with: Package,
    /// The transaction and its ancestors.
    ancestors: Vec<Txid>,
}

impl Waiting {
    /// The miner's score: a child with a high fee pays for its ancestors, but an ancestor does not pay for its child.
    fn score(&self) -> Package {
        if self.with.pays_less(&self.own) { self.with } else { self.own }
    }
}

/// Takes the best package again and again, as long as it pays the feerate.
fn mine(waiting: &mut HashMap<Txid, Waiting>, feerate: FeeRate) {
    loop {
        let better = |a: &(&Txid, &Waiting), b: &(&Txid, &Waiting)| {
            let (one, other) = (a.1.score(), b.1.score());
            if one.pays_less(&other) {
                std::cmp::Ordering::Less
            } else if other.pays_less(&one) {
                std::cmp::Ordering::Greater
            } else {
                b.0.cmp(a.0)
            }
        };
        let Some((_, best)) = waiting.iter().max_by(better) else { return };
        if best.with.fees < fee(feerate, best.with.size) {
            return;
        }
        for txid in best.ancestors.clone() {
            let Some(Waiting { own, .. }) = waiting.remove(&txid) else { continue };
            for left in waiting.values_mut().filter(|left| left.ancestors.contains(&txid)) {
                left.with.size = left.with.size.saturating_sub(own.size);
                left.with.fees -= own.fees;
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
        let none = Package { size: 0, fees: SignedAmount::ZERO };
        self.missing(packages.fold(none, |sum, own| Package { size: sum.size + own.size, fees: sum.fees + own.fees }))
    }

    fn missing(&self, package: Package) -> SignedAmount {
        (fee(self.feerate, package.size) - package.fees).max(SignedAmount::ZERO)
    }
}
