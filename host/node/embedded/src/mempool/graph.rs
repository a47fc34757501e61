//! The mempool's entries and their links.
//!
//! Invariants: `spent` maps each spent outpoint to its spender; parents and children mirror each other; an entry's
//! totals are the sums over its ancestors and descendants, itself included.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use bitcoin::{Amount, OutPoint, SignedAmount, Txid};
use foldhash::fast::RandomState;
use outrigger_values::amount::Saturating;

use super::entry::{Entry, Totals};

#[derive(Default)]
pub struct Graph {
    entries: HashMap<Txid, Entry, RandomState>,
    order: BTreeMap<u64, Txid>,
    spent: HashMap<OutPoint, Txid, RandomState>,
    next_order: u64,
    /// A lower bound of the entries' times, in Unix seconds. For a limit up to it, [`Graph::older_than`] reads no entry.
    oldest: u64,
    /// The sum over all entries.
    pub totals: Totals,
    /// The estimated memory of all entries, in bytes.
    pub usage: u64,
    /// The fees of all entries, without deltas.
    pub fees: Amount,
    /// The number of unbroadcast entries.
    pub unbroadcast: u64,
}

impl Graph {
    pub fn get(&self, txid: &Txid) -> Option<&Entry> {
        self.entries.get(txid)
    }

    /// In the order of arrival: parents come before children, since a reorganisation inserts all entries again.
    pub fn in_order(&self) -> impl Iterator<Item = &Entry> {
        self.order.values().filter_map(|txid| self.entries.get(txid))
    }

    /// By mining feerate, the highest first; by txid if equal.
    pub fn best_first(&self) -> impl Iterator<Item = &Entry> {
        let mut all: Vec<&Entry> = self.entries.values().collect();
        all.sort_by_cached_key(|entry| (Reverse(entry.mining_rate()), entry.txid));
        all.into_iter()
    }

    /// The entry to evict first: the lowest keeping rate, then the latest arrival.
    pub fn worst(&self) -> Option<&Entry> {
        self.entries.values().min_by_key(|entry| (entry.keeping_rate(), Reverse(entry.order)))
    }

    /// The entries from before `time`, in Unix seconds.
    pub fn older_than(&mut self, time: u64) -> Vec<Txid> {
        if self.oldest >= time {
            return Vec::new();
        }
        self.oldest = self.entries.values().map(|entry| entry.entered.time).min().unwrap_or(u64::MAX);
        self.entries.values().filter(|entry| entry.entered.time < time).map(|entry| entry.txid).collect()
    }

    pub fn spender(&self, outpoint: &OutPoint) -> Option<&Txid> {
        self.spent.get(outpoint)
    }

    /// These entries and their ancestors.
    pub fn ancestors(&self, parents: impl IntoIterator<Item = Txid>) -> BTreeSet<Txid> {
        self.walk(parents, |entry| &entry.parents)
    }

    /// These entries and their descendants.
    pub fn descendants(&self, of: impl IntoIterator<Item = Txid>) -> BTreeSet<Txid> {
        self.walk(of, |entry| &entry.children)
    }

    /// The entries that `next` reaches from `start`, which is included.
    fn walk(&self, start: impl IntoIterator<Item = Txid>, next: impl Fn(&Entry) -> &BTreeSet<Txid>) -> BTreeSet<Txid> {
        let mut reached = BTreeSet::new();
        let mut waiting: Vec<_> = start.into_iter().collect();
        while let Some(txid) = waiting.pop() {
            if let Some(entry) = self.entries.get(&txid)
                && reached.insert(txid)
            {
                waiting.extend(next(entry).iter().copied());
            }
        }
        reached
    }

