//! How far the node may go back, and the state of a node that went back further, or is behind for long.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use parking_lot::Mutex;

use super::answers::ChainAnswer;
use super::error::SyncError;

/// How far the node may go back from the best block: to an ancestor of it, or to a branch with less work.
#[derive(Clone, Copy, Debug, Default)]
pub struct RewindLimit {
    /// A number of blocks; `None` for any.
    pub limit: Option<u32>,
    /// A block to which, and to whose descendants, it may go back in any case.
    pub allowed: Option<BlockHash>,
}

/// Why and since when the node is not up to date.
#[derive(Default)]
pub(crate) struct Standing {
    /// How many blocks its chain is behind the mirror, which does not follow it.
    behind: AtomicU32,
    /// Why that chain is not followed.
    held: Mutex<Option<String>>,
    /// Whether it went back beyond the limit.
    is_refused: AtomicBool,
    /// When the host last checked for missing blocks, and the result.
    pub(super) lack: Mutex<(Option<Instant>, bool)>,
    /// Since when it is behind, or lacks blocks.
    late_since: Mutex<Option<Instant>>,
}

impl Standing {
    /// Records the outcome of the last sync with a node that answered. Returns whether the node has caught up again.
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

    /// How many blocks the node's chain is behind the mirror, which does not follow it.
    pub(super) fn behind(&self) -> u32 {
        self.behind.load(Ordering::Relaxed)
    }

    /// Why the node's chain is not followed, if so.
    pub(super) fn held(&self) -> Option<String> {
        self.held.lock().clone()
    }

    /// Whether the node went back beyond the limit, or is behind, or lacks blocks, for longer than `patience`.
    pub(super) fn is_stalled(&self, patience: Duration) -> bool {
        let late = *self.late_since.lock();
        self.is_refused.load(Ordering::Relaxed) || late.is_some_and(|since| since.elapsed() >= patience)
    }
}

/// Whether the node is in its initial download. A new regtest chain always counts as such, so it is ignored there.
pub(super) fn is_fetching(info: &ChainAnswer) -> bool {
    info.initialblockdownload && info.chain != "regtest"
}
