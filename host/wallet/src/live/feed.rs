//! A wallet's queue of node events, and its position on the chain.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use outrigger_service::wallet::Synced;
use parking_lot::{Condvar, Mutex};

use crate::error::WalletError;
use outrigger_node::NodeEvent;

/// The longest queue of a wallet. Beyond it, the wallet reads the chain and the mempool instead.
const MAX_WAITING: usize = 50_000;

#[derive(Clone, Debug)]
pub enum Item {
    Event(NodeEvent),
    /// Follows the chain to its tip and reads the whole mempool, in place of the items from its number on.
    Reconcile,
}

impl Item {
    pub fn is_of_mempool(&self) -> bool {
        matches!(
            self,
            Self::Event(NodeEvent::TransactionAdded { .. }) | Self::Event(NodeEvent::TransactionRemoved { .. })
        )
    }

    pub fn event(&self) -> Option<&NodeEvent> {
        match self {
            Self::Event(event) => Some(event),
            Self::Reconcile => None,
        }
    }
}

/// Items by their numbers, from 1 on, which rise.
pub type Items = VecDeque<(u64, Item)>;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Stage {
    /// The queue is empty, so the index holds all interests of the wallet.
    Idle,
    Queued,
    Working,
    Failed(String),
}

#[derive(Clone, Copy, Debug)]
pub struct SyncPosition {
    /// The wallet's position.
    pub now: Synced,
    /// The last block in the file. The blocks after it do not touch the wallet.
    pub stored: Synced,
    /// The greatest height at which a transaction of the wallet is confirmed or conflicted.
    pub top: u32,
    /// The height of the next block that makes a transaction deep, which is written to the log.
    pub due: u32,
}

struct State {
    items: Items,
    /// The number of the last pushed item, and of the last item of the processed ones at the head of the queue.
    pushed: u64,
    done: u64,
    stage: Stage,
    stopping: bool,
    position: SyncPosition,
}

#[derive(PartialEq, Eq, Debug)]
pub enum WaitOutcome {
    /// The items pushed before the wait are processed.
    Done,
    /// The wallet was unloaded, or the host stops.
    Stopped,
    /// The follower thread panicked, with this message.
    Failed(String),
}

/// Why a wallet could not follow the chain to its tip, and when the follower retries.
pub struct Lag {
    pub error: WalletError,
    pub wait: Duration,
    /// The alarm of the retry, once it is set.
    pub planned: Option<Instant>,
}

impl Lag {
    /// Whether the wallet would have to rewind further than `max_rewind`. It then answers reads and refuses writes.
    pub fn is_read_only(&self) -> bool {
        matches!(self.error, WalletError::Rewind { .. })
    }
}

pub struct Feed {
    state: Mutex<State>,
    progress: Condvar,
    /// Set while the wallet has missed an event. It then reads the chain and the mempool again.
    pub lag: Mutex<Option<Lag>>,
    /// The mempool's sequence at the last full read; 0 before the first.
    mempool: AtomicU64,
    retreats: AtomicU64,
}

