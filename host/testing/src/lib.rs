//! A host for plugins' tests: a real node, real wallets in a temporary folder, and the services of both.
//!
//! ```
//! use outrigger_sdk::options::NoOptions;
//! use outrigger_sdk::serde_json::json;
//! use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, plugin};
//! use outrigger_testing::TestHost;
//!
//! struct Height;
//!
//! #[plugin(id = "height", summary = "Returns the height.", services = ["chain/1"])]
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
//! let host = TestHost::new();
//! let plugin = host.start::<Height>(json!({}));
//! host.mine(3);
//! assert_eq!(plugin.call("height", json!([])), Ok(json!(3)));
//! ```
//!
//! [`TestHost::new`] uses the development chain that is built into the host; [`TestHost::over`] takes any other node. `StubHost` in the
//! SDK has canned answers and faults of the services. Only tests depend on this crate.

pub mod made;
mod miner;

use std::any::Any;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outrigger_embedded::{EmbeddedNode, Settings as NodeSettings};
use outrigger_node::Node;
use outrigger_sdk::testing::{CallScopes, NoEvents, StubInfo, StubLog, StubMetrics, StubRpc, StubStore, TestPlugin};
use outrigger_sdk::{FeeRate, Host, Plugin};
use outrigger_service::events::Event;
use outrigger_service::policy::{self, POLICY, Policy};
use outrigger_service::provider::{self, KeysProvider};
use outrigger_service::wallet::{CreateOptions, ImportOutcome, SpendSettings};
use outrigger_service::{ErrorKind, Result, Scope, ServiceError};
use outrigger_services::{
    Asked, Caller, ChainService, GrantedAccess, GrantedWallets, JudgedAct, MempoolService, OwnScopes, Providers,
    Scopes, WalletService,
};
use outrigger_wallet_engine::{PolicyRule, Settings, WalletManager, WalletView};
use serde_json::Value;
use tempfile::TempDir;

pub use miner::ANYONE;

/// The feerate of payments that specify none.
const FALLBACK_FEERATE: FeeRate = FeeRate::from_sat_per_kvb(1_000);
const CHAIN_MAP: usize = 1 << 30;
const WALLET_MAP: usize = 64 << 20;
/// The memory for deriving a key from a passphrase, in KiB: little, so that tests are fast.
const KDF_MEMORY_KIB: u32 = 64;
/// How long [`until`] waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many blocks behind the tip a wallet must be to let the node search them: few, so that tests cover both ways.
const SEARCH_FROM: u32 = 4;

/// The key provider and the policy of a test.
#[derive(Default)]
struct TestProviders {
    /// The call for which the host last asked the key provider or the policy.
    asked_for: AtomicU64,
    keys: Mutex<Option<Box<dyn KeysProvider + Send>>>,
    policy: Mutex<Option<Arc<dyn Policy + Send + Sync>>>,
}

impl Providers for TestProviders {
    fn ask(&self, scope: Scope, _: &[Arc<str>], asked: &Asked<'_>, message: &[u8]) -> Result<Vec<u8>> {
        let refused = |reason: String| ServiceError::new(ErrorKind::Refused, reason);
        self.asked_for.store(scope.0, Ordering::Relaxed);
        let (service, function) = asked.method.rsplit_once('.').unwrap_or_default();
        let answer = if service == POLICY {
            let policy = lock(&self.policy).clone();
            let policy = policy.ok_or_else(|| refused("no policy".into()))?;
            policy::provide(&*policy, scope, function, message)
        } else {
            let keys = lock(&self.keys);
            let keys = keys.as_ref().ok_or_else(|| refused("no provider of keys".into()))?;
            provider::provide(&**keys, scope, function, message)
        };
        answer.map_err(|error| refused(error.message))
    }

    fn lend(&self, wait: &mut dyn FnMut()) -> Result<()> {
        wait();
        Ok(())
    }

