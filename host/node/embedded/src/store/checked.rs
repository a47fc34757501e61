//! Which blocks were held against their Merkle roots since the start: once is enough, since a checksum tells of what is damaged later.

use std::collections::HashSet;

use bitcoin::BlockHash;
use parking_lot::Mutex;

/// The most blocks that are remembered; then they are checked anew.
const MAX_CHECKED: usize = 100_000;

/// The hashes of blocks that were checked.
#[derive(Default)]
pub struct Checked(Mutex<HashSet<BlockHash>>);

impl Checked {
    /// Whether a block was checked.
    pub fn has(&self, hash: &BlockHash) -> bool {
        self.0.lock().contains(hash)
    }

    /// A block was checked.
    pub fn note(&self, hash: &BlockHash) {
        let mut checked = self.0.lock();
        if checked.len() >= MAX_CHECKED {
            checked.clear();
        }
        checked.insert(*hash);
    }
}
