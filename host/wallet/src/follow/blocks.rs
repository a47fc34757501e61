//! From the block where the wallet stands to the tip of the best chain.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, Transaction, Txid};
use outrigger_node::Snapshot;
use outrigger_service::chain::{BlockInfo, BlockRef};
use outrigger_service::wallet::{Synced, TxState};

use super::decoded::{Decoded, previous};
use crate::error::{Result, WalletError};
use crate::live::Wallet;
use crate::matching::Met;
use crate::store::rows::BlockRow;
use crate::synced::synced_at;
use crate::write::{Write, WriteGuard};

/// How many blocks are written in one transaction at most, and how many bytes of them.
const BLOCKS_PER_WRITE: usize = 500;
const BYTES_PER_WRITE: usize = 16 << 20;
/// How long blocks for one transaction are read.
const TIME_PER_WRITE: Duration = Duration::from_millis(200);
/// After how many blocks that leave a wallet untouched the place where it stands is stored: each time it costs the disk a
/// synchronisation and a few pages, for each wallet. After a kill the wallet looks at these blocks again.
const BLOCKS_PER_STORE: u32 = 100;

/// After how long a wallet that has far to go lets others have their turn.
pub(super) const TIME_PER_TURN: Duration = Duration::from_millis(200);

impl Wallet {
    /// Follows the chain towards its tip until `end`, and to the height `up_to` at most, block by block. Whether the wallet stands
    /// there or at the tip now.
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
                // The chain went another way, or it ends below.
                _ => self.undo(&self.fork()?)?,
            }
        }
    }

    /// Takes over a block that continues from where the wallet stands; where that touches it, in one write with those
    /// behind it, up to a height.
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
        self.write_following(|write| blocks.iter().try_for_each(|block| write.take_block(block, received)))
    }

    /// Moves on over a block that continues from where the wallet stands and leaves it untouched. Whether that is so.
    fn passes(&self, block: &Decoded) -> Result<bool> {
        // No other write may give the wallet something that the block concerns, between the look and the step.
        let _guard = self.lock_for_following().ok_or(WalletError::Occupied)?;
        let untouched = !block.concerns(&self.shared.follower.index, self.slot);
        if untouched {
            self.feed.stand_at(synced_at(&block.info));
        }
        Ok(untouched)
    }

    /// Goes back to a block below.
    fn undo(&self, to: &BlockInfo) -> Result<()> {
        let guard = self.lock_for_following().ok_or(WalletError::Occupied)?;
        self.feed.note_retreat();
        let blocks = self.synced().height.saturating_sub(to.height);
        if self.feed.position().top <= to.height {
            self.feed.stand_at(synced_at(to));
            self.retreat.note(blocks, &BTreeSet::new());
            return Ok(());
        }
        let undone = self.write_in(&guard, |write| write.undo_to(to))?;
        self.feed.set_top(self.store.tables.top(&*self.store.read()?)?);
        drop(guard);
        self.retreat.note(blocks, &undone);
        self.find_in_mempool(undone)
    }

    /// The last block that the wallet has followed and that is in the best chain.
    ///
    /// # Errors
    /// [`WalletError::Rewind`] where it lies further back than the wallet goes by itself, or where none is known.
    fn fork(&self) -> Result<BlockInfo> {
        let chain = self.shared.node.snapshot()?;
        let fork = match chain.fork_point(self.synced().hash)? {
            Some(fork) => Some(fork),
            // The chain does not know the block: another node's data, or one that was set up anew.
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

    /// Whether the wallet goes back `depth` blocks to `fork`; `None`: nobody knows how far, since the node knows none of its blocks.
    fn may_go_back(&self, chain: &dyn Snapshot, fork: &BlockInfo, depth: Option<u32>) -> Result<bool> {
        let settings = &self.shared.settings;
        if settings.max_rewind.is_none_or(|limit| depth.is_some_and(|depth| depth <= limit)) {
            return Ok(true);
        }
        let Some(hash) = settings.allow_rewind_to else { return Ok(false) };
        let named = chain.block_info(BlockRef::Hash { hash })?;
        Ok(named.is_some_and(|named| named.in_best_chain && named.height <= fork.height))
    }

    /// The last of the blocks that the wallet remembers which is in the best chain.
    fn last_known(&self, chain: &dyn Snapshot) -> Result<Option<BlockInfo>> {
        for hash in self.followed()? {
            let known = chain.block_info(BlockRef::Hash { hash })?;
            if let Some(info) = known.filter(|info| info.in_best_chain) {
                return Ok(Some(info));
            }
        }
        Ok(None)
    }

    /// The blocks that the wallet remembers to have followed, the last one first.
    fn followed(&self) -> Result<Vec<BlockHash>> {
        let _guard = self.lock_for_following().ok_or(WalletError::Occupied)?;
        let txn = self.store.read()?;
        let mut hashes = Vec::new();
        for entry in self.store.tables.blocks.rev_iter(&txn)? {
            hashes.push(BlockHash::from_slice(entry?.1).map_err(|_| WalletError::damaged(0))?);
        }
        Ok(hashes)
    }

    /// A block was disconnected. Nothing where the wallet does not stand there: then it has read ahead of what it was told,
    /// and what it is told later leads to where it is.
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

    /// Where the wallet stands now.
    pub(crate) fn synced(&self) -> Synced {
        self.feed.position().now
    }

    /// Whether it stands beyond what it has stored.
    pub(super) fn is_ahead(&self) -> bool {
        let place = self.feed.position();
        place.now.hash != place.stored
    }

    /// Whether it stands so far beyond what it has stored that the next load would read many blocks again.
    pub(super) fn is_far_ahead(&self) -> bool {
        let place = self.feed.position();
        place.now.height.abs_diff(place.stored_height) >= BLOCKS_PER_STORE
    }

    /// Stores where it stands, unless somebody writes to it, which stores that too.
    pub(crate) fn store_if_free(&self) {
        self.waits_to_be_stored.store(false, Ordering::Release);
        if let Some(guard) = self.try_lock_writes() {
            self.store_place(&guard);
        }
    }

    /// Stores where it stands. What cannot be stored is read again at the next load.
    pub(crate) fn store_place(&self, guard: &WriteGuard<'_>) {
        if self.is_ahead()
            && self.feed.failure().is_none()
            && let Err(error) = self.write_in(guard, |_| Ok(()))
        {
            tracing::warn!(wallet = self.name(), %error, "how far the wallet has followed the chain could not be stored");
        }
    }

    /// A block of the best chain by its height.
    pub(crate) fn block_at(&self, height: u32) -> Result<Option<BlockInfo>> {
        self.shared.block_info(BlockRef::Height { height })
    }

    /// A block, decoded once for all wallets.
    pub(super) fn decoded(&self, hash: BlockHash) -> Result<Arc<Decoded>> {
        self.shared.follower.blocks.get(&*self.shared.node, hash)
    }
}

impl Write<'_> {
    /// Takes over a block. Nothing where it does not continue from where the wallet stands, as with
    /// [`Wallet::take_disconnected`].
    pub(super) fn take_block(&mut self, block: &Decoded, received: u64) -> Result<()> {
        if block.previous() != Some(self.synced.hash) {
            return Ok(());
        }
        loop {
            let known = self.t.scripts.len(self.reads())?;
            self.connect_transactions(block, received)?;
            // A payment that gave the wallet scripts may stand behind others in the block that pay to these.
            if self.t.scripts.len(self.reads())? == known {
                break;
            }
        }
        self.synced = synced_at(&block.info);
        self.remember_block()
    }

    /// Takes over the transactions of a block that concern the wallet.
    fn connect_transactions(&mut self, block: &Decoded, received: u64) -> Result<()> {
        let (wallet, info) = (self.wallet, &block.info);
        for (at, (index, (txid, transaction))) in (0_u32..).zip(&block.transactions).enumerate() {
            // Asked one by one: each may give the wallet scripts and coins that the next ones concern.
            if block.transaction_concerns(at, &wallet.shared.follower.index, wallet.slot) {
                let place = (info.hash, info.height, index, block.time);
                self.connect_transaction(transaction, *txid, place, Met::Now(received))?;
            }
        }
        Ok(())
    }

    /// Takes back what the wallet knows from blocks above `fork`. Gives the transactions that are unconfirmed now.
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
            // A payment may have entered its address in the address book, which rewrites the row.
            let row = self.t.transaction(self.reads(), &row.txid)?.unwrap_or(row);
            self.mark_disconnected(row)?;
        }
        Ok(())
    }

    /// Takes over what a transaction of the best chain says: it stands at a place (block, height, index, and the block's
    /// time).
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

    /// Writes the row that remembers the block where the wallet stands.
    pub fn remember_block(&mut self) -> Result<()> {
        let (height, row) = (self.synced.height, BlockRow { hash: self.synced.hash });
        self.store_row(self.t.blocks, &height.to_be_bytes(), &row)
    }
}