    pub fn sum<'a>(&self, txids: impl IntoIterator<Item = &'a Txid>) -> Totals {
        let mut sum = Totals::default();
        for entry in txids.into_iter().filter_map(|txid| self.entries.get(txid)) {
            sum.add(&entry.own());
        }
        sum
    }

    /// Adds an entry and links it to its parents. The caller has removed conflicting entries, and the mempool has no child
    /// of the entry yet.
    pub fn insert(&mut self, mut entry: Entry) {
        let txid = entry.txid;
        entry.order = self.next_order;
        self.next_order += 1;
        let inputs = entry.tx.input.iter().map(|input| input.previous_output);
        entry.parents =
            inputs.clone().map(|outpoint| outpoint.txid).filter(|parent| self.entries.contains_key(parent)).collect();
        let ancestors = self.ancestors(entry.parents.iter().copied());
        let own = entry.own();
        for ancestor in &ancestors {
            self.change(ancestor, |ancestor| ancestor.descendants.add(&own));
        }
        for parent in &entry.parents {
            self.change(parent, |parent| _ = parent.children.insert(txid));
        }
        entry.children.clear();
        entry.ancestors = self.sum(&ancestors);
        entry.ancestors.add(&own);
        entry.descendants = own;
        self.spent.extend(inputs.map(|outpoint| (outpoint, txid)));
        self.totals.add(&own);
        self.usage += entry.usage();
        self.fees = self.fees.saturating_add(entry.fee);
        self.unbroadcast += u64::from(entry.entered.unbroadcast);
        self.order.insert(entry.order, txid);
        self.oldest = self.oldest.min(entry.entered.time);
        self.entries.insert(txid, entry);
    }

    fn change(&mut self, txid: &Txid, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.get_mut(txid) {
            change(entry);
        }
    }

    /// Removes one entry and leaves its descendants.
    pub fn remove(&mut self, txid: &Txid) -> Option<Entry> {
        let entry = self.get(txid)?;
        let own = entry.own();
        // Both sets are usually empty.
        let ancestors = self.ancestors(entry.parents.iter().copied());
        let descendants = self.descendants(entry.children.iter().copied());
        for ancestor in &ancestors {
            self.change(ancestor, |ancestor| ancestor.descendants.subtract(&own));
        }
        for descendant in &descendants {
            self.change(descendant, |descendant| descendant.ancestors.subtract(&own));
        }
        let entry = self.entries.remove(txid)?;
        for parent in &entry.parents {
            self.change(parent, |parent| _ = parent.children.remove(txid));
        }
        for child in &entry.children {
            self.change(child, |child| _ = child.parents.remove(txid));
        }
        for input in &entry.tx.input {
            self.spent.remove(&input.previous_output);
        }
        self.totals.subtract(&own);
        self.usage = self.usage.saturating_sub(entry.usage());
        self.fees = self.fees.saturating_sub(entry.fee);
        self.unbroadcast = self.unbroadcast.saturating_sub(u64::from(entry.entered.unbroadcast));
        self.order.remove(&entry.order);
        Some(entry)
    }

    pub fn set_delta(&mut self, txid: &Txid, delta: SignedAmount) {
        let Some(before) = self.get(txid).map(Entry::own) else { return };
        self.change(txid, |entry| entry.delta = delta);
        let Some(after) = self.get(txid).map(Entry::own) else { return };
        let exchange = |totals: &mut Totals| {
            totals.subtract(&before);
            totals.add(&after);
        };
        for ancestor in self.ancestors([*txid]) {
            self.change(&ancestor, |ancestor| exchange(&mut ancestor.descendants));
        }
        for descendant in self.descendants([*txid]) {
            self.change(&descendant, |descendant| exchange(&mut descendant.ancestors));
        }
        exchange(&mut self.totals);
    }

    /// Removes all entries and returns them in the order of arrival.
    pub fn drain(&mut self) -> Vec<Entry> {
        let order = std::mem::take(&mut self.order);
        let mut entries = std::mem::take(&mut self.entries);
        self.spent.clear();
        (self.totals, self.usage, self.fees, self.unbroadcast) = (Totals::default(), 0, Amount::ZERO, 0);
        order.into_values().filter_map(|txid| entries.remove(&txid)).collect()
    }

    /// Checks the invariants against recomputed sums and links.
    #[cfg(test)]
    pub fn assert_consistent(&self) {
        let mut totals = Totals::default();
        for entry in self.entries.values() {
            totals.add(&entry.own());
            assert_eq!(entry.ancestors, self.sum(&self.ancestors([entry.txid])), "ancestors of {}", entry.txid);
            assert_eq!(entry.descendants, self.sum(&self.descendants([entry.txid])), "descendants of {}", entry.txid);
            for input in &entry.tx.input {
                assert_eq!(self.spent.get(&input.previous_output), Some(&entry.txid));
                let parent = input.previous_output.txid;
                assert_eq!(entry.parents.contains(&parent), self.entries.contains_key(&parent));
            }
            for child in &entry.children {
                assert!(self.entries[child].parents.contains(&entry.txid));
                assert!(entry.order < self.entries[child].order, "{} arrived before a parent", child);
            }
        }
        assert_eq!(self.totals, totals);
        assert_eq!(self.order.len(), self.entries.len());
        assert_eq!(self.unbroadcast, self.entries.values().filter(|entry| entry.entered.unbroadcast).count() as u64);
        assert_eq!(self.spent.len(), self.entries.values().map(|entry| entry.tx.input.len()).sum::<usize>());
    }
}
