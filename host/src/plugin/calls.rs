//! The calls in flight: each has a token that is never used twice, one answer, and a scope while its code runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use outrigger_sdk::RpcError;
use tokio::sync::oneshot;

/// What a call is answered with: JSON, or an error.
pub type Answer = Result<Bytes, RpcError>;

/// How far a call has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It waits for a thread.
    Queued,
    /// The plugin's code is running it.
    Running,
    /// The plugin's code has returned and keeps the token.
    Kept,
}

struct Pending {
    instance: u64,
    answer: oneshot::Sender<Answer>,
    phase: Phase,
}

/// A call that was given up while it ran.
struct Left {
    instance: u64,
    /// Because its deadline passed.
    overdue: bool,
}

/// What is told when the code of a call has returned.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ended {
    /// Nobody waited for its answer any more.
    pub given_up: bool,
    /// Because its deadline had passed.
    pub overdue: bool,
}

#[derive(Default)]
struct State {
    pending: HashMap<u64, Pending>,
    left: HashMap<u64, Left>,
}

/// The calls that wait for their answer, by token.
#[derive(Default)]
pub struct Calls {
    next: AtomicU64,
    state: Mutex<State>,
}

impl Calls {
    /// Opens a call to an instance. The token is unique for the life of the process.
    pub fn open(&self, instance: u64) -> (u64, oneshot::Receiver<Answer>) {
        let token = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, receiver) = oneshot::channel();
        self.lock().pending.insert(token, Pending { instance, answer, phase: Phase::Queued });
        (token, receiver)
    }

    /// Answers a call of this instance. False when it was answered or given up before, or is another's: then the
    /// answer is dropped.
    pub fn answer(&self, instance: u64, token: u64, answer: Answer) -> bool {
        let pending = {
            let mut state = self.lock();
            match state.pending.get(&token) {
                Some(pending) if pending.instance == instance => state.pending.remove(&token),
                _ => None,
            }
        };
        pending.is_some_and(|pending| pending.answer.send(answer).is_ok())
    }

    /// The plugin's code begins with a call. False when nobody waits for it any more: then it need not run.
    pub fn begin(&self, token: u64) -> bool {
        self.lock().pending.get_mut(&token).map(|pending| pending.phase = Phase::Running).is_some()
    }

    /// The plugin's code has returned from a call.
    pub fn end(&self, token: u64) -> Ended {
        let mut state = self.lock();
        if let Some(pending) = state.pending.get_mut(&token) {
            pending.phase = Phase::Kept;
        }
        state.left.remove(&token).map_or_else(Ended::default, |left| Ended { given_up: true, overdue: left.overdue })
    }

    /// Gives a call up: a later answer is stale. How far it had come, if it was still waiting.
    pub fn give_up(&self, token: u64, overdue: bool) -> Option<Phase> {
        let mut state = self.lock();
        let Pending { instance, phase, .. } = state.pending.remove(&token)?;
        if phase == Phase::Running {
            state.left.insert(token, Left { instance, overdue });
        }
        Some(phase)
    }

    /// Answers all calls of an instance that still wait, with what `answer` makes.
    pub fn answer_all(&self, instance: u64, answer: impl Fn() -> Answer) {
        let taken: Vec<_> = {
            let pending = &mut self.lock().pending;
            pending.extract_if(|_, call| call.instance == instance).collect()
        };
        for (_, pending) in taken {
            let _ = pending.answer.send(answer());
        }
    }

    /// Whether a call of this instance waits for its answer.
    pub fn is_waiting(&self, instance: u64, token: u64) -> bool {
        self.lock().pending.get(&token).is_some_and(|call| call.instance == instance)
    }

    /// How many overdue calls of an instance have not returned.
    pub fn stuck(&self, instance: u64) -> usize {
        self.lock().left.values().filter(|left| left.instance == instance && left.overdue).count()
    }

    /// How many calls of an instance wait.
    pub fn waiting(&self, instance: u64) -> usize {
        self.lock().pending.values().filter(|call| call.instance == instance).count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The maps are whole after every operation, so a panic elsewhere cannot have damaged them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a call up when its client has gone, that is, when the future that waits for it is dropped.
pub struct CallGuard<F: FnOnce(u64)> {
    calls: Arc<Calls>,
    token: u64,
    cancelled: Option<F>,
}

impl<F: FnOnce(u64)> CallGuard<F> {
    /// Watches over a call; `cancelled` runs if it is dropped before [`CallGuard::answered`].
    pub fn new(calls: Arc<Calls>, token: u64, cancelled: F) -> Self {
        Self { calls, token, cancelled: Some(cancelled) }
    }

    /// The call has been answered.
    pub fn answered(mut self) {
        self.cancelled = None;
    }

    /// The call never reached its plugin: it is given up without a word to it.
    pub fn not_begun(self) {
        self.calls.give_up(self.token, false);
        self.answered();
    }

    /// The call's deadline has passed: it is given up, and its plugin is told unless it never began. How far it had come,
    /// if it was still waiting.
    pub fn expired(mut self) -> Option<Phase> {
        let phase = self.calls.give_up(self.token, true);
        if let (Some(Phase::Running | Phase::Kept), Some(cancelled)) = (phase, self.cancelled.take()) {
            cancelled(self.token);
        }
        self.answered();
        phase
    }
}

impl<F: FnOnce(u64)> Drop for CallGuard<F> {
    fn drop(&mut self) {
        if let Some(cancelled) = self.cancelled.take()
            && self.calls.give_up(self.token, false).is_some()
        {
            cancelled(self.token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_once_and_only_by_its_own_instance() {
        let calls = Calls::default();
        let (token, mut receiver) = calls.open(1);
        assert!(!calls.answer(2, token, Ok(Bytes::from_static(b"1"))));
        assert!(calls.answer(1, token, Ok(Bytes::from_static(b"2"))));
        assert!(!calls.answer(1, token, Ok(Bytes::from_static(b"3"))));
        assert_eq!(receiver.try_recv().unwrap(), Ok(Bytes::from_static(b"2")));
    }

    #[test]
    fn a_dropped_waiter_cancels_once() {
        let calls = Arc::new(Calls::default());
        let (token, _receiver) = calls.open(1);
        let mut cancelled = Vec::new();
        drop(CallGuard::new(calls.clone(), token, |token| cancelled.push(token)));
        assert_eq!(cancelled, [token]);
        assert!(!calls.answer(1, token, Ok(Bytes::new())));
        let (token, _receiver) = calls.open(1);
        CallGuard::new(calls.clone(), token, |_| unreachable!("it was answered")).answered();
        assert_eq!(calls.waiting(1), 1);
        let (token, _receiver) = calls.open(1);
        CallGuard::new(calls.clone(), token, |_| unreachable!("it never began")).not_begun();
        assert!(!calls.begin(token));
    }

    #[test]
    fn what_is_given_up_while_it_runs_is_told_at_its_end() {
        let calls = Calls::default();
        let (token, _receiver) = calls.open(1);
        assert!(calls.begin(token));
        assert_eq!(calls.give_up(token, false), Some(Phase::Running));
        assert_eq!(calls.end(token), Ended { given_up: true, overdue: false });
        assert_eq!(calls.end(token), Ended::default());
        let (token, _receiver) = calls.open(1);
        assert!(calls.begin(token));
        assert_eq!(calls.end(token), Ended::default());
        assert_eq!(calls.give_up(token, false), Some(Phase::Kept));
        assert_eq!(calls.give_up(token, false), None);
        assert_eq!(calls.end(token), Ended::default());
    }

    #[test]
    fn an_overdue_call_counts_as_stuck_until_its_code_returns() {
        let calls = Arc::new(Calls::default());
        let (token, _receiver) = calls.open(7);
        let mut told = 0;
        assert!(calls.begin(token));
        assert_eq!(CallGuard::new(calls.clone(), token, |_| told += 1).expired(), Some(Phase::Running));
        assert_eq!((told, calls.stuck(7), calls.stuck(8)), (1, 1, 0));
        assert_eq!(calls.end(token), Ended { given_up: true, overdue: true });
        assert_eq!(calls.stuck(7), 0);
        let (token, _receiver) = calls.open(7);
        let guard = CallGuard::new(calls.clone(), token, |_| unreachable!("it never began"));
        assert_eq!(guard.expired(), Some(Phase::Queued));
        assert_eq!(calls.stuck(7), 0);
    }
}
