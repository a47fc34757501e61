//! All plugins of a host: started, ended and replaced while calls continue.
//!
//! The served state is one value that is replaced as a whole. Changes are made one at a time. An instance is retired
//! only after its routes are gone, and a routed call keeps its instance until the call has ended.

mod after;
mod change;
mod check;
mod note;
mod routes;
mod supervisor;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bitcoin::Network;
use bitcoin::hashes::sha256;
use outrigger_isolate::{Executable, RunnerStatus, STOP_PATIENCE};
use outrigger_sdk::manifest::{MethodSpec, Requires};
use outrigger_sdk::standard::release::Rules;
use outrigger_service::events::Event;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::calls::Calls;
use super::file::FileError;
use super::grants::ServiceSource;
use super::health::Health;
use super::instance::{Instance, Launch, LoadedLibrary, PluginFailure, ReleaseSource, StartError, start};
use super::linked::Sources;
use crate::settings::file_name;
use crate::{Isolation, PluginConfig, Routes};
pub use change::ChangeError;
pub use check::{check, unused_wrapper};
use note::Change;
pub use routes::{Chain, Link, RouteTable};
use routes::{Known, RouteError, Wrapper, providing, wrapping};

/// The name of the folder of a plugin's own files.
const PRIVATE_FOLDER: &str = "folder";

/// The time limit for ending the calls of all plugins when the host stops.
const END_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file is missing, not a plugin, or not trusted.
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Start(#[from] StartError),
    /// An option that the manifest does not allow, or a secret that cannot be read.
    #[error("plugin '{plugin}': {reason}")]
    Option { plugin: String, reason: String },
    /// A policy with a store, and `reload = "beside"`.
    #[error(
        "the policy '{0}' keeps a store, and two of its instances must not judge at the same time: leave 'reload' out, or set \"after\""
    )]
    Reload(String),
    /// An invalid route or entry of `wrap`.
    #[error("[routes] {method} = \"{plugin}\": {reason}")]
    Route { method: String, plugin: String, reason: String },
    /// The plugin contradicts the node, the host or another plugin.
    #[error("{0}")]
    Refused(String),
}

impl RegistryError {
    /// The error for two plugins with the same id. A path is `None` for the program's own copy.
    fn same_id(id: &str, first: Option<PathBuf>, second: Option<PathBuf>) -> Self {
        let place = |file: Option<PathBuf>| {
            file.map_or_else(|| "the program's own copy".to_owned(), |file| file.display().to_string())
        };
        Self::Refused(format!("two plugins have the id '{id}': {} and {}", place(first), place(second)))
    }
}

/// An error, and the position of its plugin in the configuration.
#[derive(Debug)]
pub struct Failure {
    pub plugin: Option<usize>,
    pub error: RegistryError,
}

#[derive(Clone, Default)]
pub struct PluginsConfig {
    /// In the order in which they start.
    pub plugins: Vec<PluginConfig>,
    pub routes: Routes,
}

/// Checks a plugin's `requires` against the node. The error names the requirement and the node's setting.
pub type Requirements = Box<dyn Fn(&Requires) -> Result<(), String> + Send + Sync>;

/// Reads the configuration again, when an operator starts or reloads a plugin.
pub type Reread = Box<dyn Fn() -> Result<PluginsConfig, String> + Send + Sync>;

pub struct Environment {
    pub sources: Sources,
    /// The folder for copies of the files, and for one folder of each plugin.
    pub folder: PathBuf,
    pub services: Box<dyn ServiceSource>,
    pub network: Network,
    pub release: ReleaseSource,
    pub calls: Arc<Calls>,
    /// The default deadline of a call; `None` for no limit.
    pub deadline: Option<Duration>,
    pub isolation: Isolation,
    pub executable: Arc<Executable>,
    /// Compares a plugin's `requires` with the node.
    pub requirements: Requirements,
    /// The host's own methods, which no plugin may claim.
    pub builtins: &'static [&'static str],
    pub reread: Reread,
    /// Called with the reason when a critical plugin has failed.
    pub fatal: Box<dyn Fn(String) + Send + Sync>,
}

