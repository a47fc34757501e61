//! Changes the chain: the database in one transaction together with the tree, then the mempool; then emits the events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bitcoin::BlockHash;
use heed::RwTxn;
use outrigger_service::chain::Tip;

use super::decode::NamedBlock;
use super::mempool::View;
use super::store::rows::{BlockEntry, Failure, Validity};
use super::tree::Tree;
use super::validation::{self, ConnectError, ValidationError};
use super::{Best, EmbeddedError, EmbeddedNode};
use outrigger_node::NodeEvent;

pub(super) struct Change<'a> {
    pub node: &'a EmbeddedNode,
    pub tree: &'a mut Tree,
    txn: RwTxn<'a>,
    tip: BlockHash,
    /// Whether there is anything to commit.
    touched: bool,
    /// The decoded blocks that were submitted, connected or disconnected.
    pub blocks: HashMap<BlockHash, NamedBlock>,
    pub connected: HashSet<BlockHash>,
    pub refused: HashMap<BlockHash, ValidationError>,
    /// How many of the disconnected blocks, the highest first, return their transactions to the mempool.
    pub taken_back: usize,
}

impl EmbeddedNode {
    /// Makes a change atomically. After `Ok`, a kill of the process loses nothing. A change that moved the tip is
    /// synced to disk; a power loss may lose other changes.
    ///
    /// # Errors
    /// The error of `make` or of the disk. If only the final sync fails, the change is committed, and the observers were
    /// notified.
    pub(super) fn change<R>(
        &self,
        make: impl FnOnce(&mut Change) -> Result<R, EmbeddedError>,
    ) -> Result<R, EmbeddedError> {
        let mut chain = self.lock_chain()?;
        // Until the commit the tree is ahead of the database.
        chain.stale = true;
        let chain = &mut *chain;
        let before = self.tip().hash;
        let mut change = Change {
            node: self,
            txn: self.store.write()?,
            tree: &mut chain.tree,
            tip: before,
            touched: false,
            blocks: HashMap::new(),
            connected: HashSet::new(),
            refused: HashMap::new(),
            taken_back: usize::MAX,
        };
        let result = match make(&mut change) {
            Ok(result) => change.commit(before).map(|()| result),
            Err(error) if change.touched => Err(error),
            Err(error) => {
                drop(change);
                chain.stale = false;
                return Err(error);
            }
        };
        chain.stale = result.is_err();
        result
    }
}

