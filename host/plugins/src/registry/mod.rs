//! All plugins of a host: brought up, taken down and replaced while calls go on.
//!
//! What is served stands in one value that is swapped whole; changes are made one at a time, beside it. An instance is
//! retired only after the routes to it are gone, and a call that was routed to it keeps it until it has ended.

mod change;
mod check;
mod note;
mod routes;
mod supervisor;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use outrigger_isolate::{Executable, RunnerStatus};
use outrigger_sdk::manifest::{MethodSpec, OptionError};
use outrigger_service::events::Event;
use parking_lot::Mutex;

use super::calls::Calls;
use super::file::FileError;
use super::grants::{ServiceSource, may_hold_secrets};
use super::health::Health;
use super::instance::{Instance, Launch, LoadedLibrary, PluginFailure, StartError, start};
use crate::{Isolation, PluginConfig};
pub use change::ChangeError;
pub use check::check;
use note::{Change, Subject};
use routes::routes;
pub use routes::{Route, RouteTable};

/// How long the host's stopping waits for all plugins together.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Why the plugins could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file is missing, no plugin, or not to be trusted.
    #[error(transparent)]
    File(#[from] FileError),
    /// A plugin did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// An option of the configuration does not fit.
    #[error("plugin '{plugin}': {source}")]
    Option {
        /// The plugin.
        plugin: String,
        /// What does not fit.
        source: OptionError,
    },
    /// Two plugins of the same id.
    #[error("two plugins are called '{id}': {} and {}", .first.display(), .second.display())]
    SameId {
        /// The id.
        id: String,
        /// The one that came first.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A file whose plugin has another id than before.
    #[error("the file of the plugin '{id}' holds a plugin '{found}' now")]
    OtherId {
        /// The plugin that it held.
        id: String,
        /// The one that was found.
        found: String,
    },
    /// Two owners of one method.
    #[error(
        "the method '{method}' is claimed by '{first}' and by '{second}'; say which has it: [routes] {method} = \"...\""
    )]
    DuplicateMethod {
        /// The method.
        method: String,
        /// The one that came first.
        first: String,
        /// The other.
        second: String,
    },
    /// A method of the host's, which no plugin can have.
    #[error("the method '{method}' is reserved for the host; '{plugin}' cannot have it")]
    Reserved {
        /// The method.
        method: String,
        /// The plugin that claims it.
        plugin: String,
    },
    /// A route to a plugin that is not there, or has no such method.
    #[error("[routes] {method} = \"{plugin}\": {reason}")]
    Route {
        /// The method.
        method: String,
        /// The plugin.
        plugin: String,
        /// Why not.
        reason: &'static str,
    },
}

/// What went wrong, and with which plugin of the configuration, counted from 0.
#[derive(Debug)]
pub struct Failure {
    /// The plugin's position.
    pub plugin: Option<usize>,
    /// What went wrong.
    pub error: RegistryError,
}

/// The plugins and routes of a configuration.
#[derive(Clone, Default)]
pub struct Configured {
    /// The plugins, in the order in which they start.
    pub plugins: Vec<PluginConfig>,
    /// Which plugin has a method that several claim.
    pub routes: BTreeMap<String, String>,
}

/// Reads the configuration anew, when an operator starts or reloads a plugin.
pub type Reread = Box<dyn Fn() -> Result<Configured, String> + Send + Sync>;

/// What the registry needs to start plugins.
pub struct Environment {
    /// Folders in which bare names are looked for.
    pub folders: Vec<PathBuf>,
    /// Where copies of the files are kept.
    pub copies: PathBuf,
    /// The services of the host.
    pub services: Box<dyn ServiceSource>,
    /// The calls in flight.
    pub calls: Arc<Calls>,
    /// How long a call may take of a plugin whose configuration does not say; none for as long as it likes.
    pub deadline: Option<Duration>,
    /// Which plugins run in processes of their own where their configuration does not say.
    pub isolation: Isolation,
    /// The program of these processes.
    pub executable: Arc<Executable>,
    /// The methods of the host itself, which no plugin may claim.
    pub builtins: &'static [&'static str],
    /// The configuration as it is now.
    pub reread: Reread,
    /// Told when a plugin has died that the host cannot go on without, with the reason.
    pub fatal: Box<dyn Fn(String) + Send + Sync>,
}

/// A plugin of the configuration, running or not.
#[derive(Clone)]
pub struct Plugin {
    /// As configured.
    pub config: PluginConfig,
    /// Its code, as last opened; none when it never was.
    pub code: Option<Arc<LoadedLibrary>>,
    /// Its instance while it runs.
    pub instance: Option<Arc<Instance>>,
    /// How it has fared.
    pub health: Arc<Health>,
    /// How its runners have, where it is isolated.
    pub runners: Arc<RunnerStatus>,
    /// Names it among all plugins and instances of this process: what it may take of the pool it has in all its instances
    /// together.
    owner: u64,
    /// When the host itself started it again after a failure, newest last.
    restarts: Vec<Instant>,
    /// How often it did so in all.
    pub restart_count: u64,
}

