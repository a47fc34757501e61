//! A stub host for unit tests of a plugin. A test sets the exact answers, or the faults, of its services.
//!
//! ```
//! use outrigger_sdk::options::NoOptions;
//! use outrigger_sdk::testing::StubHost;
//! use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, plugin};
//! use serde_json::json;
//!
//! struct Height;
//!
//! #[plugin(id = "height", summary = "Tells the height.", services = ["chain/1"])]
//! impl Plugin for Height {
//!     fn new(_: Host, _: NoOptions) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//! }
//!
//! #[methods(category = "Test")]
//! impl Height {
//!     /// The height.
//!     #[method]
//!     fn height(call: &Call<'_>) -> Result<u32, RpcError> {
//!         Ok(call.host.chain.tip(call.scope)?.height)
//!     }
//! }
//!
//! let host = StubHost::new();
//! host.chain.mine(vec![]);
//! let plugin = host.start::<Height>(json!({}));
//! assert_eq!(plugin.call("height", json!([])), Ok(json!(1)));
//! ```
//!
//! The stub chain connects blocks without validating them. The stub wallet answers with the data that the test sets; it does not follow
//! the chain and has no rules. For a real chain and real wallets in a folder of the test, use `TestHost` of the crate
//! `outrigger-testing`, which starts plugins as the same [`TestPlugin`].

#![allow(clippy::panic, reason = "a test's own failure")]

mod chain;
mod info;
mod mempool;
mod metrics;
mod rows;
mod rpc;
mod signer;
mod store;
mod wallet;
mod wallet_state;

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

pub use chain::StubChain;
pub use info::StubInfo;
pub use mempool::StubMempool;
pub use metrics::StubMetrics;
pub use rows::KnownTransaction;
pub use rpc::StubRpc;
pub use store::StubStore;
pub use wallet::StubWallet;
pub use wallet_state::WalletState;

use crate::manifest::Manifest;
use crate::options::PluginOptions;
use crate::plugin::{Call, Plugin, Reply, ReplySink};
use outrigger_abi::{FAILED, OwnedBytes, PASS_ON};
use outrigger_service::events::Event;
use outrigger_service::log::Level;
use outrigger_service::{Events, Host, Log, Result as ServiceResult, Scope};
use outrigger_standard::release::{Deprecated, PRESENT, Rules};
use outrigger_values::error::{RpcError, RpcErrorCode};
use outrigger_values::params::Params;

/// A host in memory.
pub struct StubHost {
    /// Its chain.
    pub chain: Arc<StubChain>,
    /// Its mempool.
    pub mempool: Arc<StubMempool>,
    /// Its wallets.
    pub wallet: Arc<StubWallet>,
    /// The log of its plugins.
    pub log: Arc<StubLog>,
    /// The methods that plugins call.
    pub rpc: Arc<StubRpc>,
    /// The store of its plugins.
    pub store: Arc<StubStore>,
    /// The metrics of its plugins.
    pub metrics: Arc<StubMetrics>,
    /// Its information about itself.
    pub info: Arc<StubInfo>,
}

/// The lines that plugins logged.
#[derive(Default)]
pub struct StubLog(Mutex<Vec<(Level, String)>>);

impl StubLog {
    /// The lines so far.
    pub fn lines(&self) -> Vec<(Level, String)> {
        lock(&self.0).clone()
    }
}

impl Log for StubLog {
    fn write(&self, _: Scope, level: Level, message: String) -> ServiceResult<()> {
        lock(&self.0).push((level, message));
        Ok(())
    }

    fn tells_panics(&self, _: Scope) -> ServiceResult<bool> {
        Ok(true)
    }
}

/// An event queue that loses nothing.
pub struct NoEvents;

impl Events for NoEvents {
    fn dropped(&self, _: Scope) -> ServiceResult<u64> {
        Ok(0)
    }
}

/// Locks a mutex even if it is poisoned: the test that panicked has failed already.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Default for StubHost {
    fn default() -> Self {
        Self::new()
    }
}

impl StubHost {
    /// A host with the genesis block of regtest, an empty mempool and no wallet.
    pub fn new() -> Self {
        let chain = Arc::new(StubChain::new());
        let mempool = Arc::new(StubMempool::new(chain.clone()));
        let wallet = Arc::new(StubWallet::new(mempool.clone()));
        let (log, rpc, store, metrics, info) = Default::default();
        Self { wallet, mempool, chain, log, rpc, store, metrics, info }
    }

