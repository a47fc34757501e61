//! Selects the transactions of the next block by ancestor feerate, so that a child can pay for its parents.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::iter::Peekable;

use bitcoin::{Txid, Weight};
use foldhash::fast::RandomState;
use outrigger_service::mempool::Selected;
use outrigger_values::FeeFrac;
use outrigger_values::amount::Saturating;

use crate::mempool::{Entry, Pool, Totals, pays};
use crate::params::{MAX_BLOCK_SIGOPS_COST, Settings};
use crate::validation::is_final;

/// The signature operation cost reserved for the coinbase.
const RESERVED_SIGOPS: u64 = 400;
/// A nearly full block counts as full after this many packages in a row that do not fit.
const MAX_FAILURES: usize = 1_000;
/// A block is nearly full if less than this weight is free.
const NEARLY_FULL: Weight = Weight::from_wu(4_000);

/// Selects the transactions of a block on the pool's tip, without copying them.
pub fn choose(pool: &Pool, settings: &Settings) -> Vec<Selected> {
    Builder::new(pool, settings).build()
}

/// The feerate of a transaction with its unselected ancestors, and the transaction: by txid if equal.
type Ranked = (FeeFrac, Reverse<Txid>);

/// Whether an entry has neither parents nor children, like most entries.
fn is_alone(entry: &Entry) -> bool {
    entry.parents.is_empty() && entry.children.is_empty()
}

/// A block under construction.
struct Builder<'a> {
    pool: &'a Pool,
    settings: &'a Settings,
    /// Transactions with some ancestors already selected.
    queue: BinaryHeap<Ranked>,
    /// The totals of each queued transaction and its unselected ancestors, and its feerate. A queued one with another feerate
    /// is stale.
    needs: HashMap<Txid, (Totals, FeeFrac), RandomState>,
    chosen: Vec<&'a Entry>,
    /// The positions, from 1, of the selected transactions with parents or children. Others are never looked up.
    inside: HashMap<Txid, u32, RandomState>,
    weight: Weight,
    sigops: u64,
}

impl<'a> Builder<'a> {
    fn new(pool: &'a Pool, settings: &'a Settings) -> Self {
        Self {
            pool,
            settings,
            queue: BinaryHeap::new(),
            needs: HashMap::default(),
            chosen: Vec::new(),
            inside: HashMap::default(),
            weight: settings.reserved_weight,
            sigops: RESERVED_SIGOPS,
        }
    }

    fn build(mut self) -> Vec<Selected> {
        let mut failures = 0;
        let mut others = self.pool.graph.best_first().peekable();
        while let Some((entry, package)) = self.next(&mut others) {
            let least = self.settings.mempool.block_feerate.fee(package.size);
            if !pays(package.fees, least) {
                // All packages that follow pay less.
                break;
            }
            if !self.fits(&package) {
                failures += 1;
                if failures > MAX_FAILURES && self.weight > Weight::MAX_BLOCK.saturating_sub(NEARLY_FULL) {
                    break;
                }
                continue;
            }
            if self.take(entry) {
                failures = 0;
            }
        }
        self.finish()
    }

    /// The remaining package with the highest feerate, from the queue or from the entries without selected ancestors.
    fn next(&mut self, others: &mut Peekable<impl Iterator<Item = &'a Entry>>) -> Option<(&'a Entry, Totals)> {
        while others.next_if(|entry| self.is_chosen(entry) || self.is_queued(entry)).is_some() {}
        while self.queue.peek().is_some_and(|package| self.is_stale(package)) {
            self.queue.pop();
        }
        let of_others = others.peek().map(|entry| (entry.mining_rate(), Reverse(entry.txid)));
        if of_others.as_ref() > self.queue.peek() {
            return others.next().map(|entry| (entry, entry.ancestors));
        }
        let package = self.queue.pop()?;
        // Queued twice, if an ancestor was selected without an effect on the feerate.
        while self.queue.peek() == Some(&package) {
            self.queue.pop();
        }
        let (_, Reverse(txid)) = package;
        Some((self.pool.graph.get(&txid)?, self.needs.get(&txid)?.0))
    }

    /// Whether an entry was selected, perhaps as an ancestor of another.
    fn is_chosen(&self, entry: &Entry) -> bool {
        !is_alone(entry) && self.inside.contains_key(&entry.txid)
    }

    /// Whether some ancestors were selected, so that the entry is in the queue.
    fn is_queued(&self, entry: &Entry) -> bool {
        !entry.parents.is_empty() && self.needs.contains_key(&entry.txid)
    }

    fn is_stale(&self, (rate, Reverse(txid)): &Ranked) -> bool {
        self.inside.contains_key(txid) || self.needs.get(txid).is_none_or(|(_, now)| now != rate)
    }

    fn fits(&self, package: &Totals) -> bool {
        let weight = Weight::from_vb(package.size).unwrap_or(Weight::MAX);
        self.weight.saturating_add(weight) < Weight::MAX_BLOCK
            && self.sigops.saturating_add(package.sigops) < MAX_BLOCK_SIGOPS_COST
    }

    /// Selects a transaction and its unselected ancestors. Returns false if one of them is not final.
    fn take(&mut self, entry: &'a Entry) -> bool {
        let graph = &self.pool.graph;
        let mut package = vec![entry];
        if !entry.parents.is_empty() {
            let missing = |txid: &Txid| if self.inside.contains_key(txid) { None } else { graph.get(txid) };
            package = graph.ancestors([entry.txid]).iter().filter_map(missing).collect();
            // An entry has more ancestors than each of its ancestors.
            package.sort_by_key(|entry| (entry.ancestors.count, entry.txid));
        }
        let tip = self.pool.tip;
        // `locked` saves reading the transaction, which lies elsewhere in memory.
        let is_final =
            |entry: &&Entry| !entry.locked || is_final(&entry.tx, tip.height.saturating_add(1), tip.median_time);
        if !package.iter().all(is_final) {
            return false;
        }
        for entry in package {
            self.weight = self.weight.saturating_add(entry.weight);
            self.sigops += entry.sigops;
            self.chosen.push(entry);
            self.release(entry);
        }
        true
    }

    /// Subtracts a selected transaction from the totals of its descendants, and queues them.
    fn release(&mut self, chosen: &Entry) {
        if is_alone(chosen) {
            return;
        }
        // A block has far fewer than 2^32 transactions.
        self.inside.insert(chosen.txid, u32::try_from(self.chosen.len()).unwrap_or(u32::MAX));
        let graph = &self.pool.graph;
        for descendant in graph.descendants(chosen.children.iter().copied()) {
            let Some(entry) = graph.get(&descendant) else { continue };
            if self.is_chosen(entry) {
                continue;
            }
            let (needs, rate) = self.needs.entry(descendant).or_insert((entry.ancestors, entry.mining_rate()));
            needs.subtract(&chosen.own());
            *rate = needs.feefrac().min(entry.own().feefrac());
            self.queue.push((*rate, Reverse(descendant)));
        }
    }

    fn finish(self) -> Vec<Selected> {
        let parents = |entry: &Entry| {
            let inputs = entry.tx.input.iter();
            inputs.filter_map(|input| self.inside.get(&input.previous_output.txid)).copied().collect()
        };
        let selected = |entry: &&Entry| Selected {
            raw: entry.raw.clone(),
            txid: entry.txid,
            wtxid: entry.wtxid,
            fee: entry.fee,
            sigops: entry.sigops,
            weight: entry.weight,
            // Most transactions have no parents in the mempool.
            depends: if entry.parents.is_empty() { Vec::new() } else { parents(entry) },
        };
        self.chosen.iter().map(selected).collect()
    }
}
