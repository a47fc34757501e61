//! The life of an instance: one state machine under one lock, with counters of the calls and threads that hold it.
//!
//! ```text
//! starting -> serving -> draining -> stopping -> stopped -> freed
//!     \________________________________^ \-----> abandoned
//! ```

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// An instance's stage. It only moves forward.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Stage {
    /// `create`, `init` and `start` run.
    Starting,
    /// Calls are routed to it.
    Serving,
    /// No call is routed to it, except those for which its own calls wait; its open calls finish.
    Draining,
    /// No thread enters it. `stop` runs once the last one has left.
    Stopping,
    /// `stop` has returned, and `destroy` runs. Services answer `Stale` from now on.
    Stopped,
    /// `destroy` has returned.
    Freed,
    /// It held threads too long, and is neither stopped nor freed. Services answer `Stale`.
    Abandoned,
}

/// An instance's stage, its calls and its threads.
pub(super) struct Life {
    /// The stage, and the deadline of a requested end.
    state: Mutex<(Stage, Option<Instant>)>,
    /// A copy of the stage, which every call reads twice without the lock. Written under the lock.
    stage: AtomicU8,
    /// Signals changes of stage, deadline or counters. Counters signal only while the instance drains.
    changed: Condvar,
    /// Routed calls that have not ended, and the threads that deliver events or run `quiesce`.
    leases: AtomicU64,
    inside: AtomicU64,
}

impl Life {
    pub fn new() -> Self {
        Self {
            state: Mutex::new((Stage::Starting, None)),
            stage: AtomicU8::new(Stage::Starting as u8),
            changed: Condvar::new(),
            leases: AtomicU64::new(0),
            inside: AtomicU64::new(0),
        }
    }

    fn is_at_least(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::SeqCst) >= stage as u8
    }

    /// Moves on to a stage. Returns false and changes nothing if the instance is already there or further.
    pub fn advance(&self, to: Stage) -> bool {
        let mut state = self.state.lock();
        let moves = state.0 < to;
        if moves {
            state.0 = to;
            self.stage.store(to as u8, Ordering::SeqCst);
            self.changed.notify_all();
        }
        moves
    }

    /// Sets the deadline of the end, if it is earlier than the current one.
    pub fn end_by(&self, deadline: Instant) {
        let mut state = self.state.lock();
        state.1 = Some(state.1.map_or(deadline, |sooner| sooner.min(deadline)));
        self.changed.notify_all();
    }

    /// Counts a routed call. Returns false if the instance takes no calls; [`Self::end_lease`] must follow even then.
    pub fn begin_lease(&self) -> bool {
        self.leases.fetch_add(1, Ordering::SeqCst);
        !self.is_at_least(Stage::Draining)
    }

    /// As [`Self::begin_lease`], also while the instance drains.
    pub fn begin_lease_while_draining(&self) -> bool {
        self.leases.fetch_add(1, Ordering::SeqCst);
        !self.is_at_least(Stage::Stopping)
    }

    pub fn end_lease(&self) {
        self.leave(&self.leases);
    }

    /// Counts a thread that enters the instance. Returns false if no thread may enter; [`Self::exit`] must follow even
    /// then.
    pub fn enter(&self) -> bool {
        self.inside.fetch_add(1, Ordering::SeqCst);
        !self.is_at_least(Stage::Stopping)
    }

    pub fn exit(&self) {
        self.leave(&self.inside);
    }

    fn leave(&self, counter: &AtomicU64) {
        let was = counter.fetch_sub(1, Ordering::SeqCst);
        if was == 1 && self.is_at_least(Stage::Draining) {
            // Under the lock: a waiter has either seen the new value or is already waiting.
            let _state = self.state.lock();
            self.changed.notify_all();
        }
    }

    /// Waits until no call holds the instance. Returns false if the deadline comes first.
    pub fn wait_unleased(&self) -> bool {
        self.wait(|life, _| life.leases.load(Ordering::SeqCst) == 0, |state| state.1)
    }

    /// Waits until no thread is inside. Returns false if the deadline comes first.
    pub fn wait_left(&self) -> bool {
        self.wait(|life, _| !life.is_inside(), |state| state.1)
    }

    /// Waits until the instance was freed or abandoned. Returns false if the deadline comes first.
    pub fn wait_ended(&self, deadline: Instant) -> bool {
        self.wait(|_, stage| stage >= Stage::Freed, |_| Some(deadline))
    }

    fn wait(
        &self,
        done: impl Fn(&Self, Stage) -> bool,
        until: impl Fn(&(Stage, Option<Instant>)) -> Option<Instant>,
    ) -> bool {
        let mut state = self.state.lock();
        while !done(self, state.0) {
            match until(&state) {
                Some(until) if Instant::now() >= until => return false,
                Some(until) => drop(self.changed.wait_until(&mut state, until)),
                None => self.changed.wait(&mut state),
            }
        }
        true
    }

    pub fn is_inside(&self) -> bool {
        self.inside.load(Ordering::SeqCst) > 0
    }

    pub fn is_draining(&self) -> bool {
        self.is_at_least(Stage::Draining)
    }

    /// Whether it was stopped or abandoned: threads that it left running must no longer act for it.
    pub fn has_stopped(&self) -> bool {
        self.is_at_least(Stage::Stopped)
    }

    /// Whether it was freed or abandoned.
    pub fn has_ended(&self) -> bool {
        self.is_at_least(Stage::Freed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn stages_only_move_forward() {
        let life = Life::new();
        assert!(life.advance(Stage::Serving) && life.begin_lease() && life.enter());
        assert!(life.advance(Stage::Draining) && !life.advance(Stage::Draining) && !life.advance(Stage::Serving));
        assert!(!life.begin_lease() && life.enter(), "a draining instance takes no call and finishes those it has");
        assert!(life.advance(Stage::Stopping) && !life.enter() && !life.has_stopped());
        assert!(life.advance(Stage::Abandoned) && life.has_ended() && !life.advance(Stage::Stopped));
    }

    #[test]
    fn a_draining_instance_gives_further_leases_until_it_stops_and_waits_for_them() {
        let life = Life::new();
        life.end_by(Instant::now());
        assert!(life.advance(Stage::Serving) && life.begin_lease() && life.advance(Stage::Draining));
        assert!(life.begin_lease_while_draining());
        life.end_lease();
        assert!(!life.wait_unleased());
        life.end_lease();
        assert!(life.wait_unleased());
        assert!(life.advance(Stage::Stopping) && !life.begin_lease_while_draining());
    }

    #[test]
    fn the_end_waits_for_leases_and_threads_until_its_deadline() {
        let life = Arc::new(Life::new());
        assert!(life.advance(Stage::Serving) && life.begin_lease() && life.enter() && life.advance(Stage::Draining));
        life.end_by(Instant::now() + LONG);
        let waiting = std::thread::spawn({
            let life = life.clone();
            move || (life.wait_unleased(), life.wait_left(), life.wait_ended(Instant::now() + LONG))
        });
        life.end_lease();
        life.end_by(Instant::now());
        life.end_by(Instant::now() + LONG);
        assert!(life.advance(Stage::Stopping) && life.advance(Stage::Freed));
        let (_, left, ended) = waiting.join().expect("no panic");
        assert!(!left && ended, "the earlier deadline holds, and a thread was inside");
        assert!(life.is_inside() && life.wait_unleased() && !life.wait_left());
        life.exit();
        assert!(life.wait_left());
    }
}
