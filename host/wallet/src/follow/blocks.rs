//! Following the best chain, from the wallet's position to the tip.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, Transaction, Txid};
use outrigger_node::Snapshot;
use outrigger_service::chain::{BlockInfo, BlockRef};
use outrigger_service::wallet::{Synced, TxState};

use super::decoded::{DecodedBlock, previous, synced_at};
use crate::error::{Result, WalletError};
use crate::live::Wallet;
use crate::matching::Met;
use crate::write::{Write, WriteGuard};

/// The most blocks per write transaction.
const BLOCKS_PER_WRITE: usize = 500;
/// The size of the blocks after which a write transaction takes no further block, in bytes.
const BYTES_PER_WRITE: usize = 16 << 20;
/// The longest time spent reading blocks for one write transaction.
const TIME_PER_WRITE: Duration = Duration::from_millis(200);
/// A wallet stores its position after this many blocks that do not touch it. Each time costs an fsync and a few pages per
/// wallet. After a kill, the wallet reads the blocks since the stored position again.
const BLOCKS_PER_STORE: u32 = 100;

/// A wallet that lags far behind yields to other wallets after this time.
pub(super) const TIME_PER_TURN: Duration = Duration::from_millis(200);

impl Wallet {
    /// Follows the chain block by block until `end`, at most to the height `up_to`. Returns whether the wallet is now
    /// at `up_to` or at the tip.
    pub(super) fn read_blocks(&self, end: Instant, up_to: u32) -> Result<bool> {
        loop {
            let synced = self.synced();
            if synced.hash == self.shared.node.tip().hash || synced.height >= up_to {
                return Ok(true);
            }
            if Instant::now() > end {
                return Ok(false);
            }
            match self.block_at(synced.height.saturating_add(1))? {
                Some(next) if previous(&next) == Some(synced.hash) => self.go_on(next.hash, up_to)?,
                // A reorganisation, or the chain is shorter now.
                _ => self.undo(&self.fork()?)?,
            }
        }
    }

    /// Connects a block on top of the wallet's position. If it touches the wallet, further blocks up to the height
    /// `up_to` are part of the same write transaction.
    fn go_on(&self, hash: BlockHash, up_to: u32) -> Result<()> {
        let first = self.decoded(hash)?;
        if self.passes(&first)? {
            return Ok(());
        }
        let (started, mut size) = (Instant::now(), first.size);
        let mut blocks = vec![first];
        while blocks.len() < BLOCKS_PER_WRITE && size < BYTES_PER_WRITE && started.elapsed() < TIME_PER_WRITE {
            let Some(last) = blocks.last().filter(|last| last.info.height < up_to) else { break };
            let Some(next) = self.block_at(last.info.height.saturating_add(1))? else { break };
            if previous(&next) != Some(last.info.hash) {
                break;
            }
            let block = self.decoded(next.hash)?;
            size += block.size;
            blocks.push(block);
        }
        let received = self.shared.node.time();
        let guard = self.lock_for_following()?;
        self.write_in(&guard, |write| blocks.iter().try_for_each(|block| write.take_block(block, received)))
    }

    /// Moves the position over a block that does not touch the wallet. Returns false if the block touches it.
    fn passes(&self, block: &DecodedBlock) -> Result<bool> {
        // Prevents another write from adding a script or coin of the block between the check and the move.
        let _guard = self.lock_for_following()?;
        let due = block.info.height >= self.feed.position().due;
        let untouched = !due && !block.concerns(&self.shared.follower.index, self.slot);
        if untouched {
            self.feed.stand_at(synced_at(&block.info));
        }
        Ok(untouched)
    }

    /// Rewinds to a lower block.
    fn undo(&self, to: &BlockInfo) -> Result<()> {
        let guard = self.lock_for_following()?;
        self.feed.note_retreat();
        let blocks = self.synced().height.saturating_sub(to.height);
        if self.feed.position().top <= to.height {
            self.feed.stand_at(synced_at(to));
            self.retreat.lock().note(blocks, &BTreeSet::new());
            return Ok(());
        }
        let undone = self.write_in(&guard, |write| write.undo_to(to))?;
        self.feed.set_top(self.store.tables.top(&*self.store.read()?)?);
        drop(guard);
        self.retreat.lock().note(blocks, &undone);
        self.find_in_mempool(undone)
    }

