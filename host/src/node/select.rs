//! Which transactions go into the next block.
//!
//! Chosen by the feerate of each together with all it still needs, so that a child can pay for its parents. The choice
//! is kept until the tip or the mempool changes.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use bitcoin::{BlockHash, Txid};
use outrigger_sdk::service::mempool::{Candidate, Selected};
use outrigger_sdk::wire::Blob;

use super::judge::is_final;
use super::mempool::{Entry, FeeRate, Pool, Totals};
use super::params::{MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT, Settings, WITNESS_SCALE_FACTOR};

/// After how many packages in a row that do not fit the block counts as full, if it nearly is.
const MAX_FAILURES: usize = 1_000;
/// A block that lacks less than this weight is nearly full.
const NEARLY_FULL: u64 = 4_000;

/// The choice made last.
#[derive(Default)]
pub struct Selection {
    last: RwLock<Option<(BlockHash, u64, Arc<Candidate>)>>,
}

impl Selection {
    /// The choice for a block on the pool's tip.
    pub fn of(&self, pool: &Pool, settings: &Settings) -> Arc<Candidate> {
        let (tip, sequence) = (pool.tip().hash, pool.sequence());
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((of_tip, at, candidate)) = last
            && (of_tip, at) == (tip, sequence)
        {
            return candidate;
        }
        let candidate = Arc::new(Builder::new(pool, settings).build());
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some((tip, sequence, candidate.clone()));
        candidate
    }
}

/// A transaction with what it still needs, as it stands in the queue.
struct Package {
    txid: Txid,
    totals: Totals,
    own: Totals,
}

impl Package {
    /// The feerate a package is chosen by: that of all of it, or of its last transaction if that is lower.
    fn score(&self) -> &Totals {
        if self.own.cmp_feerate(&self.totals) == Ordering::Less { &self.own } else { &self.totals }
    }
}

impl PartialEq for Package {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Package {}

impl PartialOrd for Package {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Package {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score().cmp_feerate(other.score()).then_with(|| other.txid.cmp(&self.txid))
    }
}

/// A block's transactions in the making.
struct Builder<'a> {
    pool: &'a Pool,
    settings: &'a Settings,
    queue: BinaryHeap<Package>,
    /// What each transaction still needs, itself included, where that is less than all it builds on.
    needs: HashMap<Txid, Totals>,
    chosen: Vec<&'a Entry>,
    inside: HashSet<Txid>,
    weight: u64,
    sigops: u64,
}

impl<'a> Builder<'a> {
    fn new(pool: &'a Pool, settings: &'a Settings) -> Self {
        let package = |entry: &Entry| Package { txid: entry.txid, totals: entry.ancestors, own: entry.own() };
        Self {
            queue: pool.graph().in_order().map(package).collect(),
            pool,
            settings,
            needs: HashMap::new(),
            chosen: Vec::new(),
            inside: HashSet::new(),
            weight: settings.reserved_weight,
            sigops: settings.reserved_sigops,
        }
    }

    fn build(mut self) -> Candidate {
        let mut failures = 0;
        while let Some(package) = self.queue.pop() {
            let stale = self.needs.get(&package.txid).is_some_and(|needs| *needs != package.totals);
            if stale || self.inside.contains(&package.txid) {
                continue;
            }
            let least = FeeRate(self.settings.mempool.block_feerate).fee(package.totals.size);
            if i128::from(package.totals.fees) < i128::from(least) {
                // Everything that follows pays less.
                break;
            }
            if !self.fits(&package.totals) {
                failures += 1;
                if failures > MAX_FAILURES && self.weight > MAX_BLOCK_WEIGHT.saturating_sub(NEARLY_FULL) {
                    break;
                }
                continue;
            }
            if self.take(&package.txid) {
                failures = 0;
            }
        }
        self.finish()
    }

    fn fits(&self, package: &Totals) -> bool {
        self.weight.saturating_add(package.size.saturating_mul(WITNESS_SCALE_FACTOR)) < MAX_BLOCK_WEIGHT
            && self.sigops.saturating_add(package.sigops) < MAX_BLOCK_SIGOPS_COST
    }

    /// Takes a transaction with all it still needs, unless one of them is not final.
    fn take(&mut self, txid: &Txid) -> bool {
        let graph = self.pool.graph();
        let mut package: Vec<_> = graph
            .ancestors([*txid])
            .iter()
            .filter(|txid| !self.inside.contains(*txid))
            .filter_map(|txid| graph.get(txid))
            .collect();
        let tip = self.pool.tip();
        if !package.iter().all(|entry| is_final(&entry.tx, tip.height.saturating_add(1), tip.median_time)) {
            return false;
        }
        // Whoever has fewer ancestors cannot build on one who has more.
        package.sort_by_key(|entry| (entry.ancestors.count, entry.txid));
        for entry in package {
            self.weight += entry.weight;
            self.sigops += entry.sigops;
            self.inside.insert(entry.txid);
            self.chosen.push(entry);
            self.release(entry);
        }
        true
    }

    /// Lets those that build on a chosen transaction need it no longer.
    fn release(&mut self, chosen: &Entry) {
        let graph = self.pool.graph();
        for descendant in graph.descendants([chosen.txid]) {
            let Some(entry) = graph.get(&descendant) else { continue };
            if self.inside.contains(&descendant) {
                continue;
            }
            let needs = self.needs.entry(descendant).or_insert(entry.ancestors);
            needs.subtract(&chosen.own());
            self.queue.push(Package { txid: descendant, totals: *needs, own: entry.own() });
        }
    }

    fn finish(self) -> Candidate {
        let positions: HashMap<_, _> = (1_u32..).zip(&self.chosen).map(|(at, entry)| (entry.txid, at)).collect();
        let selected = |entry: &&Entry| Selected {
            raw: Blob(entry.raw.to_vec()),
            txid: entry.txid,
            wtxid: entry.wtxid,
            fee: entry.fee,
            sigops: entry.sigops,
            weight: entry.weight,
            depends: entry
                .tx
                .input
                .iter()
                .filter_map(|input| positions.get(&input.previous_output.txid))
                .copied()
                .collect(),
        };
        Candidate {
            transactions: self.chosen.iter().map(selected).collect(),
            fees: self.chosen.iter().map(|entry| entry.fee).sum(),
            sequence: self.pool.sequence(),
        }
    }
}