impl Change<'_> {
    /// A known block, as the parent of another. Fails if the tree lacks it.
    pub fn parent(&self, hash: &BlockHash) -> Result<Tip, EmbeddedError> {
        Ok(self.tree.known(hash)?.tip(*hash))
    }

    pub fn insert(&mut self, hash: BlockHash, entry: BlockEntry) -> Result<(), EmbeddedError> {
        self.touched = true;
        self.node.store.insert_entry(&mut self.txn, &hash, &entry)?;
        self.tree.insert(hash, entry);
        Ok(())
    }

    pub fn update(&mut self, hash: &BlockHash, edit: impl FnOnce(&mut BlockEntry)) -> Result<(), EmbeddedError> {
        self.touched = true;
        let entry = self.tree.update(hash, edit)?;
        self.node.store.put_entry(&mut self.txn, hash, &entry)
    }

    /// Stores the bytes of a block whose header is in the tree.
    pub fn store_block(&mut self, hash: BlockHash, raw: &[u8], transactions: usize) -> Result<(), EmbeddedError> {
        self.node.store.put_block(&mut self.txn, &hash, raw)?;
        self.update(&hash, |entry| {
            entry.validity = Validity::Stored;
            entry.transactions = u32::try_from(transactions).unwrap_or(u32::MAX);
            entry.size = u32::try_from(raw.len()).unwrap_or(u32::MAX);
        })?;
        for hash in self.tree.stored(hash)? {
            self.update(&hash, |_| ())?;
        }
        Ok(())
    }

    /// Marks a block and its descendants as failed.
    pub fn fail(&mut self, hash: BlockHash) -> Result<(), EmbeddedError> {
        for descendant in self.tree.descendants(hash) {
            self.update(&descendant, |entry| match entry.failure {
                _ if descendant == hash => entry.failure = Failure::Own,
                Failure::None => entry.failure = Failure::Inherited,
                Failure::Own | Failure::Inherited => {}
            })?;
        }
        self.tree.find_best_header();
        Ok(())
    }

    /// Moves the tip to the best branch, and validates the blocks on the way. If a block breaks a rule, marks it as failed
    /// and tries the best remaining branch.
    pub fn activate(&mut self) -> Result<(), EmbeddedError> {
        while let Some(best) = self.tree.best().filter(|best| *best != self.tip) {
            let fork = self.tree.fork(self.tip, best)?;
            while self.tip != fork {
                self.disconnect()?;
            }
            for hash in self.tree.path(fork, best) {
                match self.connect(hash) {
                    Ok(()) => {}
                    Err(ConnectError::Node(error)) => return Err(error),
                    Err(ConnectError::Refused(error)) => {
                        tracing::info!(block = %hash, reason = %error.reason, "block refused");
                        self.fail(hash)?;
                        self.refused.insert(hash, error);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Validates a stored block on the tip, and connects it.
    fn connect(&mut self, hash: BlockHash) -> Result<(), ConnectError> {
        let entry = *self.tree.known(&hash)?;
        let parent = self.parent(&self.tip)?;
        let block = self.take_block(&hash)?;
        let scripts = entry.validity < Validity::Connected;
        let spent = validation::connect(&self.node.validation(&self.txn), &block, &parent, scripts)?;
        self.node.store.connect(&mut self.txn, &hash, entry.height, &block, &spent)?;
        self.update(&hash, |entry| entry.validity = Validity::Connected)?;
        self.blocks.insert(hash, block);
        self.connected.insert(hash);
        self.tip = hash;
        Ok(())
    }

    fn disconnect(&mut self) -> Result<(), EmbeddedError> {
        let hash = self.tip;
        let entry = *self.tree.known(&hash)?;
        let parent = entry.header.prev_blockhash;
        let block = self.take_block(&hash)?;
        self.node.store.disconnect(&mut self.txn, &hash, entry.height, &block, &parent)?;
        self.touched = true;
        self.blocks.insert(hash, block);
        self.tip = parent;
        Ok(())
    }

    fn take_block(&mut self, hash: &BlockHash) -> Result<NamedBlock, EmbeddedError> {
        match self.blocks.remove(hash) {
            Some(block) => Ok(block),
            None => self.node.store.block(&self.txn, hash),
        }
    }

    /// Commits and syncs, then updates the mempool and notifies the observers.
    fn commit(mut self, before: BlockHash) -> Result<(), EmbeddedError> {
        if !self.touched {
            return Ok(());
        }
        let node = self.node;
        node.store.put_header_height(&mut self.txn, self.tree.header_height())?;
        let tip = self.tree.known(&self.tip)?.tip(self.tip);
        let best = Best { tip, next_stage: self.tree.next_stage(&self.tip)? };
        let fork = self.tree.fork(before, self.tip)?;
        let mut off = self.tree.path(fork, before);
        off.reverse();
        let on = self.tree.path(fork, self.tip);
        let (mut off, on) = (self.with_blocks(off)?, self.with_blocks(on)?);
        if tip.hash == before {
            return Ok(self.txn.commit()?);
        }
        // Locked before the commit, so that no reader sees the new tip with the mempool of the old one.
        let mut pool = node.pool.write();
        self.txn.commit()?;
        let synced = node.store.sync();
        node.best.store(Arc::new(best));
        let mut events: Vec<_> =
            off.iter().map(|(hash, height, _)| NodeEvent::BlockDisconnected { hash: *hash, height: *height }).collect();
        events.extend(on.iter().map(|(hash, height, _)| NodeEvent::BlockConnected { hash: *hash, height: *height }));
        off.truncate(self.taken_back);
        let blocks = |list: Vec<Step>| list.into_iter().map(|(_, _, block)| block).collect();
        // The chain is committed even if the mempool cannot be updated.
        match View::new(node, tip) {
            Ok(view) => pool.follow(&view, blocks(off), blocks(on)),
            Err(error) => {
                tracing::error!(%error, "the mempool cannot follow the chain and is emptied");
                pool.clear(tip);
            }
        }
        events.append(&mut pool.events);
        drop(pool);
        events.push(NodeEvent::TipChanged { hash: tip.hash, height: tip.height });
        node.tell(events);
        synced
    }

    fn with_blocks(&mut self, hashes: Vec<BlockHash>) -> Result<Vec<Step>, EmbeddedError> {
        let mut found = Vec::with_capacity(hashes.len());
        for hash in hashes {
            found.push((hash, self.tree.known(&hash)?.height, self.take_block(&hash)?));
        }
        Ok(found)
    }
}

/// A connected or disconnected block: hash, height, block.
type Step = (BlockHash, u32, NamedBlock);
