//! The blocks whose Merkle roots were checked since the start. Once is enough: checksums find later damage.

use std::collections::HashSet;

use bitcoin::BlockHash;
use parking_lot::Mutex;

/// The capacity. A full set is cleared, and its blocks are checked again.
const MAX_CHECKED: usize = 100_000;

#[derive(Default)]
pub struct Checked(Mutex<HashSet<BlockHash>>);

impl Checked {
    pub fn has(&self, hash: &BlockHash) -> bool {
        self.0.lock().contains(hash)
    }

    pub fn note(&self, hash: &BlockHash) {
        let mut checked = self.0.lock();
        if checked.len() >= MAX_CHECKED {
            checked.clear();
        }
        checked.insert(*hash);
    }
}
