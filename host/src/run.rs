//! `outrigger run`: puts the parts together, serves, and takes them apart in order.

use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jsonrpsee::server::middleware::rpc::RpcServiceBuilder;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::{Chain, Mempool};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cli::RunArgs;
use crate::config::{Config, ConfigError, Loaded, LogFormat, UserConfig, expand_home, seconds};
use crate::node::observer::{NodeEvent, Observer};
use crate::node::{self, EmbeddedNode};
use crate::notify;
use crate::plugin::calls::Calls;
use crate::plugin::file::FileError;
use crate::plugin::instance::StartError;
use crate::plugin::pool::Pool;
use crate::plugin::registry::{Configured, Environment, Failure, Registry, RegistryError, Reread};
use crate::router::Router;
use crate::router::builtins::{self, Builtins};
use crate::rpc::{Authenticator, CookieFile, Gateway, Limits, RpcUser, Server};
use crate::services::{ChainService, HostServices, MempoolService, OwnScopes, Scopes};
use crate::wallet::{self, WalletManager};

/// Threads that serve connections, beyond one for each core. They pass bytes on and run the calls of quick methods; all
/// other calls have threads of their own.
const SPARE_EDGE_THREADS: usize = 1;

/// The stack of a thread that serves connections, in bytes: calls run on it as on the pool's.
const EDGE_STACK_BYTES: usize = 8 << 20;

/// How long stopping waits for calls that are still running.
const POOL_PATIENCE: Duration = Duration::from_secs(2);

/// Why the host could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Configuration(#[from] ConfigError),
    /// Something failed while starting or running.
    #[error("{0}")]
    Failed(String),
}

fn failed(what: &str) -> impl Fn(Box<dyn std::error::Error>) -> RunError + '_ {
    move |error| RunError::Failed(format!("{what}: {error}"))
}

/// Runs the host until it is told to stop.
///
/// # Errors
/// A configuration that cannot be used, or whatever kept the host from starting.
pub fn run(args: &RunArgs) -> Result<(), RunError> {
    let loaded = configuration(args)?;
    init_log(&loaded)?;
    raise_file_limit();
    let parts = Parts::assemble(&loaded, args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(edge_threads())
        .thread_stack_size(EDGE_STACK_BYTES)
        .enable_all()
        .build()
        .map_err(|error| RunError::Failed(format!("cannot start the network threads: {error}")))?;
    let outcome = runtime.block_on(parts.serve(&loaded.config));
    parts.stop();
    match parts.fatal.get() {
        Some(reason) => outcome.and(Err(RunError::Failed(reason.clone()))),
        None => outcome,
    }
}

/// How many threads serve connections.
fn edge_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) + SPARE_EDGE_THREADS
}

/// Reads the configuration as it is now, for plugins that are started or reloaded.
fn reread(args: &RunArgs) -> Reread {
    let args = args.clone();
    Box::new(move || {
        let Loaded { config, .. } = configuration(&args).map_err(|error| error.to_string())?;
        Ok(Configured { plugins: config.plugins, routes: config.routes })
    })
}

/// Stops the host, and keeps the first reason for it.
fn stop_for(stop: watch::Sender<bool>, fatal: Arc<OnceLock<String>>) -> Box<dyn Fn(String) + Send + Sync> {
    Box::new(move |reason| {
        // A later reason adds nothing, and a host that is stopping already needs no word.
        let _ = fatal.set(reason);
        let _ = stop.send(true);
    })
}

/// The configuration with what the command line changes.
fn configuration(args: &RunArgs) -> Result<Loaded, ConfigError> {
    let mut loaded = Loaded::read(args.config.as_deref(), &args.set)?;
    if let Some(datadir) = &args.datadir {
        loaded.config.datadir = datadir.clone();
    }
    if let Some(listen) = args.rpc_listen {
        loaded.config.rpc.listen = listen;
    }
    if let Some(network) = &args.network {
        loaded.set_network(network)?;
    }
    Ok(loaded)
}

fn init_log(loaded: &Loaded) -> Result<(), ConfigError> {
    let level = &loaded.config.log.level;
    // The filter itself would take an unknown word for a target's name, and write everything of that target.
    let known = |directive: &str| {
        let name = directive.rsplit('=').next().unwrap_or(directive).trim();
        name.parse::<tracing_subscriber::filter::LevelFilter>().is_ok()
    };
    if let Some(unknown) = level.split(',').find(|directive| !known(directive)) {
        let reason = format!("'{unknown}' is no level: use error, warn, info, debug, trace or off, or target=level");
        return Err(loaded.error("log.level", level, reason));
    }
    let filter = tracing_subscriber::EnvFilter::try_new(level)
        .map_err(|error| loaded.error("log.level", level, error.to_string()))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match loaded.config.log.format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}

