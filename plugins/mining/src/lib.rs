//! The operation group `mining`: block templates and long polls, blocks that were mined, and blocks mined on the spot.
//!
//! Invariants: a waiting long poll holds no thread; no service is called and no reply is sent under the lock of the waiting
//! calls; one template is kept, and the bytes of its answer are shared by all callers.

mod error;
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

use bitcoin::BlockHash;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};

use crate::error::MiningError;
use crate::generate::Watch;
use crate::longpoll::{LongPolls, Waiter};
use crate::request::{Request, Wait};
use crate::template::Templates;

/// The plugin.
pub struct MiningPlugin {
    host: Host,
    templates: Arc<Templates>,
    polls: Arc<LongPolls>,
    /// Whether calls that are mining must stop.
    stopping: AtomicBool,
}

type Context<'a> = CallContext<'a>;

type Outcome = Result<Value, MiningError>;

/// Locks, whether or not the lock is poisoned: what it guards is consistent after each statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest wait that an option can set, in seconds: adding it to an `Instant` must not overflow.
const MAX_WAIT: u64 = 365 * 24 * 60 * 60;

/// An option in seconds, whose type the manifest has checked; a negative one means not to wait.
fn seconds(options: &Map<String, Value>, name: &str) -> Duration {
    let seconds = options.get(name).and_then(Value::as_i64).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default().min(MAX_WAIT))
}

impl MiningPlugin {
    fn get_block_template(&self, context: &Context<'_>, reply: Reply) {
        let (knows_segwit, wait) = match request::parse(context.params.get(0)) {
            Ok(Request::Proposal { data }) => {
                reply.send(submit::propose(context, data).map_err(Into::into));
                return;
            }
            Ok(Request::Template { knows_segwit, wait }) => (knows_segwit, wait),
            Err(error) => {
                reply.send::<Value>(Err(error.into()));
                return;
            }
        };
        match wait.map(|wait| self.watched(context, wait)) {
            Some(Ok(Some((tip, sequence)))) => self.polls.wait(Waiter { reply, tip, sequence, knows_segwit }),
            Some(Err(error)) => {
                reply.send::<Value>(Err(error.into()));
            }
            Some(Ok(None)) | None => {
                let template = match knows_segwit {
                    true => self.templates.answer(&self.host, context.scope),
                    false => Err(MiningError::SegwitMissing),
                };
                reply.send_shared(template.map_err(Into::into));
            }
        }
    }

    /// The tip and the mempool's sequence that a long poll watches; none when its tip is no longer the best.
    fn watched(&self, context: &Context<'_>, wait: Wait) -> Result<Option<(BlockHash, u64)>, MiningError> {
        let current = self.host.chain.tip(context.scope)?.hash;
        Ok(match wait {
            Wait::Template { tip, .. } if tip != current => None,
            Wait::Template { tip, sequence } => Some((tip, sequence)),
            Wait::Latest => Some((current, self.templates.sequence())),
        })
    }

    fn answer(&self, method: &str, context: &Context<'_>, reply: &Reply) -> Outcome {
        let watch = Watch { reply, stopping: &self.stopping };
        match method {
            "submitblock" => submit::submit_block(context),
            "submitheader" => submit::submit_header(context),
            "getmininginfo" => info::get_mining_info(context, self.templates.last()),
            "getnetworkhashps" => info::get_network_hash_rate(context),
            "generatetoaddress" => generate::generate_to_address(context, &self.templates, watch),
            "generatetodescriptor" => generate::generate_to_descriptor(context, &self.templates, watch),
            "generateblock" => generate::generate_block(context, watch),
            "getprioritisedtransactions" => info::get_prioritised_transactions(context),
            "prioritisetransaction" => info::prioritise_transaction(context),
            "preciousblock" => info::precious_block(context),
            other => Err(RpcError::no_method(other).into()),
        }
    }
}

impl Plugin for MiningPlugin {
    fn new(host: Host, options: Map<String, Value>) -> Result<Self, String> {
        let templates = Arc::new(Templates::default());
        let first = seconds(&options, "longpoll_mempool_wait_seconds");
        // Checks without a pause would keep a processor busy.
        let repeat = seconds(&options, "longpoll_mempool_repeat_seconds").max(Duration::from_secs(1));
        let polls = LongPolls::new(host.clone(), templates.clone(), first, repeat);
        Ok(Self { host, templates, polls, stopping: AtomicBool::new(false) })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let context = Context { host: &self.host, scope: call.scope, params: call.params, plugin: &() };
        if call.method == "getblocktemplate" {
            return self.get_block_template(&context, reply);
        }
        let outcome = self.answer(call.method, &context, &reply);
        reply.send(outcome.map_err(Into::into));
    }

    fn cancel(&self, token: u64) {
        // Calls that are mining check for their cancellation themselves.
        self.polls.cancel(token);
    }

    fn event(&self, event: Event) {
        match event {
            // The event may be outdated: calls that watch a newer tip must go on waiting.
            Event::TipChanged { hash, .. } => {
                self.polls.tip_changed(self.host.chain.tip(Scope::NONE).map_or(hash, |tip| tip.hash));
            }
            Event::ShuttingDown => {
                self.stopping.store(true, Ordering::Relaxed);
                self.polls.close();
            }
            _ => {}
        }
    }

    fn quiesce(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.polls.release();
    }

    fn stop(&self) {
        self.polls.end();
    }
}

outrigger_sdk::export_plugin!(MiningPlugin, include_str!("../manifest.json"));