/// A plugin of the configuration, running or not.
#[derive(Clone)]
pub struct Plugin {
    pub config: PluginConfig,
    pub code: Option<Arc<LoadedLibrary>>,
    pub instance: Option<Arc<Instance>>,
    /// Shared by all its instances.
    pub health: Arc<Health>,
    pub runners: Arc<RunnerStatus>,
    /// Unique among all plugins and instances of this process. All instances of the plugin together have one share of
    /// the pool.
    owner: u64,
    /// When the supervisor restarted it, newest last.
    restarts: Vec<Instant>,
    /// How often the supervisor restarted it in total.
    pub restart_count: u64,
    /// Whether the supervisor stopped it because it kept crashing.
    pub in_quarantine: bool,
    /// A digest of the running instance's options, its secrets included.
    options: Option<sha256::Hash>,
}

impl Plugin {
    /// The id in its manifest, or its configured name until its file has been read.
    pub fn id(&self) -> &str {
        self.code.as_ref().map_or(&self.config.file, |code| &code.manifest.id)
    }

    /// Whether its newest instance has these options and the current secrets. False if a secret cannot be read.
    fn has_options(&self, config: &PluginConfig) -> bool {
        let same = |code: &Arc<LoadedLibrary>| {
            check::options(config, &code.manifest).is_ok_and(|now| Some(check::digest(&now)) == self.options)
        };
        self.code.as_ref().is_some_and(same)
    }

    fn is_called(&self, name: &str) -> bool {
        self.id() == name || self.config.file == file_name(name)
    }
}

/// The served state, replaced as a whole.
#[derive(Clone, Default)]
pub struct Serving {
    pub plugins: Vec<Plugin>,
    pub routes: RouteTable,
    wrappers: Vec<Wrapper>,
    /// The section `[routes]` of the configuration.
    configured: Routes,
}

impl Serving {
    fn running(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.plugins.iter().filter_map(|plugin| plugin.instance.as_ref())
    }
}

pub struct Registry {
    environment: Environment,
    next_id: AtomicU64,
    serving: ArcSwap<Serving>,
    /// Held while a change is made.
    changing: Mutex<()>,
    /// Retired instances that may not have ended, or whose code may still run on threads of the host.
    retired: Mutex<Vec<Arc<Instance>>>,
    /// The ids of instances that end before their successors start.
    replacing: watch::Sender<Vec<u64>>,
    /// Set when the host stops. Held while a change is published.
    stopped: Mutex<bool>,
    failures: Sender<(u64, PluginFailure)>,
}

impl Registry {
    /// A registry without plugins, and its supervisor's thread.
    pub fn new(environment: Environment) -> std::io::Result<Arc<Self>> {
        let (failures, reported) = channel();
        let registry = Arc::new(Self {
            environment,
            next_id: AtomicU64::new(1),
            serving: ArcSwap::default(),
            changing: Mutex::new(()),
            retired: Mutex::default(),
            replacing: watch::Sender::default(),
            stopped: Mutex::new(false),
            failures,
        });
        supervisor::start(&registry, reported)?;
        Ok(registry)
    }

    pub fn serving(&self) -> Arc<Serving> {
        self.serving.load_full()
    }

    /// The chain of a method that a plugin answers.
    pub fn chain(&self, method: &str) -> Option<Arc<Chain>> {
        self.serving.load().routes.get(method).cloned()
    }

    /// The wrappers before a method that no plugin answers.
    pub fn wrappers(&self, method: &str, signature: Option<&Arc<MethodSpec>>, long_running: bool) -> Vec<Link> {
        wrapping(&self.serving.load().wrappers, method, signature, long_running, &[])
    }

    pub fn is_observed(&self) -> bool {
        self.serving.load().wrappers.iter().any(Wrapper::observes)
    }

    pub fn tell_observers(&self, method: &str, event: &Event) {
        let serving = self.serving.load();
        for observer in serving.wrappers.iter().filter_map(|wrapper| wrapper.observer(method)) {
            observer.events.offer(event);
        }
    }

    /// Whether calls of a method go through wrappers.
    pub fn wraps(&self, method: &str) -> bool {
        self.serving.load().wrappers.iter().any(|wrapper| wrapper.concerns(method))
    }