    /// The last followed block in the best chain. Fails with [`WalletError::Rewind`] if the wallet may not go back that
    /// far, or if there is no such block.
    fn fork(&self) -> Result<BlockInfo> {
        let chain = self.shared.node.snapshot()?;
        let fork = match chain.fork_point(self.synced().hash)? {
            Some(fork) => Some(fork),
            // The chain does not know the block: the node has other data, or was set up again.
            None => self.last_known(&*chain)?,
        };
        let depth = fork.as_ref().map(|fork| self.synced().height.saturating_sub(fork.height));
        let Some(first) = chain.block_info(BlockRef::Height { height: 0 })? else {
            return Err(WalletError::MissingBlock("0".into()));
        };
        let fork = fork.unwrap_or(first);
        if self.may_go_back(&*chain, &fork, depth)? {
            return Ok(fork);
        }
        let BlockInfo { hash, height, .. } = fork;
        let depth = self.synced().height.saturating_sub(height);
        Err(WalletError::Rewind { fork: hash, height, depth, blocks: chain.tip().height.saturating_sub(height) })
    }

    /// Whether the wallet may go back `depth` blocks to `fork`. `depth` is `None` if the node
    /// knows none of the wallet's blocks.
    fn may_go_back(&self, chain: &dyn Snapshot, fork: &BlockInfo, depth: Option<u32>) -> Result<bool> {
        let settings = &self.shared.settings;
        if settings.max_rewind.is_none_or(|limit| depth.is_some_and(|depth| depth <= limit)) {
            return Ok(true);
        }
        let Some(hash) = settings.allow_rewind_to else { return Ok(false) };
        let named = chain.block_info(BlockRef::Hash { hash })?;
        Ok(named.is_some_and(|named| named.in_best_chain && named.height <= fork.height))
    }

    /// The last stored block of the wallet in the best chain.
    fn last_known(&self, chain: &dyn Snapshot) -> Result<Option<BlockInfo>> {
        for hash in self.followed()? {
            let known = chain.block_info(BlockRef::Hash { hash })?;
            if let Some(info) = known.filter(|info| info.in_best_chain) {
                return Ok(Some(info));
            }
        }
        Ok(None)
    }

    fn followed(&self) -> Result<Vec<BlockHash>> {
        let _guard = self.lock_for_following()?;
        let txn = self.store.read()?;
        let rows = self.store.tables.blocks.rev_iter(&txn)?;
        rows.map(|row| BlockHash::from_slice(row?.1).map_err(|_| WalletError::damaged(0))).collect()
    }

    /// Disconnects a block. No effect if the wallet is at another block: then it is ahead of the events, and later events
    /// lead to its position.
    pub(super) fn take_disconnected(&self, hash: BlockHash) -> Result<()> {
        if self.synced().hash != hash {
            return Ok(());
        }
        let missing = || WalletError::MissingBlock(hash.to_string());
        let chain = self.shared.node.snapshot()?;
        let info = chain.block_info(BlockRef::Hash { hash })?;
        let before = info.as_ref().and_then(previous).ok_or_else(missing)?;
        let parent = chain.block_info(BlockRef::Hash { hash: before })?.ok_or_else(missing)?;
        drop(chain);
        self.undo(&parent)
    }

    pub(crate) fn synced(&self) -> Synced {
        self.feed.position().now
    }

    /// Whether the position is so far ahead of the stored one that the next load would read many blocks again.
    pub(super) fn is_far_ahead(&self) -> bool {
        let place = self.feed.position();
        place.now.height.abs_diff(place.stored.height) >= BLOCKS_PER_STORE
    }

    /// Stores the position, unless a write is in progress: that write stores it.
    pub(crate) fn store_if_free(&self) {
        if let Some(guard) = self.write_lock.try_lock() {
            self.store_place(&guard);
        }
    }

    /// Stores the position. If that fails, the next load reads the blocks again. A restored backup follows the chain from its stored
    /// position. A node may have pruned older blocks.
    pub(crate) fn store_place(&self, guard: &WriteGuard<'_>) {
        let place = self.feed.position();
        if place.now.hash != place.stored.hash
            && self.feed.failure().is_none()
            && let Err(error) = self.write_in(guard, |_| Ok(()))
        {
            tracing::warn!(wallet = self.name(), %error, "the wallet's position in the chain could not be stored");
        }
    }

