//! The calls in flight. Each has a unique token, one answer, and a scope while its code runs.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use outrigger_values::RpcError;
use tokio::sync::oneshot;

use crate::lane::Lane;
use outrigger_base::progress::Progress;
use outrigger_base::tokens::{ByToken, TokenMap};

/// How a plugin's call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The plugin's result, as JSON.
    Result(Bytes),
    /// The plugin's error.
    Refused(RpcError),
    /// The plugin left the call to the next link of its chain, with these parameters; `None` for the client's.
    Passed(Option<Bytes>),
    /// The plugin gave no valid answer. The error is the host's.
    Failed(RpcError),
}

/// How many bits of a token, below the highest, hold the method's position in the manifest. Of the lower bits, the highest marks
/// scopes that do not belong to calls, and the others are a counter.
const METHOD_BITS: u32 = 11;

/// The position of the lowest of those bits.
const METHOD_SHIFT: u32 = u64::BITS - 1 - METHOD_BITS;

/// Stands for this position and all later ones.
const LAST_METHOD: u64 = (1 << METHOD_BITS) - 1;

/// How many abandoned calls each shard remembers, to classify late answers.
const REMEMBERED: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnwantedAnswer {
    /// After the call's deadline.
    Late,
    /// After the call's client had gone.
    Abandoned,
    /// The call was already answered, or abandoned long ago.
    Second,
    /// The call belongs to another instance.
    Foreign,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerOutcome {
    /// It is sent to the client.
    Taken,
    /// The client has just gone.
    Gone,
    /// It was dropped, for a reason of [`UnwantedAnswer`].
    Unwanted,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It waits for a thread.
    Queued,
    /// The plugin's code is running.
    Running,
    /// The plugin's code returned without an answer and keeps the token.
    Kept,
}

struct Pending {
    instance: u64,
    answer: oneshot::Sender<Answer>,
    phase: Phase,
    progress: Option<Arc<Progress>>,
}

/// Where a call's code runs, and its time limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// When its code must have returned; `None` for no limit.
    pub due: Option<Instant>,
    pub lane: Lane,
}

/// A call whose code has not returned.
struct Running {
    instance: u64,
    run: Run,
    /// Whether its code should have returned.
    overdue: bool,
    /// Whether the client no longer waits for the answer.
    given_up: bool,
}

impl Running {
    fn is_stuck(&self, instance: u64) -> bool {
        self.instance == instance && self.overdue && self.run.lane != Lane::Long
    }
}

/// A call whose code did not return in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overdue {
    pub token: u64,
    pub instance: u64,
    pub run: Run,
}

#[derive(Default)]
struct ShardCalls {
    pending: TokenMap<Pending>,
    running: TokenMap<Running>,
    /// Abandoned calls, newest last.
    given_up: VecDeque<(u64, UnwantedAnswer)>,
}

impl ShardCalls {
    fn remember(&mut self, token: u64, why: UnwantedAnswer) {
        if self.given_up.len() >= REMEMBERED {
            self.given_up.pop_front();
        }
        self.given_up.push_back((token, why));
    }
}

/// The calls that wait for their answer, by token.
#[derive(Default)]
pub struct Calls {
    next: AtomicU64,
    state: ByToken<ShardCalls>,
    /// How many running calls are overdue. Usually 0; every call reads it.
    overdue: AtomicUsize,
}

impl Calls {
    /// Opens a call of the method at this position in the manifest. The token is unique for the life of the process.
    pub fn open(&self, instance: u64, method: usize) -> (u64, oneshot::Receiver<Answer>) {
        let method = u64::try_from(method).unwrap_or(LAST_METHOD).min(LAST_METHOD);
        let token = (self.next.fetch_add(1, Ordering::Relaxed) + 1) | method << METHOD_SHIFT;
        let (answer, receiver) = oneshot::channel();
        self.state.of(token).pending.insert(token, Pending { instance, answer, phase: Phase::Queued, progress: None });
        (token, receiver)
    }

    /// Sets where [`Calls::progressed`] records the progress of a call.
    pub fn show_progress(&self, token: u64, progress: Arc<Progress>) {
        if let Some(pending) = self.state.of(token).pending.get_mut(&token) {
            pending.progress = Some(progress);
        }
    }

    /// Records the progress that an instance reports for its call.
    pub fn progressed(&self, instance: u64, token: u64, done: u64, total: u64) {
        let state = self.state.of(token);
        let pending = state.pending.get(&token).filter(|pending| pending.instance == instance);
        if let Some(progress) = pending.and_then(|pending| pending.progress.as_ref()) {
            progress.set(done, total);
        }
    }

    /// The position of a token's method in the manifest; `usize::MAX` if unknown.
    pub fn method_of(token: u64) -> usize {
        let position = token >> METHOD_SHIFT;
        if position == LAST_METHOD { usize::MAX } else { position as usize }
    }

