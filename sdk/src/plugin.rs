//! A plugin in Rust: the trait [`Plugin`], its calls, and their replies.

use std::sync::Arc;
use std::time::Duration;

use bitcoin::Network;
use serde::Serialize;
use serde_json::{Map, Value};

use outrigger_abi::{FAILED, OwnedBytes, PASS_ON};
use outrigger_service::events::Event;
use outrigger_service::wallet::WalletInfo;
use outrigger_service::wire::Blob;
use outrigger_service::{Host, Scope};
use outrigger_standard::release::Rules;
use outrigger_values::error::{RpcError, RpcErrorCode};
use outrigger_values::params::Params;

use crate::options::PluginOptions;

/// A call, with the services and rules for its answer.
pub struct Call<'a> {
    /// The method's name.
    pub method: &'a str,
    /// The arguments by position. Empty in a function of [`mod@crate::methods`], which gets them as its own arguments.
    pub params: Params,
    /// The arguments by name, for a wrapped method whose parameters the host does not know.
    pub named: Option<Map<String, Value>>,
    /// The services that the plugin was granted.
    pub host: &'a Host,
    /// The scope for services while the call runs. All reads in one scope see the same state.
    pub scope: Scope,
    /// The time after which the host answers in place of the plugin; `None` if there is no limit.
    pub deadline: Option<Duration>,
    /// The rules of the Bitcoin Core release whose answers the client expects: the node's release, or the host's setting
    /// `release`.
    pub rules: Rules,
    pub(crate) given: usize,
    pub(crate) replies: &'a dyn ReplySink,
}

impl Call<'_> {
    /// How many arguments the client gave, null included. The client omitted the arguments at later positions.
    pub fn given(&self) -> usize {
        self.given
    }

    /// Whether the client still waits for the answer: false once it has disconnected or the deadline has passed.
    pub fn is_wanted(&self) -> bool {
        self.replies.wanted(self.scope.0)
    }

    /// Passes the call to the next link of its chain ([`outrigger_service::Rpc::next`]), with these parameters or, for `None`, the
    /// client's. Returns the result as JSON text.
    ///
    /// # Errors
    /// The error of the method, or of the service.
    pub fn next(&self, params: Option<&Value>) -> Result<Vec<u8>, RpcError> {
        let params = params.map(|params| Blob(params.to_string().into_bytes()));
        Ok(self.host.rpc.next(self.scope, params)?.into_result()?.0)
    }

    /// The wallet of the call.
    ///
    /// # Errors
    /// See [`outrigger_service::WalletRead::info`].
    pub fn wallet(&self) -> outrigger_service::Result<WalletInfo> {
        self.host.wallet.info(self.scope)
    }

    /// The network of the node's chain.
    ///
    /// # Errors
    /// See [`outrigger_service::Chain::network`].
    pub fn network(&self) -> outrigger_service::Result<Network> {
        self.host.chain.network(self.scope)
    }
}

/// The message of the error that answers a call whose [`Reply`] was dropped.
pub const NO_ANSWER: &str = "The plugin gave no answer";

/// Receives the answers of calls.
pub trait ReplySink: Send + Sync {
    /// Takes the answer of a call as [`outrigger_abi::HostHandle::reply`] does. Returns whether the client still waited for it.
    fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> bool;

    /// Whether the call still waits for its answer.
    fn wanted(&self, token: u64) -> bool;

    /// Reports the progress of a call.
    fn progress(&self, _token: u64, _done: u64, _total: u64) {}
}