    /// The services of this host, as a plugin gets them.
    pub fn handle(&self) -> Host {
        Host {
            chain: self.chain.clone(),
            mempool: self.mempool.clone(),
            wallet: self.wallet.clone(),
            book: self.wallet.clone(),
            pay: self.wallet.clone(),
            import: self.wallet.clone(),
            admin: self.wallet.clone(),
            keys: self.wallet.clone(),
            signer: self.wallet.clone(),
            events: Arc::new(NoEvents),
            log: self.log.clone(),
            rpc: self.rpc.clone(),
            store: self.store.clone(),
            metrics: self.metrics.clone(),
            info: self.info.clone(),
        }
    }

    /// Starts a plugin with the options that its configuration would give.
    ///
    /// # Panics
    /// The manifest or the options are invalid, or the plugin refuses to start.
    pub fn start<P: Plugin>(&self, options: Value) -> TestPlugin<P> {
        TestPlugin::start(self.handle(), Arc::new(NoScopes), options)
    }
}

/// Opens the scopes of calls. A host implements it if the answers of its services depend on the call's token.
pub trait CallScopes: Send + Sync {
    /// Opens the scope of the call `token`. `wallet` is the wallet that the client's URI names, if any. `needs_tip`: that wallet must have
    /// followed the chain to its tip. The scope ends when the returned value is dropped.
    fn open(&self, token: u64, wallet: Option<&str>, needs_tip: bool) -> Box<dyn Any + Send>;
}

/// For services whose answers do not depend on the call.
struct NoScopes;

