//! The tree of all known headers, in memory, and its best branch.
//!
//! It mirrors the block index. Only the holder of the write lock uses it. After a failed write it is reloaded.
//!
//! The best branch has the most work of all branches without missing or failed blocks. Of several with the same work, it
//! is the first that was complete, unless one of them is precious.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use bitcoin::{BlockHash, Work};
use outrigger_service::chain::DeploymentStage;

use super::EmbeddedError;
use super::deployments::Signals;
use super::params::MEDIAN_TIME_SPAN;
use super::store::rows::{BlockEntry, Failure, Validity};
use super::validation::median;

#[derive(Clone, Debug)]
pub struct Branch {
    pub entry: BlockEntry,
    /// Whether the block and all its ancestors are stored.
    complete: bool,
    /// The state of the BIP 9 deployment.
    signals: Signals,
    children: Vec<BlockHash>,
}

/// The order of branches, the best last: by work, then by arrival.
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
    /// Builds the tree from the block index. [`EmbeddedError::Corrupt`] if an entry's parent is missing.
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

    pub fn signals(&self, hash: &BlockHash) -> Option<Signals> {
        self.branches.get(hash).map(|branch| branch.signals)
    }

    /// The deployment's stage for a child of this block.
    pub fn next_stage(&self, hash: &BlockHash) -> Result<DeploymentStage, EmbeddedError> {
        let branch = self.branches.get(hash).ok_or_else(|| EmbeddedError::corrupt("index", hash))?;
        Ok(branch.signals.next(branch.entry.height).0)
    }

    /// The entry of a block that must exist; [`EmbeddedError::Corrupt`] if it does not.
    pub fn known(&self, hash: &BlockHash) -> Result<&BlockEntry, EmbeddedError> {
        self.get(hash).ok_or_else(|| EmbeddedError::corrupt("index", hash))
    }

    /// Adds a header. Its parent must be known, unless it is the genesis block.
    pub fn insert(&mut self, hash: BlockHash, entry: BlockEntry) {
        let parent = entry.header.prev_blockhash;
        let before = self.branches.get(&parent).filter(|_| entry.height > 0);
        let parent_complete = entry.height == 0 || before.is_some_and(|branch| branch.complete);
        let signals = before.map_or(Signals::FIRST, |before| before.signals.of_child(&before.entry, &entry));
        if let Some(parent) = self.branches.get_mut(&parent) {
            // Nearly every block has one child, and spare capacity would add up.
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

    /// A sequence lower than all others.
    pub fn take_precious_sequence(&mut self) -> i64 {
        self.precious_sequence = self.precious_sequence.min(0) - 1;
        self.precious_sequence
    }

    /// The last block of the best branch.
    pub fn best(&self) -> Option<BlockHash> {
        self.candidates.last().map(|(_, _, hash)| *hash)
    }

    /// Changes a block's entry, and returns it. Its parent and height must stay the same.
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

    /// Updates the tree after a block was stored. If its ancestors are stored, it and its stored descendants become
    /// candidates with new sequences. Returns the new candidates.
    pub fn stored(&mut self, hash: BlockHash) -> Result<Vec<BlockHash>, EmbeddedError> {
        let parent = self.known(&hash)?.header.prev_blockhash;
        let mut arrived = Vec::new();
        if !self.branches.get(&parent).is_some_and(|branch| branch.complete) {
            return Ok(arrived);
        }
        let mut waiting = vec![hash];
        while let Some(hash) = waiting.pop() {
            let sequence = self.next_sequence;
            self.next_sequence += 1;
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

    /// A block and its descendants, parents before children.
    pub fn descendants(&self, hash: BlockHash) -> Vec<BlockHash> {
        let mut all = vec![hash];
        let mut at = 0;
        while let Some(branch) = all.get(at).and_then(|hash| self.branches.get(hash)) {
            all.extend(branch.children.iter().copied());
            at += 1;
        }
        all
    }

    /// A block's ancestors, the nearest first.
    pub fn ancestors(&self, hash: &BlockHash) -> impl Iterator<Item = (BlockHash, &BlockEntry)> {
        let parent = |entry: &BlockEntry| {
            let hash = entry.header.prev_blockhash;
            self.get(&hash).map(|entry| (hash, entry))
        };
        std::iter::successors(self.get(hash).and_then(parent), move |(_, entry)| parent(entry))
    }

    /// The last common block of two branches.
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

    /// The blocks after `ancestor` up to `hash`, the lowest first.
    pub fn path(&self, ancestor: BlockHash, hash: BlockHash) -> Vec<BlockHash> {
        let mut path = Vec::new();
        if hash != ancestor {
            path.push(hash);
            path.extend(self.ancestors(&hash).map(|(hash, _)| hash).take_while(|hash| *hash != ancestor));
        }
        path.reverse();
        path
    }

    /// The median time of a block with this time on this parent, in Unix seconds (BIP 113).
    pub fn median_time(&self, time: u32, parent: &BlockHash) -> u32 {
        let mut times = vec![time];
        times.extend(self.get(parent).map(|entry| entry.header.time));
        times.extend(self.ancestors(parent).take(MEDIAN_TIME_SPAN - 2).map(|(_, entry)| entry.header.time));
        median(&mut times)
    }

    /// Finds the best header again, after failure marks have changed.
    pub fn find_best_header(&mut self) {
        let good = self.branches.values().filter(|branch| branch.entry.failure == Failure::None);
        self.best_header = good.map(|branch| (branch.entry.work, branch.entry.height)).max();
    }
}

fn rank(hash: &BlockHash, entry: &BlockEntry) -> Rank {
    (entry.work, Reverse(entry.sequence), *hash)
}
