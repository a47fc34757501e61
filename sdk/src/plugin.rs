//! A plugin in Rust: the trait it implements, the calls it answers, and the host it may ask.

use std::sync::Arc;
use std::time::Duration;

use bitcoin::Network;
use serde::Serialize;
use serde_json::{Map, Value};

use outrigger_service::events::Event;
use outrigger_service::wallet::WalletInfo;
use outrigger_service::wire::Blob;
use outrigger_service::{Host, Scope};
use outrigger_standard::release::Rules;
use outrigger_values::error::RpcError;
use outrigger_values::params::Params;

use crate::options::PluginOptions;

/// A call, with the services and rules for its answer.
pub struct Call<'a> {
    /// The method's name.
    pub method: &'a str,
    /// Its arguments by position; empty in a function of [`mod@crate::methods`], which has them as its own arguments.
    pub params: Params,
    /// Its arguments by name, of a wrapped method whose parameters the host does not know.
    pub named: Option<Map<String, Value>>,
    /// The services that the plugin was granted.
    pub host: &'a Host,
    /// The scope for services while the call runs. All reads in one scope see the same moment.
    pub scope: Scope,
    /// After what time the host answers in the plugin's place; none when it does not.
    pub deadline: Option<Duration>,
    /// The release of Bitcoin Core whose answers the client expects, with its rules: that of the node, or of the host's
    /// setting `release`.
    pub rules: Rules,
    pub(crate) given: usize,
    pub(crate) token: u64,
    pub(crate) replies: &'a dyn ReplySink,
}

impl Call<'_> {
    /// How many arguments were given, null or not: an argument at a later position was left out.
    pub fn given(&self) -> usize {
        self.given
    }

    /// Whether the answer is still wanted: false once the client has gone or the time is over.
    pub fn is_wanted(&self) -> bool {
        self.replies.wanted(self.token)
    }

    /// Passes the call to the next link of its chain ([`outrigger_service::Rpc::next`]), with these parameters or the client's, and gives
    /// the result as JSON text.
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
    /// As of [`outrigger_service::WalletRead::info`].
    pub fn wallet(&self) -> outrigger_service::Result<WalletInfo> {
        self.host.wallet.info(self.scope)
    }

    /// The network of the node's chain.
    ///
    /// # Errors
    /// As of [`outrigger_service::Chain::network`].
    pub fn network(&self) -> outrigger_service::Result<Network> {
        self.host.chain.network(self.scope)
    }
}

/// The message of the error that answers a call whose [`Reply`] was dropped.
pub const NO_ANSWER: &str = "The plugin gave no answer";

/// Where answers go.
pub trait ReplySink: Send + Sync {
    /// Takes the answer of a call; whether it was still wanted.
    fn reply(&self, token: u64, outcome: Result<Vec<u8>, RpcError>) -> bool;

    /// As `reply`, with a result that is JSON already and that others share.
    fn reply_shared(&self, token: u64, json: Arc<Vec<u8>>) -> bool {
        self.reply(token, Ok(json.to_vec()))
    }

    /// Passes the call on to the next link of its chain, with these parameters or the client's.
    fn pass(&self, token: u64, params: Option<Vec<u8>>) -> bool;

    /// The call was dropped: there is no answer. The client gets the message as an error.
    fn drop_call(&self, token: u64, message: &str) -> bool {
        self.reply(token, Err(RpcError::internal(message)))
    }

    /// Whether the call still waits for its answer.
    fn wanted(&self, token: u64) -> bool;

    /// Says how far a call is.
    fn progress(&self, _token: u64, _done: u64, _total: u64) {}
}