impl CallScopes for NoScopes {
    fn open(&self, _: u64, _: Option<&str>, _: bool) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// A started plugin.
pub struct TestPlugin<P> {
    plugin: P,
    host: Host,
    manifest: Manifest,
    scopes: Arc<dyn CallScopes>,
    answers: Arc<Answers>,
    next: AtomicU64,
    /// The release and the deprecated features of calls, encoded in one word.
    word: AtomicU32,
}

impl<P: Plugin> TestPlugin<P> {
    /// Starts a plugin with these services. Test hosts call it; a test calls the `start` of its host, such as [`StubHost::start`].
    ///
    /// # Panics
    /// The manifest or the options are invalid, or the plugin refuses to start.
    pub fn start(host: Host, scopes: Arc<dyn CallScopes>, options: Value) -> Self {
        let manifest = Manifest::parse(P::MANIFEST.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let given = options.as_object().cloned().unwrap_or_default();
        let options = manifest.options(&given).unwrap_or_else(|error| panic!("{error}"));
        let plugin = P::Options::read(options).and_then(|options| P::new(host.clone(), options));
        let plugin = plugin.unwrap_or_else(|reason| panic!("the plugin refused: {reason}"));
        plugin.start().unwrap_or_else(|reason| panic!("the plugin refused to start: {reason}"));
        Self {
            plugin,
            host,
            manifest,
            scopes,
            answers: Arc::default(),
            next: AtomicU64::new(1),
            word: AtomicU32::new(PRESENT),
        }
    }

    /// Makes later calls expect the answers of this release, with these deprecated features.
    pub fn set_release(&self, release: u32, deprecated: &[&str]) {
        self.word.store(Deprecated::of(deprecated).word(release), Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Answers {
    /// The codes and the bodies of the answers.
    given: Mutex<HashMap<u64, (i32, Vec<u8>)>>,
    cancelled: Mutex<HashSet<u64>>,
    /// How often the plugin still learns that an answer is wanted, over all calls; `None` without a limit.
    patience: Mutex<Option<u64>>,
}

impl ReplySink for Answers {
    fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> bool {
        !lock(&self.cancelled).contains(&token) && lock(&self.given).insert(token, (code, body.to_vec())).is_none()
    }

    fn wanted(&self, token: u64) -> bool {
        if let Some(questions) = lock(&self.patience).as_mut() {
            match questions.checked_sub(1) {
                Some(rest) => *questions = rest,
                None => return false,
            }
        }
        !lock(&self.cancelled).contains(&token) && !lock(&self.given).contains_key(&token)
    }
}

/// A call that may not be answered yet.
pub struct PendingCall {
    token: u64,
    answers: Arc<Answers>,
}

impl PendingCall {
    /// The token of the call.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The parameters with which the plugin passed the call on; `None` if it has not. An inner `None` means the client's parameters.
    pub fn passed_on(&self) -> Option<Option<Value>> {
        let (_, params) = lock(&self.answers.given).get(&self.token).filter(|(code, _)| *code == PASS_ON).cloned()?;
        Some((!params.is_empty()).then(|| serde_json::from_slice(&params).unwrap_or_default()))
    }

    /// The answer as the bytes that a client would get, if it was given.
    pub fn json(&self) -> Option<Result<String, RpcError>> {
        let (code, body) = lock(&self.answers.given).get(&self.token).cloned()?;
        let text = String::from_utf8_lossy(&body).into_owned();
        match code {
            0 => Some(Ok(text)),
            PASS_ON => None,
            FAILED => Some(Err(RpcError::internal(text))),
            code => Some(Err(RpcError::new(RpcErrorCode(code), text))),
        }
    }

    /// The answer, if it was given.
    ///
    /// # Panics
    /// When the plugin answered something that is not JSON.
    pub fn answer(&self) -> Option<Result<Value, RpcError>> {
        let parse = |json: String| {
            serde_json::from_str(&json).unwrap_or_else(|error| panic!("the answer is not JSON ({error}): {json}"))
        };
        Some(self.json()?.map(parse))
    }
}

impl<P: Plugin> TestPlugin<P> {
    /// Limits how often the plugin learns that an answer is wanted: after this many queries, over all calls, none is.
    pub fn want_answers_for(&self, questions: u64) {
        *lock(&self.answers.patience) = Some(questions);
    }

    /// Begins a call. `arguments` is a JSON array, or an object for a wrapper's call by name. The plugin may answer later.
    ///
    /// # Panics
    /// The manifest does not list the method, or the arguments are neither an array nor an object.
    pub fn begin(&self, method: &str, arguments: Value) -> PendingCall {
        self.begin_for(None, method, arguments)
    }

    /// As [`TestPlugin::begin`], for a client whose URI names this wallet.
    ///
    /// # Panics
    /// As [`TestPlugin::begin`].
    pub fn begin_for(&self, wallet: Option<&str>, method: &str, arguments: Value) -> PendingCall {
        let spec = self.manifest.methods.iter().find(|spec| spec.name == method);
        if spec.is_none() && self.manifest.wrapper.is_none() && self.manifest.provides.is_empty() {
            panic!("the manifest lists no method '{method}'")
        }
        let (params, named) = match arguments {
            Value::Array(params) => (Params(params), None),
            Value::Object(named) => (Params::default(), Some(named)),
            _ => panic!("the arguments must be an array or an object"),
        };
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        let (scope, deadline) = (Scope(token), None);
        let word = self.word.load(Ordering::Relaxed);
        let rules = Rules::of_call(word);
        let (host, replies, given) = (&self.host, &*self.answers, params.0.len());
        let call = Call { method, params, named, host, scope, deadline, rules, given, replies };
        let _scope = self.scopes.open(token, wallet, spec.is_some_and(|spec| spec.needs_tip));
        self.plugin.call(call, Reply::new(token, self.answers.clone()));
        PendingCall { token, answers: self.answers.clone() }
    }

    /// Makes a call, and returns its answer.
    ///
    /// # Panics
    /// As [`TestPlugin::begin`], or the plugin does not answer before its function returns.
    pub fn call(&self, method: &str, arguments: Value) -> Result<Value, RpcError> {
        self.begin(method, arguments).answer().unwrap_or_else(|| panic!("{method} gave no answer"))
    }

    /// As [`TestPlugin::call`], but returns the JSON text that a client would get.
    ///
    /// # Panics
    /// As [`TestPlugin::call`].
    pub fn call_json(&self, method: &str, arguments: Value) -> Result<String, RpcError> {
        self.begin(method, arguments).json().unwrap_or_else(|| panic!("{method} gave no answer"))
    }

    /// Makes calls of a method that the plugin must refuse: the arguments of each, and the code and the message of its error.
    ///
    /// # Panics
    /// As [`TestPlugin::call`], or a call has a result or another error.
    #[track_caller]
    pub fn refuses(&self, method: &str, calls: &[(Value, i32, &str)]) {
        for (arguments, code, message) in calls {
            let refusal = RpcError::new(RpcErrorCode(*code), *message);
            assert_eq!(self.call(method, arguments.clone()), Err(refusal), "{method} {arguments}");
        }
    }

    /// Delivers an event to the plugin.
    pub fn tell(&self, event: Event) {
        self.plugin.event(event);
    }

    /// Cancels a call, as the host does when the client disconnects.
    pub fn cancel(&self, call: &PendingCall) {
        lock(&self.answers.cancelled).insert(call.token);
        self.plugin.cancel(call.token);
    }

    /// Stops the plugin, as a host does when it stops.
    pub fn stop(self) {
        self.plugin.quiesce();
        self.plugin.stop();
    }
}

impl<P> std::ops::Deref for TestPlugin<P> {
    type Target = P;
    fn deref(&self) -> &P {
        &self.plugin
    }
}
