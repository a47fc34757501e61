//! Calls that wait for a block: `waitfornewblock`, `waitforblock` and `waitforblockheight`.
//!
//! A waiting call holds no thread: the news of a tip answers it, and one thread, started by the first call that waits, ends the
//! waits whose time is over. It also looks at the tip itself now and then, since news may be lost. No reply is sent and no service
//! is called under the lock.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use outrigger_sdk::service::chain::Tip;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::{Scope, ServiceError};
use outrigger_sdk::{Host, Reply};
use serde_json::{Value, json};

use crate::blocks::hash_argument;
use crate::error::ChainError;
use crate::{Context, args};

/// How often the tip is looked at although there was no news of it.
const LOOK: Duration = Duration::from_secs(1);

/// What a call waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// Another best block than this.
    Other(BlockHash),
    /// This best block.
    Block(BlockHash),
    /// A best block of at least this height.
    Height(i64),
}

impl Until {
    fn is_over(self, tip: &Tip) -> bool {
        match self {
            Self::Other(hash) => tip.hash != hash,
            Self::Block(hash) => tip.hash == hash,
            Self::Height(height) => i64::from(tip.height) >= height,
        }
    }
}

struct Waiter {
    reply: Reply,
    until: Until,
    /// When it is answered all the same; none: never.
    deadline: Option<Instant>,
}

impl Waiter {
    fn answer(self, tip: &Result<Tip, ServiceError>) {
        let tip = tip.as_ref().map(|tip| json!({"hash": tip.hash, "height": tip.height}));
        self.reply.send(tip.map_err(|error| error.clone().into()));
    }
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, Waiter>,
    /// Whether calls may no longer wait: the host is stopping, or another instance takes over.
    closed: bool,
    ended: bool,
    thread: Option<JoinHandle<()>>,
}

/// The calls that wait for a block.
pub struct Waits {
    host: Host,
    state: Mutex<State>,
    changed: Condvar,
}

impl Waits {
    pub fn new(host: Host) -> Arc<Self> {
        Arc::new(Self { host, state: Mutex::default(), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a call of one of the methods, or keeps it.
    pub fn call(self: &Arc<Self>, method: &str, context: &Context<'_>, reply: Reply) {
        match request(method, context) {
            Ok((until, timeout)) => self.wait(Waiter { reply, until, deadline: timeout.and_then(after) }),
            Err(error) => {
                reply.send::<Value>(Err(error.into()));
            }
        }
    }

    fn wait(self: &Arc<Self>, waiter: Waiter) {
        {
            let mut state = self.lock();
            state.waiting.insert(waiter.reply.token(), waiter);
            if state.thread.is_none() && !state.closed {
                let waits = self.clone();
                match std::thread::Builder::new().name("waits".into()).spawn(move || waits.run()) {
                    Ok(thread) => state.thread = Some(thread),
                    Err(error) => self.host.log(Level::Warn, format!("calls cannot wait for blocks: {error}")),
                }
            }
            self.changed.notify_one();
        }
        // The block may have come before the call was kept.
        self.look();
    }

    /// Answers the calls whose wait is over.
    pub fn look(&self) {
        let tip = self.host.chain.tip(Scope::NONE);
        let now = Instant::now();
        let due: Vec<Waiter> = {
            let mut state = self.lock();
            let closed = state.closed;
            let is_due = |_: &u64, waiter: &mut Waiter| {
                // Where the node cannot be read, calls go on waiting.
                let is_over = tip.as_ref().is_ok_and(|tip| waiter.until.is_over(tip));
                closed || is_over || waiter.deadline.is_some_and(|deadline| deadline <= now)
            };
            state.waiting.extract_if(is_due).map(|(_, waiter)| waiter).collect()
        };
        due.into_iter().for_each(|waiter| waiter.answer(&tip));
    }

    /// Forgets a call whose client has gone.
    pub fn cancel(&self, token: u64) {
        let gone = self.lock().waiting.remove(&token);
        drop(gone);
    }

    /// Answers all calls with the best block as it is, and keeps no more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.look();
    }

    /// Ends the thread.
    pub fn end(&self) {
        let thread = {
            let mut state = self.lock();
            state.ended = true;
            state.thread.take()
        };
        self.changed.notify_all();
        if let Some(thread) = thread {
            // A panic in it was caught and logged by the SDK's hook; there is nothing to add.
            let _ = thread.join();
        }
    }

    fn run(&self) {
        let mut state = self.lock();
        while !state.ended {
            if state.waiting.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let first = state.waiting.values().filter_map(|waiter| waiter.deadline).min();
            let pause = first.map_or(LOOK, |first| first.saturating_duration_since(Instant::now()).min(LOOK));
            if !pause.is_zero() {
                state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(state);
            // The thread must go on after a panic: without it, no wait would end by its time.
            if catch_unwind(AssertUnwindSafe(|| self.look())).is_err() {
                self.host.log(Level::Error, "a look at the tip for calls that wait panicked");
            }
            state = self.lock();
        }
    }
}

/// The moment after this time; none where the clock does not reach so far.
fn after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// What a call waits for and how long; without a time it waits for ever.
fn request(method: &str, context: &Context<'_>) -> Result<(Until, Option<Duration>), ChainError> {
    let timeout = |index: usize| {
        let timeout: i32 = context.params.given(index).map_or(Ok(0), args::integer)?;
        let timeout = u64::try_from(timeout).map_err(|_| ChainError::NegativeTimeout)?;
        Ok::<_, ChainError>((timeout > 0).then(|| Duration::from_millis(timeout)))
    };
    match method {
        "waitforblock" => Ok((Until::Block(hash_argument(context, 0, "blockhash")?), timeout(1)?)),
        "waitforblockheight" => {
            let height: i32 = args::integer(context.params.get(0))?;
            Ok((Until::Height(height.into()), timeout(1)?))
        }
        _ => {
            let timeout = timeout(0)?;
            Ok((Until::Other(context.host.chain.tip(context.scope)?.hash), timeout))
        }
    }
}
