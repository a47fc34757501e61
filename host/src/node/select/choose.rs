//! Which transactions go into the next block.
//!
//! Chosen by the feerate of each together with all it still needs, so that a child can pay for its parents. The mempool
//! keeps them in that order, so that choosing costs what the block holds, however large the mempool is.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::iter::Peekable;
use std::sync::Arc;

use bitcoin::{Txid, Wtxid};
use outrigger_sdk::service::mempool::{Selected, Selection};
use outrigger_sdk::wire::Blob;

use crate::node::judge::is_final;
use crate::node::mempool::{Entry, FeeRate, Pool, Rate, Totals};
use crate::node::params::{MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT, Settings, WITNESS_SCALE_FACTOR};

/// After how many packages in a row that do not fit the block counts as full, if it nearly is.
const MAX_FAILURES: usize = 1_000;
/// A block that lacks less than this weight is nearly full.
const NEARLY_FULL: u64 = 4_000;

/// A chosen transaction.
struct Picked {
    raw: Arc<[u8]>,
    txid: Txid,
    wtxid: Wtxid,
    fee: u64,
    sigops: u64,
    weight: u64,
    depends: Vec<u32>,
}

/// What was chosen, without having copied any transaction.
pub struct Choice(Vec<Picked>);

impl Choice {
    /// The choice for a block on the pool's tip.
    pub fn of(pool: &Pool, settings: &Settings) -> Self {
        Self(Builder::new(pool, settings).build())
    }

    /// Whether these are the transactions chosen, in this order.
    pub fn is(&self, transactions: &[Selected]) -> bool {
        self.0.iter().map(|picked| picked.wtxid).eq(transactions.iter().map(|selected| selected.wtxid))
    }

    /// The sum of their fees, in satoshi.
    pub fn fees(&self) -> u64 {
        self.0.iter().map(|picked| picked.fee).sum()
    }

    /// The transactions as the service tells them.
    pub fn describe(self) -> Selection {
        let selected = |picked: Picked| Selected {
            raw: Blob(picked.raw.to_vec()),
            txid: picked.txid,
            wtxid: picked.wtxid,
            fee: picked.fee,
            sigops: picked.sigops,
            weight: picked.weight,
            depends: picked.depends,
        };
        self.0.into_iter().map(selected).collect::<Vec<_>>().into()
    }
}

/// A transaction that needs less than all it builds on, since some of that has been chosen.
struct Package {
    txid: Txid,
    /// What it still needs, itself included.
    needs: Totals,
    rate: Rate,
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
        self.rate.cmp(&other.rate).then_with(|| other.txid.cmp(&self.txid))
    }
}

/// A block's transactions in the making.
struct Builder<'a> {
    pool: &'a Pool,
    settings: &'a Settings,
    /// Those that need less than all they build on.
    queue: BinaryHeap<Package>,
    /// What they need by now; an older package in the queue is stale.
    needs: HashMap<Txid, Totals>,
    chosen: Vec<&'a Entry>,
    inside: HashSet<Txid>,
    weight: u64,
    sigops: u64,
}

impl<'a> Builder<'a> {
    fn new(pool: &'a Pool, settings: &'a Settings) -> Self {
        Self {
            pool,
            settings,
            queue: BinaryHeap::new(),
            needs: HashMap::new(),
            chosen: Vec::new(),
            inside: HashSet::new(),
            weight: settings.reserved_weight,
            sigops: settings.reserved_sigops,
        }
    }

    fn build(mut self) -> Vec<Picked> {
        let mut failures = 0;
        let mut others = self.pool.graph().best_first().peekable();
        while let Some((txid, package)) = self.next(&mut others) {
            let least = FeeRate(self.settings.mempool.block_feerate).fee(package.size);
            if i128::from(package.fees) < i128::from(least) {
                // Everything that follows pays less.
                break;
            }
            if !self.fits(&package) {
                failures += 1;
                if failures > MAX_FAILURES && self.weight > MAX_BLOCK_WEIGHT.saturating_sub(NEARLY_FULL) {
                    break;
                }
                continue;
            }
            if self.take(&txid) {
                failures = 0;
            }
        }
        self.finish()
    }

    /// The best of what is left: of the queue, or of those that still need all they build on. With what it needs.
    fn next(&mut self, others: &mut Peekable<impl Iterator<Item = &'a Entry>>) -> Option<(Txid, Totals)> {
        while others
            .next_if(|entry| self.inside.contains(&entry.txid) || self.needs.contains_key(&entry.txid))
            .is_some()
        {}
        while self.queue.peek().is_some_and(|package| self.is_stale(package)) {
            self.queue.pop();
        }
        let of_others = others.peek().map(|entry| (entry.mining_rate(), Reverse(entry.txid)));
        let of_queue = self.queue.peek().map(|package| (package.rate, Reverse(package.txid)));
        if of_others > of_queue {
            others.next().map(|entry| (entry.txid, entry.ancestors))
        } else {
            self.queue.pop().map(|package| (package.txid, package.needs))
        }
    }

    fn is_stale(&self, package: &Package) -> bool {
        self.inside.contains(&package.txid) || self.needs.get(&package.txid) != Some(&package.needs)
    }

    fn fits(&self, package: &Totals) -> bool {
        self.weight.saturating_add(package.size.saturating_mul(WITNESS_SCALE_FACTOR)) < MAX_BLOCK_WEIGHT
            && self.sigops.saturating_add(package.sigops) < MAX_BLOCK_SIGOPS_COST
    }

    /// Takes a transaction with all it still needs, unless one of them is not final.
    fn take(&mut self, txid: &Txid) -> bool {
        let graph = self.pool.graph();
        let missing = |txid: &Txid| if self.inside.contains(txid) { None } else { graph.get(txid) };
        let mut package: Vec<_> = graph.ancestors([*txid]).iter().filter_map(missing).collect();
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
        if chosen.children.is_empty() {
            return;
        }
        let graph = self.pool.graph();
        for descendant in graph.descendants([chosen.txid]) {
            let Some(entry) = graph.get(&descendant) else { continue };
            if self.inside.contains(&descendant) {
                continue;
            }
            let needs = self.needs.entry(descendant).or_insert(entry.ancestors);
            needs.subtract(&chosen.own());
            let rate = needs.rate().min(entry.own().rate());
            self.queue.push(Package { txid: descendant, needs: *needs, rate });
        }
    }

    fn finish(self) -> Vec<Picked> {
        let positions: HashMap<_, _> = (1_u32..).zip(&self.chosen).map(|(at, entry)| (entry.txid, at)).collect();
        let parents = |entry: &Entry| {
            let inputs = entry.tx.input.iter();
            inputs.filter_map(|input| positions.get(&input.previous_output.txid)).copied().collect()
        };
        let picked = |entry: &&Entry| Picked {
            raw: entry.raw.clone(),
            txid: entry.txid,
            wtxid: entry.wtxid,
            fee: entry.fee,
            sigops: entry.sigops,
            weight: entry.weight,
            // Most build on nothing in the mempool.
            depends: if entry.parents.is_empty() { Vec::new() } else { parents(entry) },
        };
        self.chosen.iter().map(picked).collect()
    }
}