impl Feed {
    /// An idle queue, for a wallet whose stored position is `now`.
    pub fn new(now: Synced, top: u32, due: u32) -> Self {
        let position = SyncPosition { now, stored: now, top, due };
        let (items, stage) = (Items::new(), Stage::Idle);
        let state = State { items, pushed: 0, done: 0, stage, stopping: false, position };
        Self {
            state: Mutex::new(state),
            progress: Condvar::new(),
            lag: Mutex::new(None),
            mempool: AtomicU64::new(0),
            retreats: AtomicU64::new(0),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.state.lock().stage == Stage::Idle
    }

    /// Whether the wallet has missed an event and has not caught up since.
    pub fn is_behind(&self) -> bool {
        self.lag.lock().is_some()
    }

    /// Records that the wallet has read the whole mempool, at this sequence or a later one.
    pub fn note_mempool(&self, sequence: u64) {
        self.mempool.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Whether the wallet has read the whole mempool since the change with this sequence. No change has sequence 0.
    pub fn has_read_mempool(&self, sequence: u64) -> bool {
        sequence > 0 && sequence <= self.mempool.load(Ordering::Acquire)
    }

    /// How often the wallet has gone back to an earlier block. A caller compares the values before it queries the node and
    /// when it writes: if they differ, the query may have seen another chain.
    pub fn retreats(&self) -> u64 {
        self.retreats.load(Ordering::Acquire)
    }

    /// Called under the write lock.
    pub fn note_retreat(&self) {
        self.retreats.fetch_add(1, Ordering::AcqRel);
    }

    pub fn position(&self) -> SyncPosition {
        self.state.lock().position
    }

    /// Moves an idle wallet from block `from` to the adjacent block `to` if it is `untouched`. Returns false if the caller
    /// must push the event: the wallet is touched or not idle. The caller keeps the feed busy, so the wallet does not fall behind meanwhile.
    pub fn pass(&self, from: BlockHash, to: Synced, untouched: impl FnOnce(&SyncPosition) -> bool) -> bool {
        let is_behind = self.is_behind();
        let mut state = self.state.lock();
        if state.stage != Stage::Idle || is_behind {
            return false;
        }
        if state.position.now.hash != from {
            return true;
        }
        let passes = to.height < state.position.due && untouched(&state.position);
        if passes {
            state.position.now = to;
        }
        passes
    }

    /// Moves the position to a block that does not change the wallet. Called only by the thread that works on it.
    pub fn stand_at(&self, now: Synced) {
        self.state.lock().position.now = now;
    }

    /// Records that a write that started at position `began` has stored position `stored`.
    pub fn note_stored(&self, began: Synced, stored: Synced, due: u32) {
        let mut state = self.state.lock();
        (state.position.stored, state.position.due) = (stored, due);
        if began != stored {
            state.position.now = stored;
        }
    }

    /// Records that no transaction is confirmed or conflicted above this height any more.
    pub fn set_top(&self, height: u32) {
        self.state.lock().position.top = height;
    }

    /// Records that a transaction is confirmed or conflicted at this height.
    pub fn note_height(&self, height: u32) {
        let mut state = self.state.lock();
        state.position.top = state.position.top.max(height);
    }

    /// Adds an item. Returns whether the wallet was idle and must be queued for a thread.
    pub fn push(&self, item: Item) -> bool {
        let mut state = self.state.lock();
        if state.stopping || matches!(state.stage, Stage::Failed(_)) {
            return false;
        }
        state.pushed += 1;
        let mut numbered = (state.pushed, item);
        if state.items.len() >= MAX_WAITING {
            numbered = (state.items.front().map_or(state.pushed, |(first, _)| *first), Item::Reconcile);
            state.items.clear();
        }
        state.items.push_back(numbered);
        let idle = state.stage == Stage::Idle;
        if idle {
            state.stage = Stage::Queued;
        }
        idle
    }

    /// Starts a turn with at most `most` items. `None` if there is nothing to do.
    pub fn begin(&self, most: usize) -> Option<Items> {
        let mut state = self.state.lock();
        if state.stopping || state.stage != Stage::Queued {
            return None;
        }
        state.stage = Stage::Working;
        let count = state.items.len().min(most);
        Some(state.items.drain(..count).collect())
    }

    /// Ends a turn, and puts `rest` back. Returns whether there is more to do.
    pub fn end(&self, rest: Items) -> bool {
        let mut state = self.state.lock();
        for item in rest.into_iter().rev() {
            state.items.push_front(item);
        }
        state.done = state.items.front().map_or(state.pushed, |(first, _)| *first - 1);
        let more = !state.items.is_empty() && !state.stopping;
        state.stage = if more { Stage::Queued } else { Stage::Idle };
        drop(state);
        self.progress.notify_all();
        more
    }

    /// Records a panic of the follower thread: the wallet is no longer followed.
    pub fn fail(&self, reason: String) {
        let mut state = self.state.lock();
        state.items.clear();
        state.stage = Stage::Failed(reason);
        drop(state);
        self.progress.notify_all();
    }

    pub fn failure(&self) -> Option<String> {
        match &self.state.lock().stage {
            Stage::Failed(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    #[cfg(test)]
    pub fn pushed(&self) -> u64 {
        self.state.lock().pushed
    }

    /// Waits until the items pushed before this call are processed.
    pub fn wait(&self) -> WaitOutcome {
        let mut state = self.state.lock();
        let target = state.pushed;
        loop {
            if let Stage::Failed(reason) = &state.stage {
                return WaitOutcome::Failed(reason.clone());
            }
            if state.done >= target {
                return WaitOutcome::Done;
            }
            if state.stopping {
                return WaitOutcome::Stopped;
            }
            self.progress.wait(&mut state);
        }
    }

    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.progress.notify_all();
    }

    /// Waits until no thread works on the wallet. Called after [`Self::stop`].
    pub fn wait_quiet(&self) {
        let mut state = self.state.lock();
        while state.stage == Stage::Working {
            self.progress.wait(&mut state);
        }
    }
}
