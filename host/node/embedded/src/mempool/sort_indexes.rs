//! Indexes over the entries: in the order in which they are mined, evicted from a full mempool, and expire.
//!
//! Each change of an entry's totals updates them, so that nobody has to look at all entries.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use bitcoin::Txid;

use super::entry::{Entry, FeeFrac};

/// An entry's keys in the indexes.
#[derive(Clone, Copy)]
pub struct SortKeys {
    mining: (FeeFrac, Reverse<Txid>),
    keeping: (FeeFrac, Reverse<u64>),
    age: (u64, u64),
}

impl SortKeys {
    /// The keys of an entry as it is.
    pub fn of(entry: &Entry) -> Self {
        Self {
            mining: (entry.mining_rate(), Reverse(entry.txid)),
            keeping: (entry.keeping_rate(), Reverse(entry.order)),
            age: (entry.time, entry.order),
        }
    }
}

/// The indexes. They hold an entry's id, or its number in the order of arrival.
#[derive(Default)]
pub struct SortIndexes {
    /// By the rate they are chosen by, and of equal ones the lowest id last.
    mining: BTreeSet<(FeeFrac, Reverse<Txid>)>,
    /// By the rate they are kept by, and of equal ones the latest first.
    keeping: BTreeSet<(FeeFrac, Reverse<u64>)>,
    /// By the time at which they came.
    age: BTreeSet<(u64, u64)>,
}

impl SortIndexes {
    /// Adds an entry.
    pub fn insert(&mut self, places: SortKeys) {
        self.mining.insert(places.mining);
        self.keeping.insert(places.keeping);
        self.age.insert(places.age);
    }

    /// Takes an entry out.
    pub fn remove(&mut self, places: SortKeys) {
        self.mining.remove(&places.mining);
        self.keeping.remove(&places.keeping);
        self.age.remove(&places.age);
    }

    /// Moves an entry whose totals have changed.
    pub fn shift(&mut self, before: SortKeys, after: SortKeys) {
        if before.mining != after.mining {
            self.mining.remove(&before.mining);
            self.mining.insert(after.mining);
        }
        if before.keeping != after.keeping {
            self.keeping.remove(&before.keeping);
            self.keeping.insert(after.keeping);
        }
    }

    /// The ids, the best to mine first.
    pub fn best_first(&self) -> impl Iterator<Item = &Txid> {
        self.mining.iter().rev().map(|(_, Reverse(txid))| txid)
    }

    /// The arrival of the one that is least worth keeping.
    pub fn worst(&self) -> Option<u64> {
        self.keeping.first().map(|(_, Reverse(order))| *order)
    }

    /// The arrivals of those that came before a time, in seconds.
    pub fn older_than(&self, time: u64) -> impl Iterator<Item = u64> {
        self.age.range(..(time, 0)).map(|(_, order)| *order)
    }

    /// How many entries each order has.
    #[cfg(test)]
    pub fn counts(&self) -> [usize; 3] {
        [self.mining.len(), self.keeping.len(), self.age.len()]
    }

    /// Whether an entry stands where it must.
    #[cfg(test)]
    pub fn has(&self, places: SortKeys) -> bool {
        self.mining.contains(&places.mining) && self.keeping.contains(&places.keeping) && self.age.contains(&places.age)
    }
}
