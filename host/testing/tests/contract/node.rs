//! The node in memory that a subject follows.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bitcoin::consensus::deserialize;
use bitcoin::{BlockHash, OutPoint, ScriptBuf, Transaction, Txid};

use super::super::lock;
use outrigger_service::{Chain, Mempool, Scope};
use crate::testing::{MemoryChain, MemoryMempool};

/// A change at the node.
#[derive(Clone, Debug)]
pub enum Happening {
    /// A transaction came to the mempool.
    Added {
        /// It.
        transaction: Transaction,
    },
    /// A transaction left the mempool.
    Removed {
        /// Its id.
        txid: Txid,
        /// Whether that is because a block has it.
        confirmed: bool,
    },
    /// A block became the tip of the best chain.
    Connected {
        /// The block.
        hash: BlockHash,
        /// Its height.
        height: u32,
    },
    /// The block that was the tip left the best chain.
    Disconnected {
        /// The block.
        hash: BlockHash,
        /// Its height.
        height: u32,
    },
}

/// A chain and a mempool in memory that stay in step with one another as those of a node do: what a block confirms leaves
/// the mempool, with what it makes impossible; what a disconnected block had comes back to it.
pub struct TestNode {
    /// The chain.
    pub chain: Arc<MemoryChain>,
    /// The mempool.
    pub mempool: Arc<MemoryMempool>,
    /// What of the mempool's contents the subject was told.
    told: Mutex<BTreeSet<Txid>>,
}

impl Default for TestNode {
    fn default() -> Self {
        Self::new()
    }
}

impl TestNode {
    /// The genesis block of regtest and an empty mempool.
    pub fn new() -> Self {
        let chain = Arc::new(MemoryChain::new());
        Self { mempool: Arc::new(MemoryMempool::new(chain.clone())), chain, told: Mutex::default() }
    }

    /// What is in the mempool, in its order.
    pub(super) fn pool(&self) -> Vec<Transaction> {
        let ids = self.mempool.ids(Scope::NONE).unwrap_or_default();
        let raw = self.mempool.transactions(Scope::NONE, ids).unwrap_or_default();
        raw.into_iter().flatten().filter_map(|raw| deserialize(&raw.raw).ok()).collect()
    }

    /// A transaction comes to the mempool, in the place of those that spend what it spends.
    pub(super) fn accept(&self, transaction: Transaction) -> Vec<Happening> {
        let txid = transaction.compute_txid();
        if self.pool().iter().any(|known| known.compute_txid() == txid) {
            return Vec::new();
        }
        let mut happenings = self.evict(&inputs(&transaction), txid);
        self.mempool.add(transaction, 1000);
        happenings.extend(self.untold());
        happenings
    }

    /// A transaction leaves the mempool with what builds on it.
    pub(super) fn take_out(&self, txid: Txid) -> Vec<Happening> {
        let mut happenings = Vec::new();
        if self.mempool.remove(txid) {
            lock(&self.told).remove(&txid);
            happenings.push(Happening::Removed { txid, confirmed: false });
        }
        for child in self.pool() {
            if child.input.iter().any(|input| input.previous_output.txid == txid) {
                happenings.extend(self.take_out(child.compute_txid()));
            }
        }
        happenings
    }

    /// What spends one of these leaves the mempool, except `but` itself.
    fn evict(&self, outpoints: &[OutPoint], but: Txid) -> Vec<Happening> {
        let stands = |other: &Transaction| inputs(other).iter().any(|input| outpoints.contains(input));
        let conflicting = self.pool().into_iter().filter(stands).map(|other| other.compute_txid());
        conflicting.filter(|txid| *txid != but).flat_map(|txid| self.take_out(txid)).collect()
    }

    /// A block is connected whose coinbase pays to a script.
    pub(super) fn connect(&self, script: ScriptBuf, transactions: Vec<Transaction>) -> (BlockHash, Vec<Happening>) {
        let hash = self.chain.mine_to(script, transactions.clone());
        let mut happenings = Vec::new();
        for transaction in &transactions {
            let txid = transaction.compute_txid();
            if self.mempool.remove(txid) {
                lock(&self.told).remove(&txid);
                happenings.push(Happening::Removed { txid, confirmed: true });
            }
            happenings.extend(self.evict(&inputs(transaction), txid));
        }
        happenings.push(Happening::Connected { hash, height: self.height() });
        (hash, happenings)
    }

    /// The last block is disconnected. What was in it goes back to the mempool, except what builds on its coinbase.
    pub(super) fn disconnect(&self) -> Vec<Happening> {
        let height = self.height();
        let tip = self.chain.tip(Scope::NONE).map(|tip| tip.hash);
        let Some(block) = tip.ok().and_then(|hash| self.chain.get(hash)).filter(|_| height > 0) else {
            return Vec::new();
        };
        self.chain.disconnect();
        let mut happenings = vec![Happening::Disconnected { hash: block.block_hash(), height }];
        for transaction in &block.txdata {
            let txid = transaction.compute_txid();
            if transaction.is_coinbase() {
                happenings.extend(self.take_out(txid));
            } else if !inputs(transaction).iter().any(|input| self.is_coinbase_of(&block.txdata, input.txid)) {
                self.mempool.add(transaction.clone(), 1000);
            }
        }
        happenings.extend(self.untold());
        happenings
    }

    fn is_coinbase_of(&self, transactions: &[Transaction], txid: Txid) -> bool {
        transactions.first().is_some_and(|coinbase| coinbase.compute_txid() == txid)
    }

    /// What came to the mempool without having been told: what the subject has offered it itself, among others.
    pub(super) fn untold(&self) -> Vec<Happening> {
        let mut told = lock(&self.told);
        let pool = self.pool().into_iter().filter(|transaction| told.insert(transaction.compute_txid()));
        pool.map(|transaction| Happening::Added { transaction }).collect()
    }

    /// The height of the tip.
    pub(super) fn height(&self) -> u32 {
        self.chain.tip(Scope::NONE).map_or(0, |tip| tip.height)
    }
}

fn inputs(transaction: &Transaction) -> Vec<OutPoint> {
    transaction.input.iter().map(|input| input.previous_output).collect()
}
