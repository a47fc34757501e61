//! A host of canned answers, for unit tests of a plugin that need exact answers, or faults, of the services.
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
//! The chain connects what it is given without judging it, and the wallet answers from plain data that the test sets: it follows
//! nothing and knows no rules. A host with a real chain and real wallets in a folder of the test is `TestHost` of the crate
//! `outrigger-testing`, which starts plugins by the same [`TestPlugin`].

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
use outrigger_service::events::Event;
use outrigger_service::log::Level;
use outrigger_service::{Events, Host, Log, Result as ServiceResult, Scope};
use outrigger_standard::release::{Deprecated, PRESENT, Rules};
use outrigger_values::error::RpcError;
use outrigger_values::params::Params;

/// A host in memory.
pub struct StubHost {
    /// Its chain.
    pub chain: Arc<StubChain>,
    /// Its mempool.
    pub mempool: Arc<StubMempool>,
    /// Its wallets.
    pub wallet: Arc<StubWallet>,
    /// What plugins logged.
    pub log: Arc<StubLog>,
    /// The methods that plugins call.
    pub rpc: Arc<StubRpc>,
    /// The store of its plugins.
    pub store: Arc<StubStore>,
    /// The metrics of its plugins.
    pub metrics: Arc<StubMetrics>,
    /// What it tells of itself.
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

/// Locks, whatever happened under the lock before: a test that panicked has failed already.
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

    /// What a plugin gets to see of it.
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
    /// When the manifest, the options or the plugin refuse: the test has failed.
    pub fn start<P: Plugin>(&self, options: Value) -> TestPlugin<P> {
        TestPlugin::start(self.handle(), Arc::new(NoScopes), options)
    }
}

/// Who opens the scopes of calls: a host whose services answer a call by its token.
pub trait CallScopes: Send + Sync {
    /// Opens the scope of a call that names a wallet, as a client's URI does, or none, and whose wallet must have followed the
    /// chain to its tip or not. It ends with what is given.
    fn open(&self, token: u64, wallet: Option<&str>, needs_tip: bool) -> Box<dyn Any + Send>;
}

/// Services that answer the same to every call.
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
    /// The release and the deprecated features of calls.
    word: AtomicU32,
}

impl<P: Plugin> TestPlugin<P> {
    /// Starts a plugin on these services. For those who make a host for tests; others start it by their host.
    ///
    /// # Panics
    /// When the manifest, the options or the plugin refuse: the test has failed.
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

    /// Calls from now on expect the answers of this release, with these deprecated features.
    pub fn set_release(&self, release: u32, deprecated: &[&str]) {
        self.word.store(Deprecated::of(deprecated).word(release), Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Answers {
    given: Mutex<HashMap<u64, Result<Vec<u8>, RpcError>>>,
    cancelled: Mutex<HashSet<u64>>,
    /// How often the answer of a call is still said to be wanted; `None` for ever.
    patience: Mutex<Option<u64>>,
    passed: Mutex<HashMap<u64, Option<Vec<u8>>>>,
}

impl ReplySink for Answers {
    fn reply(&self, token: u64, outcome: Result<Vec<u8>, RpcError>) -> bool {
        let is_open = !lock(&self.cancelled).contains(&token) && !lock(&self.passed).contains_key(&token);
        is_open && lock(&self.given).insert(token, outcome).is_none()
    }

    fn pass(&self, token: u64, params: Option<Vec<u8>>) -> bool {
        self.wanted(token) && lock(&self.passed).insert(token, params).is_none()
    }

    fn wanted(&self, token: u64) -> bool {
        if let Some(questions) = lock(&self.patience).as_mut() {
            match questions.checked_sub(1) {
                Some(rest) => *questions = rest,
                None => return false,
            }
        }
        !lock(&self.cancelled).contains(&token)
            && !lock(&self.given).contains_key(&token)
            && !lock(&self.passed).contains_key(&token)
    }
}

/// A call that may not be answered yet.
pub struct PendingCall {
    token: u64,
    answers: Arc<Answers>,
}

impl PendingCall {
    /// Names the call, for [`TestPlugin::cancel`].
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The parameters with which the plugin passed the call on, if it did. The inner `None` stands for the client's.
    pub fn passed_on(&self) -> Option<Option<Value>> {
        let passed = lock(&self.answers.passed).get(&self.token).cloned()?;
        Some(passed.map(|params| serde_json::from_slice(&params).unwrap_or_default()))
    }

    /// The answer as the bytes that a client would get, if it was given.
    pub fn json(&self) -> Option<Result<String, RpcError>> {
        let answer = lock(&self.answers.given).get(&self.token).cloned()?;
        Some(answer.map(|json| String::from_utf8_lossy(&json).into_owned()))
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
    /// Has answers wanted for this many questions of the plugin, and no longer.
    pub fn want_answers_for(&self, questions: u64) {
        *lock(&self.answers.patience) = Some(questions);
    }

    /// Makes a call with a JSON array of arguments, and gives what may be answered later.
    ///
    /// # Panics
    /// When the manifest does not list the method, or the arguments are no array.
    pub fn begin(&self, method: &str, arguments: Value) -> PendingCall {
        self.begin_for(None, method, arguments)
    }

    /// As [`TestPlugin::begin`], of a client whose URI names this wallet.
    ///
    /// # Panics
    /// As [`TestPlugin::begin`].
    pub fn begin_for(&self, wallet: Option<&str>, method: &str, arguments: Value) -> PendingCall {
        let spec = self.manifest.methods.iter().find(|spec| spec.name == method);
        if spec.is_none() && self.manifest.wrapper.is_none() && self.manifest.provides.is_empty() {
            panic!("the manifest lists no method '{method}'")
        }
        let Value::Array(arguments) = arguments else { panic!("the arguments must be an array") };
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        let (params, scope, deadline) = (Params(arguments), Scope(token), None);
        let word = self.word.load(Ordering::Relaxed);
        let rules = Rules::of_call(word);
        let (host, replies, given) = (&self.host, &*self.answers, params.0.len());
        let call = Call { method, params, named: None, host, scope, deadline, rules, given, token, replies };
        let _scope = self.scopes.open(token, wallet, spec.is_some_and(|spec| spec.needs_tip));
        self.plugin.call(call, Reply::new(token, self.answers.clone()));
        PendingCall { token, answers: self.answers.clone() }
    }

    /// Makes a call that is answered at once.
    ///
    /// # Panics
    /// When it is not answered at once.
    pub fn call(&self, method: &str, arguments: Value) -> Result<Value, RpcError> {
        self.begin(method, arguments).answer().unwrap_or_else(|| panic!("{method} gave no answer"))
    }

    /// As [`TestPlugin::call`], giving the bytes that a client would get.
    ///
    /// # Panics
    /// When it is not answered at once.
    pub fn call_json(&self, method: &str, arguments: Value) -> Result<String, RpcError> {
        self.begin(method, arguments).json().unwrap_or_else(|| panic!("{method} gave no answer"))
    }

    /// Tells the plugin of an event.
    pub fn tell(&self, event: Event) {
        self.plugin.event(event);
    }

    /// Tells it that the client of a call has gone.
    pub fn cancel(&self, call: &PendingCall) {
        lock(&self.answers.cancelled).insert(call.token);
        self.plugin.cancel(call.token);
    }

    /// Ends it, as a host does that stops.
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
