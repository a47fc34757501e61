//! How far the node's chain may go back, and whether the node went back further or is behind.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use parking_lot::Mutex;

use super::answers::ChainAnswer;
use super::error::SyncError;

/// How far the node may go back from the best block, to an ancestor of it or to a branch with less work.
#[derive(Clone, Copy, Debug, Default)]
pub struct RewindLimit {
    /// A number of blocks; `None` for any.
    pub limit: Option<u32>,
    /// The node may always go back to this block, and to its descendants.
    pub allowed: Option<BlockHash>,
}

#[derive(Default)]
pub(crate) struct Standing {
    /// How many blocks the node's chain is behind the mirror, while the mirror does not follow it.
    behind: AtomicU32,
    /// Why the mirror does not follow the node's chain.
    held: Mutex<Option<String>>,
    /// Whether the node went back beyond the limit.
    is_refused: AtomicBool,
    /// The time and the result of the last check for missing blocks.
    pub(super) lack: Mutex<(Option<Instant>, bool)>,
    /// When the node fell behind or began to lack blocks.
    late_since: Mutex<Option<Instant>>,
}

impl Standing {
    /// Records the result of a sync with a node that answered. Returns whether the node has caught up.
    pub(super) fn note(&self, error: Option<&SyncError>) -> bool {
        let behind = match error {
            Some(
                SyncError::Behind { depth }
                | SyncError::Invalidating { depth }
                | SyncError::Rewind { depth, .. }
                | SyncError::Branch { depth, .. },
            ) => *depth,
            _ => 0,
        };
        *self.held.lock() = error.filter(|_| behind > 0).map(ToString::to_string);
        let is_refused = matches!(error, Some(SyncError::Rewind { .. } | SyncError::Branch { .. }));
        self.is_refused.store(is_refused, Ordering::Relaxed);
        let was_behind = self.behind.swap(behind, Ordering::Relaxed) > 0;
        self.note_late();
        was_behind && behind == 0
    }

    pub(super) fn note_late(&self) {
        let is_late = self.behind() > 0 || self.lack.lock().1;
        let mut since = self.late_since.lock();
        *since = is_late.then(|| since.unwrap_or_else(Instant::now));
    }

    pub(super) fn behind(&self) -> u32 {
        self.behind.load(Ordering::Relaxed)
    }

    pub(super) fn held(&self) -> Option<String> {
        self.held.lock().clone()
    }

    /// Whether the node went back beyond the limit, or has been behind or lacked blocks for `patience`.
    pub(super) fn is_stalled(&self, patience: Duration) -> bool {
        let late = *self.late_since.lock();
        self.is_refused.load(Ordering::Relaxed) || late.is_some_and(|since| since.elapsed() >= patience)
    }
}

/// Whether the node is in its initial download. On regtest the flag is ignored: a new chain always has it.
pub(super) fn is_fetching(info: &ChainAnswer) -> bool {
    info.initialblockdownload && info.chain != "regtest"
}