/// The right to answer one call, now or later, from any thread.
///
/// A call whose `Reply` is dropped unanswered is answered with -32603.
///
/// Most calls are answered at once, by [`Reply::send`] in [`Plugin::call`]. One that takes long gives its thread back and is
/// answered later. What it needs of the services it asks for before, or afterwards under [`Scope::NONE`]; it stops when nobody
/// waits for it, and when [`Plugin::quiesce`] says that the plugin is about to end.
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

    /// Names the call, in [`Plugin::cancel`].
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Whether the answer is still wanted: false once the client has gone or the time is over. A call that works for long
    /// asks now and then.
    pub fn is_wanted(&self) -> bool {
        self.sink.as_ref().is_some_and(|sink| sink.wanted(self.token))
    }

    /// Says how far the call is: `done` of `total`, in any unit. getrpcinfo and `outrigger call` show it for `long_running` methods.
    pub fn progress(&self, done: u64, total: u64) {
        if let Some(sink) = &self.sink {
            sink.progress(self.token, done, total);
        }
    }

    /// Answers. Whether the answer was still wanted: false once the client has gone or the time is over.
    pub fn send<T: Serialize>(self, outcome: Result<T, RpcError>) -> bool {
        let outcome = outcome.and_then(|value| {
            serde_json::to_vec(&value).map_err(|error| RpcError::internal(format!("the result has no JSON: {error}")))
        });
        self.send_json(outcome)
    }

    /// Answers with an error. Whether the answer was still wanted.
    pub fn fail(self, error: impl Into<RpcError>) -> bool {
        self.send_json(Err(error.into()))
    }

    /// Passes the call on to the next link of its chain: a plugin, or after the last one the host or the node. The client gets
    /// that answer. Returns whether the answer was still wanted.
    pub fn pass_on(mut self) -> bool {
        self.sink.take().is_some_and(|sink| sink.pass(self.token, None))
    }

    /// As [`Reply::pass_on`], with other parameters: a JSON array by position, or an object by name.
    pub fn pass_on_with(mut self, params: &Value) -> bool {
        self.sink.take().is_some_and(|sink| sink.pass(self.token, Some(params.to_string().into_bytes())))
    }

    /// Answers with a result that is JSON already.
    pub fn send_json(mut self, outcome: Result<Vec<u8>, RpcError>) -> bool {
        self.sink.take().is_some_and(|sink| sink.reply(self.token, outcome))
    }

    /// As [`Reply::send_json`], with a result that other calls are answered with as well: it is not copied.
    pub fn send_shared(mut self, outcome: Result<Arc<Vec<u8>>, RpcError>) -> bool {
        match outcome {
            Ok(json) => self.sink.take().is_some_and(|sink| sink.reply_shared(self.token, json)),
            Err(error) => self.send_json(Err(error)),
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            // A panic drops it too; then the call ended in a fault.
            let message = if std::thread::panicking() { "Internal error" } else { NO_ANSWER };
            sink.drop_call(self.token, message);
        }
    }
}

/// A group of operations.
///
/// The host makes one instance, and calls it from several threads at a time.
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

    /// Makes the instance from the options of its configuration, which were checked against the manifest: each one
    /// that it declares is there, with its declared type. The reason of a refusal is shown to the operator.
    fn new(host: Host, options: Self::Options) -> Result<Self, String>;

    /// All services are ready and calls will follow.
    fn start(&self) -> Result<(), String> {
        Ok(())
    }

    /// Answers a call of one of the manifest's methods; `#[plugin]` writes it. Its `reply` may be kept and answered later; what the services
    /// showed under [`Call::scope`] ends when this returns.
    fn call(&self, call: Call<'_>, reply: Reply);

    /// Sees a call of another's method, before which the configuration has put this plugin (`wrap`): [`Reply::pass_on`] leaves the
    /// call to them, and any other answer is the client's. `#[plugin(wrapper = "pooled")]` or `"inline"` allows it ([`crate::manifest::WrapperKind`]). The wallet may not have
    /// followed the chain to its tip yet.
    fn wrap(&self, call: Call<'_>, reply: Reply) {
        reply.fail(RpcError::no_method(call.method));
    }

    /// The client of a call has gone, or its time is over. May come while the call still runs, and then comes again
    /// when [`Plugin::call`] has returned with its reply kept.
    fn cancel(&self, _token: u64) {}

    /// Something happened that the manifest asked to hear of.
    fn event(&self, _event: Event) {}

    /// No further call will come: answer what is kept.
    fn quiesce(&self) {}

    /// The last word before the instance is dropped: end threads of your own. From then on the host is not called any more: a
    /// [`Reply`] that was kept reaches nobody, and each function of a service fails with
    /// [`outrigger_service::ErrorKind::Stale`]. A plugin in a process of its own has 20 seconds.
    fn stop(&self) {}
}
