//! The queue of node events that a wallet has not taken over, and its position on the chain.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bitcoin::BlockHash;
use outrigger_service::wallet::Synced;
use parking_lot::{Condvar, Mutex};

use outrigger_node::NodeEvent;

/// The longest queue of one wallet. Beyond it, the wallet reads the chain and the mempool instead.
const MAX_WAITING: usize = 50_000;

/// A task of a follower thread.
#[derive(Clone, Debug)]
pub enum Item {
    /// Takes over an event.
    Event(NodeEvent),
    /// Follows the chain to its tip and reads the whole mempool. It replaces so many items.
    Reconcile(u64),
}

impl Item {
    /// Whether it concerns the mempool alone.
    pub fn is_of_mempool(&self) -> bool {
        matches!(
            self,
            Self::Event(NodeEvent::TransactionAdded { .. }) | Self::Event(NodeEvent::TransactionRemoved { .. })
        )
    }

    pub fn event(&self) -> Option<&NodeEvent> {
        match self {
            Self::Event(event) => Some(event),
            Self::Reconcile(_) => None,
        }
    }

    /// The number of pushed items that it stands for.
    fn worth(&self) -> u64 {
        match self {
            Self::Event(_) => 1,
            Self::Reconcile(count) => *count,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Stage {
    /// The queue is empty, so the index knows all interests of the wallet.
    Idle,
    Queued,
    Working,
    /// The follower thread panicked.
    Failed(String),
}

/// A position on the chain.
#[derive(Clone, Copy, Debug)]
pub struct SyncPosition {
    /// The last block that the wallet has followed.
    pub now: Synced,
    /// The last block in the file. The blocks after it do not touch the wallet.
    pub stored: BlockHash,
    pub stored_height: u32,
    /// The greatest height that confirmed a transaction of the wallet, or conflicted with one.
    pub top: u32,
}

struct State {
    items: VecDeque<Item>,
    /// Counters of all pushed items, and of those that were taken over.
    pushed: u64,
    done: u64,
    stage: Stage,
    stopping: bool,
    position: SyncPosition,
}

#[derive(PartialEq, Eq, Debug)]
pub enum Waited {
    /// The queue is empty.
    Done,
    /// The wallet was unloaded, or the host stops.
    Stopped,
    /// The follower gave up, for this reason.
    Failed(String),
}

pub struct Feed {
    state: Mutex<State>,
    progress: Condvar,
    /// Mirrors `Stage::Idle`, to be read without the lock.
    idle: AtomicBool,
    /// Whether an event was dropped, so that the wallet has to read everything again.
    behind: AtomicBool,
    /// The mempool's sequence when all of it was read last; 0 before.
    mempool: AtomicU64,
    /// How often the wallet has gone back to an earlier block.
    retreats: AtomicU64,
}

impl Feed {
    /// Nothing to do, for a wallet that is stored with this position.
    pub fn new(now: Synced, top: u32) -> Self {
        let position = SyncPosition { now, stored: now.hash, stored_height: now.height, top };
        let (items, stage) = (VecDeque::new(), Stage::Idle);
        let state = State { items, pushed: 0, done: 0, stage, stopping: false, position };
        Self {
            state: Mutex::new(state),
            progress: Condvar::new(),
            idle: AtomicBool::new(true),
            behind: AtomicBool::new(false),
            mempool: AtomicU64::new(0),
            retreats: AtomicU64::new(0),
        }
    }

    /// Whether it has taken over everything.
    pub fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire)
    }

    /// Whether it missed something, and has not caught up.
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Acquire)
    }

    /// It has missed something, or has caught up. For one who works on it.
    pub fn set_behind(&self, behind: bool) {
        self.behind.store(behind, Ordering::Release);
    }

    /// All of the mempool was read, which had this sequence or a later one.
    pub fn note_mempool(&self, sequence: u64) {
        self.mempool.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Whether all of the mempool was read since the change with this sequence. No change has the sequence 0.
    pub fn has_read_mempool(&self, sequence: u64) -> bool {
        sequence > 0 && sequence <= self.mempool.load(Ordering::Acquire)
    }

    /// How often the wallet has gone back to an earlier block: whoever has asked the node something and writes by the answer
    /// sees by it whether the chain was another one then.
    pub fn retreats(&self) -> u64 {
        self.retreats.load(Ordering::Acquire)
    }

    /// The wallet goes back to an earlier block. For one who has the right to write.
    pub fn note_retreat(&self) {
        self.retreats.fetch_add(1, Ordering::AcqRel);
    }

    /// Where the wallet stands.
    pub fn position(&self) -> SyncPosition {
        self.state.lock().position
    }

    /// Moves a wallet with nothing to do from one block to another, if it stands there and what is between leaves it
    /// untouched. False where it has to be told: it is touched, or has more to do.
    pub fn pass(&self, from: BlockHash, to: Synced, untouched: impl FnOnce(&SyncPosition) -> bool) -> bool {
        let mut state = self.state.lock();
        if state.stage != Stage::Idle || self.is_behind() {
            return false;
        }
        if state.position.now.hash != from {
            return true;
        }
        let passes = untouched(&state.position);
        if passes {
            state.position.now = to;
        }
        passes
    }

    /// Moves the wallet to a block with which nothing of it changes. For one who works on it.
    pub fn stand_at(&self, now: Synced) {
        self.state.lock().position.now = now;
    }

    /// A write that began with `began` was committed and stored `stored` as the wallet's position.
    pub fn note_stored(&self, began: Synced, stored: Synced) {
        let mut state = self.state.lock();
        (state.position.stored, state.position.stored_height) = (stored.hash, stored.height);
        if began != stored {
            state.position.now = stored;
        }
    }

    /// Nothing of the wallet is confirmed or made impossible above this height any more.
    pub fn set_top(&self, height: u32) {
        self.state.lock().position.top = height;
    }

    /// Something of the wallet is confirmed or made impossible at this height.
    pub fn note_height(&self, height: u32) {
        let mut state = self.state.lock();
        state.position.top = state.position.top.max(height);
    }

    /// Adds something to do. Whether the wallet must be queued for a thread, as it was idle.
    pub fn push(&self, item: Item) -> bool {
        let mut state = self.state.lock();
        if state.stopping || matches!(state.stage, Stage::Failed(_)) {
            return false;
        }
        state.pushed += item.worth();
        if state.items.len() >= MAX_WAITING {
            let all = state.items.drain(..).map(|item| item.worth()).sum::<u64>() + item.worth();
            state.items.push_back(Item::Reconcile(all));
        } else {
            state.items.push_back(item);
        }
        let idle = state.stage == Stage::Idle;
        if idle {
            state.stage = Stage::Queued;
            self.idle.store(false, Ordering::Release);
        }
        idle
    }

    /// Begins a turn: takes some of what is to be done. None where nothing is to be done any more.
    pub fn begin(&self, most: usize) -> Option<Vec<Item>> {
        let mut state = self.state.lock();
        if state.stopping || state.stage != Stage::Queued {
            return None;
        }
        state.stage = Stage::Working;
        let count = state.items.len().min(most);
        Some(state.items.drain(..count).collect())
    }

    /// Ends a turn that had taken items worth `taken` and leaves `rest` of them to be done. Whether there is more to do.
    pub fn end(&self, taken: u64, rest: Vec<Item>) -> bool {
        let mut state = self.state.lock();
        state.done += taken.saturating_sub(worth(&rest));
        for item in rest.into_iter().rev() {
            state.items.push_front(item);
        }
        let more = !state.items.is_empty() && !state.stopping;
        state.stage = if more { Stage::Queued } else { Stage::Idle };
        self.idle.store(!more, Ordering::Release);
        drop(state);
        self.progress.notify_all();
        more
    }

    /// The thread that worked on it panicked: nobody will again.
    pub fn fail(&self, reason: String) {
        let mut state = self.state.lock();
        state.items.clear();
        state.stage = Stage::Failed(reason);
        drop(state);
        self.progress.notify_all();
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<String> {
        match &self.state.lock().stage {
            Stage::Failed(reason) => Some(reason.clone()),
            _ => None,
        }
    }

    /// How many things were ever pushed.
    #[cfg(test)]
    pub fn pushed(&self) -> u64 {
        self.state.lock().pushed
    }

    /// Waits until everything that was pushed before this call has been taken over.
    pub fn wait(&self) -> Waited {
        let mut state = self.state.lock();
        let target = state.pushed;
        loop {
            if let Stage::Failed(reason) = &state.stage {
                return Waited::Failed(reason.clone());
            }
            if state.done >= target {
                return Waited::Done;
            }
            if state.stopping {
                return Waited::Stopped;
            }
            self.progress.wait(&mut state);
        }
    }

    /// Nothing more is to be done for it.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.progress.notify_all();
    }

    /// Waits until no thread works on the wallet, which was stopped.
    pub fn wait_quiet(&self) {
        let mut state = self.state.lock();
        while state.stage == Stage::Working {
            self.progress.wait(&mut state);
        }
    }
}

/// For how many pushed items these stand.
pub fn worth(items: &[Item]) -> u64 {
    items.iter().map(Item::worth).sum()
}
