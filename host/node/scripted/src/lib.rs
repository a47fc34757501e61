//! A node for tests. The test decides which blocks it has, when it sends events, and how it fails. It connects blocks
//! without validation. It implements the traits of `outrigger-node` over the SDK's stubs of chain and
//! mempool.

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

/// The fee of the tests' transactions.
const FEE: Amount = Amount::from_sat(1_000);

/// A consistent chain and mempool: a connected block removes its transactions and their conflicts from the mempool, and
/// a disconnected block returns its transactions.
pub struct ScriptedNode {
    /// Changes made here directly send no events.
    pub chain: Arc<StubChain>,
    /// Changes made here directly send no events.
    pub mempool: Arc<StubMempool>,
    /// The major version that the node reports; 0 for none.
    pub release: AtomicU32,
    pub faults: Arc<Faults>,
    observers: Mutex<Vec<Arc<dyn Observer>>>,
    /// The mempool transactions that were announced to observers.
    announced: Mutex<BTreeSet<Txid>>,
}

impl ScriptedNode {
    pub fn new() -> Arc<Self> {
        let chain = Arc::new(StubChain::new());
        let mempool = Arc::new(StubMempool::new(chain.clone()));
        let (observers, announced) = (Mutex::default(), Mutex::default());
        Arc::new(Self { mempool, chain, release: AtomicU32::new(0), faults: Arc::default(), observers, announced })
    }

    pub fn tell(&self, events: impl IntoIterator<Item = NodeEvent>) {
        let observers = self.observers.lock().clone();
        for event in events {
            observers.iter().for_each(|observer| observer.notify(event.clone()));
        }
    }

    /// Makes a block with these transactions the tip. Returns the events to send.
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
            events.extend(self.evict(&spent, txid));
        }
        events.extend([NodeEvent::BlockConnected { hash, height }, NodeEvent::TipChanged { hash, height }]);
        (hash, events)
    }

    /// Disconnects the tip, and returns its transactions to the mempool. Returns the events to send.
    pub fn disconnect(&self) -> Vec<NodeEvent> {
        let tip = self.tip();
        let Some(block) = self.chain.get(tip.hash).filter(|_| tip.height > 0) else { return Vec::new() };
        self.chain.disconnect();
        let mut events = vec![NodeEvent::BlockDisconnected { hash: tip.hash, height: tip.height }];
        let coinbase = block.txdata.first().map(Transaction::compute_txid);
        for transaction in &block.txdata {
            if transaction.is_coinbase() {
                events.extend(self.take_out(transaction.compute_txid()));
            } else if !inputs(transaction).iter().any(|input| Some(input.txid) == coinbase) {
                self.mempool.add(transaction.clone(), FEE);
            }
        }
        events.extend(self.untold());
        events
    }

    /// Adds a transaction to the mempool, and removes its conflicts. Returns the events to send.
    pub fn accept(&self, transaction: Transaction) -> Vec<NodeEvent> {
        let txid = transaction.compute_txid();
        if self.pool().iter().any(|known| known.compute_txid() == txid) {
            return Vec::new();
        }
        let mut events = self.evict(&inputs(&transaction), txid);
        self.mempool.add(transaction, FEE);
        events.extend(self.untold());
        events
    }

    /// Removes a transaction and its descendants from the mempool. Returns the events to send.
    pub fn take_out(&self, txid: Txid) -> Vec<NodeEvent> {
        let mut events = Vec::new();
        if self.remove(txid) {
            events.push(self.removed(txid, Removal::Dropped));
        }
        let spends =
            |transaction: &Transaction| transaction.input.iter().any(|input| input.previous_output.txid == txid);
        for child in self.pool().into_iter().filter(spends) {
            events.extend(self.take_out(child.compute_txid()));
        }
        events
    }

    /// The events of mempool transactions not announced yet, such as submitted ones. Marks them as announced.
    pub fn untold(&self) -> Vec<NodeEvent> {
        let mut announced = self.announced.lock();
        let pool = self.pool().into_iter().filter(|transaction| announced.insert(transaction.compute_txid()));
        let (time, sequence) = (self.time(), 0);
        pool.map(|transaction| NodeEvent::TransactionAdded { transaction: Arc::new(transaction), time, sequence })
            .collect()
    }

    pub fn pool(&self) -> Vec<Transaction> {
        let ids = self.mempool.ids(Scope::NONE).unwrap_or_default();
        let raw = self.mempool.transactions(Scope::NONE, ids).unwrap_or_default();
        raw.into_iter().flatten().filter_map(|raw| deserialize(&raw).ok()).collect()
    }

    /// A block on any branch.
    pub fn block(&self, hash: BlockHash) -> Option<Block> {
        self.chain.get(hash)
    }

    fn remove(&self, txid: Txid) -> bool {
        self.announced.lock().remove(&txid);
        self.mempool.remove(txid)
    }

    fn removed(&self, txid: Txid, reason: Removal) -> NodeEvent {
        NodeEvent::TransactionRemoved { txid, reason, sequence: 0 }
    }

    /// Removes the other transactions that spend one of these outputs.
    fn evict(&self, spent: &[OutPoint], but: Txid) -> Vec<NodeEvent> {
        let conflicts = |transaction: &Transaction| {
            transaction.compute_txid() != but && inputs(transaction).iter().any(|input| spent.contains(input))
        };
        let evicted: Vec<Txid> = self.pool().iter().filter(|tx| conflicts(tx)).map(Transaction::compute_txid).collect();
        evicted.into_iter().flat_map(|txid| self.take_out(txid)).collect()
    }
}

fn inputs(transaction: &Transaction) -> Vec<OutPoint> {
    transaction.input.iter().map(|input| input.previous_output).collect()
}
