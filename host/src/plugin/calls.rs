//! The calls in flight: each has a token that is never used twice, one answer, and a scope while its code runs.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use outrigger_sdk::RpcError;
use tokio::sync::oneshot;

/// What a call is answered with: JSON, or an error.
pub type Answer = Result<Bytes, RpcError>;

struct Pending {
    instance: u64,
    answer: oneshot::Sender<Answer>,
    /// Whether the plugin's code is running it.
    running: bool,
}

/// The calls that wait for their answer, by token.
#[derive(Default)]
pub struct Calls {
    next: AtomicU64,
    pending: Mutex<HashMap<u64, Pending>>,
    /// Calls that were given up while they ran.
    left: Mutex<HashSet<u64>>,
}

impl Calls {
    /// Opens a call to an instance. The token is unique for the life of the process.
    pub fn open(&self, instance: u64) -> (u64, oneshot::Receiver<Answer>) {
        let token = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, receiver) = oneshot::channel();
        self.lock().insert(token, Pending { instance, answer, running: false });
        (token, receiver)
    }

    /// Answers a call of this instance. False when it was answered or given up before, or is another's: then the
    /// answer is dropped.
    pub fn answer(&self, instance: u64, token: u64, answer: Answer) -> bool {
        let pending = {
            let mut calls = self.lock();
            match calls.get(&token) {
                Some(pending) if pending.instance == instance => calls.remove(&token),
                _ => None,
            }
        };
        pending.is_some_and(|pending| pending.answer.send(answer).is_ok())
    }

    /// The plugin's code begins with a call. False when nobody waits for it any more: then it need not run.
    pub fn begin(&self, token: u64) -> bool {
        self.lock().get_mut(&token).map(|pending| pending.running = true).is_some()
    }

    /// The plugin's code has returned from a call. Whether the call was given up meanwhile.
    pub fn end(&self, token: u64) -> bool {
        let mut calls = self.lock();
        if let Some(pending) = calls.get_mut(&token) {
            pending.running = false;
        }
        self.left.lock().unwrap_or_else(PoisonError::into_inner).remove(&token)
    }

    /// Gives a call up: a later answer is stale. Whether it was still waiting.
    pub fn give_up(&self, token: u64) -> bool {
        let mut calls = self.lock();
        let pending = calls.remove(&token);
        if pending.as_ref().is_some_and(|pending| pending.running) {
            self.left.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
        }
        pending.is_some()
    }

    /// Answers all calls of an instance that still wait, with what `answer` makes.
    pub fn answer_all(&self, instance: u64, answer: impl Fn() -> Answer) {
        let taken: Vec<_> = {
            let mut calls = self.lock();
            let tokens: Vec<u64> =
                calls.iter().filter(|(_, call)| call.instance == instance).map(|(token, _)| *token).collect();
            tokens.into_iter().filter_map(|token| calls.remove(&token)).collect()
        };
        for pending in taken {
            let _ = pending.answer.send(answer());
        }
    }

    /// Whether a call of this instance waits for its answer.
    pub fn is_waiting(&self, instance: u64, token: u64) -> bool {
        self.lock().get(&token).is_some_and(|call| call.instance == instance)
    }

    /// How many calls of an instance wait.
    pub fn waiting(&self, instance: u64) -> usize {
        self.lock().values().filter(|call| call.instance == instance).count()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Pending>> {
        // The map is whole after every operation, so a panic elsewhere cannot have damaged it.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.calls.give_up(self.token);
        self.answered();
    }
}

impl<F: FnOnce(u64)> Drop for CallGuard<F> {
    fn drop(&mut self) {
        if let Some(cancelled) = self.cancelled.take()
            && self.calls.give_up(self.token)
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
        assert!(calls.give_up(token));
        assert!(calls.end(token));
        assert!(!calls.end(token));
        let (token, _receiver) = calls.open(1);
        assert!(calls.begin(token));
        assert!(!calls.end(token));
        assert!(calls.give_up(token));
        assert!(!calls.end(token));
    }
}
