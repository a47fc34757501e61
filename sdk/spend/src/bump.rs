//! What it costs to raise the unconfirmed ancestors of coins to a feerate, so that a payment that spends them is mined as soon
//! as its own feerate promises (`MiniMiner` of Bitcoin Core).

use std::collections::{HashMap, HashSet};

use bitcoin::{SignedAmount, Txid};
use outrigger_service::Result;
use outrigger_service::mempool::MempoolEntry;
use outrigger_values::FeeRate;

use crate::Services;
use crate::coin::fee;

/// The most transactions that are looked at, as by Bitcoin Core.
const MAX_CLUSTER: usize = 500;

/// The transactions of the mempool that are connected with some.
#[derive(Debug, Default)]
pub struct Unconfirmed {
    entries: HashMap<Txid, MempoolEntry>,
    /// There are more than [`MAX_CLUSTER`], and not all are here.
    too_many: bool,
}

impl Unconfirmed {
    /// What the mempool tells of these transactions and those that are connected with them, over any number of steps.
    ///
    /// # Errors
    /// As [`outrigger_service::Mempool::entries`].
    pub fn connected(services: Services<'_>, txids: impl IntoIterator<Item = Txid>) -> Result<Self> {
        let mut found = Self::default();
        let mut seen: HashSet<Txid> = txids.into_iter().collect();
        let mut asked: Vec<Txid> = seen.iter().copied().collect();
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

    /// These transactions and no others.
    #[cfg(test)]
    pub fn of(entries: Vec<MempoolEntry>) -> Self {
        Self { entries: entries.into_iter().map(|entry| (entry.txid, entry)).collect(), too_many: false }
    }

    /// What the mempool tells of one.
    pub fn entry(&self, txid: Txid) -> Option<&MempoolEntry> {
        self.entries.get(&txid)
    }

    /// How many transactions of the mempool one builds on, itself included, and the most that build on one of these,
    /// likewise. Both are 0 for one that is not in the mempool.
    pub fn ancestry(&self, txid: Txid) -> (u64, u64) {
        let ancestors = self.ancestors([txid]);
        let count = self.entries.get(&txid).map_or(0, |entry| entry.ancestor_count);
        let descendants =
            ancestors.iter().filter_map(|txid| self.entries.get(txid)).map(|entry| entry.descendant_count);
        (count, descendants.max().unwrap_or(0))
    }

    /// These transactions and all that they build on, as far as they are here.
    fn ancestors(&self, txids: impl IntoIterator<Item = Txid>) -> HashSet<Txid> {
        self.closure(txids, |entry| &entry.depends)
    }

    fn closure<'a>(
        &'a self,
        txids: impl IntoIterator<Item = Txid>,
        next: impl Fn(&'a MempoolEntry) -> &'a [Txid],
    ) -> HashSet<Txid> {
        let mut open: Vec<Txid> = txids.into_iter().filter(|txid| self.entries.contains_key(txid)).collect();
        let mut all: HashSet<Txid> = open.iter().copied().collect();
        while let Some(txid) = open.pop() {
            let near = self.entries.get(&txid).map(&next).unwrap_or_default();
            let new = near.iter().copied().filter(|txid| self.entries.contains_key(txid) && all.insert(*txid));
            open.extend(new);
        }
        all
    }

    /// What is left when a miner takes all that pays the feerate by itself and with its ancestors. None where there are too many
    /// transactions to look at. `replaced` are transactions that the payment takes the place of.
    pub fn bump_fees(&self, feerate: FeeRate, replaced: impl IntoIterator<Item = Txid>) -> Option<BumpFees> {
        if self.too_many {
            return None;
        }
        let gone = self.closure(replaced, |entry| &entry.spent_by);
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

/// Transactions together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Package {
    /// Their virtual size.
    size: u64,
    /// Their fees with what was added.
    fees: SignedAmount,
}

impl Package {
    /// Compares the feerates.
    fn pays_less(&self, other: &Self) -> bool {
        i128::from(self.fees.to_sat()) * i128::from(other.size)
            < i128::from(other.fees.to_sat()) * i128::from(self.size)
    }
}

/// A transaction that no miner has taken.
#[derive(Debug)]
struct Waiting {
    own: Package,
    /// It with the ancestors that wait as well.
    with: Package,
    /// It and its ancestors.
    ancestors: Vec<Txid>,
}

impl Waiting {
    /// What a miner takes it for: a child that pays much pays for its ancestors, but an ancestor does not pay for it.
    fn score(&self) -> Package {
        if self.with.pays_less(&self.own) { self.with } else { self.own }
    }
}

/// Takes the best transactions with their ancestors, as long as these pay the feerate together.
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

/// The transactions that pay less than a feerate.
#[derive(Debug)]
pub struct BumpFees {
    waiting: HashMap<Txid, Waiting>,
    feerate: FeeRate,
}

impl BumpFees {
    /// What raising this transaction with its ancestors costs.
    pub fn of(&self, txid: Txid) -> SignedAmount {
        self.waiting.get(&txid).map_or(SignedAmount::ZERO, |waiting| self.missing(waiting.with))
    }

    /// What raising these transactions with their ancestors costs together: less than the sum, where they have
    /// ancestors in common.
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
