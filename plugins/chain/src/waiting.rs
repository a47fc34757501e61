//! Calls that wait for a block: `waitfornewblock`, `waitforblock` and `waitforblockheight`.
//!
//! A waiting call holds no thread. The tip event answers it. The first waiting call starts one thread, which answers the calls
//! after their timeout. That thread also polls the tip, because an event may be lost. The plugin sends no reply and calls no
//! service under the lock.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use outrigger_sdk::service::chain::Tip;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::{Scope, ServiceError};
use outrigger_sdk::{Call, Host, Reply, RpcError, methods, typed};
use serde_json::{Value, json};

use crate::ChainPlugin;
use crate::blocks::block_hash;

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The best block that ends a wait.
#[derive(Clone, Copy)]
enum Until {
    /// Any block but this.
    Other(BlockHash),
    Block(BlockHash),
    /// A block of at least this height.
    Height(i64),
}

impl Until {
    fn is_met(self, tip: &Tip) -> bool {
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
    /// None means no timeout.
    deadline: Option<Instant>,
}

impl Waiter {
    fn answer(self, tip: &Result<Tip, ServiceError>) {
        let tip = tip.as_ref().map(|tip| json!({"hash": tip.hash, "height": tip.height}));
        self.reply.send(tip.map_err(|error| error.clone().into()));
    }
}

#[derive(Default)]
struct Waiters {
    /// The waiting calls, by the tokens of their replies.
    waiting: HashMap<u64, Waiter>,
    /// Whether calls get their answers at once, because the host stops or another instance takes over.
    closed: bool,
    /// Whether the thread has to end.
    ended: bool,
    thread: Option<JoinHandle<()>>,
}

pub struct Waits {
    host: Host,
    waiters: Mutex<Waiters>,
    changed: Condvar,
}

impl Waits {
    pub fn new(host: Host) -> Arc<Self> {
        Arc::new(Self { host, waiters: Mutex::default(), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a call now or later.
    fn answer(self: &Arc<Self>, request: Result<Request, RpcError>, reply: Reply) {
        match request {
            Ok((until, timeout)) => self.wait(Waiter { reply, until, deadline: timeout.and_then(deadline_after) }),
            Err(error) => {
                reply.fail(error);
            }
        }
    }

    fn wait(self: &Arc<Self>, waiter: Waiter) {
        {
            let mut waiters = self.lock();
            waiters.waiting.insert(waiter.reply.token(), waiter);
            if waiters.thread.is_none() && !waiters.closed {
                let waits = self.clone();
                match std::thread::Builder::new().name("waits".into()).spawn(move || waits.run()) {
                    Ok(thread) => waiters.thread = Some(thread),
                    Err(error) => self.host.log(Level::Warn, format!("calls cannot wait for blocks: {error}")),
                }
            }
            self.changed.notify_one();
        }
        // The block may have come before the insertion.
        self.answer_due();
    }

    /// Answers the calls whose block or timeout has come.
    pub fn answer_due(&self) {
        let tip = self.host.chain.tip(Scope::NONE);
        let now = Instant::now();
        let due: Vec<Waiter> = {
            let mut waiters = self.lock();
            let closed = waiters.closed;
            let is_due = |_: &u64, waiter: &mut Waiter| {
                // If the node cannot be read, the calls keep waiting.
                let is_met = tip.as_ref().is_ok_and(|tip| waiter.until.is_met(tip));
                closed || is_met || waiter.deadline.is_some_and(|deadline| deadline <= now)
            };
            waiters.waiting.extract_if(is_due).map(|(_, waiter)| waiter).collect()
        };
        due.into_iter().for_each(|waiter| waiter.answer(&tip));
    }

    /// Drops a call after its client has left.
    pub fn cancel(&self, token: u64) {
        let canceled = self.lock().waiting.remove(&token);
        // Dropping the reply sends it, so the lock must be free by now.
        drop(canceled);
    }

    /// Answers all calls with the current best block, and lets no more wait.
    pub fn close(&self) {
        self.lock().closed = true;
        self.answer_due();
    }

    /// Ends the thread.
    pub fn end(&self) {
        let thread = {
            let mut waiters = self.lock();
            waiters.ended = true;
            waiters.thread.take()
        };
        self.changed.notify_all();
        if let Some(thread) = thread {
            // The SDK's hook has logged any panic of the thread.
            let _ = thread.join();
        }
    }

    fn run(&self) {
        let mut waiters = self.lock();
        while !waiters.ended {
            if waiters.waiting.is_empty() {
                waiters = self.changed.wait(waiters).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let first = waiters.waiting.values().filter_map(|waiter| waiter.deadline).min();
            let pause =
                first.map_or(POLL_INTERVAL, |first| first.saturating_duration_since(Instant::now()).min(POLL_INTERVAL));
            if !pause.is_zero() {
                waiters = self.changed.wait_timeout(waiters, pause).unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(waiters);
            // The thread has to survive a panic, because no other thread watches the timeouts.
            if catch_unwind(AssertUnwindSafe(|| self.answer_due())).is_err() {
                self.host.log(Level::Error, "a look at the tip for calls that wait panicked");
            }
            waiters = self.lock();
        }
    }
}

/// None if the clock cannot represent the deadline.
fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// The condition and the timeout of a call. None means no timeout.
type Request = (Until, Option<Duration>);

/// A timeout in milliseconds, of which 0 means none.
fn duration(timeout: i32) -> Result<Option<Duration>, RpcError> {
    let timeout = u64::try_from(timeout).map_err(|_| RpcError::misc("Negative timeout"))?;
    Ok((timeout > 0).then(|| Duration::from_millis(timeout)))
}

#[methods(category = "Blockchain", inline, long_running)]
impl ChainPlugin {
    /// Waits for another best block.
    ///
    /// * `timeout` - The timeout in milliseconds; 0 for none.
    ///
    /// # Result
    /// {"hash": "hash", "height": n}    (json object) The best block after the wait.
    ///
    /// # Example
    /// 1000
    #[method]
    fn waitfornewblock(&self, call: &Call<'_>, #[arg(default = 0)] timeout: i32, reply: Reply) {
        let request =
            duration(timeout).and_then(|timeout| Ok((Until::Other(call.host.chain.tip(call.scope)?.hash), timeout)));
        self.waits.answer(request, reply);
    }

    /// Waits until a block is the best one.
    ///
    /// * `blockhash` - The block.
    /// * `timeout` (default: 0) - The timeout in milliseconds; 0 for none.
    ///
    /// # Result
    /// {"hash": "hash", "height": n}    (json object) The best block after the wait.
    ///
    /// # Example
    /// 00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09 1000
    #[method]
    fn waitforblock(&self, blockhash: &str, #[arg(kind = "numeric")] timeout: Option<&Value>, reply: Reply) {
        let request = block_hash(blockhash, "blockhash").and_then(|hash| {
            let timeout = timeout.map_or(Ok(0), typed::integer)?;
            Ok((Until::Block(hash), duration(timeout)?))
        });
        self.waits.answer(request, reply);
    }

    /// Waits until the best chain has a height.
    ///
    /// * `height` - The height.
    /// * `timeout` - The timeout in milliseconds; 0 for none.
    ///
    /// # Result
    /// {"hash": "hash", "height": n}    (json object) The best block after the wait.
    ///
    /// # Example
    /// 100 1000
    #[method]
    fn waitforblockheight(&self, height: i32, #[arg(default = 0)] timeout: i32, reply: Reply) {
        let request = duration(timeout).map(|timeout| (Until::Height(height.into()), timeout));
        self.waits.answer(request, reply);
    }
}
