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

/// Why an answer was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnwantedAnswer {
    /// The client has just gone.
    Gone,
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
    /// The name of a method that the manifest does not list.
    name: Option<Arc<str>>,
    answer: oneshot::Sender<Answer>,
    phase: Phase,
    progress: Option<Arc<Progress>>,
    /// The token of the call that waits for this one: 0 if a plugin waits outside of calls.
    waiting: Option<u64>,
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
    name: Option<Arc<str>>,
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
    given_up: VecDeque<(u64, UnwantedAnswer, Option<Arc<str>>)>,
}

impl ShardCalls {
    /// Removes an open call of an instance, for its answer.
    fn take(&mut self, instance: u64, token: u64) -> Result<Pending, UnwantedAnswer> {
        match self.pending.entry(token) {
            Entry::Occupied(pending) if pending.get().instance == instance => Ok(pending.remove()),
            Entry::Occupied(_) => Err(UnwantedAnswer::Foreign),
            Entry::Vacant(_) => {
                let given_up = self.given_up.iter().rev().find(|(known, ..)| *known == token);
                Err(given_up.map_or(UnwantedAnswer::Second, |(_, why, _)| *why))
            }
        }
    }

    fn remember(&mut self, token: u64, why: UnwantedAnswer, name: Option<Arc<str>>) {
        if self.given_up.len() >= REMEMBERED {
            self.given_up.pop_front();
        }
        self.given_up.push_back((token, why, name));
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
        let pending = Pending { instance, name: None, answer, phase: Phase::Queued, progress: None, waiting: None };
        self.state.of(token).pending.insert(token, pending);
        (token, receiver)
    }

    /// Sets the name of an open call's method that the manifest does not list, for the log, and where [`Calls::progressed`] records the
    /// call's progress.
    pub fn describe(&self, token: u64, name: Option<Arc<str>>, progress: Option<Arc<Progress>>) {
        if let Some(pending) = self.state.of(token).pending.get_mut(&token) {
            (pending.name, pending.progress) = (name, progress);
        }
    }

    /// Sets which call waits for an open call: 0 if a plugin waits outside of calls.
    pub fn nest(&self, token: u64, waiting: u64) {
        if let Some(pending) = self.state.of(token).pending.get_mut(&token) {
            pending.waiting = Some(waiting);
        }
    }

    /// The instance of an open call, and the call that waits for it.
    fn waiting_for(&self, token: u64) -> Option<(u64, Option<u64>)> {
        self.state.of(token).pending.get(&token).map(|call| (call.instance, call.waiting))
    }

    /// Searches the call and the calls that wait for it, directly or through other calls, for an open call of the instance.
    pub fn is_within(&self, token: u64, instance: u64) -> bool {
        let mut chain = std::iter::successors(self.waiting_for(token), |(_, waiting)| self.waiting_for((*waiting)?));
        chain.any(|(own, _)| own == instance)
    }

    /// How many calls wait for an open call, one for the other. A plugin that waits outside of calls counts as one.
    pub fn depth(&self, token: u64) -> usize {
        let waiting = |token| self.waiting_for(token)?.1;
        std::iter::successors(waiting(token), |token| waiting(*token)).count()
    }

    /// The name of [`Self::describe`]; `None` if the call was answered and its code has returned.
    pub fn name_of(&self, token: u64) -> Option<Arc<str>> {
        let state = self.state.of(token);
        let open = state.pending.get(&token).map(|call| &call.name);
        let running = || state.running.get(&token).map(|call| &call.name);
        let known = || state.given_up.iter().rev().find(|(known, ..)| *known == token).map(|(.., name)| name);
        open.or_else(running).or_else(known).cloned().flatten()
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

    /// Answers a call for the host at its deadline, as [`Calls::answer`]. The plugin's answer is late then.
    pub fn expire(&self, instance: u64, token: u64, answer: Answer) -> Result<(), UnwantedAnswer> {
        let mut state = self.state.of(token);
        let pending = state.take(instance, token)?;
        state.remember(token, UnwantedAnswer::Late, pending.name);
        drop(state);
        pending.answer.send(answer).map_err(|_| UnwantedAnswer::Gone)
    }

    pub fn answer(&self, instance: u64, token: u64, answer: Answer) -> Result<(), UnwantedAnswer> {
        let pending = self.state.of(token).take(instance, token)?;
        pending.answer.send(answer).map_err(|_| UnwantedAnswer::Gone)
    }

    /// Marks a call as running. False if its client has gone, so that it need not run.
    pub fn begin(&self, token: u64, run: Run) -> bool {
        let ShardCalls { pending, running, .. } = &mut *self.state.of(token);
        let Some(pending) = pending.get_mut(&token) else { return false };
        pending.phase = Phase::Running;
        let (instance, name) = (pending.instance, pending.name.clone());
        running.insert(token, Running { instance, name, run, overdue: false, given_up: false });
        true
    }

    /// When a running call must have been answered; `None` for no limit.
    pub fn due(&self, token: u64) -> Option<Instant> {
        let state = self.state.of(token);
        state.running.get(&token).map(|call| call.run).filter(|run| run.lane != Lane::Long).and_then(|run| run.due)
    }

    /// Marks a call's code as returned. False if the call was abandoned meanwhile. Such a call counts as running until
    /// [`Calls::end`], so that the plugin can be notified of the cancellation first.
    pub fn end_unless_given_up(&self, token: u64) -> bool {
        let ShardCalls { pending, running, .. } = &mut *self.state.of(token);
        if let Some(pending) = pending.get_mut(&token) {
            pending.phase = Phase::Kept;
        }
        match running.entry(token) {
            Entry::Occupied(running) if running.get().given_up => false,
            Entry::Occupied(running) => {
                self.count_end(running.remove());
                true
            }
            Entry::Vacant(_) => true,
        }
    }

    pub fn end(&self, token: u64) {
        if let Some(running) = self.state.of(token).running.remove(&token) {
            self.count_end(running);
        }
    }

    fn count_end(&self, running: Running) {
        if running.overdue {
            self.overdue.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn mark_overdue(&self, running: &mut Running) {
        if !std::mem::replace(&mut running.overdue, true) {
            self.overdue.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Abandons a call: a later answer is stale. Returns its phase, if it was still open. An overdue call whose code
    /// has not returned counts as stuck from now on.
    pub fn give_up(&self, token: u64, overdue: bool) -> Option<Phase> {
        let mut state = self.state.of(token);
        let Pending { phase, name, .. } = state.pending.remove(&token)?;
        state.remember(token, if overdue { UnwantedAnswer::Late } else { UnwantedAnswer::Abandoned }, name);
        if let Some(running) = state.running.get_mut(&token) {
            running.given_up = true;
            if overdue {
                // Also a wrapper's code at a long-running method.
                running.run.lane = Lane::Pool;
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
mod tests;
