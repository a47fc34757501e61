//! Long polls (BIP 22): calls that are answered once their template is outdated.
//!
//! A waiting call holds no thread: calls are indexed by the tip that they watch and by the time of their next check of the
//! mempool. A new tip answers them at once, all with the bytes of one template; a change of the mempool alone answers a call
//! at a check, after a first wait and then at each repeat. One thread, started by the first call that waits, does the checks.
//! No reply is sent and no service is called under the lock.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::{Host, Reply};

use crate::error::MiningError;
use crate::lock;
use crate::template::Templates;

/// The least time between two checks of the mempool, so that many calls that are due one after the other cost few checks.
const PAUSE: Duration = Duration::from_millis(100);

/// A call that waits.
pub struct Waiter {
    /// Where its answer goes.
    pub reply: Reply,
    /// It waits until the best block is another one.
    pub tip: BlockHash,
    /// Or until the mempool's sequence is another.
    pub sequence: u64,
    /// Whether the client knows segwit; checked when the wait is over, as in bitcoind.
    pub knows_segwit: bool,
}

struct Waiting {
    waiter: Waiter,
    /// When to check the mempool next.
    check_at: Instant,
}

/// Whether calls may wait.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Phase {
    /// Calls may wait.
    #[default]
    Open,
    /// They may not: another instance takes over, and answers the client's next call.
    Replaced,
    /// They may not: the host is stopping.
    Stopping,
}

/// The calls that wait, by token.
#[derive(Default)]
struct Calls {
    waiting: HashMap<u64, Waiting>,
    by_tip: HashMap<BlockHash, HashSet<u64>>,
    by_check: BTreeSet<(Instant, u64)>,
}

impl Calls {
    fn insert(&mut self, waiter: Waiter, check_at: Instant) {
        let token = waiter.reply.token();
        self.by_tip.entry(waiter.tip).or_default().insert(token);
        self.by_check.insert((check_at, token));
        self.waiting.insert(token, Waiting { waiter, check_at });
    }

    fn remove(&mut self, token: u64) -> Option<Waiter> {
        let Waiting { waiter, check_at } = self.waiting.remove(&token)?;
        self.by_check.remove(&(check_at, token));
        if let Some(tokens) = self.by_tip.get_mut(&waiter.tip) {
            tokens.remove(&token);
            if tokens.is_empty() {
                self.by_tip.remove(&waiter.tip);
            }
        }
        Some(waiter)
    }

    /// Removes the calls that watch another tip than this.
    fn outdated_by(&mut self, tip: BlockHash) -> Vec<Waiter> {
        let others = self.by_tip.iter().filter(|(watched, _)| **watched != tip);
        let tokens: Vec<u64> = others.flat_map(|(_, tokens)| tokens.iter().copied()).collect();
        tokens.into_iter().filter_map(|token| self.remove(token)).collect()
    }

    /// Removes the calls whose check is due and whose wait is over; the others are checked again later.
    fn due(&mut self, now: Instant, repeat: Duration, is_over: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let tokens: Vec<u64> =
            self.by_check.iter().take_while(|(check_at, _)| *check_at <= now).map(|(_, token)| *token).collect();
        let mut due = Vec::new();
        for token in tokens {
            if self.waiting.get(&token).is_some_and(|one| is_over(&one.waiter)) {
                due.extend(self.remove(token));
            } else {
                self.check_again(token, now + repeat);
            }
        }
        due
    }

    fn check_again(&mut self, token: u64, at: Instant) {
        if let Some(waiting) = self.waiting.get_mut(&token) {
            self.by_check.remove(&(waiting.check_at, token));
            waiting.check_at = at;
            self.by_check.insert((at, token));
        }
    }

    fn take_all(&mut self) -> Vec<Waiter> {
        let all = std::mem::take(self);
        all.waiting.into_values().map(|waiting| waiting.waiter).collect()
    }
}

#[derive(Default)]
struct State {
    calls: Calls,
    phase: Phase,
    thread: Option<JoinHandle<()>>,
    /// Whether the thread must end.
    ended: bool,
}

