//! The lanes of a runner by which threads of the host enter it, and the memory in which they lie.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::budget::Budget;
use crate::lane::Lane;
use crate::memory::{End, MemoryLane, Region, Side};
use crate::passing::{self, Parcel};

/// How many threads of the host can be in one runner at a time.
pub const MAX_ENTRIES: usize = 40;

/// How many of these are not for calls: for functions without which calls may not end.
const FOR_CONTROL: usize = 4;

/// What a thread of the host enters a runner for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A call.
    Call,
    /// Any other function.
    Control,
}

/// What a thread gets that is to enter a runner.
pub enum Taken {
    /// A lane.
    Free(Lane),
    /// It may make one.
    New,
}

#[derive(Default)]
struct State {
    /// Those last used last: they are taken first.
    free: Vec<Lane>,
    made: usize,
    /// How many calls have one.
    calls: usize,
}

/// The lanes, and who waits for one.
#[derive(Default)]
pub struct Lanes {
    state: Mutex<State>,
    freed: Condvar,
}

impl Lanes {
    /// Waits for a lane; none once the runner is gone.
    pub fn take(&self, entry: Entry, is_gone: impl Fn() -> bool) -> Option<Taken> {
        let mut state = self.state.lock();
        while !is_gone() {
            if entry == Entry::Call && state.calls >= MAX_ENTRIES - FOR_CONTROL {
                self.freed.wait(&mut state);
                continue;
            }
            let taken = match state.free.pop() {
                Some(lane) => Taken::Free(lane),
                None if state.made < MAX_ENTRIES => {
                    state.made += 1;
                    Taken::New
                }
                None => {
                    self.freed.wait(&mut state);
                    continue;
                }
            };
            state.calls += usize::from(entry == Entry::Call);
            return Some(taken);
        }
        None
    }

    /// Takes one back.
    pub fn give_back(&self, lane: Lane, entry: Entry) {
        let mut state = self.state.lock();
        state.free.push(lane);
        state.calls -= usize::from(entry == Entry::Call);
        drop(state);
        // Not everyone who waits may take it.
        self.freed.notify_all();
    }

    /// Has those who wait look whether the runner is gone.
    pub fn wake_all(&self) {
        drop(self.state.lock());
        self.freed.notify_all();
    }
}

/// The memory in which the lanes of a runner lie.
pub struct Shared {
    ours: Arc<Region>,
    /// What the runner writes.
    pub theirs: Arc<Region>,
    /// Whether it has ended.
    pub end: Arc<End>,
}

impl Shared {
    /// Fresh memory, of which the runner is told.
    ///
    /// # Errors
    /// The system has none; the runner is gone.
    pub fn new(control: &UnixStream) -> std::io::Result<Self> {
        let ((ours, read), (theirs, written)) = (Region::create(false)?, Region::create(true)?);
        passing::send(control, &Parcel::Regions([read.as_fd(), written.as_fd()]))?;
        Ok(Self { ours, theirs, end: Arc::default() })
    }

    /// A lane in this place, whose long messages take of this budget.
    ///
    /// # Errors
    /// There is no such place.
    pub fn lane(&self, place: u8, budget: Arc<Budget>) -> std::io::Result<MemoryLane> {
        let side = Side::Host { end: self.end.clone(), budget };
        let lane = MemoryLane::new(side, place.into(), &self.ours, &self.theirs);
        lane.ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
    }
}