    /// Why an instance's answer to a call was refused.
    pub fn why_unwanted(&self, instance: u64, token: u64) -> UnwantedAnswer {
        let state = self.state.of(token);
        if state.pending.get(&token).is_some_and(|pending| pending.instance != instance) {
            return UnwantedAnswer::Foreign;
        }
        let given_up = state.given_up.iter().rev().find(|(known, _)| *known == token);
        given_up.map_or(UnwantedAnswer::Second, |(_, why)| *why)
    }

    /// Answers a call for the host at its deadline, as [`Calls::answer`]. The plugin's answer is late then.
    pub fn expire(&self, instance: u64, token: u64, answer: Answer) -> AnswerOutcome {
        let answered = self.answer(instance, token, answer);
        if answered == AnswerOutcome::Taken {
            self.state.of(token).remember(token, UnwantedAnswer::Late);
        }
        answered
    }

    pub fn answer(&self, instance: u64, token: u64, answer: Answer) -> AnswerOutcome {
        let pending = {
            let mut state = self.state.of(token);
            match state.pending.entry(token) {
                Entry::Occupied(pending) if pending.get().instance == instance => Some(pending.remove()),
                _ => None,
            }
        };
        match pending.map(|pending| pending.answer.send(answer)) {
            None => AnswerOutcome::Unwanted,
            Some(Ok(())) => AnswerOutcome::Taken,
            Some(Err(_)) => AnswerOutcome::Gone,
        }
    }

    /// Marks a call as running. False if its client has gone, so that it need not run.
    pub fn begin(&self, token: u64, run: Run) -> bool {
        let ShardCalls { pending, running, .. } = &mut *self.state.of(token);
        let Some(pending) = pending.get_mut(&token) else { return false };
        pending.phase = Phase::Running;
        let instance = pending.instance;
        running.insert(token, Running { instance, run, overdue: false, given_up: false });
        true
    }

    /// When the code of a running call must have returned; `None` for no limit.
    pub fn due(&self, token: u64) -> Option<Instant> {
        self.state.of(token).running.get(&token).and_then(|running| running.run.due)
    }

    /// Marks a call's code as returned. Returns whether it was overdue; `None` if the call was abandoned meanwhile.
    /// Such a call counts as running until [`Calls::end`], so that the plugin can be notified of the cancellation
    /// first.
    pub fn end_unless_given_up(&self, token: u64) -> Option<bool> {
        let ShardCalls { pending, running, .. } = &mut *self.state.of(token);
        if let Some(pending) = pending.get_mut(&token) {
            pending.phase = Phase::Kept;
        }
        match running.entry(token) {
            Entry::Occupied(running) if running.get().given_up => None,
            Entry::Occupied(running) => Some(self.count_end(running.remove())),
            Entry::Vacant(_) => Some(false),
        }
    }

    /// Ends a running call. Returns whether it was overdue.
    pub fn end(&self, token: u64) -> bool {
        let removed = self.state.of(token).running.remove(&token);
        removed.is_some_and(|running| self.count_end(running))
    }

    /// Counts a call's end. Returns whether it was overdue.
    fn count_end(&self, running: Running) -> bool {
        if running.overdue {
            self.overdue.fetch_sub(1, Ordering::Relaxed);
        }
        running.overdue
    }

