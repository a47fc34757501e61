//! The mempool: valid transactions that no block holds yet. It lives in memory and is empty after a start.
//!
//! It belongs to one tip: every entry could be in the next block on it, as far as locks, maturity, coins and scripts
//! go. It changes under the node's write lock only; `sequence` counts each change.

mod admit;
mod entry;
mod follow;
mod graph;
mod policy;
mod replace;

use std::collections::HashMap;

use bitcoin::{OutPoint, Txid};
use outrigger_sdk::service::chain::{Coin, Tip};
use outrigger_sdk::service::mempool::{MempoolEntry, MempoolInfo, RawTransaction};
use outrigger_sdk::wire::Blob;

pub use admit::{Admissible, Offer, Rejection, Terms};
pub use entry::{Entry, FeeRate, Totals};

use super::observer::{NodeEvent, Removal};
use super::params::MempoolLimits;
use super::store::Reading;
use super::{EmbeddedNode, NodeError};
use graph::Graph;

/// After how many seconds the feerate that a full mempool demands has halved.
const FEERATE_HALF_LIFE: u64 = 12 * 3_600;

/// The chain as the mempool consults it.
pub struct View<'a> {
    pub(super) node: &'a EmbeddedNode,
    txn: Reading<'static>,
    pub(super) tip: Tip,
}

impl<'a> View<'a> {
    /// The chain with this tip, which must be the one on disk.
    pub fn new(node: &'a EmbeddedNode, tip: Tip) -> Result<Self, NodeError> {
        Ok(Self { node, txn: node.store.read()?, tip })
    }

    /// The height of the next block.
    fn next_height(&self) -> u32 {
        self.tip.height.saturating_add(1)
    }

    fn coin(&self, outpoint: &OutPoint) -> Result<Option<Coin>, NodeError> {
        self.node.store.coin(&self.txn, outpoint)
    }

    pub(super) fn has_coin_of(&self, txid: &Txid) -> Result<bool, NodeError> {
        self.node.store.has_coin_of(&self.txn, txid)
    }

    fn median_time_at(&self, height: u32) -> Result<u32, NodeError> {
        // A coin of the mempool counts as one of the next block, whose parent is the tip.
        if height >= self.tip.height {
            return Ok(self.tip.median_time);
        }
        let store = &self.node.store;
        let hash = store.hash_at(&self.txn, height)?.ok_or_else(|| NodeError::corrupt("best", height))?;
        Ok(store.known_entry(&self.txn, &hash)?.median_time)
    }
}

/// The mempool.
pub struct Pool {
    limits: MempoolLimits,
    tip: Tip,
    graph: Graph,
    /// What prioritisetransaction added, also to transactions that are not here.
    deltas: HashMap<Txid, i64>,
    sequence: u64,
    /// What a mempool that was full demanded (satoshi per 1000 virtual bytes), and when (seconds).
    demanded: (u64, u64),
}

impl Pool {
    /// An empty mempool.
    pub fn new(limits: MempoolLimits, tip: Tip) -> Self {
        Self { limits, tip, graph: Graph::default(), deltas: HashMap::new(), sequence: 1, demanded: (0, 0) }
    }

    /// The tip that it belongs to.
    pub fn tip(&self) -> Tip {
        self.tip
    }

    /// Counts every change.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether a transaction of this id is here.
    pub fn has(&self, txid: &Txid) -> bool {
        self.graph.get(txid).is_some()
    }