impl Plugin {
    fn of(config: PluginConfig, owner: u64) -> Self {
        let (restarts, restart_count) = (Vec::new(), 0);
        let (health, runners) = (Arc::default(), Arc::default());
        Self { config, code: None, instance: None, health, runners, owner, restarts, restart_count }
    }

    /// The id of its manifest, or what the configuration calls it while its file was not read.
    pub fn id(&self) -> &str {
        self.code.as_ref().map_or(&self.config.file, |code| &code.manifest.id)
    }

    fn is_called(&self, name: &str) -> bool {
        self.id() == name || self.config.file == name
    }
}

/// What is served: swapped whole.
#[derive(Clone, Default)]
pub struct Serving {
    /// The plugins, in the order of the configuration.
    pub plugins: Vec<Plugin>,
    /// The methods.
    pub routes: RouteTable,
    /// Which plugin has a method that several claim, as configured.
    overrides: BTreeMap<String, String>,
}

impl Serving {
    fn running(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.plugins.iter().filter_map(|plugin| plugin.instance.as_ref())
    }
}

/// The plugins.
pub struct Registry {
    environment: Environment,
    next_id: AtomicU64,
    serving: ArcSwap<Serving>,
    /// Held while a change is made.
    changing: Mutex<()>,
    /// What was read of a plugin's file in the present change, for the log's line of what came of it.
    read: Mutex<Option<Subject>>,
    /// Instances that were retired, and may not have ended or have threads of the host inside.
    retired: Mutex<Vec<Arc<Instance>>>,
    /// Set by the host's stopping; held while a change takes effect.
    stopped: Mutex<bool>,
    failures: Sender<(u64, PluginFailure)>,
}

impl Registry {
    /// A registry without plugins.
    ///
    /// # Errors
    /// When the system gives no thread for its supervisor.
    pub fn new(environment: Environment) -> std::io::Result<Arc<Self>> {
        let (failures, reported) = channel();
        let registry = Arc::new(Self {
            environment,
            next_id: AtomicU64::new(1),
            serving: ArcSwap::default(),
            changing: Mutex::new(()),
            read: Mutex::default(),
            retired: Mutex::default(),
            stopped: Mutex::new(false),
            failures,
        });
        supervisor::start(&registry, reported)?;
        Ok(registry)
    }

    /// What is served now.
    pub fn serving(&self) -> Arc<Serving> {
        self.serving.load_full()
    }

    /// Who answers a method now.
    pub fn route(&self, method: &str) -> Option<Route> {
        self.serving.load().routes.get(method).cloned()
    }

    /// The description of a method that is served.
    pub fn spec(&self, method: &str) -> Option<Arc<MethodSpec>> {
        self.serving.load().routes.get(method).map(|route| route.method.clone())
    }

    /// The running instance of a plugin, by its id or by what the configuration calls it.
    pub fn instance(&self, name: &str) -> Option<Arc<Instance>> {
        self.serving
            .load()
            .plugins
            .iter()
            .find(|plugin| plugin.is_called(name))
            .and_then(|plugin| plugin.instance.clone())
    }

    /// Starts the plugins of the configuration. On failure those already started are stopped.
    ///
    /// # Errors
    /// The first thing that went wrong, and with which plugin.
    pub fn start(&self, configured: Configured) -> Result<(), Failure> {
        let _changing = self.changing.lock();
        let mut plugins: Vec<_> = configured.plugins.into_iter().map(|config| self.plugin_of(config)).collect();
        let outcome = self.start_all(&mut plugins).and_then(|()| {
            let routes = self.routes(&plugins, &configured.routes);
            routes.map_err(|(plugin, error)| Failure { plugin, error })
        });
        match outcome {
            Ok(routes) => {
                plugins.iter().filter(|plugin| plugin.instance.is_some()).for_each(|plugin| {
                    note::made(Change::Start, "the configuration", &Subject::of(plugin));
                });
                self.serving.store(Arc::new(Serving { plugins, routes, overrides: configured.routes }));
                Ok(())
            }
            Err(failure) => {
                let of = |plugin: &Plugin| self.just_read().unwrap_or_else(|| Subject::of(plugin));
                let subject = failure.plugin.and_then(|at| plugins.get(at)).map(of).unwrap_or_default();
                note::failed(Change::Start, "the configuration", &subject, &failure.error);
                let started: Vec<_> = plugins.into_iter().filter_map(|plugin| plugin.instance).collect();
                end_all(&started);
                Err(failure)
            }
        }
    }

