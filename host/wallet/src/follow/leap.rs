//! Skips blocks: if a wallet is far behind, the node searches the blocks for the wallet's scripts, and the wallet reads only
//! the blocks with a match.

use std::sync::Arc;
use std::time::Instant;

use outrigger_node::Snapshot;
use outrigger_node::search::{Findings, FoundBlock, SearchReads};
use outrigger_service::chain::{BlockInfo, BlockRef};
use outrigger_service::wallet::{Synced, WalletTransaction};

use super::blocks::TIME_PER_TURN;
use super::decoded::{DecodedBlock, previous, synced_at};
use crate::error::{Result, WalletError};
use crate::live::Wallet;
use crate::ownership::Parents;
use crate::rescan::wanted::{Growth, WatchedScripts};
use crate::write::Write;

/// How many blocks are searched at a time.
const BLOCKS_PER_SEARCH: u32 = 512;

/// A block with a match.
struct Hit {
    /// The parent of `block`, if the wallet skips the parent.
    before: Option<BlockInfo>,
    block: Arc<DecodedBlock>,
}

impl Wallet {
    /// Follows the chain for a bounded time. Returns whether the wallet is now at the tip.
    pub(super) fn advance(&self) -> Result<bool> {
        let end = Instant::now() + TIME_PER_TURN;
        self.leap(end)?;
        self.read_blocks(end, u32::MAX)
    }

    /// Follows the chain to its tip, without a time limit.
    pub(crate) fn catch_up(&self) -> Result<()> {
        while !self.advance()? {}
        Ok(())
    }

    /// Whether the wallet is so far behind the tip that the node should search the blocks.
    pub(super) fn is_far(&self) -> bool {
        let blocks = self.shared.node.tip().height.saturating_sub(self.synced().height);
        blocks >= self.shared.settings.search_from
    }

    /// Follows the chain by searches until `end`. Does nothing if the tip is near, if the wallet's position is not on the
    /// chain, or if a search would cost as much as reading the blocks or could miss a transaction.
    fn leap(&self, end: Instant) -> Result<()> {
        if !self.is_far() || self.shared.node.search_reads() == SearchReads::Blocks || self.has_foreign_inputs()? {
            return Ok(());
        }
        let mut wanted = WatchedScripts::read(self)?;
        // Searches at least once, even if reading the scripts took all of the time.
        loop {
            let chain = self.shared.node.snapshot()?;
            let (synced, tip) = (self.synced(), chain.tip().height);
            let next = synced.height.saturating_add(1);
            let goes_on = chain.block_info(BlockRef::Height { height: next })?.as_ref().and_then(previous);
            if !self.is_far() || goes_on != Some(synced.hash) {
                return Ok(());
            }
            let heights = next..next.saturating_add(BLOCKS_PER_SEARCH).min(tip.saturating_add(1));
            let found = chain.find(heights, &wanted.set)?;
            let growth = self.take_findings(&*chain, &found, &synced, &mut wanted)?;
            wanted.extend(self, growth)?;
            if Instant::now() > end {
                return Ok(());
            }
        }
    }

    /// Connects the blocks with a match and skips the other searched blocks. Does nothing if the wallet's position has
    /// changed since the search. Stops early if the wallet gets scripts that the search did not cover.
    fn take_findings(
        &self,
        chain: &dyn Snapshot,
        found: &Findings,
        from: &Synced,
        wanted: &mut WatchedScripts,
    ) -> Result<Growth> {
        let info = |height: u32| {
            let missing = || WalletError::MissingBlock(height.to_string());
            chain.block_info(BlockRef::Height { height })?.ok_or_else(missing)
        };
        let last = info(found.next.saturating_sub(1))?;
        let mut height = from.height;
        let mut hits = Vec::with_capacity(found.blocks.len());
        let has_something =
            |block: &&FoundBlock| block.found.as_ref().is_none_or(|found| !found.transactions.is_empty());
        for block in found.blocks.iter().filter(has_something) {
            let passed_over = block.height > height.saturating_add(1);
            let before = passed_over.then(|| info(block.height.saturating_sub(1))).transpose()?;
            hits.push(Hit { before, block: self.decoded(block.hash)? });
            height = block.height;
        }
        let received = self.shared.node.time();
        let guard = self.lock_for_following()?;
        if self.synced() != *from {
            return Ok(Growth::Held);
        }
        if hits.is_empty() && last.height < self.feed.position().due {
            // Under the write lock: if the number of scripts has not changed, the search covered all of them.
            if self.store.tables.scripts.len(&*self.store.read()?)? != wanted.count {
                return Ok(Growth::Unknown);
            }
            self.feed.stand_at(synced_at(&last));
            return Ok(Growth::Held);
        }
        self.write_in(&guard, |write| write.take_hits(&hits, &last, wanted, received))
    }

    /// Whether an unconfirmed transaction has foreign inputs. A block that conflicts with it may contain nothing else
    /// of the wallet, so a search would miss it.
    fn has_foreign_inputs(&self) -> Result<bool> {
        let (txn, t, mut parents) = (self.store.read()?, self.store.tables, Parents::default());
        for entry in t.unconfirmed.iter(&txn)? {
            let row: WalletTransaction = t.transaction_at(&txn, entry?.1)?;
            for input in &row.inputs {
                if !parents.is_ours(&t, &txn, input)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl Write<'_> {
    fn take_hits(
        &mut self,
        hits: &[Hit],
        last: &BlockInfo,
        wanted: &mut WatchedScripts,
        received: u64,
    ) -> Result<Growth> {
        if wanted.is_stale(self)? {
            return Ok(Growth::Unknown);
        }
        for Hit { before, block } in hits {
            if let Some(before) = before {
                self.synced = synced_at(before);
            }
            self.take_block(block, received)?;
            if self.synced.hash != block.info.hash {
                // A reorganisation: the following hits belong to another chain.
                return Ok(Growth::Held);
            }
            let growth = wanted.look(self)?;
            if growth != Growth::Held {
                return Ok(growth);
            }
        }
        self.synced = synced_at(last);
        Ok(Growth::Held)
    }
}