    /// Marks and counts a call as overdue, once.
    fn mark_overdue(&self, running: &mut Running) {
        if !std::mem::replace(&mut running.overdue, true) {
            self.overdue.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Abandons a call: a later answer is stale. Returns its phase, if it was still open. An overdue call whose code
    /// has not returned counts as stuck from now on.
    pub fn give_up(&self, token: u64, overdue: bool) -> Option<Phase> {
        let mut state = self.state.of(token);
        let Pending { phase, .. } = state.pending.remove(&token)?;
        state.remember(token, if overdue { UnwantedAnswer::Late } else { UnwantedAnswer::Abandoned });
        if let Some(running) = state.running.get_mut(&token) {
            running.given_up = true;
            if overdue {
                self.mark_overdue(running);
            }
        }
        Some(phase)
    }

    /// Returns each running call whose code is overdue, once.
    pub fn find_overdue(&self, now: Instant) -> Vec<Overdue> {
        let mut found = Vec::new();
        for mut state in self.state.all() {
            for (token, running) in &mut state.running {
                if !running.overdue && running.run.due.is_some_and(|due| due <= now) {
                    self.mark_overdue(running);
                    found.push(Overdue { token: *token, instance: running.instance, run: running.run });
                }
            }
        }
        found
    }

    /// Answers all open calls of an instance with `answer()`. Returns how many of them had begun.
    pub fn answer_all(&self, instance: u64, answer: impl Fn() -> Answer) -> u64 {
        let mut taken = Vec::new();
        for mut state in self.state.all() {
            taken.extend(state.pending.extract_if(|_, call| call.instance == instance));
        }
        let mut begun = 0;
        for (_, pending) in taken {
            begun += u64::from(pending.phase != Phase::Queued);
            let _ = pending.answer.send(answer());
        }
        begun
    }

    /// The phase of an open call; `None` if it was answered or abandoned.
    pub fn phase(&self, token: u64) -> Option<Phase> {
        self.state.of(token).pending.get(&token).map(|call| call.phase)
    }

    pub fn is_waiting(&self, instance: u64, token: u64) -> bool {
        self.state.of(token).pending.get(&token).is_some_and(|call| call.instance == instance)
    }

    /// How many overdue calls of an instance have not returned.
    pub fn stuck(&self, instance: u64) -> usize {
        if self.overdue.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.count(|state| state.running.values().filter(|running| running.is_stuck(instance)).count())
    }

    /// Whether an instance has running calls, all of them stuck, and no client waits for a call of it.
    pub fn are_all_stuck(&self, instance: u64) -> bool {
        let running = self.count(|state| state.running.values().filter(|running| running.instance == instance).count());
        running > 0 && running == self.stuck(instance) && self.waiting(instance) == 0
    }

    /// How many long-running calls of an instance have exceeded the limit of other calls.
    pub fn long(&self, instance: u64) -> usize {
        let is_long =
            |running: &&Running| running.instance == instance && running.overdue && running.run.lane == Lane::Long;
        self.count(|state| state.running.values().filter(is_long).count())
    }

    /// How many calls of an instance are open.
    pub fn waiting(&self, instance: u64) -> usize {
        self.count(|state| state.pending.values().filter(|call| call.instance == instance).count())
    }

    fn count(&self, of_part: impl Fn(&ShardCalls) -> usize) -> usize {
        self.state.all().map(|state| of_part(&state)).sum()
    }
}

/// Abandons a call when its client has gone, that is, when the future that waits for it is dropped.
pub struct CallGuard<'a, F: FnOnce(u64, bool)> {
    calls: &'a Calls,
    token: u64,
    cancelled: Option<F>,
}

impl<'a, F: FnOnce(u64, bool)> CallGuard<'a, F> {
    /// `cancelled` runs if the guard is dropped before [`CallGuard::answered`]; its argument says whether the call had
    /// begun.
    pub fn new(calls: &'a Calls, token: u64, cancelled: F) -> Self {
        Self { calls, token, cancelled: Some(cancelled) }
    }

    pub fn answered(mut self) {
        self.cancelled = None;
    }

    /// The call never reached its plugin: abandons it without a notice to the plugin.
    pub fn not_begun(self) {
        self.calls.give_up(self.token, false);
        self.answered();
    }