/// The calls that wait, and the thread that checks the mempool for them.
pub struct LongPolls {
    host: Host,
    templates: Arc<Templates>,
    first_wait: Duration,
    repeat: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

impl LongPolls {
    /// No calls yet. A change of the mempool alone ends a wait after `first_wait`, and then every `repeat`.
    pub fn new(host: Host, templates: Arc<Templates>, first_wait: Duration, repeat: Duration) -> Arc<Self> {
        Arc::new(Self { host, templates, first_wait, repeat, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Keeps a call until it is due.
    pub fn wait(self: &Arc<Self>, waiter: Waiter) {
        let (token, watched) = (waiter.reply.token(), waiter.tip);
        let check_at = Instant::now() + self.first_wait;
        {
            let mut state = lock(&self.state);
            if state.phase != Phase::Open {
                let phase = state.phase;
                drop(state);
                return self.end_waits(phase, vec![waiter]);
            }
            state.calls.insert(waiter, check_at);
            self.start(&mut state);
            // The thread sleeps until the first check; it is woken only for an earlier one.
            if state.calls.by_check.first() == Some(&(check_at, token)) {
                self.changed.notify_one();
            }
        }
        // The tip may have changed, and its event arrived, before the call was inserted.
        if self.host.chain.tip(Scope::NONE).is_ok_and(|tip| tip.hash != watched) {
            let outdated = lock(&self.state).calls.remove(token);
            self.answer(outdated.into_iter().collect());
        }
    }

    /// Starts the thread, if there is none.
    fn start(self: &Arc<Self>, state: &mut State) {
        if state.thread.is_none() {
            let polls = self.clone();
            match std::thread::Builder::new().name("longpoll".into()).spawn(move || polls.run()) {
                Ok(thread) => state.thread = Some(thread),
                Err(error) => self.host.log(Level::Warn, format!("long polls cannot watch the mempool: {error}")),
            }
        }
    }

    /// Answers the calls that watch another tip than this.
    pub fn tip_changed(&self, tip: BlockHash) {
        let outdated = lock(&self.state).calls.outdated_by(tip);
        self.answer(outdated);
    }

    /// Forgets a call whose client has gone.
    pub fn cancel(&self, token: u64) {
        let gone = lock(&self.state).calls.remove(token);
        drop(gone);
    }

    /// Answers all calls with the error that the host is stopping, and keeps no more.
    pub fn close(&self) {
        self.enter(Phase::Stopping);
    }

    /// Answers all calls with the template as it is, and keeps no more: another instance takes over.
    pub fn release(&self) {
        self.enter(Phase::Replaced);
    }

    fn enter(&self, phase: Phase) {
        let (phase, waiters) = {
            let mut state = lock(&self.state);
            // A host that is stopping quiesces the instance afterwards, which must not reset the phase.
            if state.phase != Phase::Stopping {
                state.phase = phase;
            }
            (state.phase, state.calls.take_all())
        };
        self.end_waits(phase, waiters);
    }

    /// Answers calls that may not wait any longer.
    fn end_waits(&self, phase: Phase, waiters: Vec<Waiter>) {
        if phase != Phase::Stopping {
            return self.answer(waiters);
        }
        for waiter in waiters {
            waiter.reply.send::<()>(Err(MiningError::ShuttingDown.into()));
        }
    }

    /// Ends the thread.
    pub fn end(&self) {
        let thread = {
            let mut state = lock(&self.state);
            state.ended = true;
            state.thread.take()
        };
        self.changed.notify_all();
        if let Some(thread) = thread {
            // A panic in it was caught and logged by the SDK's hook; there is nothing to add.
            let _ = thread.join();
        }
    }

    /// Answers calls with the template as it is now. The snapshots of the calls have ended, so the newest state counts.
    fn answer(&self, due: Vec<Waiter>) {
        if due.is_empty() {
            return;
        }
        let template = self.templates.answer(&self.host, Scope::NONE);
        for waiter in due {
            let outcome = if waiter.knows_segwit { template.clone() } else { Err(MiningError::SegwitMissing) };
            waiter.reply.send_shared(outcome.map_err(Into::into));
        }
    }

    /// The thread.
    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            let now = Instant::now();
            let first = state.calls.by_check.first().map(|(check_at, _)| *check_at);
            match first {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(check_at) if check_at > now => state = self.sleep(state, check_at - now),
                Some(_) => {
                    drop(state);
                    // The thread must go on after a panic: without it, only a new block would end waits.
                    if catch_unwind(AssertUnwindSafe(|| self.check())).is_err() {
                        self.host.log(Level::Error, "a check of the mempool for long polls panicked");
                    }
                    state = self.sleep(lock(&self.state), PAUSE);
                }
            }
        }
    }

    fn sleep<'a>(&self, state: std::sync::MutexGuard<'a, State>, time: Duration) -> std::sync::MutexGuard<'a, State> {
        if state.ended {
            return state;
        }
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Checks the mempool, and the tip in case its event was lost, for the calls that are due.
    fn check(&self) {
        let now = Instant::now();
        let current = self.host.chain.tip(Scope::NONE).and_then(|tip| {
            let mempool = self.host.mempool.info(Scope::NONE)?;
            Ok((tip.hash, mempool.sequence))
        });
        let is_over = |waiter: &Waiter| match &current {
            Ok((tip, sequence)) => waiter.tip != *tip || waiter.sequence != *sequence,
            // The node could not be read.
            Err(_) => false,
        };
        let due = lock(&self.state).calls.due(now, self.repeat, is_over);
        self.answer(due);
    }
}