    pub(crate) fn block_at(&self, height: u32) -> Result<Option<BlockInfo>> {
        self.shared.block_info(BlockRef::Height { height })
    }

    /// A block, decoded once for all wallets.
    pub(super) fn decoded(&self, hash: BlockHash) -> Result<Arc<DecodedBlock>> {
        self.shared.follower.blocks.get(&*self.shared.node, hash)
    }
}

impl Write<'_> {
    /// Connects a block. No effect unless it extends the wallet's position, as in [`Wallet::take_disconnected`].
    pub(super) fn take_block(&mut self, block: &DecodedBlock, received: u64) -> Result<()> {
        if block.previous() != Some(self.synced.hash) {
            return Ok(());
        }
        loop {
            let known = self.t.scripts.len(self.reads())?;
            self.connect_transactions(block, received)?;
            // Repeats until no scripts are added: a transaction may derive scripts that earlier transactions of the block pay to.
            if self.t.scripts.len(self.reads())? == known {
                break;
            }
        }
        self.synced = synced_at(&block.info);
        self.remember_block()
    }

    /// Stores the transactions of a block that concern the wallet.
    fn connect_transactions(&mut self, block: &DecodedBlock, received: u64) -> Result<()> {
        let (wallet, info) = (self.wallet, &block.info);
        for (at, (index, (txid, transaction))) in (0_u32..).zip(&block.transactions).enumerate() {
            // Checked one by one: a transaction may add scripts and coins that make later transactions concern the wallet.
            if block.transaction_concerns(at, &wallet.shared.follower.index, wallet.slot) {
                let place = (info.hash, info.height, index, block.time);
                self.connect_transaction(transaction, *txid, place, Met::Now(received))?;
            }
        }
        Ok(())
    }

    /// Rewinds the wallet to `fork`. Returns the transactions that are unconfirmed now.
    pub(super) fn undo_to(&mut self, fork: &BlockInfo) -> Result<BTreeSet<Txid>> {
        let mut undone = BTreeSet::new();
        for height in (fork.height.saturating_add(1)..=self.synced.height).rev() {
            self.undo_height(height, &mut undone)?;
            self.delete(self.t.blocks, &height.to_be_bytes())?;
        }
        if self.synced.hash != fork.hash {
            self.synced = synced_at(fork);
        }
        Ok(undone)
    }

    fn undo_height(&mut self, height: u32, undone: &mut BTreeSet<Txid>) -> Result<()> {
        let mut rows = Vec::new();
        for table in [self.t.confirmed, self.t.conflicted] {
            for entry in table.prefix_iter(self.reads(), &height.to_be_bytes())? {
                rows.push(self.t.transaction_at(self.reads(), entry?.1)?);
            }
        }
        for row in rows {
            undone.insert(row.txid);
            if matches!(row.state, TxState::Confirmed { .. }) {
                self.note_payments(row.outputs.iter().map(|output| output.script.as_script()))?;
            }
            // Read again: `note_payments` may add an address to the address book, which rewrites the row.
            let row = self.t.transaction(self.reads(), &row.txid)?.unwrap_or(row);
            self.mark_disconnected(row)?;
        }
        Ok(())
    }

    /// Stores a transaction as confirmed at a position (block, height, index, and the block's time).
    pub fn connect_transaction(
        &mut self,
        transaction: &Transaction,
        txid: Txid,
        (block, height, index, time): (BlockHash, u32, u32, u32),
        met: Met,
    ) -> Result<()> {
        if !transaction.is_coinbase() {
            self.forget_mempool_conflicts(txid)?;
            let mut spenders = self.spenders_of(transaction.input.iter().map(|input| input.previous_output))?;
            spenders.remove(&txid);
            spenders.into_iter().try_for_each(|spender| self.mark_conflicted(spender, block, height))?;
        }
        self.consider(transaction, txid, TxState::Confirmed { block, height, index, time }, met)?;
        Ok(())
    }

    /// Stores the hash of the wallet's current block.
    pub fn remember_block(&mut self) -> Result<()> {
        let Synced { hash, height, .. } = self.synced;
        self.store_row(self.t.blocks, &height.to_be_bytes(), &hash)
    }
}
