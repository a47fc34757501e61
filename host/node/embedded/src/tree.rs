//! The tree of all known headers, in memory: who builds on whom, and which branch is best.
//!
//! It mirrors the block index. It is changed while a write is under way and only ever used under the write lock; when
//! a write fails it is loaded anew. The best branch is the one with the most work among those whose blocks are all
//! stored and not failed; of several, the one that was complete first.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use bitcoin::{BlockHash, Work};
use outrigger_service::chain::DeploymentStage;

use super::EmbeddedError;
use super::deployments::Signals;
use super::params::MEDIAN_TIME_SPAN;
use super::store::rows::{BlockEntry, Failure, Validity};
use super::validation::median;

/// A block or header in the tree.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Its entry in the index.
    pub entry: BlockEntry,
    /// Whether it and all it builds on are stored.
    complete: bool,
    /// Where it stands in the deployment that miners signal.
    signals: Signals,
    children: Vec<BlockHash>,
}

/// How much a branch is worth: most work first, then the order of arrival.
type Rank = (Work, Reverse<i64>, BlockHash);

#[derive(Debug, Default)]
pub struct Tree {
    branches: HashMap<BlockHash, Branch>,
    candidates: BTreeSet<Rank>,
    best_header: Option<(Work, u32)>,
    next_sequence: i64,
    precious_sequence: i64,
}

impl Tree {
    /// The tree of these entries.
    ///
    /// # Errors
    /// [`EmbeddedError::Corrupt`] when one builds on a block that is not among them.
    pub fn load(mut entries: Vec<(BlockHash, BlockEntry)>) -> Result<Self, EmbeddedError> {
        entries.sort_unstable_by_key(|(_, entry)| entry.height);
        let mut tree = Self::default();
        for (hash, entry) in entries {
            if entry.height > 0 && !tree.branches.contains_key(&entry.header.prev_blockhash) {
                return Err(EmbeddedError::corrupt("index", entry.header.prev_blockhash));
            }
            tree.next_sequence = tree.next_sequence.max(entry.sequence + 1);
            tree.precious_sequence = tree.precious_sequence.min(entry.sequence);
            tree.insert(hash, entry);
        }
        Ok(tree)
    }

    pub fn get(&self, hash: &BlockHash) -> Option<&BlockEntry> {
        self.branches.get(hash).map(|branch| &branch.entry)
    }

    /// Where a known block stands in the deployment that miners signal.
    pub fn signals(&self, hash: &BlockHash) -> Option<Signals> {
        self.branches.get(hash).map(|branch| branch.signals)
    }

    /// The stage that the deployment has for a block on this one.
    ///
    /// # Errors
    /// [`EmbeddedError::Corrupt`] when the block is unknown.
    pub fn next_stage(&self, hash: &BlockHash) -> Result<DeploymentStage, EmbeddedError> {
        let branch = self.branches.get(hash).ok_or_else(|| EmbeddedError::corrupt("index", hash))?;
        Ok(branch.signals.next(branch.entry.height).0)
    }

    /// A block that must be known.
    ///
    /// # Errors
    /// [`EmbeddedError::Corrupt`] when it is not.
    pub fn known(&self, hash: &BlockHash) -> Result<&BlockEntry, EmbeddedError> {
        self.get(hash).ok_or_else(|| EmbeddedError::corrupt("index", hash))
    }

    /// Adds a header whose parent is known, unless it is the first.
    pub fn insert(&mut self, hash: BlockHash, entry: BlockEntry) {
        let parent = entry.header.prev_blockhash;
        let before = self.branches.get(&parent).filter(|_| entry.height > 0);
        let parent_complete = entry.height == 0 || before.is_some_and(|branch| branch.complete);
        let signals = before.map_or(Signals::FIRST, |before| before.signals.of_child(&before.entry, &entry));
        if let Some(parent) = self.branches.get_mut(&parent) {
            // Nearly every block has one child, and there are many blocks.
            parent.children.reserve_exact(1);
            parent.children.push(hash);
        }
        let complete = parent_complete && entry.validity > Validity::Header;
        self.branches.insert(hash, Branch { entry, complete, signals, children: Vec::new() });
        if complete && entry.failure == Failure::None {
            self.candidates.insert(rank(&hash, &entry));
        }
        if entry.failure == Failure::None && self.best_header.is_none_or(|(work, _)| entry.work > work) {
            self.best_header = Some((entry.work, entry.height));
        }
    }

    /// The height of the best header that is not failed.
    pub fn header_height(&self) -> u32 {
        self.best_header.map_or(0, |(_, height)| height)
    }

    /// The next place in the order of arrival.
    pub fn take_sequence(&mut self) -> i64 {
        self.next_sequence += 1;
        self.next_sequence - 1
    }