    fn plugin_of(&self, config: PluginConfig) -> Plugin {
        Plugin::of(config, self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    fn start_all(&self, plugins: &mut [Plugin]) -> Result<(), Failure> {
        for position in 0..plugins.len() {
            self.just_read();
            let (earlier, rest) = plugins.split_at_mut(position);
            let Some(plugin) = rest.first_mut().filter(|plugin| plugin.config.enabled) else { continue };
            let failed = |error| Failure { plugin: Some(position), error };
            self.open(plugin, earlier.iter()).and_then(|code| self.launch(plugin, code)).map_err(failed)?;
        }
        self.just_read();
        Ok(())
    }

    /// Reads and judges the file of a plugin, and opens it. `others` are the plugins it is beside.
    fn open<'a>(
        &self,
        plugin: &Plugin,
        mut others: impl Iterator<Item = &'a Plugin>,
    ) -> Result<Arc<LoadedLibrary>, RegistryError> {
        // What can be refused without running any of its code is refused here.
        let file = check::read(&plugin.config, &self.environment.folders)?;
        *self.read.lock() = Some(Subject::read(&file));
        let id = &file.manifest.id;
        let same = others.find_map(|other| other.code.as_ref().filter(|code| code.manifest.id == *id));
        if let Some(first) = same {
            return Err(RegistryError::SameId { id: id.clone(), first: first.file.clone(), second: file.path });
        }
        if let Some(before) = &plugin.code
            && before.manifest.id != *id
        {
            return Err(RegistryError::OtherId { id: before.manifest.id.clone(), found: id.clone() });
        }
        check::check_settings(&plugin.config, &file.manifest, &*self.environment.services)?;
        let (id, copies) = (id.clone(), self.environment.copies.clone());
        let isolated = self.environment.isolation.applies_to(&plugin.config);
        // The library's constructors run here, unless it is isolated.
        let code = start::in_time(&id, move || LoadedLibrary::open(file, &copies, isolated), drop)??;
        Ok(Arc::new(code))
    }

    /// What was read of a plugin's file since this was last asked.
    fn just_read(&self) -> Option<Subject> {
        self.read.lock().take()
    }

    /// Makes an instance of the code the plugin's.
    fn launch(&self, plugin: &mut Plugin, code: Arc<LoadedLibrary>) -> Result<(), RegistryError> {
        let options = code
            .manifest
            .options(&plugin.config.options)
            .map_err(|source| RegistryError::Option { plugin: code.manifest.id.clone(), source })?;
        let launch = Launch {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            owner: plugin.owner,
            trusted: plugin.config.trusted,
            panic_text: plugin.config.panic_text || !may_hold_secrets(plugin.config.grants(), &code.manifest),
            grants: plugin.config.grants(),
            options,
            services: &*self.environment.services,
            calls: self.environment.calls.clone(),
            deadline: plugin.config.deadline(self.environment.deadline),
            max_answer_bytes: plugin.config.max_answer_bytes(),
            health: plugin.health.clone(),
            runners: plugin.runners.clone(),
            executable: self.environment.executable.clone(),
            confinement: plugin.config.confinement(),
            bounds: plugin.config.bounds(),
            failures: self.failures.clone(),
        };
        plugin.instance = Some(Instance::start(&code, launch)?);
        plugin.code = Some(code);
        Ok(())
    }

    fn routes(
        &self,
        plugins: &[Plugin],
        overrides: &BTreeMap<String, String>,
    ) -> Result<RouteTable, routes::Misrouted> {
        let running: Vec<_> = plugins
            .iter()
            .enumerate()
            .filter_map(|(position, plugin)| Some((position, plugin.instance.clone()?)))
            .collect();
        let stopped = plugins.iter().filter(|plugin| plugin.code.is_some() && plugin.instance.is_none());
        let known: Vec<String> = stopped.map(|plugin| plugin.id().to_owned()).collect();
        routes(&running, &known, overrides, self.environment.builtins)
    }

    /// An instance that has not ended, also one that is not served any more.
    pub fn instance_by_id(&self, id: u64) -> Option<Arc<Instance>> {
        let serving = self.serving.load().running().find(|instance| instance.id == id).cloned();
        serving.or_else(|| self.retired.lock().iter().find(|instance| instance.id == id).cloned())
    }

    /// Tells all plugins of an event.
    pub fn tell(&self, event: &Event) {
        for instance in self.serving.load().running() {
            instance.events.offer(event);
        }
    }

    /// Stops all plugins.
    pub fn stop(&self) {
        *self.stopped.lock() = true;
        let mut instances: Vec<_> = self.serving.load().running().cloned().collect();
        for instance in &instances {
            note::made(Change::Stop, "the host, which stops", &Subject::running(&instance.code));
        }
        instances.append(&mut self.retired.lock());
        end_all(&instances);
    }
}

/// Retires instances together and waits for their end.
fn end_all(instances: &[Arc<Instance>]) {
    for instance in instances {
        instance.retire(STOP_PATIENCE);
    }
    // One step beyond the patience: what is left behind says so first.
    let deadline = Instant::now() + STOP_PATIENCE + Duration::from_secs(1);
    for instance in instances {
        instance.wait_ended(deadline);
    }
}