    fn judged(&self, _: &JudgedAct<'_>) {}
}

/// A host for tests. Dropping it removes its folder.
pub struct TestHost<N: Node + ?Sized = EmbeddedNode> {
    pub node: Arc<N>,
    pub wallets: Arc<WalletManager>,
    pub log: Arc<StubLog>,
    /// The `rpc/1` service, with answers that the test sets.
    pub rpc: Arc<StubRpc>,
    providers: Arc<TestProviders>,
    guarded: Vec<PolicyRule>,
    /// The plugins' store, in memory.
    pub store: Arc<StubStore>,
    /// What plugins can read about themselves and the host.
    pub info: Arc<StubInfo>,
    events: Arc<Mutex<Vec<Event>>>,
    scopes: Arc<Scopes>,
    next_call: AtomicU64,
    // The last field: fields drop in order, so the wallets' files are closed before the folder is removed.
    folder: TempDir,
}

impl Default for TestHost {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHost {
    /// Creates a host with a new development chain, which has only the genesis block, and without a wallet.
    ///
    /// # Panics
    /// The files cannot be created.
    #[allow(clippy::expect_used, reason = "a test's own failure")]
    pub fn new() -> Self {
        let folder = folder();
        let settings = NodeSettings { map_size: CHAIN_MAP, ..NodeSettings::default() };
        let node = EmbeddedNode::open(&folder.path().join("chain"), settings).expect("a new chain");
        Self::assemble(node, folder)
    }
}

impl<N: Node + 'static> TestHost<N> {
    /// How many scripts a wallet derives ahead for each descriptor: few, so that creating a wallet is fast.
    pub const KEYPOOL: u32 = 20;

    /// Creates a host on this node, without a wallet.
    ///
    /// # Panics
    /// The files cannot be created.
    pub fn over(node: Arc<N>) -> Self {
        Self::assemble(node, folder())
    }

    fn assemble(node: Arc<N>, folder: TempDir) -> Self {
        let events = Arc::default();
        let wallets = open_wallets(&folder, node.clone(), &events, Vec::new());
        node.observe(wallets.clone());
        let (log, rpc, store, info, providers, scopes) = Default::default();
        let (guarded, next_call) = (Vec::new(), AtomicU64::new(1 << 32));
        Self { node, wallets, log, rpc, store, info, providers, guarded, events, scopes, next_call, folder }
    }

    /// Stops the host's wallets, runs `meanwhile`, and opens the wallets again on the same node and files. The test must start its plugins
    /// again.
    pub fn restart(&mut self, meanwhile: impl FnOnce(&Self)) {
        self.wallets.shutdown();
        meanwhile(self);
        self.wallets = open_wallets(&self.folder, self.node.clone(), &self.events, self.guarded.clone());
        self.node.observe(self.wallets.clone());
        self.wallets.is_told();
    }

    /// The services of the host, with all grants.
    pub fn handle(&self) -> Host {
        let scopes = OwnScopes::of(self.scopes.clone(), 0, GrantedAccess::default());
        let node: Arc<dyn Node> = self.node.clone();
        let granted = GrantedWallets { service: "wallet-read/1", wallets: None };
        let (manager, providers) = (self.wallets.clone(), self.providers.clone());
        let wallet = Arc::new(WalletService { manager, scopes: scopes.clone(), granted, providers });
        Host {
            chain: Arc::new(ChainService {
                node: node.clone(),
                scopes: scopes.clone(),
                published: Arc::default(),
                wallets: self.wallets.clone(),
            }),
            mempool: Arc::new(MempoolService { node, scopes }),
            book: wallet.clone(),
            pay: wallet.clone(),
            import: wallet.clone(),
            admin: wallet.clone(),
            keys: wallet.clone(),
            signer: wallet.clone(),
            wallet,
            events: Arc::new(NoEvents),
            log: self.log.clone(),
            rpc: self.rpc.clone(),
            store: self.store.clone(),
            metrics: Arc::new(StubMetrics::default()),
            info: self.info.clone(),
        }
    }

    /// Starts a plugin with these options, which the configuration would contain.
    ///
    /// # Panics
    /// The manifest or the options are invalid, or the plugin refuses to start.
    pub fn start<P: Plugin>(&self, options: Value) -> TestPlugin<P> {
        TestPlugin::start(self.handle(), Arc::new(OpenScopes(self.scopes.clone())), options)
    }

    /// Begins a call that names a wallet or none. Returns its scope, and a guard: dropping the guard ends the call.
    pub fn open_call(&self, wallet: Option<&str>) -> (Scope, Box<dyn Any + Send>) {
        let token = self.next_call.fetch_add(1, Ordering::Relaxed);
        (Scope(token), OpenScopes(self.scopes.clone()).open(token, wallet, true))
    }