    /// The entries and their links.
    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The mempool as a whole, `now` being the time in seconds.
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
        }
    }

    /// The feerate demanded because the mempool was full, in satoshi per 1000 virtual bytes. It halves with time and
    /// ends when it gets small.
    fn demanded_feerate(&self, now: u64) -> u64 {
        let (rate, since) = self.demanded;
        let halvings = u32::try_from(now.saturating_sub(since) / FEERATE_HALF_LIFE).unwrap_or(u32::MAX);
        let rate = rate.checked_shr(halvings).unwrap_or(0);
        if rate < self.limits.incremental_feerate.div_ceil(2) { 0 } else { rate }
    }

    /// All ids, in the order they came.
    pub fn ids(&self) -> Vec<Txid> {
        self.graph.in_order().map(|entry| entry.txid).collect()
    }

    /// The entries of these ids, in their order.
    pub fn entries(&self, txids: &[Txid]) -> Vec<Option<MempoolEntry>> {
        let describe = |entry: &Entry| entry.describe(self.is_replaceable(entry));
        txids.iter().map(|txid| self.graph.get(txid).map(describe)).collect()
    }

    /// Whether an entry, or one it builds on, signals that it may be replaced (BIP 125).
    fn is_replaceable(&self, entry: &Entry) -> bool {
        let ancestors = self.graph.ancestors([entry.txid]);
        ancestors.iter().filter_map(|txid| self.graph.get(txid)).any(Entry::signals_replacement)
    }

    /// The transactions of these ids, in their order.
    pub fn transactions(&self, txids: &[Txid]) -> Vec<Option<RawTransaction>> {
        let raw = |entry: &Entry| RawTransaction { raw: Blob(entry.raw.to_vec()) };
        txids.iter().map(|txid| self.graph.get(txid).map(raw)).collect()
    }

    /// The transactions that spend these outpoints, in their order.
    pub fn spenders(&self, outpoints: &[OutPoint]) -> Vec<Option<Txid>> {
        outpoints.iter().map(|outpoint| self.graph.spender(outpoint).copied()).collect()
    }

    /// An output of one of the mempool's transactions.
    fn output(&self, outpoint: &OutPoint) -> Option<bitcoin::TxOut> {
        self.graph.get(&outpoint.txid)?.tx.output.get(outpoint.vout as usize).cloned()
    }

    /// Adds to the fee that a transaction is selected by, in satoshi, now or when it comes.
    pub fn prioritise(&mut self, txid: Txid, delta: i64) {
        let total = self.deltas.get(&txid).copied().unwrap_or(0).saturating_add(delta);
        if total == 0 {
            self.deltas.remove(&txid);
        } else {
            self.deltas.insert(txid, total);
        }
        self.graph.set_delta(&txid, total);
        self.sequence += 1;
    }

    /// Takes an entry out, and all that build on it; the last ones first.
    fn remove_all(&mut self, txids: impl IntoIterator<Item = Txid>, reason: Removal, events: &mut Vec<NodeEvent>) {
        let doomed = self.graph.descendants(txids);
        let mut doomed: Vec<_> =
            doomed.iter().filter_map(|txid| self.graph.get(txid)).map(|entry| (entry.order, entry.txid)).collect();
        // What builds on another came after it.
        doomed.sort_unstable();
        for (_, txid) in doomed.into_iter().rev() {
            self.remove_one(&txid, reason, events);
        }
    }

    fn remove_one(&mut self, txid: &Txid, reason: Removal, events: &mut Vec<NodeEvent>) {
        if self.graph.remove(txid).is_some() {
            self.sequence += 1;
            events.push(NodeEvent::TransactionRemoved { txid: *txid, reason, sequence: self.sequence });
        }
    }

    /// Takes out what is too old, then what pays least until the rest fits.
    fn trim(&mut self, now: u64, events: &mut Vec<NodeEvent>) {
        let oldest = now.saturating_sub(self.limits.expiry);
        // They stand in the order they came, so what is too old comes first.
        let expired: Vec<_> =
            self.graph.in_order().take_while(|entry| entry.time < oldest).map(|entry| entry.txid).collect();
        self.remove_all(expired, Removal::Dropped, events);
        while self.graph.usage > self.limits.max_usage {
            let worst = self.graph.in_order().min_by(|one, other| one.descendants.cmp_feerate(&other.descendants));
            let Some(worst) = worst else { break };
            let paid = FeeRate::paid(worst.descendants.fees, worst.descendants.size).0;
            let rate = paid.saturating_add(self.limits.incremental_feerate);
            let txid = worst.txid;
            self.demanded = (rate.max(self.demanded_feerate(now)), now);
            self.remove_all([txid], Removal::Dropped, events);
        }
    }
}
