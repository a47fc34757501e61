//! Assembles the host's parts, and stops them in order.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bitcoin::Network;
use outrigger_base::nearest::suggestion;
use outrigger_rpc::{EdgeFigures, Readiness, Tips};
use outrigger_sdk::manifest::Manifest;
use outrigger_service::chain::Publication;
use outrigger_service::events::Event;
use outrigger_service::policy::POLICY;
use outrigger_service::provider::KEYS_PROVIDER;
use outrigger_standard::release::{self, Deprecated};
use outrigger_standard::work;
use tokio::sync::{Semaphore, watch};

use super::RunArgs;
use super::backend::Backend;
use super::backups;
use super::refusals::publish_error;
use super::reload::{Reloading, arguments};
use super::sources::sources;
use super::{RunError, configuration, failed, places, requirements};
use crate::active::Active;
use crate::audit::AuditLog;
use crate::config::{BackendConfig, Config, LoadedConfig, Wallets, seconds};
use crate::groups;
use crate::hooks::Hooks;
use crate::metrics::{CallMetrics, Standing};
use crate::publish::{PublishError, Publisher};
use crate::router::builtins::{self, Builtins};
use crate::router::{Router, StartupGate};
use outrigger_embedded::EmbeddedNode;
use outrigger_isolate::Executable;
use outrigger_node::{Node, NodeEvent, Observer};
use outrigger_plugins::calls::Calls;
use outrigger_plugins::file::FileError;
use outrigger_plugins::instance::{ReleaseSource, StartError};
use outrigger_plugins::pool::Pool;
use outrigger_plugins::registry::{Environment, Failure, PluginsConfig, Registry, RegistryError, Reread};
use outrigger_services::{Scopes, Stores};
use tokio::runtime::Handle;

use crate::router::onward::Switchboard;
use crate::services::HostServices;
use outrigger_wallet_engine::WalletManager;

/// The folder, in the network's data folder, of copies of libraries and of plugins' own files.
pub const PLUGINS_FOLDER: &str = "plugins";

/// How long stopping waits for calls that are still running.
const POOL_PATIENCE: Duration = Duration::from_secs(2);

/// Forwards events of the node and the wallets to the plugins. Wallets and plugins are set once they have started.
#[derive(Default)]
pub struct Hub {
    registry: OnceLock<Arc<Registry>>,
    wallets: OnceLock<Arc<WalletManager>>,
    /// Hash and height of the newest block.
    tip: watch::Sender<Option<(String, u32)>>,
}

impl Hub {
    /// Sends an event to the plugins, if they have started.
    pub fn tell(&self, event: &Event) {
        if let Some(registry) = self.registry.get() {
            registry.tell(event);
        }
    }

    pub fn tips(&self) -> Tips {
        self.tip.subscribe()
    }

    /// Cancels work that would delay the host's stop, and announces the stop to plugins.
    pub fn stopping(&self) {
        if let Some(wallets) = self.wallets.get() {
            wallets.give_up_imports();
        }
        self.tell(&Event::ShuttingDown);
    }
}

impl Observer for Hub {
    fn notify(&self, event: NodeEvent) {
        match event {
            NodeEvent::TipChanged { hash, height } => {
                self.tip.send_replace(Some((hash.to_string(), height)));
                self.tell(&Event::TipChanged { hash, height });
            }
            NodeEvent::TransactionAdded { sequence, .. } | NodeEvent::TransactionRemoved { sequence, .. } => {
                self.tell(&Event::MempoolChanged { sequence });
            }
            NodeEvent::BlockConnected { .. } | NodeEvent::BlockDisconnected { .. } | NodeEvent::Reached => {}
        }
    }
}

/// The state that exists before the host's parts, and that their assembly uses.
#[derive(Clone, Default)]
pub struct Frame {
    pub gate: Arc<StartupGate>,
    pub hub: Arc<Hub>,
    pub stop: watch::Sender<bool>,
    /// Why the host must stop: the failure of a required plugin.
    pub fatal: Arc<OnceLock<String>>,
    pub metrics: CallMetrics,
    pub active: Arc<Active>,
    /// Set once the host is up.
    pub standing: Arc<OnceLock<Standing>>,
    pub reloading: Reloading,
}

impl Frame {
    /// The check that `/readyz` answers with.
    pub fn readiness(&self) -> Readiness {
        let standing = self.standing.clone();
        Arc::new(move || standing.get().is_some_and(Standing::is_ready))
    }

