//! From the block where the wallet stands to the tip of the best chain.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bitcoin::consensus::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, Transaction, Txid};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::service::wallet::{Synced, TxState};

use crate::wallet::error::{Result, WalletError};
use crate::wallet::live::Wallet;
use crate::wallet::store::rows::BlockRow;
use crate::wallet::store::tables::put;
use crate::wallet::write::Write;

/// How many blocks are written in one transaction at most.
const BLOCKS_PER_WRITE: usize = 500;
/// How long one transaction goes on taking blocks.
const TIME_PER_WRITE: Duration = Duration::from_millis(200);

/// The time in a block's header, in seconds.
pub fn header_time(info: &BlockInfo) -> u32 {
    info.header.get(68..72).and_then(|time| time.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The block before it.
fn previous(info: &BlockInfo) -> Option<BlockHash> {
    info.header.get(4..36).and_then(|hash| BlockHash::from_slice(hash).ok())
}

/// Where a wallet stands that has followed the chain to this block.
pub fn synced_at(info: &BlockInfo) -> Synced {
    Synced { hash: info.hash, height: info.height, time: header_time(info), median_time: info.median_time }
}

impl Wallet {
    /// Follows the chain to its tip. For one who holds `following`.
    pub(super) fn advance(&self) -> Result<()> {
        loop {
            if self.synced()?.hash == self.shared.chain.tip(Scope::NONE)?.hash {
                return Ok(());
            }
            self.write(|write| write.follow_chain())?;
        }
    }

    /// Where the wallet stands now.
    pub(in crate::wallet) fn synced(&self) -> Result<Synced> {
        self.store.tables.synced(&*self.store.read()?)
    }

    /// A block of the best chain by its height.
    pub(in crate::wallet) fn block_at(&self, height: u32) -> Result<Option<BlockInfo>> {
        Ok(self.shared.chain.block_info(Scope::NONE, BlockRef::Height { height })?)
    }

    /// A block's contents.
    pub(in crate::wallet) fn read_block(&self, hash: BlockHash) -> Result<Block> {
        let missing = || WalletError::MissingBlock(hash.to_string());
        let raw = self.shared.chain.block(Scope::NONE, hash)?.ok_or_else(missing)?;
        deserialize(&raw).map_err(|_| missing())
    }
}

impl Write<'_> {
    /// Goes back to the chain if it went another way, then on towards its tip.
    fn follow_chain(&mut self) -> Result<()> {
        let started = Instant::now();
        let fork = self.fork()?;
        let undone = self.undo_to(&fork)?;
        for _ in 0..BLOCKS_PER_WRITE {
            let Some(next) = self.wallet.block_at(self.synced.height.saturating_add(1))? else { break };
            if previous(&next) != Some(self.synced.hash) {
                // The chain went another way meanwhile: the next round goes back to the fork.
                break;
            }
            let block = self.wallet.read_block(next.hash)?;
            self.connect(&block, &next)?;
            self.remember_block(&next)?;
            self.synced = synced_at(&next);
            if started.elapsed() > TIME_PER_WRITE {
                break;
            }
        }
        self.find_in_mempool(undone)
    }

    /// A block was connected. Nothing where it does not continue from where the wallet stands: then the wallet has read
    /// ahead of what it was told, and what it is told later leads to where it is.
    pub(super) fn take_connected(&mut self, hash: BlockHash) -> Result<()> {
        let info = self.wallet.shared.chain.block_info(Scope::NONE, BlockRef::Hash { hash })?;
        let Some(info) = info.filter(|info| previous(info) == Some(self.synced.hash)) else { return Ok(()) };
        let block = self.wallet.read_block(hash)?;
        self.connect(&block, &info)?;
        self.remember_block(&info)?;
        self.synced = synced_at(&info);
        Ok(())
    }

    /// A block was disconnected. Nothing where the wallet does not stand there, as with [`Write::take_connected`].
    pub(super) fn take_disconnected(&mut self, hash: BlockHash) -> Result<()> {
        if self.synced.hash != hash {
            return Ok(());
        }
        let missing = || WalletError::MissingBlock(hash.to_string());
        let chain = &self.wallet.shared.chain;
        let info = chain.block_info(Scope::NONE, BlockRef::Hash { hash })?;
        let hash = info.as_ref().and_then(previous).ok_or_else(missing)?;
        let parent = chain.block_info(Scope::NONE, BlockRef::Hash { hash })?.ok_or_else(missing)?;
        let undone = self.undo_to(&parent)?;
        self.find_in_mempool(undone)
    }

    /// The last block that the wallet has followed and that is in the best chain.
    fn fork(&self) -> Result<BlockInfo> {
        let chain = &self.wallet.shared.chain;
        if let Some(fork) = chain.fork_point(Scope::NONE, self.synced.hash)? {
            return Ok(fork);
        }
        // The chain does not know the block: another node's data, or one that was set up anew.
        for entry in self.t.blocks.rev_iter(&self.txn)? {
            let hash = BlockHash::from_slice(entry?.1).map_err(|_| WalletError::damaged(0))?;
            let known = chain.block_info(Scope::NONE, BlockRef::Hash { hash })?;
            if let Some(info) = known.filter(|info| info.in_best_chain) {
                return Ok(info);
            }
        }
        self.wallet.block_at(0)?.ok_or_else(|| WalletError::MissingBlock("0".into()))
    }

    /// Takes back what the wallet knows from blocks above `fork`. Gives the transactions that are unconfirmed now.
    fn undo_to(&mut self, fork: &BlockInfo) -> Result<BTreeSet<Txid>> {
        let mut undone = BTreeSet::new();
        for height in (fork.height.saturating_add(1)..=self.synced.height).rev() {
            self.undo_height(height, &mut undone)?;
            self.t.blocks.delete(&mut self.txn, &height.to_be_bytes())?;
        }
        if self.synced.hash != fork.hash {
            self.synced = synced_at(fork);
        }
        Ok(undone)
    }

    fn undo_height(&mut self, height: u32, undone: &mut BTreeSet<Txid>) -> Result<()> {
        let mut rows = Vec::new();
        for table in [self.t.confirmed, self.t.conflicted] {
            for entry in table.prefix_iter(&self.txn, &height.to_be_bytes())? {
                rows.push(self.t.transaction_at(&self.txn, entry?.1)?);
            }
        }
        for row in rows {
            undone.insert(row.txid);
            if matches!(row.state, TxState::Confirmed { .. }) {
                self.note_payments(row.outputs.iter().map(|output| output.script.as_script()))?;
            }
            // A payment may have entered its address in the address book, which rewrites the row.
            let row = self.t.transaction(&self.txn, &row.txid)?.unwrap_or(row);
            self.mark_disconnected(row)?;
        }
        Ok(())
    }

    /// Takes over what a block of the best chain says.
    pub fn connect(&mut self, block: &Block, info: &BlockInfo) -> Result<()> {
        let received = self.wallet.shared.chain.time(Scope::NONE)?;
        for (index, transaction) in (0_u32..).zip(&block.txdata) {
            let place = (info.hash, info.height, index, block.header.time);
            self.connect_transaction(transaction, transaction.compute_txid(), place, received)?;
        }
        Ok(())
    }

    /// Takes over what a transaction of the best chain says: it stands at a place (block, height, index, and the block's
    /// time) and is met at `received`, in seconds.
    pub fn connect_transaction(
        &mut self,
        transaction: &Transaction,
        txid: Txid,
        (block, height, index, time): (BlockHash, u32, u32, u32),
        received: u64,
    ) -> Result<()> {
        if !transaction.is_coinbase() {
            self.forget_mempool_conflicts(txid)?;
            for input in &transaction.input {
                for spender in self.t.spenders(&self.txn, &input.previous_output)? {
                    if spender != txid {
                        self.mark_conflicted(spender, block, height)?;
                    }
                }
            }
        }
        self.consider(transaction, txid, TxState::Confirmed { block, height, index, time }, received)?;
        Ok(())
    }

    /// The row that remembers a followed block.
    fn remember_block(&mut self, info: &BlockInfo) -> Result<()> {
        put(self.t.blocks, &mut self.txn, &info.height.to_be_bytes(), &BlockRow { hash: info.hash })
    }
}
