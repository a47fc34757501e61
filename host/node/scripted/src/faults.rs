use std::collections::BTreeSet;
use std::time::Duration;

use bitcoin::BlockHash;
use outrigger_node::{Gap, NodeError, Result};
use parking_lot::{Condvar, Mutex};

type Hook = Box<dyn FnOnce() + Send>;

/// When the answer to a submitted transaction is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// Before the mempool accepts the transaction.
    Before,
    /// After the mempool has accepted it.
    After,
}

#[derive(Default)]
struct State {
    absent: bool,
    hanging: bool,
    waiting: usize,
    slow: Duration,
    unreadable: BTreeSet<u32>,
    /// The reason for missing blocks.
    gap: Option<Gap>,
    forgotten: BTreeSet<BlockHash>,
    /// Runs after this many snapshots were dropped.
    hook: Option<(usize, Hook)>,
    lost: Option<Lost>,
    /// Whether the mempool drops each submitted transaction at once.
    drops: bool,
    /// Runs when the next transaction is submitted.
    submitted: Option<Hook>,
}

#[derive(Default)]
pub struct Faults {
    state: Mutex<State>,
    changed: Condvar,
}

impl Faults {
    pub fn set_absent(&self, absent: bool) {
        self.state.lock().absent = absent;
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.state.lock().absent
    }

    /// While the node hangs, requests wait.
    pub fn set_hanging(&self, hanging: bool) {
        self.state.lock().hanging = hanging;
        self.changed.notify_all();
    }

    pub fn wait_for_a_victim(&self) {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.waiting == 0);
    }

    pub fn set_slow(&self, slow: Duration) {
        self.state.lock().slow = slow;
    }

    pub fn set_unreadable(&self, height: u32) {
        self.state.lock().unreadable.insert(height);
    }

    pub fn set_gap(&self, gap: Gap) {
        self.state.lock().gap = Some(gap);
    }

    pub(crate) fn gap(&self) -> Gap {
        self.state.lock().gap.unwrap_or(Gap::None)
    }

    pub fn set_readable(&self) {
        self.state.lock().unreadable.clear();
    }

    pub fn forget(&self, hash: BlockHash) {
        self.state.lock().forgotten.insert(hash);
    }

    pub fn remember(&self, hash: BlockHash) {
        self.state.lock().forgotten.remove(&hash);
    }

    /// Runs `hook` once, after this many snapshots of the chain were dropped.
    pub fn once_looked_at(&self, moments: usize, hook: impl FnOnce() + Send + 'static) {
        self.state.lock().hook = Some((moments, Box::new(hook)));
    }

    /// Whether, and when, answers to submitted transactions are lost.
    pub fn set_lost(&self, lost: Option<Lost>) {
        self.state.lock().lost = lost;
    }

    /// Lets the mempool accept each submitted transaction and drop it at once.
    pub fn drop_submitted(&self) {
        self.state.lock().drops = true;
    }

    pub(crate) fn drops_submitted(&self) -> bool {
        self.state.lock().drops
    }

    /// Runs `hook` once, when a transaction is submitted and before the mempool has it.
    pub fn once_submitted(&self, hook: impl FnOnce() + Send + 'static) {
        self.state.lock().submitted = Some(Box::new(hook));
    }

    /// Submits a transaction: `take` adds it to the mempool.
    pub(crate) fn submit<T>(&self, take: impl FnOnce() -> Result<T>) -> Result<T> {
        self.pass()?;
        let hook = self.state.lock().submitted.take();
        hook.into_iter().for_each(|hook| hook());
        let lost = self.state.lock().lost;
        let taken = if lost == Some(Lost::Before) { None } else { Some(take()?) };
        taken.filter(|_| lost.is_none()).ok_or_else(|| NodeError::OutcomeUnknown("The answer was lost".into()))
    }

    /// Waits while the node hangs. Fails while it is absent.
    pub(crate) fn pass(&self) -> Result<()> {
        let mut state = self.state.lock();
        if state.hanging {
            state.waiting += 1;
            self.changed.notify_all();
            self.changed.wait_while(&mut state, |state| state.hanging);
            state.waiting -= 1;
        }
        if state.absent { Err(NodeError::Unavailable("The node cannot be reached".into())) } else { Ok(()) }
    }

    /// Counts a dropped snapshot of the chain, and runs the hook if it is due.
    pub(crate) fn let_go(&self) {
        let mut state = self.state.lock();
        let Some((left, hook)) = state.hook.take() else { return };
        if left > 1 {
            state.hook = Some((left - 1, hook));
            return;
        }
        drop(state);
        hook();
    }

    /// Delays or fails the read of a block, as the test has set. Returns whether the node has the block.
    pub(crate) fn block(&self, hash: BlockHash, height: u32) -> Result<bool> {
        let state = self.state.lock();
        let (slow, unreadable, known) =
            (state.slow, state.unreadable.contains(&height), !state.forgotten.contains(&hash));
        drop(state);
        std::thread::sleep(slow);
        if unreadable { Err(NodeError::Storage(format!("the block at {height} cannot be read"))) } else { Ok(known) }
    }
}
