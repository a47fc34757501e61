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

use bitcoin::BlockHash;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::{Scope, ServiceError};
use outrigger_sdk::standard::release;
use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};

use crate::generate::Watch;
use crate::longpoll::{LongPolls, Waiter, segwit_missing};
use crate::request::{Request, Wait};
use crate::template::Templates;

/// The plugin.
pub struct MiningPlugin {
    host: Host,
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

/// An option in seconds. The host has checked its type. A negative option counts as 0.
fn seconds(options: &Map<String, Value>, name: &str) -> Duration {
    let seconds = options.get(name).and_then(Value::as_i64).unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default().min(MAX_WAIT))
}

fn no_candidate() -> RpcError {
    RpcError::misc("CreateNewBlock: the host selects no transactions")
}

impl MiningPlugin {
    fn get_block_template(&self, context: &CallContext<'_>, reply: Reply) {
        let (knows_segwit, wait) = match request::parse(context.params.get(0)) {
            Ok(Request::Proposal { data }) => {
                reply.send(submit::propose(context, data));
                return;
            }
            Ok(Request::Template { knows_segwit, wait }) => (knows_segwit, wait),
            Err(error) => {
                reply.fail(error);
                return;
            }
        };
        match wait.map(|wait| self.watched(context, wait)) {
            Some(Ok(Some((tip, sequence)))) => self.polls.wait(Waiter { reply, tip, sequence, knows_segwit }),
            Some(Err(error)) => {
                reply.fail(error);
            }
            Some(Ok(None)) | None => {
                let template = match knows_segwit {
                    true => self.templates.answer(&self.host, context.scope),
                    false => Err(segwit_missing()),
                };
                reply.send_shared(template);
            }
        }
    }

    /// The tip and the mempool's sequence that a long poll watches; `None` if its tip is no longer the best block.
    fn watched(&self, context: &CallContext<'_>, wait: Wait) -> Result<Option<(BlockHash, u64)>, ServiceError> {
        let current = self.host.chain.tip(context.scope)?.hash;
        Ok(match wait {
            Wait::Template { tip, .. } if tip != current => None,
            Wait::Template { tip, sequence } => Some((tip, sequence)),
            Wait::Latest => Some((current, self.templates.sequence())),
        })
    }

    fn answer(&self, method: &str, context: &CallContext<'_>, reply: &Reply) -> Result<Value, RpcError> {
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
            other => Err(RpcError::no_method(other)),
        }
    }
}

impl Plugin for MiningPlugin {
    fn new(host: Host, options: Map<String, Value>) -> Result<Self, String> {
        let templates = Arc::new(Templates::default());
        let first = seconds(&options, "longpoll_mempool_wait_seconds");
        // Without a pause, the checks would keep a CPU busy.
        let repeat = seconds(&options, "longpoll_mempool_repeat_seconds").max(Duration::from_secs(1));
        let polls = LongPolls::new(host.clone(), templates.clone(), first, repeat);
        Ok(Self { host, templates, polls, stopping: AtomicBool::new(false) })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let rules = release::rules(Some(call.release));
        let context = CallContext { host: &self.host, scope: call.scope, params: call.params, rules, plugin: &() };
        if call.method == "getblocktemplate" {
            return self.get_block_template(&context, reply);
        }
        let outcome = self.answer(call.method, &context, &reply);
        reply.send(outcome);
    }

    fn cancel(&self, token: u64) {
        // Mining calls check for their cancellation themselves.
        self.polls.cancel(token);
    }

    fn event(&self, event: Event) {
        match event {
            // The event may be outdated: calls that watch a newer tip must continue to wait.
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
        self.polls.end_thread();
    }
}

outrigger_sdk::export_plugin!(MiningPlugin, include_str!("../manifest.json"));