    /// Returns a function that stops the host and keeps the first reason.
    fn stop_for(&self) -> Box<dyn Fn(String) + Send + Sync> {
        let (stop, fatal) = (self.stop.clone(), self.fatal.clone());
        Box::new(move |reason| {
            // A later reason is dropped.
            let _ = fatal.set(reason);
            stop.send_replace(true);
        })
    }
}

/// The host's parts. They are stopped in [`Parts::stop`]'s order.
pub struct Parts {
    /// The parts whose state metrics and `gethostinfo` tell.
    pub standing: Standing,
    pub router: Arc<Router>,
    pub switchboard: Arc<Switchboard>,
}

impl Parts {
    /// Assembles the parts: loads the data, and starts the plugins.
    pub fn assemble(
        loaded: &LoadedConfig,
        args: &RunArgs,
        folder: &Path,
        frame: &Frame,
        audit: Option<Arc<AuditLog>>,
        edge: Arc<EdgeFigures>,
    ) -> Result<Self, RunError> {
        let (config, hub) = (&loaded.config, &frame.hub);
        places::check_folders(config, folder)?;
        frame.gate.stage("Loading the chain…");
        let (node, backend) = open_node(loaded, folder)?;
        let calls = Arc::new(Calls::default());
        let waiting = calls.clone();
        let scopes = Arc::new(Scopes::of_calls(move |token| waiting.phase(token).is_some()));
        frame.gate.stage("Loading wallets…");
        let hooks = Hooks::start(&config.notify).map_err(|error| failed("notify")(error.into()))?;
        let manager = open_wallets(config, folder, &node, (hub, hooks.clone(), audit))?;
        if let Some(hooks) = hooks {
            hooks.know(&manager);
            node.observe(hooks);
        }
        node.observe(manager.clone());
        manager.is_told();
        node.observe(hub.clone());
        frame.gate.stage("Starting plugins…");
        let pool = Pool::start(config.rpc.threads, config.rpc.queue_depth)
            .map_err(|error| RunError::Failed(format!("cannot start the call threads: {error}")))?;
        let front = backend.zip(config.backend.as_ref());
        let passthrough =
            front.map(|(node, backend)| Arc::new(node.passthrough(config, backend, &manager, frame.stop.subscribe())));
        let switchboard = Arc::new(Switchboard::new(Handle::current(), calls.clone()));
        let published = publish(loaded, &node)?;
        let stores = Arc::new(Stores::new(folder.join(PLUGINS_FOLDER)));
        let executable =
            Arc::new(Executable::current().map_err(|error| failed("the program's own file")(error.into()))?);
        let services = HostServices {
            node: node.clone(),
            published,
            switchboard: switchboard.clone(),
            manager: manager.clone(),
            scopes: scopes.clone(),
            stores: stores.clone(),
        };
        let registry = Registry::new(Environment {
            sources: sources(args),
            folder: folder.join(PLUGINS_FOLDER),
            services: Box::new(services),
            network: node.network(),
            release: release_of(&node, config),
            calls: calls.clone(),
            deadline: seconds(config.rpc.call_deadline_seconds),
            isolation: config.plugin_defaults.isolated,
            executable: executable.clone(),
            requirements: requirements::of_node(&node, config.backend.is_some()),
            builtins: &builtins::RESERVED,
            reread: reread(args, &config.network),
            fatal: frame.stop_for(),
        })
        .map_err(|error| failed("plugins")(error.into()))?;
        let configured = PluginsConfig { plugins: config.plugins.clone(), routes: config.routes.clone() };
        registry.start(configured).map_err(|error| plugin_error(loaded, &error))?;
        let serving = registry.serving();
        let running = serving.plugins.iter().filter_map(|plugin| plugin.instance.as_ref());
        check_providers(loaded, args, &running.map(|instance| instance.manifest()).collect::<Vec<_>>())?;
        // Set once, only here.
        let _ = hub.wallets.set(manager.clone());
        let _ = hub.registry.set(registry.clone());
        let builtins = Builtins {
            registry: registry.clone(),
            started: Instant::now(),
            stop: frame.stop.clone(),
            active: frame.active.clone(),
            passthrough: passthrough.clone(),
            reloading: frame.reloading.clone(),
            standing: frame.standing.clone(),
        };
        let pool = Arc::new(pool);
        let router = Arc::new(Router {
            registry: registry.clone(),
            builtins,
            calls,
            scopes,
            pool: pool.clone(),
            long: Semaphore::new(config.rpc.max_long_calls()),
            absent: Default::default(),
            passthrough: passthrough.clone(),
            wallets: manager.clone(),
            switchboard: switchboard.clone(),
        });
        router.watch().map_err(|error| failed("the watch over calls")(error.into()))?;
        let backups = backups::start(loaded, folder, &manager, &stores, executable)?;
        let standing = Standing { node, wallets: manager, plugins: registry, pool, stores, backups, edge, passthrough };
        Ok(Self { standing, router, switchboard })
    }

