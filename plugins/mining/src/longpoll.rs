//! Long polls (BIP 22): calls that wait until their template is outdated.
//!
//! A waiting call holds no thread. A new tip answers all calls at once with the bytes of one template. A change of the mempool
//! alone answers a call at its next check. The first waiting call starts a thread for the checks. Nothing sends a reply or calls
//! a service under the lock.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::{Host, Reply, RpcError, RpcErrorCode};

use crate::lock;
use crate::template::Templates;

/// The minimum time between two checks of the mempool, so that one check serves many calls.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A waiting call. It ends when the best block is not `tip`, or the mempool's sequence is not `sequence`.
pub struct Waiter {
    pub reply: Reply,
    pub tip: BlockHash,
    pub sequence: u64,
    /// Checked at the end of the wait, as in bitcoind.
    pub knows_segwit: bool,
}

struct Waiting {
    waiter: Waiter,
    /// The time of the next check of the mempool.
    check_at: Instant,
}

/// Whether calls may wait.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Phase {
    #[default]
    Open,
    /// Calls may not wait: a new instance of the plugin answers the client's next call.
    Replaced,
    /// Calls may not wait: the host is stopping.
    Stopping,
}

#[derive(Default)]
struct State {
    /// The waiting calls, by token.
    waiting: HashMap<u64, Waiting>,
    phase: Phase,
    thread: Option<JoinHandle<()>>,
    /// Whether the thread must end.
    ended: bool,
}

/// The waiting calls, and the thread that checks the mempool for them.
pub struct LongPolls {
    host: Host,
    templates: Arc<Templates>,
    first_wait: Duration,
    repeat: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

impl LongPolls {
    /// A call checks the mempool after `first_wait`, and then every `repeat`.
    pub fn new(host: Host, templates: Arc<Templates>, first_wait: Duration, repeat: Duration) -> Arc<Self> {
        Arc::new(Self { host, templates, first_wait, repeat, state: Mutex::default(), changed: Condvar::new() })
    }

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
            state.waiting.insert(token, Waiting { waiter, check_at });
            self.start_thread(&mut state);
            // While other calls wait, the thread wakes before this one's first check.
            if state.waiting.len() == 1 {
                self.changed.notify_one();
            }
        }
        // The event of a new tip may have arrived before the call was inserted.
        if self.host.chain.tip(Scope::NONE).is_ok_and(|tip| tip.hash != watched) {
            let outdated = lock(&self.state).waiting.remove(&token);
            self.answer(outdated.into_iter().map(|waiting| waiting.waiter).collect());
        }
    }

    fn start_thread(self: &Arc<Self>, state: &mut State) {
        if state.thread.is_none() {
            let polls = self.clone();
            match std::thread::Builder::new().name("longpoll".into()).spawn(move || polls.run()) {
                Ok(thread) => state.thread = Some(thread),
                Err(error) => self.host.log(Level::Warn, format!("long polls cannot watch the mempool: {error}")),
            }
        }
    }

    /// Answers the calls that watch another tip.
    pub fn tip_changed(&self, tip: BlockHash) {
        let outdated = self.take(|waiting| waiting.waiter.tip != tip);
        self.answer(outdated);
    }

    fn take(&self, mut is_due: impl FnMut(&mut Waiting) -> bool) -> Vec<Waiter> {
        let mut state = lock(&self.state);
        state.waiting.extract_if(|_, waiting| is_due(waiting)).map(|(_, waiting)| waiting.waiter).collect()
    }

    /// Drops the call of a client that has disconnected.
    pub fn cancel(&self, token: u64) {
        let cancelled = lock(&self.state).waiting.remove(&token);
        // Dropping a reply answers it, which must not happen under the lock.
        drop(cancelled);
    }

    /// Answers all calls with an error, because the host is stopping. Later calls do not wait.
    pub fn close(&self) {
        self.enter(Phase::Stopping);
    }

    /// Answers all calls with the current template, because a new instance takes over. Later calls do not wait.
    pub fn release(&self) {
        self.enter(Phase::Replaced);
    }

    fn enter(&self, phase: Phase) {
        let (phase, calls) = {
            let mut state = lock(&self.state);
            // A stopping host also quiesces the instance, which must not reset the phase.
            if state.phase != Phase::Stopping {
                state.phase = phase;
            }
            (state.phase, std::mem::take(&mut state.waiting))
        };
        self.end_waits(phase, calls.into_values().map(|waiting| waiting.waiter).collect());
    }

    fn end_waits(&self, phase: Phase, waiters: Vec<Waiter>) {
        if phase != Phase::Stopping {
            return self.answer(waiters);
        }
        for waiter in waiters {
            waiter.reply.fail(RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down"));
        }
    }

    pub fn end_thread(&self) {
        let thread = {
            let mut state = lock(&self.state);
            state.ended = true;
            state.thread.take()
        };
        self.changed.notify_all();
        if let Some(thread) = thread {
            // The SDK's panic hook has logged a panic of the thread.
            let _ = thread.join();
        }
    }

    /// Answers calls with the current template, which is newer than the snapshots of the calls.
    fn answer(&self, due: Vec<Waiter>) {
        if due.is_empty() {
            return;
        }
        let template = self.templates.answer(&self.host, Scope::NONE);
        for waiter in due {
            waiter.reply.send_shared(if waiter.knows_segwit { template.clone() } else { Err(segwit_missing()) });
        }
    }

    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            let now = Instant::now();
            let first = state.waiting.values().map(|waiting| waiting.check_at).min();
            match first {
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(check_at) if check_at > now => {
                    // A call that arrives meanwhile may be due first.
                    let longest = self.first_wait.max(MIN_CHECK_INTERVAL);
                    state = self.sleep(state, longest.min(check_at - now));
                }
                Some(_) => {
                    drop(state);
                    // Without the thread, only a new block would end waits, so it must survive a panic.
                    if catch_unwind(AssertUnwindSafe(|| self.check())).is_err() {
                        self.host.log(Level::Error, "a check of the mempool for long polls panicked");
                    }
                    state = self.sleep(lock(&self.state), MIN_CHECK_INTERVAL);
                }
            }
        }
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        if state.ended {
            return state;
        }
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Checks the mempool, and the tip in case its event was lost, for the due calls.
    fn check(&self) {
        let now = Instant::now();
        let current = self.host.chain.tip(Scope::NONE).and_then(|tip| {
            let mempool = self.host.mempool.info(Scope::NONE)?;
            Ok((tip.hash, mempool.sequence))
        });
        let is_over = |waiter: &Waiter| match &current {
            Ok((tip, sequence)) => waiter.tip != *tip || waiter.sequence != *sequence,
            Err(_) => false,
        };
        let due = self.take(|waiting| {
            if waiting.check_at > now {
                return false;
            }
            waiting.check_at = now + self.repeat;
            is_over(&waiting.waiter)
        });
        self.answer(due);
    }
}

pub fn segwit_missing() -> RpcError {
    RpcError::invalid_parameter(
        "getblocktemplate must be called with the segwit rule set (call with {\"rules\": [\"segwit\"]})",
    )
}
