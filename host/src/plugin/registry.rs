//! All plugins of a host, and who answers which method.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outrigger_sdk::manifest::{MethodSpec, OptionError};
use outrigger_sdk::service::events::Event;

use super::calls::Calls;
use super::file::{FileError, PluginFile, find};
use super::instance::{Instance, SharedServices, StartError, check_grants};
use crate::config::PluginConfig;

/// How long stopping waits for all plugins together.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Why the plugins could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file is missing or no plugin.
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

/// A method and who answers it.
#[derive(Clone)]
pub struct Route {
    /// The plugin's instance.
    pub instance: Arc<Instance>,
    /// The method, as the manifest has it.
    pub method: Arc<MethodSpec>,
}

/// The methods by name, in order.
pub type RouteTable = BTreeMap<String, Route>;

/// What the registry needs to start plugins.
pub struct Environment {
    /// Folders in which bare names are looked for.
    pub folders: Vec<PathBuf>,
    /// Where copies of the files are kept.
    pub copies: PathBuf,
    /// The services of the host.
    pub services: SharedServices,
    /// The calls in flight.
    pub calls: Arc<Calls>,
}

/// The running plugins.
pub struct Registry {
    environment: Environment,
    next_id: AtomicU64,
    instances: Mutex<Vec<Arc<Instance>>>,
}

impl Registry {
    /// A registry without plugins.
    pub fn new(environment: Environment) -> Self {
        Self { environment, next_id: AtomicU64::new(1), instances: Mutex::new(Vec::new()) }
    }

    /// Starts the plugins of the configuration and gives the routes to them. On failure those already started are stopped.
    ///
    /// `builtins` are the methods of the host itself, which no plugin may claim.
    pub fn start(
        &self,
        configured: &[PluginConfig],
        overrides: &BTreeMap<String, String>,
        builtins: &[&str],
    ) -> Result<RouteTable, Failure> {
        let outcome = self.start_all(configured).and_then(|positions| {
            routes(&self.instances(), overrides, builtins).map_err(|(instance, error)| Failure {
                plugin: instance.and_then(|instance| positions.get(instance).copied()),
                error,
            })
        });
        if outcome.is_err() {
            self.stop();
        }
        outcome
    }

    /// Starts the plugins, and gives the position in the configuration of each.
    fn start_all(&self, configured: &[PluginConfig]) -> Result<Vec<usize>, Failure> {
        let mut positions = Vec::new();
        for (position, plugin) in configured.iter().enumerate().filter(|(_, plugin)| plugin.enabled) {
            let failed = |error| Failure { plugin: Some(position), error };
            let instance = self.start_one(plugin).map_err(failed)?;
            self.lock().push(instance);
            positions.push(position);
        }
        Ok(positions)
    }

    fn start_one(&self, configured: &PluginConfig) -> Result<Arc<Instance>, RegistryError> {
        let path = find(&configured.file, &self.environment.folders)?;
        let file = PluginFile::read(&path)?;
        let id = &file.manifest.id;
        if let Some(first) = self.lock().iter().find(|instance| instance.manifest.id == *id) {
            return Err(RegistryError::SameId { id: id.clone(), first: first.file.clone(), second: path });
        }
        let options = file
            .manifest
            .options(&configured.options)
            .map_err(|source| RegistryError::Option { plugin: id.clone(), source })?;
        let grants = configured.grants.clone().unwrap_or_default();
        check_grants(&file.manifest, &grants, &self.environment.services)?;
        let table = file.open(&self.environment.copies)?;
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        let Environment { services, calls, .. } = &self.environment;
        Ok(Instance::start(number, &file, table, &grants, &options, services, calls.clone())?)
    }

    /// The running instances, in the order of the configuration.
    pub fn instances(&self) -> Vec<Arc<Instance>> {
        self.lock().clone()
    }

    /// Tells all plugins of an event.
    pub fn tell(&self, event: &Event) {
        for instance in self.instances() {
            instance.events.offer(event);
        }
    }

    /// Stops all plugins, the last one started first.
    pub fn stop(&self) {
        let instances = std::mem::take(&mut *self.lock());
        for instance in &instances {
            instance.quiesce();
        }
        let deadline = Instant::now() + DRAIN_TIME;
        for instance in instances.iter().rev() {
            instance.stop(deadline);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who answers which method: its only claimant, or the one that the configuration says. An error comes with the position
/// of the instance that it is about.
fn routes(
    instances: &[Arc<Instance>],
    overrides: &BTreeMap<String, String>,
    builtins: &[&str],
) -> Result<RouteTable, (Option<usize>, RegistryError)> {
    let mut table = RouteTable::new();
    for (position, instance) in instances.iter().enumerate() {
        for method in &instance.manifest.methods {
            let claimed = |first: &str| RegistryError::DuplicateMethod {
                method: method.name.clone(),
                first: first.to_owned(),
                second: instance.manifest.id.clone(),
            };
            if builtins.contains(&method.name.as_str()) {
                return Err((Some(position), claimed("the host")));
            }
            if overrides.get(&method.name).is_some_and(|owner| *owner != instance.manifest.id) {
                continue;
            }
            let route = Route { instance: instance.clone(), method: Arc::new(method.clone()) };
            if let Some(first) = table.insert(method.name.clone(), route) {
                return Err((Some(position), claimed(&first.instance.manifest.id)));
            }
        }
    }
    for (method, plugin) in overrides {
        if table.contains_key(method) {
            continue;
        }
        let known = instances.iter().any(|instance| instance.manifest.id == *plugin);
        let reason = if known { "that plugin has no such method" } else { "no such plugin is enabled" };
        return Err((None, RegistryError::Route { method: method.clone(), plugin: plugin.clone(), reason }));
    }
    Ok(table)
}
