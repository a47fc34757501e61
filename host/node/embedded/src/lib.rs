//! The embedded node: a development chain (regtest rules) in this process. It validates every block in full.
//!
//! A snapshot reads the chain as of one moment, and blocks no other thread. Readers of the mempool hold its lock while
//! they copy. Only one writer, the holder of the tree's lock, changes the chain. It commits block, index, undo data,
//! coins, transactions and tip of a submission, even of a reorganisation over many blocks, in one LMDB transaction
//! before the reply.
//!
//! Lock order: the tree, LMDB's writer, the mempool. The selection for a block is locked before the mempool alone. Submissions are decoded before any of them is taken.
//!
//! One function validates a block. Connecting a block stores the result; a proposal (BIP 23) discards it. If the tip
//! moved, the node replies after a sync to disk. A power loss may lose the last block of a side branch, but never
//! damages the tables.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test"))]

mod change;
mod decode;
mod deployment_info;
mod deployments;
mod error;
mod mempool;
mod mempool_file;
mod node;
mod packages;
mod params;
mod select;
mod snapshot;
mod store;
mod submit;
mod transactions;
mod tree;
mod validation;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use bitcoin::Network;
use bitcoin::consensus::serialize;
use outrigger_service::chain::{DeploymentStage, NextBlock, SpentOutputs, Tip};
use parking_lot::RwLock;

pub use decode::decode_block;
pub use error::EmbeddedError;
pub use params::{MempoolLimits, Settings};
pub use store::LAYOUT;

use mempool::Pool;
use outrigger_node::{Clock, NodeEvent, Observer};
use select::BlockSelection;
use snapshot::ChainSnapshot;
use store::rows::{BlockEntry, Failure, Validity};
use store::{Reading, Store};
use tree::Tree;
use validation::{ScriptCache, ValidationContext};

pub struct EmbeddedNode {
    settings: Settings,
    dir: PathBuf,
    store: Store,
    clock: Clock,
    chain: Mutex<Chain>,
    pool: RwLock<Pool>,
    /// The last selection for a block. Its lock comes before the mempool's.
    selected: parking_lot::Mutex<Option<Arc<BlockSelection>>>,
    best: ArcSwap<Best>,
    cache: ScriptCache,
    observers: RwLock<Vec<Arc<dyn Observer>>>,
}

#[derive(Clone, Copy, Debug)]
struct Best {
    tip: Tip,
    /// The BIP 9 stage of a block on this tip.
    next_stage: DeploymentStage,
}

struct Chain {
    tree: Tree,
    /// Whether a write failed half-way, so that the tree may differ from the database.
    stale: bool,
}

impl EmbeddedNode {
    /// Checks the chain's file in `dir`, if there is one, as [`Self::open`] does. Changes nothing.
    ///
    /// # Errors
    /// The file is damaged, or from another version of the program.
    pub fn check(dir: &Path) -> Result<(), EmbeddedError> {
        Store::check(dir)
    }

    /// Opens the chain in `dir`, and creates it if there is none.
    ///
    /// A damaged mempool file is no error: the log names it, and the node restores the transactions before the damage.
    pub fn open(dir: &Path, settings: Settings) -> Result<Arc<Self>, EmbeddedError> {
        // A node without peers cannot follow a public chain.
        if settings.network != Network::Regtest {
            return Err(EmbeddedError::Network(settings.network));
        }
        let store = Store::open(dir, &settings)?;
        write_genesis(&store)?;
        let txn = store.read()?;
        let tree = Tree::load(store.entries(&txn)?)?;
        let tip = snapshot::tip(&store, &txn)?;
        let best = Best { tip, next_stage: tree.next_stage(&tip.hash)? };
        drop(txn);
        tracing::info!(height = tip.height, hash = %tip.hash, "chain opened");
        let node = Self {
            pool: RwLock::new(Pool::new(settings.mempool.clone(), tip)),
            selected: parking_lot::Mutex::default(),
            best: ArcSwap::from_pointee(best),
            cache: ScriptCache::default(),
            observers: RwLock::default(),
            chain: Mutex::new(Chain { tree, stale: false }),
            clock: Clock::default(),
            settings,
            dir: dir.to_owned(),
            store,
        };
        node.load_mempool()?;
        Ok(Arc::new(node))
    }

    /// The best block, read without a lock.
    pub fn tip(&self) -> Tip {
        self.best.load().tip
    }

    /// The template of a block (BIP 22) without its transactions. `tip` may no longer be the best block.
    fn next_block_on(&self, tip: Tip) -> Result<NextBlock, EmbeddedError> {
        let best = **self.best.load();
        if best.tip.hash == tip.hash {
            return Ok(self.describe_next(best));
        }
        let next_stage = self.lock_chain()?.tree.next_stage(&tip.hash)?;
        Ok(self.describe_next(Best { tip, next_stage }))
    }

    fn describe_next(&self, best: Best) -> NextBlock {
        let Best { tip, next_stage } = best;
        let (version, rules, available) = deployments::template(next_stage);
        let min_time = params::min_time(&tip);
        let now = u32::try_from(self.clock.now()).unwrap_or(u32::MAX);
        NextBlock {
            tip,
            version,
            bits: params::BITS,
            min_time,
            time: now.max(min_time),
            subsidy: params::subsidy(tip.height.saturating_add(1)),
            rules,
            available,
            signet_challenge: None,
        }
    }

    /// The context to validate a block on the tip of `txn`.
    fn validation<'c>(&'c self, txn: &'c Reading<'c>) -> ValidationContext<'c> {
        ValidationContext {
            store: &self.store,
            txn,
            cache: &self.cache,
            threads: self.settings.script_threads,
            script_reason: self.settings.rules().block_script_reason,
        }
    }

    /// Notifies the observers. The caller holds the write lock, which keeps the events in order.
    fn tell(&self, events: impl IntoIterator<Item = NodeEvent>) {
        let observers = self.observers.read();
        for event in events {
            for observer in observers.iter() {
                observer.notify(event.clone());
            }
        }
    }

    /// Takes the write lock, and reloads the tree if an earlier write failed.
    fn lock_chain(&self) -> Result<MutexGuard<'_, Chain>, EmbeddedError> {
        let mut chain = self.chain.lock().unwrap_or_else(|poisoned| {
            self.chain.clear_poison();
            let mut chain = PoisonError::into_inner(poisoned);
            chain.stale = true;
            chain
        });
        if chain.stale {
            chain.tree = Tree::load(self.store.entries(&self.store.read()?)?)?;
            chain.stale = false;
        }
        Ok(chain)
    }
}

/// Writes the genesis block to an empty database.
fn write_genesis(store: &Store) -> Result<(), EmbeddedError> {
    let mut txn = store.write()?;
    if store.tip(&txn)?.is_some() {
        return Ok(());
    }
    let genesis = params::genesis();
    let hash = genesis.block_hash();
    let raw = serialize(&genesis);
    let entry = BlockEntry {
        header: genesis.header,
        height: 0,
        work: genesis.header.work(),
        median_time: genesis.header.time,
        transactions: 1,
        size: u32::try_from(raw.len()).unwrap_or(u32::MAX),
        sequence: 0,
        validity: Validity::Connected,
        failure: Failure::None,
    };
    store.insert_entry(&mut txn, &hash, &entry)?;
    store.put_block(&mut txn, &hash, &raw)?;
    store.put_spent(&mut txn, &hash, &vec![SpentOutputs { coins: Vec::new() }])?;
    store.put_digest(&mut txn, &hash, 0, &genesis, &[])?;
    store.put_tip(&mut txn, &hash, 0)?;
    Ok(txn.commit()?)
}