/// The right to answer one call, now or later, from any thread.
///
/// A call whose `Reply` is dropped unanswered is answered with -32603.
///
/// A plugin answers most calls at once, by [`Reply::send`] in [`Plugin::call`]. For a long call, [`Plugin::call`] returns and another
/// thread answers later. Until [`Plugin::call`] returns, the plugin uses services under the call's scope; after that, under
/// [`Scope::NONE`]. The work must stop when the client no longer waits ([`Reply::is_wanted`]) and when [`Plugin::quiesce`] is called.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::sync::{Arc, Mutex};
/// use std::thread::JoinHandle;
///
/// use outrigger_sdk::options::NoOptions;
/// use outrigger_sdk::serde_json::json;
/// use outrigger_sdk::testing::StubHost;
/// use outrigger_sdk::{Host, Plugin, Reply, RpcError, RpcErrorCode, methods, plugin};
///
/// #[derive(Default)]
/// struct Sums {
///     threads: Mutex<Vec<JoinHandle<()>>>,
///     closing: Arc<AtomicBool>,
/// }
///
/// #[plugin(id = "sums", summary = "Adds up")]
/// impl Plugin for Sums {
///     fn new(_: Host, _: NoOptions) -> Result<Self, String> {
///         Ok(Self::default())
///     }
///
///     fn quiesce(&self) {
///         self.closing.store(true, Ordering::Relaxed);
///     }
///
///     fn stop(&self) {
///         for thread in self.threads.lock().unwrap().drain(..) {
///             let _ = thread.join();
///         }
///     }
/// }
///
/// #[methods(category = "Test")]
/// impl Sums {
///     /// Adds up.
///     ///
///     /// * `count` - The first number that is not added.
///     #[method(long_running)]
///     fn sum(&self, reply: Reply, count: u64) {
///         let closing = self.closing.clone();
///         let work = move || {
///             let mut sum = 0_u64;
///             for number in 0..count {
///                 if number % 1024 == 0 && (closing.load(Ordering::Relaxed) || !reply.is_wanted()) {
///                     reply.fail(RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down"));
///                     return;
///                 }
///                 sum = sum.wrapping_add(number);
///             }
///             reply.send(Ok(sum));
///         };
///         self.threads.lock().unwrap().push(std::thread::spawn(work));
///     }
/// }
///
/// let plugin = StubHost::new().start::<Sums>(json!({}));
/// let (nothing, forever) = (plugin.begin("sum", json!([0])), plugin.begin("sum", json!([i64::MAX])));
/// plugin.stop();
/// assert_eq!(nothing.answer(), Some(Ok(json!(0))));
/// assert_eq!(forever.answer().unwrap().unwrap_err().message, "Shutting down");
/// ```
#[must_use = "a call whose reply is dropped is answered with an error"]
pub struct Reply {
    token: u64,
    sink: Option<Arc<dyn ReplySink>>,
}

impl Reply {
    /// The reply of the call `token`.
    pub fn new(token: u64, sink: Arc<dyn ReplySink>) -> Self {
        Self { token, sink: Some(sink) }
    }

    /// The token of the call, which [`Plugin::cancel`] gets.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Whether the client still waits for the answer: false once it has disconnected or the deadline has passed. A long
    /// call should check this regularly.
    pub fn is_wanted(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.wanted(self.token))
    }

    /// Reports the call's progress: `done` of `total`, in any unit. getrpcinfo and `outrigger call` show it for `long_running` methods.
    pub fn progress(&self, done: u64, total: u64) {
        if let Some(sink) = &self.sink {
            sink.progress(self.token, done, total);
        }
    }

    /// Answers the call. Returns whether the client still waited: false once it has disconnected or the deadline has passed.
    pub fn send<T: Serialize>(self, outcome: Result<T, RpcError>) -> bool {
        let outcome = outcome.and_then(|value| {
            serde_json::to_vec(&value).map_err(|error| RpcError::internal(format!("the result has no JSON: {error}")))
        });
        self.send_json(outcome)
    }

    /// Answers with an error. Returns whether the client still waited.
    pub fn fail(self, error: impl Into<RpcError>) -> bool {
        self.send_json(Err::<Vec<u8>, _>(error.into()))
    }

    /// Passes the call on to the next link of its chain: a plugin, or after the last one the host or the node. The client gets
    /// that answer. Returns whether the client still waited.
    pub fn pass_on(self) -> bool {
        self.answer(PASS_ON, Vec::new())
    }

    /// Like [`Reply::pass_on`], with other parameters: a JSON array by position, or an object by name.
    pub fn pass_on_with(self, params: &Value) -> bool {
        self.answer(PASS_ON, params.to_string().into_bytes())
    }

    /// Like [`Reply::send`], with a result as JSON text: a `Vec<u8>`, or an `Arc<Vec<u8>>` that several calls share.
    pub fn send_json(self, outcome: Result<impl Into<OwnedBytes>, RpcError>) -> bool {
        match outcome {
            Ok(json) => self.answer(0, json),
            // These codes are no errors for the host: success, and the two of a reply.
            Err(error) if [0, PASS_ON, FAILED].contains(&error.code.0) => {
                self.answer(RpcErrorCode::MISC.0, error.message.into_bytes())
            }
            Err(error) => self.answer(error.code.0, error.message.into_bytes()),
        }
    }

    fn answer(mut self, code: i32, body: impl Into<OwnedBytes>) -> bool {
        self.sink.take().is_some_and(|sink| sink.reply(self.token, code, body.into()))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            // If a panic drops the reply, the plugin has faulted, not forgotten to answer.
            let message = if std::thread::panicking() { "Internal error" } else { NO_ANSWER };
            sink.reply(self.token, FAILED, message.as_bytes().to_vec().into());
        }
    }
}

