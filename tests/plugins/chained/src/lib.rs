//! A plugin before the methods of other plugins. Each option lists the methods for one behaviour.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::provider::{KeysProvider, KeysQuery, MessageQuery, ProviderBatch};
use outrigger_sdk::service::rpc::As;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, RpcErrorCode, methods, plugin};
use serde_json::{Value, json};

/// The number of calls of the next plugin in a measurement.
const ROUNDS: usize = 2001;

#[derive(PluginOptions)]
pub struct Options {
    /// Refuses these.
    #[option(default = [])]
    refuse: Vec<String>,
    /// Never answers these.
    #[option(default = [])]
    hang: Vec<String>,
    /// Panics in these.
    #[option(default = [])]
    panic: Vec<String>,
    /// Ends the process in these.
    #[option(default = [])]
    abort: Vec<String>,
    /// Passes these on with the parameters `[1]`.
    #[option(default = [])]
    change: Vec<String>,
    /// Asks the next one, and wraps the result as `{"next": ...}`.
    #[option(default = [])]
    ask: Vec<String>,
    /// Asks the next one, and drops the call.
    #[option(default = [])]
    ask_and_fail: Vec<String>,
    /// Asks the next one once nobody waits for the answer any more, and drops the call.
    #[option(default = [])]
    ask_late: Vec<String>,
    /// Asks the next one many times, and answers with the median time in nanoseconds.
    #[option(default = [])]
    time: Vec<String>,
    /// Calls the method itself, by its name and with its own rights, and answers with the result.
    #[option(default = [])]
    again: Vec<String>,
    /// Like `again`, with the caller's rights.
    #[option(default = [])]
    again_as_caller: Vec<String>,
}

/// Claims every key, and returns invalid signatures.
impl KeysProvider for Chained {
    fn available(&self, _: Scope, query: &KeysQuery) -> Result<Vec<bool>, RpcError> {
        Ok(vec![true; query.keys.len()])
    }

    fn sign(&self, _: Scope, batch: &ProviderBatch) -> Result<Vec<Option<Blob>>, RpcError> {
        Ok(vec![Some(Blob(vec![1; 64])); batch.requests.len()])
    }

    fn message(&self, _: Scope, _: &MessageQuery) -> Result<Option<Blob>, RpcError> {
        Ok(Some(Blob(vec![1; 65])))
    }
}

pub struct Chained {
    options: Options,
    seen: Mutex<Vec<String>>,
    kept: Mutex<Vec<Reply>>,
    closed: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[plugin(
    id = "chained",
    summary = "Stands before the methods of others",
    optional = ["rpc/1", "chain/1", "wallet-read/1"],
    provides = ["keys-provider/1"],
    wrapper = "pooled",
    restartable
)]
impl Plugin for Chained {
    type Options = Options;

    fn new(_: Host, options: Options) -> Result<Self, String> {
        Ok(Self { options, seen: Mutex::default(), kept: Mutex::default(), closed: AtomicBool::new(false) })
    }

    fn wrap(&self, call: Call<'_>, reply: Reply) {
        let named = call.named.as_ref().map(|named| format!(" {}", Value::Object(named.clone()))).unwrap_or_default();
        lock(&self.seen).push(format!("{} {}{named}", call.method, json!(call.params.0)));
        let is_in = |methods: &[String]| methods.iter().any(|method| method == call.method);
        let options = &self.options;
        if is_in(&options.refuse) {
            reply.fail(RpcError::new(RpcErrorCode(-77), "Refused on the way"));
        } else if is_in(&options.hang) {
            lock(&self.kept).push(reply);
            if self.closed.load(Ordering::SeqCst) {
                self.quiesce();
            }
        } else if is_in(&options.panic) {
            #[allow(clippy::panic, reason = "asked for")]
            {
                panic!("asked for");
            }
        } else if is_in(&options.abort) {
            std::process::abort();
        } else if is_in(&options.change) {
            reply.pass_on_with(&json!([1]));
        } else if is_in(&options.ask) {
            let answer = call.next(None).and_then(|json| {
                let next: Value =
                    serde_json::from_slice(&json).map_err(|error| RpcError::internal(error.to_string()))?;
                Ok(json!({"next": next}))
            });
            reply.send(answer);
        } else if is_in(&options.ask_and_fail) {
            // Without the grant of `rpc/1` this asks nothing.
            let _ = call.next(None);
            drop(reply);
        } else if is_in(&options.ask_late) {
            while call.is_wanted() {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = call.next(None);
            drop(reply);
        } else if is_in(&options.time) {
            let once = |_| {
                let began = Instant::now();
                call.next(None)?;
                Ok(began.elapsed())
            };
            let times = (0..ROUNDS).map(once).collect::<Result<Vec<Duration>, RpcError>>();
            reply.send(times.map(|mut times| {
                times.sort_unstable();
                times.get(ROUNDS / 2).map_or(0, Duration::as_nanos) as u64
            }));
        } else if is_in(&options.again) || is_in(&options.again_as_caller) {
            let user = if is_in(&options.again) { As::Plugin } else { As::Caller };
            reply.send(call.host.call(call.scope, call.method, &json!(call.params.0), user));
        } else {
            reply.pass_on();
        }
    }

    fn quiesce(&self) {
        self.closed.store(true, Ordering::SeqCst);
        lock(&self.kept).clear();
    }
}

#[methods(category = "Chained")]
impl Chained {
    /// Lists the calls that went through this plugin, and empties the list.
    #[method]
    fn listseen(&self) -> Result<Vec<String>, RpcError> {
        Ok(std::mem::take(&mut *lock(&self.seen)))
    }

    /// Tells who calls.
    #[method]
    fn whocalls(call: &Call<'_>) -> Result<Value, RpcError> {
        let caller = call.host.rpc.caller(call.scope)?;
        Ok(json!({"user": caller.user, "wallet": caller.wallet, "through": caller.through}))
    }

    /// Calls a method.
    ///
    /// * `method` - The method.
    /// * `arguments` - Its parameters.
    /// * `as_plugin` - Whether with the plugin's rights, instead of the caller's.
    #[method]
    fn callmethod(call: &Call<'_>, method: &str, arguments: &Value, as_plugin: bool) -> Result<Value, RpcError> {
        call.host.call(call.scope, method, arguments, if as_plugin { As::Plugin } else { As::Caller })
    }

    /// Asks the next one from a method that may run on a network thread.
    #[method(inline)]
    fn asknext(call: &Call<'_>) -> Result<Value, RpcError> {
        let json = call.next(None)?;
        serde_json::from_slice(&json).map_err(|error| RpcError::internal(error.to_string()))
    }
}

outrigger_sdk::export_plugin!(Chained);