    /// Stops the parts: each before the parts on which it depends.
    pub fn stop(&self) {
        let Standing { node, wallets, plugins, pool, .. } = &self.standing;
        plugins.tell(&Event::ShuttingDown);
        // The calls of clients have ended. No other work may wait for a node that hangs.
        node.give_up();
        self.switchboard.disconnect();
        plugins.stop();
        wallets.shutdown();
        if !pool.stop(POOL_PATIENCE) {
            tracing::error!("some calls did not end; they end with the process");
        }
        node.finish();
        tracing::info!("stopped");
    }
}

/// Returns a function that reads the configuration again, for plugins that are started or reloaded.
fn reread(args: &RunArgs, network: &str) -> Reread {
    let args = arguments(args, network);
    Box::new(move || {
        let LoadedConfig { config, .. } = configuration(&args).map_err(|error| error.to_string())?;
        Ok(PluginsConfig { plugins: config.plugins, routes: config.routes })
    })
}

/// Converts the failure of a plugin's start: a configuration error that names the setting, unless the system failed.
pub(super) fn plugin_error(loaded: &LoadedConfig, failure: &Failure) -> RunError {
    let mut reason = failure.error.to_string();
    if let RegistryError::File(FileError::NotFound { name, .. }) = &failure.error {
        reason += &suggestion(name, groups::names());
    }
    let key = match &failure.error {
        RegistryError::Route { method, .. } => return loaded.error(&format!("routes.{method}"), "", reason).into(),
        RegistryError::File(FileError::Io { .. }) | RegistryError::Start(StartError::Thread { .. }) => {
            return RunError::Failed(reason);
        }
        RegistryError::Start(StartError::Grant(_)) => "grants",
        RegistryError::File(FileError::Hash { .. }) => "sha256",
        RegistryError::Option { .. } => "options",
        RegistryError::Reload(_) => "reload",
        _ => "file",
    };
    loaded.plugin_error(failure.plugin, key, reason).into()
}

/// Checks that the plugins in `wallet.signer` and `wallet.policies` are enabled and provide the services for these roles. With `--without-third-parties` these plugins stay configured, but do not run: the host refuses the acts for which it
/// would ask them, and the check warns.
pub(super) fn check_providers(loaded: &LoadedConfig, args: &RunArgs, enabled: &[&Manifest]) -> Result<(), RunError> {
    let wallet = &loaded.config.wallet;
    let is_of_node = |backend: &BackendConfig| backend.wallets == Wallets::Node;
    if let (Some(rule), true) = (wallet.policies.first(), loaded.config.backend.as_ref().is_some_and(is_of_node)) {
        let reason = "policies judge for the host's own wallets, and 'backend.wallets' is \"node\"".to_owned();
        return Err(loaded.error("wallet.policies.plugin", &rule.plugin, reason).into());
    }
    let signer = wallet.signer.iter().map(|signer| ("wallet.signer", signer, KEYS_PROVIDER));
    let rules = wallet.policies.iter().filter(|rule| !rule.remove);
    let policies = rules.map(|rule| ("wallet.policies.plugin", &rule.plugin, POLICY));
    for (key, plugin, service) in signer.chain(policies) {
        let providing = enabled.iter().filter(|manifest| manifest.provides.iter().any(|provided| provided == service));
        let ids: Vec<&str> = providing.map(|manifest| &*manifest.id).collect();
        if ids.contains(&plugin.as_str()) {
            continue;
        }
        if !args.without_third_parties {
            let meant = suggestion(plugin, ids);
            let reason = format!("no enabled plugin '{plugin}' provides {service}{meant}");
            return Err(loaded.error(key, plugin, reason).into());
        }
        tracing::warn!(plugin, "{key}: the plugin is left out, so the wallets that need it sign nothing");
    }
    Ok(())
}

