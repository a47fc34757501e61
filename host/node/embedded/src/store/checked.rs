//! The blocks whose Merkle roots were checked since the start. Once is enough: checksums find later damage.

use std::collections::HashSet;

use bitcoin::BlockHash;
use parking_lot::Mutex;

/// The most blocks that are remembered; beyond, all are forgotten and checked again.
const MAX_CHECKED: usize = 100_000;

/// The hashes of blocks that were checked.
#[derive(Default)]
pub struct Checked(Mutex<HashSet<BlockHash>>);

impl Checked {
    /// Whether a block was checked.
    pub fn has(&self, hash: &BlockHash) -> bool {
        self.0.lock().contains(hash)
    }

    /// Remembers that a block was checked.
    pub fn note(&self, hash: &BlockHash) {
        let mut checked = self.0.lock();
        if checked.len() >= MAX_CHECKED {
            checked.clear();
        }
        checked.insert(*hash);
    }
}