/// Every connection is an open file; the soft limit is often far below what the system allows.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it fewer connections are accepted, which is no reason not to start.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Tells the plugins what the node and the wallets tell. The plugins come last, so they are put in later.
#[derive(Default)]
struct Hub(OnceLock<Arc<Registry>>);

impl Hub {
    fn tell(&self, event: &Event) {
        if let Some(registry) = self.0.get() {
            registry.tell(event);
        }
    }
}

impl Observer for Hub {
    fn notify(&self, event: NodeEvent) {
        match event {
            NodeEvent::TipChanged { hash, height } => self.tell(&Event::TipChanged { hash, height }),
            NodeEvent::TransactionAdded { sequence, .. } | NodeEvent::TransactionRemoved { sequence, .. } => {
                self.tell(&Event::MempoolChanged { sequence });
            }
            NodeEvent::BlockConnected { .. } | NodeEvent::BlockDisconnected { .. } => {}
        }
    }
}

/// The host's parts. They are stopped in [`Parts::stop`]'s order.
struct Parts {
    folder: PathBuf,
    /// Held as long as the host runs: two hosts must not share a data directory.
    _lock: File,
    node: Arc<EmbeddedNode>,
    manager: Arc<WalletManager>,
    registry: Arc<Registry>,
    pool: Arc<Pool>,
    router: Arc<Router>,
    users: Vec<RpcUser>,
    stop: watch::Receiver<bool>,
    /// Why the host cannot go on, when a plugin that it needs has died.
    fatal: Arc<OnceLock<String>>,
}

impl Parts {
    fn assemble(loaded: &Loaded, args: &RunArgs) -> Result<Self, RunError> {
        let config = &loaded.config;
        let users = users(loaded)?;
        let folder = expand_home(&config.datadir).join(&config.network);
        let lock = lock_folder(&folder)?;
        let node = open_node(config, &folder)?;
        let hub = Arc::new(Hub::default());
        let scopes = Arc::new(Scopes::default());
        let manager = open_wallets(config, &folder, &node, &hub)?;
        node.observe(manager.clone());
        node.observe(hub.clone());
        let calls = Arc::new(Calls::default());
        let pool = Pool::start(config.rpc.threads, config.rpc.queue_depth)
            .map_err(|error| RunError::Failed(format!("cannot start the call threads: {error}")))?;
        let (stop_sender, stop) = watch::channel(false);
        let fatal = Arc::new(OnceLock::new());
        let services = HostServices { node: node.clone(), manager: manager.clone(), scopes: scopes.clone() };
        let registry = Registry::new(Environment {
            folders: plugin_folders(&args.plugin_dir),
            copies: folder.join("plugins"),
            services: Box::new(services),
            calls: calls.clone(),
            deadline: seconds(config.rpc.call_deadline_seconds),
            builtins: &builtins::NAMES,
            reread: reread(args),
            fatal: stop_for(stop_sender.clone(), fatal.clone()),
        })
        .map_err(|error| failed("plugins")(error.into()))?;
        let configured = Configured { plugins: config.plugins.clone(), routes: config.routes.clone() };
        registry.start(configured).map_err(|error| plugin_error(loaded, &error))?;
        // Set once: this is the only place that sets it.
        let _ = hub.0.set(registry.clone());
        let builtins =
            Builtins::new(registry.clone(), stop_sender).map_err(|error| failed("built-in methods")(error.into()))?;
        let pool = Arc::new(pool);
        let router = Arc::new(Router::new(registry.clone(), builtins, calls, scopes, pool.clone(), edge_threads()));
        Ok(Self { folder, _lock: lock, node, manager, registry, pool, router, users, stop, fatal })
    }

    async fn serve(&self, config: &Config) -> Result<(), RunError> {
        // From here on a signal stops in order; a host that has said that it is ready must not die of one.
        let stopping = stop_requested(self.stop.clone())?;
        let cookie = CookieFile::create(self.folder.join(".cookie")).map_err(|e| failed("cookie")(e.into()))?;
        let users = self.users.iter().cloned();
        let authenticator = Arc::new(users.fold(Authenticator::new().with_cookie(&cookie), Authenticator::with_user));
        let limits = Limits {
            max_body_bytes: config.rpc.max_body_bytes,
            max_connections: config.rpc.max_connections,
            ..Limits::default()
        };
        let service = RpcServiceBuilder::new().service(Gateway::new(self.router.clone()));
        let server = Server::bind(config.rpc.listen, service, authenticator, limits)
            .await
            .map_err(|error| failed("cannot listen")(error.into()))?;
        let address = server.local_addr();
        println!("Outrigger is ready: http://{address}/ ({}, {})", config.network, self.folder.display());
        notify::tell(notify::READY);
        let registry = self.registry.clone();
        let drained = server
            .serve(async move {
                stopping.await;
                notify::tell(notify::STOPPING);
                // Long polls are answered now, so that the calls in flight can end.
                registry.tell(&Event::ShuttingDown);
            })
            .await;
        if drained.dropped > 0 {
            tracing::warn!(connections = drained.dropped, "calls were cut off while stopping");
        }
        Ok(())
    }