fn network(config: &Config) -> Result<Network, RunError> {
    work::network(&config.network).map_err(|error| failed("network")(error.into()))
}

/// The release of Bitcoin Core whose answers plugins give: the node's, or the latest until the node's is known. It includes
/// the deprecated features that the operator keeps (`deprecatedrpc`).
fn release_of(node: &Arc<dyn Node>, config: &Config) -> ReleaseSource {
    let (node, kept) = (node.clone(), Deprecated::of(&config.deprecatedrpc));
    Arc::new(move || kept.word(node.release().unwrap_or(release::PRESENT)))
}

/// Opens the node. With a running bitcoind, also returns its backend, for forwarded calls.
fn open_node(loaded: &LoadedConfig, folder: &Path) -> Result<(Arc<dyn Node>, Option<Backend>), RunError> {
    let config = &loaded.config;
    if let Some(backend) = &config.backend {
        let backend = Backend::open(loaded, backend, network(config)?, config.release, folder)?;
        return Ok((backend.node.clone(), Some(backend)));
    }
    let settings = outrigger_embedded::Settings {
        network: network(config)?,
        release: config.release,
        map_size: config.chain.map_gib << 30,
        mempool: config.mempool_limits(),
        ..outrigger_embedded::Settings::default()
    };
    Ok((EmbeddedNode::open(&folder.join(places::CHAIN), settings).map_err(places::chain_error)?, None))
}

/// Starts the configured ZMQ publications, and returns them.
fn publish(loaded: &LoadedConfig, node: &Arc<dyn Node>) -> Result<Arc<[Publication]>, RunError> {
    let publications = loaded.config.notify.publications();
    let publications =
        publications.map_err(|(key, error)| loaded.error(&format!("notify.{key}"), "", error.to_string()))?;
    if publications.is_empty() {
        return Ok(Arc::default());
    }
    node.observe(Arc::new(Publisher::start(node, &publications).map_err(|error| match &error {
        PublishError::Bind(address, error) => publish_error(loaded, address, error),
        _ => RunError::Failed(error.to_string()),
    })?));
    let told = publications.into_iter().map(|one| Publication {
        topic: format!("pub{}", one.topic.name()),
        address: one.address,
        high_water_mark: one.high_water_mark,
    });
    Ok(told.collect())
}

fn open_wallets(
    config: &Config,
    folder: &Path,
    node: &Arc<dyn Node>,
    (hub, hooks, audit): (&Arc<Hub>, Option<Arc<Hooks>>, Option<Arc<AuditLog>>),
) -> Result<Arc<WalletManager>, RunError> {
    config.wallet.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    let backend = config.backend.as_ref();
    let rewind = backend.map(|backend| backend.rewind(node.network())).unwrap_or_default();
    let settings = outrigger_wallet_engine::Settings {
        max_rewind: rewind.limit,
        allow_rewind_to: rewind.allowed,
        reorganisation_notice: (config.wallet.reorganisation_notice > 0).then_some(config.wallet.reorganisation_notice),
        keypool: config.wallet.keypool,
        spending: config.wallet.spending(),
        broadcast: config.wallet.walletbroadcast,
        signer: config.wallet.signer.clone(),
        policies: config.wallet.policies.clone(),
        policy_removed: Arc::new(move |wallet, policy| {
            if let Some(audit) = &audit {
                audit.policy_removed(wallet, policy);
            }
        }),
        // The data directory is the parent of the network's folder.
        data_directory: folder.parent().map(Path::to_owned),
        ..outrigger_wallet_engine::Settings::default()
    };
    let hub = hub.clone();
    let sink = Arc::new(move |event: Event| {
        if let (Some(hooks), Event::WalletTransaction { wallet, txid }) = (&hooks, &event) {
            hooks.wallet_transaction(wallet, *txid);
        }
        hub.tell(&event);
    });
    let folder = folder.join("wallets");
    let manager =
        WalletManager::open(&folder, settings, node.clone(), sink).map_err(|error| failed("wallets")(error.into()))?;
    manager.scrub_unloaded().map_err(|error| failed("wallets")(error.into()))?;
    Ok(manager)
}