    /// The place before all that were given.
    pub fn take_precious_sequence(&mut self) -> i64 {
        self.precious_sequence = self.precious_sequence.min(0) - 1;
        self.precious_sequence
    }

    /// The last block of the best branch.
    pub fn best(&self) -> Option<BlockHash> {
        self.candidates.last().map(|(_, _, hash)| *hash)
    }

    /// Changes a block's entry. Its place in the tree must stay the same. Gives the new entry.
    ///
    /// # Errors
    /// [`EmbeddedError::Corrupt`] when the block is unknown.
    pub fn update(
        &mut self,
        hash: &BlockHash,
        change: impl FnOnce(&mut BlockEntry),
    ) -> Result<BlockEntry, EmbeddedError> {
        let branch = self.branches.get_mut(hash).ok_or_else(|| EmbeddedError::corrupt("index", hash))?;
        self.candidates.remove(&rank(hash, &branch.entry));
        change(&mut branch.entry);
        let entry = branch.entry;
        if branch.complete && entry.failure == Failure::None {
            self.candidates.insert(rank(hash, &entry));
        }
        Ok(entry)
    }

    /// Notes that a block has been stored: it and what was waiting for it become candidates. Gives those of them that
    /// arrive now, with their places in the order of arrival taken anew.
    ///
    /// # Errors
    /// [`EmbeddedError::Corrupt`] when the block is unknown.
    pub fn stored(&mut self, hash: BlockHash) -> Result<Vec<BlockHash>, EmbeddedError> {
        let parent = self.known(&hash)?.header.prev_blockhash;
        let mut arrived = Vec::new();
        if !self.branches.get(&parent).is_some_and(|branch| branch.complete) {
            return Ok(arrived);
        }
        let mut waiting = vec![hash];
        while let Some(hash) = waiting.pop() {
            let sequence = self.take_sequence();
            let Some(branch) = self.branches.get_mut(&hash) else { continue };
            if branch.entry.validity == Validity::Header {
                continue;
            }
            branch.complete = true;
            waiting.extend(branch.children.iter().copied());
            self.update(&hash, |entry| entry.sequence = sequence)?;
            arrived.push(hash);
        }
        Ok(arrived)
    }

    /// A block and all that build on it, parents before children.
    pub fn descendants(&self, hash: BlockHash) -> Vec<BlockHash> {
        let mut all = vec![hash];
        let mut at = 0;
        while let Some(branch) = all.get(at).and_then(|hash| self.branches.get(hash)) {
            all.extend(branch.children.iter().copied());
            at += 1;
        }
        all
    }

    /// The blocks a block builds on, the nearest first, without itself.
    pub fn ancestors(&self, hash: &BlockHash) -> impl Iterator<Item = (BlockHash, &BlockEntry)> {
        let parent = |entry: &BlockEntry| {
            let hash = entry.header.prev_blockhash;
            self.get(&hash).map(|entry| (hash, entry))
        };
        std::iter::successors(self.get(hash).and_then(parent), move |(_, entry)| parent(entry))
    }

    /// The last block that two have in common.
    ///
    /// # Errors
    /// [`EmbeddedError::Corrupt`] when one of them is unknown.
    pub fn fork(&self, one: BlockHash, other: BlockHash) -> Result<BlockHash, EmbeddedError> {
        let (mut one, mut other) = (one, other);
        while one != other {
            let (first, second) = (self.known(&one)?, self.known(&other)?);
            if first.height >= second.height {
                one = first.header.prev_blockhash;
            }
            if second.height >= first.height {
                other = second.header.prev_blockhash;
            }
        }
        Ok(one)
    }

    /// The blocks from `ancestor`, which is left out, to `hash`, the lowest first.
    pub fn path(&self, ancestor: BlockHash, hash: BlockHash) -> Vec<BlockHash> {
        let mut path = Vec::new();
        if hash != ancestor {
            path.push(hash);
            path.extend(self.ancestors(&hash).map(|(hash, _)| hash).take_while(|hash| *hash != ancestor));
        }
        path.reverse();
        path
    }

    /// The median time of a block that would have this parent and this time, in seconds (BIP 113).
    pub fn median_time(&self, time: u32, parent: &BlockHash) -> u32 {
        let mut times = vec![time];
        times.extend(self.get(parent).map(|entry| entry.header.time));
        times.extend(self.ancestors(parent).take(MEDIAN_TIME_SPAN - 2).map(|(_, entry)| entry.header.time));
        median(&mut times)
    }

    /// Looks for the best header again, after some of them failed or are back.
    pub fn find_best_header(&mut self) {
        let good = self.branches.values().filter(|branch| branch.entry.failure == Failure::None);
        self.best_header = good.map(|branch| (branch.entry.work, branch.entry.height)).max();
    }
}

fn rank(hash: &BlockHash, entry: &BlockEntry) -> Rank {
    (entry.work, Reverse(entry.sequence), *hash)
}
