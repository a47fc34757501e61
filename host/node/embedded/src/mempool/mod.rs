//! The mempool. It is in memory; a file in the chain's folder restores it after a restart.
//!
//! It is valid for one tip: each entry's locks, coinbase maturity, coins and scripts allow it in the next block. Only the
//! holder of the node's write lock changes it. `sequence` counts each change; `moves` counts entries added and removed.

mod admit;
mod diagram;
pub(super) mod entry;
mod follow;
mod graph;
mod min_feerate;
mod package;
mod policy;
mod replace;
mod truc;

use std::collections::HashMap;
use std::sync::Arc;

use bitcoin::{OutPoint, SignedAmount, Transaction, Txid};
use outrigger_service::chain::{Coin, Tip};
use outrigger_service::mempool::{MempoolEntry, MempoolInfo, PackageMember, Prioritised};
use outrigger_service::wire::Blob;
use outrigger_values::FeeRate;
use outrigger_values::amount::Saturating;

pub use admit::{Admissible, Rejection, Rules, Terms};
pub use entry::{Entry, EntryTime, Offer, Totals, pays};
pub use package::{describe as describe_rejection, fail, outcome_of};

use super::params::MempoolLimits;
use super::store::Reading;
use super::{EmbeddedError, EmbeddedNode};
use graph::Graph;
use min_feerate::{Fullness, RollingMinFeerate};
use outrigger_node::{NodeEvent, Removal};

/// The age at which a transaction is dropped, in seconds.
const EXPIRY: u64 = 336 * 3_600;

/// The chain that the mempool validates against.
pub struct View<'a> {
    pub(super) node: &'a EmbeddedNode,
    txn: Reading<'static>,
    pub(super) tip: Tip,
}

impl<'a> View<'a> {
    /// `tip` must be the tip in the database.
    pub fn new(node: &'a EmbeddedNode, tip: Tip) -> Result<Self, EmbeddedError> {
        Ok(Self { node, txn: node.store.read()?, tip })
    }

    fn next_height(&self) -> u32 {
        self.tip.height.saturating_add(1)
    }

    pub(super) fn coin(&self, outpoint: &OutPoint) -> Result<Option<Coin>, EmbeddedError> {
        self.node.store.coin(&self.txn, outpoint)
    }

    pub(super) fn has_coin_of(&self, txid: &Txid) -> Result<bool, EmbeddedError> {
        self.node.store.has_coin_of(&self.txn, txid)
    }

    fn median_time_at(&self, height: u32) -> Result<u32, EmbeddedError> {
        // An unconfirmed coin counts as confirmed in the next block, so its time lock starts at the tip.
        if height >= self.tip.height {
            return Ok(self.tip.median_time);
        }
        let store = &self.node.store;
        let hash = store.hash_at(&self.txn, height)?.ok_or_else(|| EmbeddedError::corrupt("best", height))?;
        Ok(store.known_entry(&self.txn, &hash)?.median_time)
    }
}

pub struct Pool {
    limits: MempoolLimits,
    pub(super) tip: Tip,
    pub(super) graph: Graph,
    /// The deltas of prioritisetransaction, including those for absent transactions.
    deltas: HashMap<Txid, SignedAmount>,
    pub(super) sequence: u64,
    /// The number of entries added and removed, for any reason.
    moves: u64,
    min_feerate: RollingMinFeerate,
    /// Events that the observers have not received yet.
    pub(super) events: Vec<NodeEvent>,
}

impl Pool {
    pub fn new(limits: MempoolLimits, tip: Tip) -> Self {
        Self {
            limits,
            tip,
            graph: Graph::default(),
            deltas: HashMap::new(),
            sequence: 1,
            moves: 1,
            min_feerate: RollingMinFeerate::default(),
            events: Vec::new(),
        }
    }

    pub fn has(&self, txid: &Txid) -> bool {
        self.graph.get(txid).is_some()
    }

    /// The result for an offer that is already in the mempool, perhaps with another witness.
    pub fn known(&self, offer: &Offer) -> Option<PackageMember> {
        let entry = self.graph.get(&offer.txid)?;
        Some(match entry.wtxid == offer.wtxid {
            true => PackageMember::InMempool { virtual_size: entry.virtual_size(), fee: entry.fee },
            false => PackageMember::OtherWitness { wtxid: entry.wtxid },
        })
    }

    /// `now` is in Unix seconds.
    pub fn info(&self, now: u64) -> MempoolInfo {
        MempoolInfo {
            transactions: self.graph.totals.count,
            virtual_size: self.graph.totals.size,
            usage: self.graph.usage,
            total_fee: self.graph.fees,
            max_usage: self.limits.max_usage,
            min_feerate: self.demanded_feerate(now).max(self.limits.relay_feerate),
            relay_feerate: self.limits.relay_feerate,
            incremental_feerate: self.limits.incremental_feerate,
            sequence: self.sequence,
            moves: self.moves,
            unbroadcast: self.graph.unbroadcast,
            clusters: None,
        }
    }

