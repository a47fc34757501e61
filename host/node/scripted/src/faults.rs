use std::collections::BTreeSet;
use std::time::Duration;

use bitcoin::BlockHash;
use outrigger_node::{Gap, NodeError, Result};
use parking_lot::{Condvar, Mutex};

type Hook = Box<dyn FnOnce() + Send>;

/// When the answer to a submitted transaction is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// Before the mempool has the transaction.
    Before,
    /// Once it has it.
    After,
}

#[derive(Default)]
struct State {
    absent: bool,
    hanging: bool,
    waiting: usize,
    slow: Duration,
    unreadable: BTreeSet<u32>,
    /// Why, where the node can tell.
    gap: Option<Gap>,
    forgotten: BTreeSet<BlockHash>,
    /// After how many moments of the chain it is done.
    hook: Option<(usize, Hook)>,
    lost: Option<Lost>,
    /// Done when the next transaction is submitted.
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

    /// Whether it answers nothing until it does so again.
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

    /// Does something once, when so many moments of the chain have been looked at and let go.
    pub fn once_looked_at(&self, moments: usize, hook: impl FnOnce() + Send + 'static) {
        self.state.lock().hook = Some((moments, Box::new(hook)));
    }

    /// Whether the answers to submitted transactions are lost.
    pub fn set_lost(&self, lost: Option<Lost>) {
        self.state.lock().lost = lost;
    }

    /// Does something once, when a transaction is submitted and before the mempool has it.
    pub fn once_submitted(&self, hook: impl FnOnce() + Send + 'static) {
        self.state.lock().submitted = Some(Box::new(hook));
    }

    /// A transaction is submitted: `take` gives it to the mempool.
    pub(crate) fn submit<T>(&self, take: impl FnOnce() -> Result<T>) -> Result<T> {
        self.pass()?;
        let hook = self.state.lock().submitted.take();
        hook.into_iter().for_each(|hook| hook());
        let lost = self.state.lock().lost;
        let taken = if lost == Some(Lost::Before) { None } else { Some(take()?) };
        taken.filter(|_| lost.is_none()).ok_or_else(|| NodeError::OutcomeUnknown("The answer was lost".into()))
    }

    /// What stands before each answer.
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

    /// A moment of the chain is let go.
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

    /// What stands before a block. Whether it is there.
    pub(crate) fn block(&self, hash: BlockHash, height: u32) -> Result<bool> {
        let state = self.state.lock();
        let (slow, unreadable, known) =
            (state.slow, state.unreadable.contains(&height), !state.forgotten.contains(&hash));
        drop(state);
        std::thread::sleep(slow);
        if unreadable { Err(NodeError::Storage(format!("the block at {height} cannot be read"))) } else { Ok(known) }
    }
}
