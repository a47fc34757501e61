//! Searching the chain for scripts, by the digests of its blocks.

use std::ops::Range;

use super::store::digests::Digest;
use super::{ChainSnapshot, EmbeddedError};
use outrigger_node::search::{Findings, Found, FoundBlock, MAX_READ, ScriptSet, matching};

impl ChainSnapshot {
    /// The height of the first block whose running-maximum time is at least `time`: the maximum never falls, so the heights
    /// are halved until it is found.
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

    /// Searches the blocks of the best chain at these heights for scripts, by the digests of the blocks.
    ///
    /// # Errors
    /// When the database fails or is damaged; not for a block that cannot be read.
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
            let (block, bytes) = self.read_found(&digest, wanted)?;
            findings.blocks.push(block);
            read += bytes;
            if read > MAX_READ {
                findings.next = digest.height + 1;
                break;
            }
        }
        Ok(findings)
    }

    /// Reads a block in which something may be found. Gives its size too.
    fn read_found(&self, digest: &Digest, wanted: &ScriptSet) -> Result<(FoundBlock, usize), EmbeddedError> {
        let hash = digest.block();
        let block = match self.store.found_block(&self.txn, &hash) {
            // Whoever asked says that it could not be read, and goes on with the others.
            Err(EmbeddedError::Damage(_)) => None,
            block => block?,
        };
        let bytes = block.as_ref().map_or(0, |(_, bytes)| *bytes);
        let found = block.map(|(block, _)| {
            let time = block.header.time;
            // Where this cannot be read, `matching` takes every transaction for one that may spend what is wanted.
            let spent = self.store.spent(&self.txn, &hash).ok().flatten().unwrap_or_default();
            Found { time, transactions: matching(block, &spent, wanted) }
        });
        let found = FoundBlock { hash, height: digest.height, max_time: digest.max_time(), found };
        Ok((found, bytes))
    }
}