    /// The minimum feerate after evictions; zero if there is none.
    fn demanded_feerate(&self, now: u64) -> FeeRate {
        self.min_feerate.at(now, self.fullness())
    }

    fn fullness(&self) -> Fullness {
        let MempoolLimits { max_usage, incremental_feerate, .. } = self.limits;
        Fullness { usage: self.graph.usage, max_usage, incremental: incremental_feerate }
    }

    /// In the order of arrival.
    pub fn ids(&self) -> Vec<Txid> {
        self.graph.in_order().map(|entry| entry.txid).collect()
    }

    /// In the order of arrival.
    pub fn all(&self) -> Vec<(Txid, Arc<Transaction>)> {
        self.graph.in_order().map(|entry| (entry.txid, entry.tx.clone())).collect()
    }

    pub fn entries(&self, txids: &[Txid]) -> Vec<Option<MempoolEntry>> {
        let describe = |entry: &Entry| entry.describe(self.is_replaceable(entry));
        txids.iter().map(|txid| self.graph.get(txid).map(describe)).collect()
    }

    /// Whether an entry or an ancestor signals replaceability (BIP 125).
    fn is_replaceable(&self, entry: &Entry) -> bool {
        let ancestors = self.graph.ancestors([entry.txid]);
        ancestors.iter().filter_map(|txid| self.graph.get(txid)).any(|entry| entry.tx.is_explicitly_rbf())
    }

    pub fn transactions(&self, txids: &[Txid]) -> Vec<Option<Blob>> {
        let raw = |entry: &Entry| Blob(entry.raw.to_vec());
        txids.iter().map(|txid| self.graph.get(txid).map(raw)).collect()
    }

    pub fn spenders(&self, outpoints: &[OutPoint]) -> Vec<Option<Txid>> {
        outpoints.iter().map(|outpoint| self.graph.spender(outpoint).copied()).collect()
    }

    fn output(&self, outpoint: &OutPoint) -> Option<bitcoin::TxOut> {
        self.graph.get(&outpoint.txid)?.tx.output.get(outpoint.vout as usize).cloned()
    }

    /// Adds to the fee delta of a transaction, present or absent.
    pub fn prioritise(&mut self, txid: Txid, delta: SignedAmount) {
        self.set_delta(txid, self.deltas.get(&txid).copied().unwrap_or_default().saturating_add(delta));
    }

    pub fn set_delta(&mut self, txid: Txid, total: SignedAmount) {
        if total == SignedAmount::ZERO {
            self.deltas.remove(&txid);
        } else {
            self.deltas.insert(txid, total);
        }
        if self.has(&txid) {
            self.graph.set_delta(&txid, total);
            self.sequence += 1;
        }
    }

    /// The fee deltas, ordered by txid.
    pub fn prioritised(&self) -> Vec<Prioritised> {
        let describe = |(txid, delta): (&Txid, &SignedAmount)| Prioritised {
            txid: *txid,
            fee_delta: *delta,
            modified_fee: self.graph.get(txid).map(Entry::modified_fee),
        };
        let mut all: Vec<_> = self.deltas.iter().map(describe).collect();
        all.sort_unstable_by_key(|one| one.txid);
        all
    }

    /// Drops entries and their descendants, and emits their events by txid, as bitcoind does.
    fn remove_all(&mut self, txids: impl IntoIterator<Item = Txid>) {
        let doomed = self.graph.descendants(txids);
        let mut ordered: Vec<_> =
            doomed.iter().filter_map(|txid| self.graph.get(txid)).map(|entry| (entry.order, entry.txid)).collect();
        // Children arrived after their parents. They are removed first, while they are still linked to ancestors.
        ordered.sort_unstable();
        ordered.iter().rev().for_each(|(_, txid)| drop(self.graph.remove(txid)));
        doomed.into_iter().for_each(|txid| self.tell_removed(txid, Removal::Dropped));
    }

    fn tell_removed(&mut self, txid: Txid, reason: Removal) {
        self.sequence += 1;
        self.moves += 1;
        self.events.push(NodeEvent::TransactionRemoved { txid, reason, sequence: self.sequence });
    }

    /// Adds an entry, and emits its event with this time, in Unix seconds.
    fn add(&mut self, entry: Entry, time: u64) {
        self.sequence += 1;
        self.moves += 1;
        let transaction = entry.tx.clone();
        self.graph.insert(entry);
        self.events.push(NodeEvent::TransactionAdded { transaction, time, sequence: self.sequence });
    }

    /// Removes expired entries, then evicts those with the lowest feerate until the rest fits.
    pub fn trim(&mut self, now: u64) {
        let expired = self.graph.older_than(now.saturating_sub(EXPIRY));
        self.remove_all(expired);
        while self.graph.usage > self.limits.max_usage {
            let Some(worst) = self.graph.worst() else { break };
            let rate = worst.descendants.feerate().saturating_add(self.limits.incremental_feerate);
            let txid = worst.txid;
            self.min_feerate.raise(rate, now, self.fullness());
            self.remove_all([txid]);
        }
    }
}