    fn stop(&self) {
        self.registry.tell(&Event::ShuttingDown);
        self.registry.stop();
        self.manager.shutdown();
        if !self.pool.stop(POOL_PATIENCE) {
            tracing::error!("some calls did not end; they end with the process");
        }
        self.node.finish();
        tracing::info!("stopped");
    }
}

/// The users that the configuration names.
fn users(loaded: &Loaded) -> Result<Vec<RpcUser>, ConfigError> {
    let user = |configured: &UserConfig| {
        let user = RpcUser::from_rpcauth(&configured.rpcauth)
            .map_err(|error| loaded.error("rpc.users.rpcauth", &configured.rpcauth, error.to_string()))?;
        Ok(match &configured.methods {
            Some(methods) => user.allowing(methods.clone()),
            None => user,
        })
    };
    loaded.config.rpc.users.iter().map(user).collect()
}

/// A plugin that cannot be brought up is an error of the configuration, at its place there, unless the system failed.
fn plugin_error(loaded: &Loaded, failure: &Failure) -> RunError {
    let reason = failure.error.to_string();
    let key = match &failure.error {
        RegistryError::Route { method, .. } => return loaded.error(&format!("routes.{method}"), "", reason).into(),
        RegistryError::File(FileError::Io { .. }) | RegistryError::Start(StartError::Thread { .. }) => {
            return RunError::Failed(reason);
        }
        RegistryError::Start(StartError::Grant(_)) => "grants",
        RegistryError::File(FileError::Hash { .. }) => "sha256",
        RegistryError::Option { .. } => "options",
        _ => "file",
    };
    loaded.plugin_error(failure.plugin, key, reason).into()
}

/// Listens for signals at once, and gives what ends with the first of them or with the method `stop`.
fn stop_requested(mut stop: watch::Receiver<bool>) -> Result<impl Future<Output = ()>, RunError> {
    let listen = |kind| signal(kind).map_err(|error| RunError::Failed(format!("cannot listen for signals: {error}")));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    })
}

fn lock_folder(folder: &Path) -> Result<File, RunError> {
    use rustix::fs::{FlockOperation, flock};
    let io = |error: std::io::Error| RunError::Failed(format!("{}: {error}", folder.display()));
    // What is in there is the operator's alone: keys, the cookie, and code that is loaded.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
    let lock = File::create(folder.join(".lock")).map_err(io)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| RunError::Failed(format!("{} is in use by another Outrigger", folder.display())))?;
    Ok(lock)
}

fn open_node(config: &Config, folder: &Path) -> Result<Arc<EmbeddedNode>, RunError> {
    let settings = node::Settings {
        map_size: config.chain.map_gib << 30,
        mempool: node::MempoolLimits {
            max_usage: config.chain.mempool_mib << 20,
            relay_feerate: config.chain.min_relay_feerate,
            ..node::MempoolLimits::default()
        },
        ..node::Settings::default()
    };
    EmbeddedNode::open(&folder.join("chain"), settings).map_err(|error| failed("chain")(error.into()))
}

fn open_wallets(
    config: &Config,
    folder: &Path,
    node: &Arc<EmbeddedNode>,
    hub: &Arc<Hub>,
) -> Result<Arc<WalletManager>, RunError> {
    let settings = wallet::Settings {
        map_size: config.wallet.map_gib << 30,
        keypool: config.wallet.keypool,
        ..wallet::Settings::default()
    };
    let chain: Arc<dyn Chain> = Arc::new(ChainService { node: node.clone(), scopes: OwnScopes::default() });
    let mempool: Arc<dyn Mempool> = Arc::new(MempoolService { node: node.clone(), scopes: OwnScopes::default() });
    let hub = hub.clone();
    let sink = Arc::new(move |event: Event| hub.tell(&event));
    WalletManager::open(&folder.join("wallets"), bitcoin::Network::Regtest, settings, chain, mempool, sink)
        .map_err(|error| failed("wallets")(error.into()))
}

/// Where bare names of plugins are looked for: the folders given, then the executable's own.
fn plugin_folders(given: &[PathBuf]) -> Vec<PathBuf> {
    let own = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned));
    given.iter().cloned().chain(own).collect()
}
