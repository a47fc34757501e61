//! Long polls: calls that are answered once their template has been overtaken.
//!
//! A waiting call holds no thread. A new tip answers it at once; a change of the mempool alone answers it after a first wait and
//! then at each repeat. One thread, started by the first call that waits, does the looking. No reply is given and no service is
//! asked under the lock.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::{Host, Reply};

use crate::error::MiningError;
use crate::lock;
use crate::template::Templates;

/// A call that waits.
pub struct Waiter {
    /// Where its answer goes.
    pub reply: Reply,
    /// It waits until the tip is another.
    pub tip: BlockHash,
    /// Or until the mempool's sequence is another.
    pub sequence: u64,
    /// Whether the client knows segwit; held against it when the wait is over.
    pub knows_segwit: bool,
}

struct Waiting {
    waiter: Waiter,
    /// When to look at the mempool next.
    look: Instant,
}

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    thread: Option<JoinHandle<()>>,
    /// No call may wait any more.
    closed: bool,
    /// The thread must end.
    ended: bool,
}

/// The calls that wait, and the thread that looks after them.
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
        let mut state = lock(&self.state);
        if state.closed {
            drop(state);
            waiter.reply.send::<()>(Err(MiningError::ShuttingDown.into()));
            return;
        }
        state.waiting.push(Waiting { waiter, look: Instant::now() + self.first_wait });
        if state.thread.is_none() {
            let polls = self.clone();
            let thread = std::thread::Builder::new().name("longpoll".into()).spawn(move || polls.run());
            match thread {
                Ok(thread) => state.thread = Some(thread),
                Err(error) => self.host.log(Level::Warn, format!("long polls cannot watch the mempool: {error}")),
            }
        }
        drop(state);
        self.changed.notify_one();
        // The tip may have changed before the call was kept, and its event been told before that.
        if let Ok(tip) = self.host.chain.tip(Scope::NONE) {
            self.tip_changed(tip.hash);
        }
    }

    /// Answers the calls that do not wait for this tip.
    pub fn tip_changed(&self, tip: BlockHash) {
        let due = self.take(|waiting| waiting.waiter.tip != tip);
        self.answer(due);
    }

    /// Forgets a call whose client has gone.
    pub fn cancel(&self, token: u64) {
        drop(self.take(|waiting| waiting.waiter.reply.token() == token));
    }

    /// Answers all calls that the host is stopping, and keeps no more.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        for waiter in self.take(|_| true) {
            waiter.reply.send::<()>(Err(MiningError::ShuttingDown.into()));
        }
    }

    /// Whether [`LongPolls::close`] was called.
    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
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

    fn take(&self, mut is_due: impl FnMut(&Waiting) -> bool) -> Vec<Waiter> {
        let mut state = lock(&self.state);
        let all = std::mem::take(&mut state.waiting);
        let (due, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|waiting| is_due(waiting));
        state.waiting = rest;
        due.into_iter().map(|waiting| waiting.waiter).collect()
    }

    /// Answers calls with the template as it is now. The snapshots of the calls have ended, so the newest state counts.
    fn answer(&self, due: Vec<Waiter>) {
        if due.is_empty() {
            return;
        }
        let template = self.templates.answer(&self.host, Scope::NONE);
        for waiter in due {
            let outcome = match &template {
                _ if !waiter.knows_segwit => Err(MiningError::SegwitMissing),
                Ok(json) => Ok(json.clone()),
                Err(error) => Err(error.clone()),
            };
            waiter.reply.send_json(outcome.map_err(Into::into));
        }
    }

    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.ended {
            let now = Instant::now();
            let next = state.waiting.iter().map(|waiting| waiting.look).min();
            match next {
                None => state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner),
                Some(look) if look > now => {
                    let waited = self.changed.wait_timeout(state, look - now);
                    state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
                }
                Some(_) => {
                    drop(state);
                    self.look();
                    state = lock(&self.state);
                }
            }
        }
    }

    /// Looks at the mempool, and at the tip in case its event was lost, for the calls whose time it is.
    fn look(&self) {
        let now = Instant::now();
        let seen = self.host.chain.tip(Scope::NONE).and_then(|tip| {
            let mempool = self.host.mempool.info(Scope::NONE)?;
            Ok((tip.hash, mempool.sequence))
        });
        if let Ok((tip, sequence)) = &seen {
            let is_over = |waiter: &Waiter| waiter.tip != *tip || waiter.sequence != *sequence;
            let due = self.take(|waiting| waiting.look <= now && is_over(&waiting.waiter));
            self.answer(due);
        }
        for waiting in lock(&self.state).waiting.iter_mut().filter(|waiting| waiting.look <= now) {
            waiting.look = now + self.repeat;
        }
    }
}
