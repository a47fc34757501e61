//! Searches the chain for scripts by block digests: short hashes of each block's scripts.

use std::ops::Range;

use super::store::digests::Digest;
use super::{ChainSnapshot, EmbeddedError};
use outrigger_disk::StoreError;
use outrigger_node::search::{Findings, Found, FoundBlock, MAX_READ, ScriptSet, matching};

impl ChainSnapshot {
    /// The height of the first block whose `nTimeMax` is at least `time`, in Unix seconds. It never decreases with
    /// height, so a binary search finds it.
    pub fn first_at(&self, time: u64) -> Result<Option<u32>, EmbeddedError> {
        let (mut low, mut high) = (0, self.tip().height.saturating_add(1));
        let end = high;
        while low < high {
            let middle = low + (high - low) / 2;
            let digest = self.store.digest(&self.txn, middle)?;
            let digest = digest.ok_or_else(|| EmbeddedError::corrupt("digests", middle))?;
            if u64::from(digest.max_time()) < time {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok((low < end).then_some(low))
    }

    /// Searches the best chain's blocks at these heights. Only blocks whose digest matches are read. An unreadable
    /// block is no error.
    pub fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings, EmbeddedError> {
        let mut findings = Findings { tip: self.tip().hash, blocks: Vec::new(), next: heights.end };
        let mut read = 0;
        for digest in self.store.digests_from(&self.txn, heights.start)? {
            let digest = digest?;
            if digest.height >= heights.end {
                break;
            }
            if !digest.hashes().any(|hash| wanted.has(hash)) {
                continue;
            }
            let (block, bytes) = self.read_matching(&digest, wanted)?;
            findings.blocks.push(block);
            read += bytes;
            if read > MAX_READ {
                findings.next = digest.height + 1;
                break;
            }
        }
        Ok(findings)
    }

    /// Reads a block whose digest matches. Also returns its size in bytes.
    fn read_matching(&self, digest: &Digest, wanted: &ScriptSet) -> Result<(FoundBlock, usize), EmbeddedError> {
        let hash = digest.block();
        let block = match self.store.found_block(&self.txn, &hash) {
            // The caller reports the block as unreadable and continues with the others.
            Err(EmbeddedError::Store(StoreError::Damage(_))) => None,
            block => block?,
        };
        let bytes = block.as_ref().map_or(0, |(_, bytes)| *bytes);
        let found = block.map(|(block, _)| {
            let time = block.header.time;
            // Without undo data `matching` keeps every transaction, since any may spend a wanted output.
            let spent = self.store.spent(&self.txn, &hash).ok().flatten().unwrap_or_default();
            Found { time, transactions: matching(block, &[], &spent, wanted) }
        });
        let found = FoundBlock { hash, height: digest.height, max_time: digest.max_time(), found };
        Ok((found, bytes))
    }
}