    pub fn spec(&self, method: &str) -> Option<Arc<MethodSpec>> {
        self.serving.load().routes.get(method).map(|chain| chain.method.clone())
    }

    /// The running instance of a plugin, by its id or its configured name.
    pub fn instance(&self, name: &str) -> Option<Arc<Instance>> {
        self.serving
            .load()
            .plugins
            .iter()
            .find(|plugin| plugin.is_called(name))
            .and_then(|plugin| plugin.instance.clone())
    }

    /// The link to a running plugin that provides a service to the host, for a call of this method.
    pub fn provider(&self, plugin: &str, service: &str, method: &str) -> Option<Link> {
        let serving = self.serving.load();
        let provides = |instance: &&Arc<Instance>| {
            let manifest = instance.manifest();
            manifest.id == plugin && manifest.provides.iter().any(|provided| provided == service)
        };
        serving.running().find(provides).map(|instance| providing(instance, method))
    }

    /// Starts the plugins of the configuration. On failure, the plugins already started are stopped.
    pub fn start(&self, configured: PluginsConfig) -> Result<(), Failure> {
        let _changing = self.changing.lock();
        let mut plugins: Vec<_> = configured.plugins.into_iter().map(|config| self.plugin_of(config)).collect();
        let outcome = self.start_all(&mut plugins).and_then(|()| {
            self.serve(plugins.clone(), configured.routes, true).map_err(|(plugin, error)| Failure { plugin, error })
        });
        match outcome {
            Ok(serving) => {
                for instance in plugins.iter().filter_map(|plugin| plugin.instance.as_ref()) {
                    Change::Start.made("the configuration", &instance.code);
                    if let Some(line) = unused_wrapper(instance.manifest(), &serving.configured) {
                        tracing::warn!("{line}");
                    }
                }
                self.serve_from_now_on(serving);
                Ok(())
            }
            Err(failure) => {
                let name = failure.plugin.and_then(|at| plugins.get(at)).map_or("", Plugin::id);
                Change::Start.failed("the configuration", name, &failure.error);
                let started: Vec<_> = plugins.into_iter().filter_map(|plugin| plugin.instance).collect();
                end_all(&started);
                Err(failure)
            }
        }
    }

    fn plugin_of(&self, config: PluginConfig) -> Plugin {
        Plugin {
            config,
            code: None,
            instance: None,
            health: Arc::default(),
            runners: Arc::default(),
            owner: self.next_id.fetch_add(1, Ordering::Relaxed),
            restarts: Vec::new(),
            restart_count: 0,
            in_quarantine: false,
            options: None,
        }
    }

    fn start_all(&self, plugins: &mut [Plugin]) -> Result<(), Failure> {
        for position in 0..plugins.len() {
            let (earlier, rest) = plugins.split_at_mut(position);
            let Some(plugin) = rest.first_mut().filter(|plugin| plugin.config.enabled) else { continue };
            let failed = |error| Failure { plugin: Some(position), error };
            self.open(plugin, earlier.iter()).and_then(|code| self.launch(plugin, code)).map_err(failed)?;
        }
        Ok(())
    }