    /// Creates and loads a wallet with new private keys, unless `change` sets other options. Returns the warnings.
    ///
    /// # Errors
    /// The errors of [`WalletManager::create`].
    pub fn create_wallet(&self, name: &str, change: impl FnOnce(&mut CreateOptions)) -> Result<Vec<String>> {
        let mut options =
            CreateOptions { name: name.to_owned(), load_on_startup: Some(true), ..CreateOptions::default() };
        change(&mut options);
        self.wallets.create(options)
    }

    /// Imports a descriptor into a loaded wallet.
    ///
    /// # Panics
    /// The wallet refuses the import.
    #[allow(clippy::expect_used, reason = "a test's own failure")]
    pub fn import(&self, wallet: &str, text: String, active: bool) {
        let (scope, _call) = self.open_call(Some(wallet));
        let import = made::descriptor(&text, |import| (import.active, import.timestamp) = (active, 0));
        let outcomes = self.handle().import.import(scope, vec![import]);
        let outcomes = outcomes.expect("the wallet answers");
        assert!(matches!(outcomes.as_slice(), [ImportOutcome::Imported { .. }]), "of an import: {outcomes:?}");
    }

    /// A snapshot of a loaded wallet, after it has followed the chain to its tip.
    ///
    /// # Errors
    /// The errors of [`WalletManager::select`].
    pub fn wallet(&self, name: &str) -> Result<WalletView> {
        self.wallets.select(Some(name))
    }

    /// Restarts the host with this policy for these wallets. A name may end with `*`.
    pub fn guard(&mut self, wallets: &[&str], policy: impl Policy + Send + Sync + 'static) {
        *lock(&self.providers.policy) = Some(Arc::new(policy));
        let wallets = wallets.iter().map(ToString::to_string).collect();
        self.guarded = vec![PolicyRule { wallets, plugin: "policy".into(), remove: false }];
        self.restart(|_| {});
    }

    /// The call for which the host last asked the key provider or the policy; [`Scope::NONE`] outside of calls.
    pub fn asked_for(&self) -> Scope {
        Scope(self.providers.asked_for.load(Ordering::Relaxed))
    }

    /// Sets the key provider, which signs for wallets with an external signer from now on.
    pub fn provide(&self, provider: impl KeysProvider + Send + 'static) {
        *lock(&self.providers.keys) = Some(Box::new(provider));
    }

    /// The events of the wallets since the last call.
    pub fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut *lock(&self.events))
    }

    /// The path of a file in a folder for the test's own files. The file need not exist.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("files").join(name)
    }
}

/// Waits until a condition holds.
///
/// # Panics
/// The condition does not hold in time.
#[track_caller]
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A temporary folder, in memory if the system allows, since these tests do not test writes to a disk.
#[allow(clippy::expect_used, reason = "a test's own failure")]
fn folder() -> TempDir {
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).expect("a temporary folder");
    std::fs::create_dir(folder.path().join("files")).expect("a folder in it");
    folder
}

#[allow(clippy::expect_used, reason = "a test's own failure")]
fn open_wallets(
    folder: &TempDir,
    node: Arc<dyn Node>,
    events: &Arc<Mutex<Vec<Event>>>,
    policies: Vec<PolicyRule>,
) -> Arc<WalletManager> {
    let settings = Settings {
        keypool: TestHost::<EmbeddedNode>::KEYPOOL,
        spending: SpendSettings { fallback_feerate: Some(FALLBACK_FEERATE), ..SpendSettings::default() },
        least_map: WALLET_MAP,
        max_readers: 64,
        kdf_memory_kib: KDF_MEMORY_KIB,
        kdf_passes: 1,
        search_from: SEARCH_FROM,
        signer: Some("provider".into()),
        policies,
        ..Settings::default()
    };
    let events = events.clone();
    let sink = Arc::new(move |event| lock(&events).push(event));
    WalletManager::open(&folder.path().join("wallets"), settings, node, sink).expect("the wallets' folder")
}

/// Locks a mutex, even if another thread panicked while it held the lock: that test has already failed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens scopes of calls for plugins in tests.
struct OpenScopes(Arc<Scopes>);

impl CallScopes for OpenScopes {
    fn open(&self, token: u64, wallet: Option<&str>, needs_tip: bool) -> Box<dyn Any + Send> {
        Box::new(self.0.open(
            token,
            0,
            Caller { wallet: wallet.map(Into::into), any_block: !needs_tip, ..Caller::default() },
        ))
    }
}