/// A plugin.
///
/// The host creates one instance, and calls it from several threads at a time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a plugin",
    label = "this type does not implement `outrigger_sdk::Plugin`",
    note = "write `#[outrigger_sdk::plugin(id = \"...\", summary = \"...\")] impl outrigger_sdk::Plugin for {Self}` with a function `new`"
)]
pub trait Plugin: Send + Sync + Sized + 'static {
    /// The manifest: [`crate::manifest::Manifest`] as JSON. `#[plugin]` makes it.
    const MANIFEST: &'static str;

    /// The options of its configuration: [`crate::options::NoOptions`], a struct, or a map of values that the manifest declares.
    type Options: PluginOptions;

    /// Creates the instance. The host has checked the options against the manifest: each declared option is present and has
    /// its declared type.
    ///
    /// # Errors
    /// The reason why the plugin refuses to start. The host shows it to the operator.
    fn new(host: Host, options: Self::Options) -> Result<Self, String>;

    /// Called when all services are ready, before the first call.
    fn start(&self) -> Result<(), String> {
        Ok(())
    }

    /// Answers a call of one of the manifest's methods; `#[plugin]` generates this function. The plugin may keep `reply` and answer
    /// later. [`Call::scope`] ends when this function returns.
    fn call(&self, call: Call<'_>, reply: Reply);

    /// Handles a call of a method that the configuration wraps with this plugin (`wrap`). [`Reply::pass_on`] passes the call on to
    /// the next link of its chain. Any other answer goes to the client. The plugin must allow wrapping, with
    /// `#[plugin(wrapper = "pooled")]` or `"inline"` ([`crate::manifest::WrapperKind`]). The wallet may still be behind the chain's tip.
    fn wrap(&self, call: Call<'_>, reply: Reply) {
        reply.fail(RpcError::no_method(call.method));
    }

    /// Called when the client of a call has disconnected, or the call's deadline has passed. If [`Plugin::call`] is still running
    /// then and keeps the reply, the host calls this again after [`Plugin::call`] has returned.
    fn cancel(&self, _token: u64) {}

    /// Receives an event that the manifest subscribes to.
    fn event(&self, _event: Event) {}

    /// Called when no more calls will come. The plugin should answer the calls whose replies it keeps.
    fn quiesce(&self) {}

    /// Called last, before the host drops the instance. The plugin must end its own threads here. After this function has returned,
    /// a kept [`Reply`] no longer reaches a client, and each function of a service fails with
    /// [`outrigger_service::ErrorKind::Stale`]. An isolated plugin has 20 seconds.
    fn stop(&self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Codes(Mutex<Vec<i32>>);

    impl ReplySink for Codes {
        fn reply(&self, _: u64, code: i32, _: OwnedBytes) -> bool {
            self.0.lock().unwrap().push(code);
            true
        }

        fn wanted(&self, _: u64) -> bool {
            true
        }
    }

    #[test]
    fn errors_never_have_the_codes_by_which_the_host_reads_replies() {
        let codes = Arc::<Codes>::default();
        for code in [0, PASS_ON, FAILED, -8] {
            Reply::new(1, codes.clone()).fail(RpcError::new(RpcErrorCode(code), "[1]"));
        }
        assert_eq!(*codes.0.lock().unwrap(), [-1, -1, -1, -8]);
    }
}