    /// Finds, checks and opens a plugin's code. `others` are the other configured plugins.
    fn open<'a>(
        &self,
        plugin: &Plugin,
        mut others: impl Iterator<Item = &'a Plugin>,
    ) -> Result<Arc<LoadedLibrary>, RegistryError> {
        // Checks that run none of its code.
        let found = check::read(&plugin.config, &self.environment.sources)?;
        let manifest = found.manifest();
        let id = &manifest.id;
        let same = others.find_map(|other| other.code.as_ref().filter(|code| code.manifest.id == *id));
        if let Some(first) = same {
            return Err(RegistryError::same_id(id, first.file.clone(), found.path()));
        }
        if let Some(before) = &plugin.code
            && before.manifest.id != *id
        {
            let reason = format!("the file of the plugin '{}' holds a plugin '{id}' now", before.manifest.id);
            return Err(RegistryError::Refused(reason));
        }
        check::check_settings(&plugin.config, manifest)?;
        (self.environment.requirements)(&manifest.requires)
            .map_err(|reason| RegistryError::Refused(format!("plugin '{id}' {reason}")))?;
        let (id, copies) = (id.clone(), self.environment.folder.clone());
        let isolated = self.environment.isolation.applies_to(&plugin.config);
        // Unless it is isolated, the library's constructors run here.
        let code = start::in_time(&id, move || LoadedLibrary::of(found, &copies, isolated), drop)??;
        let before = plugin.code.as_ref().filter(|before| before.is_same(&code));
        Ok(before.cloned().unwrap_or_else(|| Arc::new(code)))
    }

    fn launch(&self, plugin: &mut Plugin, code: Arc<LoadedLibrary>) -> Result<(), RegistryError> {
        let options = check::options(&plugin.config, &code.manifest)?;
        let digest = check::digest(&options);
        let launch = Launch {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            owner: plugin.owner,
            config: &plugin.config,
            options,
            services: &*self.environment.services,
            release: self.environment.release.clone(),
            calls: self.environment.calls.clone(),
            deadline: plugin.config.deadline(self.environment.deadline),
            health: plugin.health.clone(),
            runners: plugin.runners.clone(),
            executable: self.environment.executable.clone(),
            folder: self.environment.folder.join(&code.manifest.id).join(PRIVATE_FOLDER),
            network: self.environment.network,
            is_checked: false,
            failures: self.failures.clone(),
        };
        plugin.instance = Some(Instance::start(&code, launch)?);
        plugin.in_quarantine = false;
        plugin.options = Some(digest);
        plugin.code = Some(code);
        Ok(())
    }

    /// The state to serve with these plugins. Without `is_strict`, routes may name plugins that were not started yet.
    fn serve(&self, plugins: Vec<Plugin>, configured: Routes, is_strict: bool) -> Result<Serving, RouteError> {
        let known = plugins.iter().enumerate().filter_map(|(position, plugin)| {
            let (code, instance) = (plugin.code.as_ref()?, plugin.instance.clone());
            Some(Known { position, manifest: &code.manifest, runs: instance.is_some(), instance })
        });
        let known: Vec<_> = known.collect();
        let (routes, wrappers) = routes::routes(&known, &configured, self.environment.builtins, is_strict)?;
        drop(known);
        Ok(Serving { plugins, routes, wrappers, configured })
    }

    fn serve_from_now_on(&self, serving: Serving) {
        self.serving.store(Arc::new(serving));
        self.tell_serving(None);
    }

    /// Tells the services which instances serve, except those of the plugin `without`: they have ended, or are about to be replaced.
    fn tell_serving(&self, without: Option<u64>) {
        let serving = self.serving();
        let running = serving.running().filter(|instance| Some(instance.owner) != without);
        let running: Vec<_> = running.map(|instance| (&*instance.manifest().id, instance.id)).collect();
        self.environment.services.serving(&running);
    }

    /// The rules of the Bitcoin Core release whose answers clients expect.
    pub fn rules(&self) -> Rules {
        Rules::of_call((self.environment.release)())
    }

    /// An instance that has not ended, even if it is no longer served.
    pub fn instance_by_id(&self, id: u64) -> Option<Arc<Instance>> {
        let serving = self.serving.load().running().find(|instance| instance.id == id).cloned();
        serving.or_else(|| self.retired.lock().iter().find(|instance| instance.id == id).cloned())
    }

    pub fn tell(&self, event: &Event) {
        for instance in self.serving.load().running() {
            instance.events.offer(event);
        }
    }

    pub fn stop(&self) {
        *self.stopped.lock() = true;
        let mut instances: Vec<_> = self.serving.load().running().cloned().collect();
        for instance in &instances {
            Change::Stop.made("the host, which stops", &instance.code);
        }
        instances.append(&mut self.retired.lock());
        end_all(&instances);
    }
}

/// Retires instances together and waits for their end.
fn end_all(instances: &[Arc<Instance>]) {
    for instance in instances {
        instance.retire(END_PATIENCE);
    }
    // A little longer than both limits, so that an overdue instance is logged first. An abandoned instance is not stopped.
    let deadline = Instant::now() + END_PATIENCE + STOP_PATIENCE + Duration::from_secs(1);
    for instance in instances {
        instance.wait_ended(deadline);
    }
}