    /// The deadline has passed: abandons the call, and notifies its plugin if the call had begun. Returns its
    /// phase, if it was still open.
    pub fn expired(mut self) -> Option<Phase> {
        let phase = self.calls.give_up(self.token, true);
        if let (Some(Phase::Running | Phase::Kept), Some(cancelled)) = (phase, self.cancelled.take()) {
            cancelled(self.token, false);
        }
        self.answered();
        phase
    }
}

impl<F: FnOnce(u64, bool)> Drop for CallGuard<'_, F> {
    fn drop(&mut self) {
        if let Some(cancelled) = self.cancelled.take()
            && let Some(phase) = self.calls.give_up(self.token, false)
        {
            cancelled(self.token, phase != Phase::Queued);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_once_and_only_by_its_own_instance() {
        let calls = Calls::default();
        let (token, mut receiver) = calls.open(1, 0);
        assert_eq!(calls.answer(2, token, Answer::Result(Bytes::from_static(b"1"))), AnswerOutcome::Unwanted);
        assert_eq!(calls.answer(1, token, Answer::Result(Bytes::from_static(b"2"))), AnswerOutcome::Taken);
        assert_eq!(calls.answer(1, token, Answer::Result(Bytes::from_static(b"3"))), AnswerOutcome::Unwanted);
        assert_eq!(receiver.try_recv().unwrap(), Answer::Result(Bytes::from_static(b"2")));
    }

    #[test]
    fn dropped_guard_cancels_once() {
        let calls = Calls::default();
        let (token, _receiver) = calls.open(1, 0);
        let mut cancelled = Vec::new();
        drop(CallGuard::new(&calls, token, |token, _| cancelled.push(token)));
        assert_eq!(cancelled, [token]);
        assert_eq!(calls.answer(1, token, Answer::Result(Bytes::new())), AnswerOutcome::Unwanted);
        let (token, _receiver) = calls.open(1, 0);
        CallGuard::new(&calls, token, |_, _| unreachable!("it was answered")).answered();
        assert_eq!(calls.waiting(1), 1);
        let (token, _receiver) = calls.open(1, 0);
        CallGuard::new(&calls, token, |_, _| unreachable!("it never began")).not_begun();
        assert!(!calls.begin(token, FREE));
    }

    #[test]
    fn calls_distinguish_late_abandoned_second_and_foreign_answers() {
        let calls = Calls::default();
        let one = || Answer::Result(Bytes::from_static(b"1"));
        let (late, _receiver) = calls.open(1, 3);
        let (abandoned, _receiver) = calls.open(1, 4);
        let (second, _receiver) = calls.open(1, 5);
        let (expired, _receiver) = calls.open(1, 6);
        assert!(calls.give_up(late, true).is_some() && calls.give_up(abandoned, false).is_some());
        assert_eq!(
            (calls.answer(1, second, one()), calls.expire(1, expired, one())),
            (AnswerOutcome::Taken, AnswerOutcome::Taken)
        );
        let (foreign, _receiver) = calls.open(2, 7);
        let cases = [late, abandoned, second, expired, foreign];
        assert!(cases.iter().all(|token| calls.answer(1, *token, one()) == AnswerOutcome::Unwanted));
        let why = cases.map(|token| (Calls::method_of(token), calls.why_unwanted(1, token)));
        use UnwantedAnswer::{Abandoned, Foreign, Late, Second};
        let expected = [Late, Abandoned, Second, Late, Foreign];
        assert_eq!(why, [3, 4, 5, 6, 7].map(|method| (method, expected[method - 3])));
        assert_eq!(calls.open(1, 1 << 20).0 >> METHOD_SHIFT, LAST_METHOD);
    }

    const FREE: Run = Run { due: None, lane: Lane::Pool };

    #[test]
    fn calls_given_up_while_they_run_are_reported_when_they_end() {
        let calls = Calls::default();
        let (token, _receiver) = calls.open(1, 0);
        assert!(calls.begin(token, FREE));
        assert_eq!(calls.give_up(token, false), Some(Phase::Running));
        assert_eq!(calls.end_unless_given_up(token), None);
        assert!(!calls.end(token));
        assert_eq!(calls.end_unless_given_up(token), Some(false));
        let (token, _receiver) = calls.open(1, 0);
        assert!(calls.begin(token, FREE));
        assert_eq!(calls.end_unless_given_up(token), Some(false));
        assert_eq!(calls.give_up(token, false), Some(Phase::Kept));
        assert_eq!(calls.give_up(token, false), None);
    }

    #[test]
    fn overdue_calls_are_found_once_with_or_without_a_client() {
        let calls = Calls::default();
        let now = Instant::now();
        let run = Run { due: Some(now), ..FREE };
        let long = Run { lane: Lane::Long, ..run };
        let (left, _receiver) = calls.open(7, 0);
        let (waiting, _receiver) = calls.open(7, 0);
        let (later, _receiver) = calls.open(7, 0);
        assert!(calls.begin(left, run) && calls.begin(waiting, long));
        assert!(calls.begin(later, Run { due: Some(now + std::time::Duration::from_secs(1)), ..FREE }));
        assert_eq!(calls.give_up(left, false), Some(Phase::Running));
        let mut found = calls.find_overdue(now);
        found.sort_by_key(|found| found.token);
        let overdue = |token, run| Overdue { token, instance: 7, run };
        assert_eq!(found, [overdue(left, run), overdue(waiting, long)]);
        assert_eq!(calls.find_overdue(now), []);
        assert_eq!((calls.stuck(7), calls.long(7)), (1, 1));
        assert!(calls.end(left));
        assert_eq!(calls.end_unless_given_up(waiting), Some(true));
        assert_eq!((calls.stuck(7), calls.long(7)), (0, 0));
    }

    #[test]
    fn an_overdue_call_counts_as_stuck_until_its_code_returns() {
        let calls = Calls::default();
        let (token, _receiver) = calls.open(7, 0);
        let mut told = 0;
        assert!(calls.begin(token, FREE));
        assert_eq!(CallGuard::new(&calls, token, |_, _| told += 1).expired(), Some(Phase::Running));
        assert_eq!((told, calls.stuck(7), calls.stuck(8)), (1, 1, 0));
        assert_eq!(calls.end_unless_given_up(token), None);
        assert!(calls.end(token));
        assert_eq!(calls.stuck(7), 0);
        let (token, _receiver) = calls.open(7, 0);
        let guard = CallGuard::new(&calls, token, |_, _| unreachable!("it never began"));
        assert_eq!(guard.expired(), Some(Phase::Queued));
        assert_eq!(calls.stuck(7), 0);
    }
}
