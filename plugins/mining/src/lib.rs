//! The operation group `mining`: block templates and long polls, submitted blocks, and blocks that the host mines itself.
//!
//! Invariants: a waiting long poll holds no thread. The plugin calls no service and sends no reply under the lock of the
//! waiting calls. The plugin keeps one template, and all callers share the bytes of its answer.

mod generate;
mod info;
mod longpoll;
mod request;
mod submit;
mod template;
mod transactions;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::{Host, Plugin, RpcError, plugin};

use crate::longpoll::{LongPolls, State, answer_due};
use crate::template::Templates;

pub struct MiningPlugin {
    templates: Arc<Templates>,
    polls: Arc<LongPolls>,
    /// Whether mining calls must stop.
    stopping: AtomicBool,
}

/// Locks even a poisoned mutex: its data is consistent after each statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest wait that an option can set, in seconds. Adding it to an `Instant` must not overflow.
const MAX_WAIT: u64 = 365 * 24 * 60 * 60;

/// An option in seconds. A negative option counts as 0.
fn seconds(option: i64) -> Duration {
    Duration::from_secs(u64::try_from(option).unwrap_or_default().min(MAX_WAIT))
}

fn no_candidate() -> RpcError {
    RpcError::misc("CreateNewBlock: the host selects no transactions")
}

#[derive(PluginOptions)]
pub struct Options {
    /// The time before a long poll's first check of the mempool, in seconds.
    #[option(default = 60)]
    longpoll_mempool_wait_seconds: i64,
    /// The interval of later checks of the mempool, in seconds.
    #[option(default = 10)]
    longpoll_mempool_repeat_seconds: i64,
}

#[plugin(
    id = "mining",
    summary = "Block templates, submitted blocks, and priorities of transactions",
    services = ["chain/1", "mempool/1", "log/1"],
    events = ["tip"],
    restartable,
    methods = [generate, info, request, submit]
)]
impl Plugin for MiningPlugin {
    type Options = Options;

    fn new(host: Host, options: Options) -> Result<Self, String> {
        let templates = Arc::new(Templates::default());
        let first_wait = seconds(options.longpoll_mempool_wait_seconds);
        // Without a pause, the checks would keep a CPU busy.
        let repeat = seconds(options.longpoll_mempool_repeat_seconds).max(Duration::from_secs(1));
        let state = State { templates: templates.clone(), first_wait, repeat, stopping: AtomicBool::new(false) };
        let polls = LongPolls::new(host, state, answer_due);
        Ok(Self { templates, polls, stopping: AtomicBool::new(false) })
    }

    fn cancel(&self, token: u64) {
        // Mining calls check for their cancellation themselves.
        self.polls.cancel(token);
    }

    fn event(&self, event: Event) {
        match event {
            // The event may be outdated, and calls that watch a newer tip must continue to wait.
            Event::TipChanged { .. } => self.polls.look(),
            Event::ShuttingDown => {
                self.polls.state.stopping.store(true, Ordering::Relaxed);
                self.quiesce();
            }
            _ => {}
        }
    }

    fn quiesce(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.polls.close();
    }

    fn stop(&self) {
        self.polls.end();
    }
}
