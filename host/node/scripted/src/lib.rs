//! A node whose chain a test writes: it connects what it is given without judging it, says what happened when the test wants
//! it said, and fails on demand.
//!
//! For tests of what stands on a node. It implements the traits of the crate `outrigger-node`, over the SDK's stub of a chain
//! and a mempool; no program links it.

mod faults;
mod node;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use bitcoin::consensus::deserialize;
use bitcoin::{Amount, Block, BlockHash, OutPoint, ScriptBuf, Transaction, Txid};
use outrigger_node::{Node as _, NodeEvent, Observer, Removal};
use outrigger_sdk::testing::{StubChain, StubMempool};
use outrigger_service::{Mempool, Scope};
use parking_lot::Mutex;

pub use faults::{Faults, Lost};

/// What the transactions of these tests pay.
const FEE: Amount = Amount::from_sat(1_000);

/// A chain and a mempool that stay in step as those of a node do: what a block confirms leaves the mempool, with what it makes
/// impossible; what a disconnected block had comes back to it.
pub struct ScriptedNode {
    /// The chain. What is done to it directly is told to nobody.
    pub chain: Arc<StubChain>,
    /// The mempool. What is done to it directly is told to nobody.
    pub mempool: Arc<StubMempool>,
    /// The release that it says it is; 0: it says none.
    pub release: AtomicU32,
    /// What goes wrong.
    pub faults: Arc<Faults>,
    observers: Mutex<Vec<Arc<dyn Observer>>>,
    /// What of the mempool's contents was told.
    told: Mutex<BTreeSet<Txid>>,
}

impl ScriptedNode {
    /// The genesis block of regtest and an empty mempool.
    pub fn new() -> Arc<Self> {
        let chain = Arc::new(StubChain::new());
        let mempool = Arc::new(StubMempool::new(chain.clone()));
        Self::of(chain, mempool)
    }

    pub fn of(chain: Arc<StubChain>, mempool: Arc<StubMempool>) -> Arc<Self> {
        let (observers, told) = (Mutex::default(), Mutex::default());
        Arc::new(Self { mempool, chain, release: AtomicU32::new(0), faults: Arc::default(), observers, told })
    }

    pub fn tell(&self, events: impl IntoIterator<Item = NodeEvent>) {
        let observers = self.observers.lock().clone();
        for event in events {
            observers.iter().for_each(|observer| observer.notify(event.clone()));
        }
    }

    /// A block with these transactions becomes the tip. Gives what is to be told of it.
    pub fn connect(&self, script: ScriptBuf, transactions: Vec<Transaction>) -> (BlockHash, Vec<NodeEvent>) {
        let confirmed: Vec<(Txid, Vec<OutPoint>)> =
            transactions.iter().map(|tx| (tx.compute_txid(), inputs(tx))).collect();
        let hash = self.chain.mine_to(script, transactions);
        let height = self.tip().height;
        let mut events = Vec::new();
        for (txid, spent) in confirmed {
            if self.remove(txid) {
                events.push(self.removed(txid, Removal::Confirmed));
            }
            events.extend(self.evict(&spent, txid, Removal::Conflict));
        }
        events.extend([NodeEvent::BlockConnected { hash, height }, NodeEvent::TipChanged { hash, height }]);
        (hash, events)
    }

    /// The tip leaves the chain, and its transactions come back to the mempool. Gives what is to be told of it.
    pub fn disconnect(&self) -> Vec<NodeEvent> {
        let tip = self.tip();
        let Some(block) = self.chain.get(tip.hash).filter(|_| tip.height > 0) else { return Vec::new() };
        self.chain.disconnect();
        let mut events = vec![NodeEvent::BlockDisconnected { hash: tip.hash, height: tip.height }];
        let coinbase = block.txdata.first().map(Transaction::compute_txid);
        for transaction in &block.txdata {
            if transaction.is_coinbase() {
                events.extend(self.take_out(transaction.compute_txid(), Removal::Dropped));
            } else if !inputs(transaction).iter().any(|input| Some(input.txid) == coinbase) {
                self.mempool.add(transaction.clone(), FEE);
            }
        }
        events.extend(self.untold());
        events
    }

    /// A transaction comes to the mempool, in the place of those that spend what it spends. Gives what is to be told of it.
    pub fn accept(&self, transaction: Transaction) -> Vec<NodeEvent> {
        let txid = transaction.compute_txid();
        if self.pool().iter().any(|known| known.compute_txid() == txid) {
            return Vec::new();
        }
        let mut events = self.evict(&inputs(&transaction), txid, Removal::Replaced);
        self.mempool.add(transaction, FEE);
        events.extend(self.untold());
        events
    }

    /// A transaction leaves the mempool with what builds on it. Gives what is to be told of it.
    pub fn take_out(&self, txid: Txid, reason: Removal) -> Vec<NodeEvent> {
        let mut events = Vec::new();
        if self.remove(txid) {
            events.push(self.removed(txid, reason));
        }
        let spends =
            |transaction: &Transaction| transaction.input.iter().any(|input| input.previous_output.txid == txid);
        for child in self.pool().into_iter().filter(spends) {
            events.extend(self.take_out(child.compute_txid(), reason));
        }
        events
    }

    /// What came to the mempool without having been told: what was offered to it, among others.
    pub fn untold(&self) -> Vec<NodeEvent> {
        let mut told = self.told.lock();
        let pool = self.pool().into_iter().filter(|transaction| told.insert(transaction.compute_txid()));
        let (time, sequence) = (self.time(), 0);
        pool.map(|transaction| NodeEvent::TransactionAdded { transaction: Arc::new(transaction), time, sequence })
            .collect()
    }

    pub fn pool(&self) -> Vec<Transaction> {
        let ids = self.mempool.ids(Scope::NONE).unwrap_or_default();
        let raw = self.mempool.transactions(Scope::NONE, ids).unwrap_or_default();
        raw.into_iter().flatten().filter_map(|raw| deserialize(&raw.raw).ok()).collect()
    }

    /// A block that is known, on any branch.
    pub fn block(&self, hash: BlockHash) -> Option<Block> {
        self.chain.get(hash)
    }

    fn remove(&self, txid: Txid) -> bool {
        self.told.lock().remove(&txid);
        self.mempool.remove(txid)
    }

    fn removed(&self, txid: Txid, reason: Removal) -> NodeEvent {
        NodeEvent::TransactionRemoved { txid, reason, sequence: 0 }
    }

    /// What spends one of these outputs leaves the mempool, but for one transaction.
    fn evict(&self, spent: &[OutPoint], but: Txid, reason: Removal) -> Vec<NodeEvent> {
        let conflicts = |transaction: &Transaction| {
            transaction.compute_txid() != but && inputs(transaction).iter().any(|input| spent.contains(input))
        };
        let evicted: Vec<Txid> = self.pool().iter().filter(|tx| conflicts(tx)).map(Transaction::compute_txid).collect();
        evicted.into_iter().flat_map(|txid| self.take_out(txid, reason)).collect()
    }
}

fn inputs(transaction: &Transaction) -> Vec<OutPoint> {
    transaction.input.iter().map(|input| input.previous_output).collect()
}
