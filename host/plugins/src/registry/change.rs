//! Changes by an operator while the host runs.
//!
//! Only plugins of the configuration can be started: an RPC client must not be able to load other code. The host reads
//! the configuration again for each change, so edited options, grants and pins take effect.

use std::sync::Arc;
use std::time::Duration;

use super::note::Change;
use super::{Plugin, PluginsConfig, Registry, RegistryError, Serving};
use crate::instance::{Instance, LoadedLibrary};
use crate::linked::BUILT_IN;
use crate::settings::file_name;
use crate::{PluginConfig, Reload, Routes};

/// How long the calls of a replaced or stopped instance may continue in the background before the host answers them.
pub(super) const DRAIN_PATIENCE: Duration = Duration::from_secs(600);

/// Why a change failed. The plugin runs as before, unless the message says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Neither running nor in the configuration.
    #[error("No plugin '{0}' in the configuration")]
    Unknown(String),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Plugin(#[from] RegistryError),
    #[error("Shutting down")]
    Stopping,
}

fn not_running(plugin: &Plugin) -> ChangeError {
    ChangeError::Refused(format!("The plugin '{}' is not running; startplugin starts it", plugin.id()))
}

impl Registry {
    /// Starts a plugin of the configuration, by its id or its configured name. `asked_by` is the operator, for the log.
    pub fn start_plugin(&self, name: &str, asked_by: &str) -> Result<Arc<Instance>, ChangeError> {
        let _changing = self.changing.lock();
        self.noted(Change::Start, name, asked_by, || self.bring_up_named(Change::Start, name))
    }

    /// Replaces a running plugin's instance by a new one from its current file and configuration. The new instance starts
    /// beside the old one, which finishes its calls. If the new one does not start, the old one continues. With `reload = "after"`
    /// the old one ends first, and its library is started again if the new one does not start.
    pub fn reload_plugin(&self, name: &str, asked_by: &str) -> Result<Arc<Instance>, ChangeError> {
        let _changing = self.changing.lock();
        self.noted(Change::Reload, name, asked_by, || self.bring_up_named(Change::Reload, name))
    }

    /// Stops a running plugin: its methods are removed at once, its open calls continue to their end. Returns its
    /// instance.
    pub fn stop_plugin(&self, name: &str, asked_by: &str) -> Result<Arc<Instance>, ChangeError> {
        let _changing = self.changing.lock();
        self.noted(Change::Stop, name, asked_by, || self.stop_named(name))
    }

    /// Reloads the running plugins whose options, or the secrets in them, differ from those of `fresh`. Returns their ids.
    /// If a plugin does not start, the plugins reloaded before it get their former options back.
    pub fn reload_options(&self, fresh: &[PluginConfig], asked_by: &str) -> Result<Vec<String>, ChangeError> {
        let _changing = self.changing.lock();
        let serving = self.serving();
        let plugins = serving.plugins.iter().map(|plugin| plugin.config.clone()).collect();
        let former = PluginsConfig { plugins, routes: serving.configured.clone() };
        let mut next = former.clone();
        let mut changed = Vec::new();
        for (position, (config, plugin)) in next.plugins.iter_mut().zip(&serving.plugins).enumerate() {
            let Some(fresh) = fresh.iter().find(|fresh| fresh.file == config.file) else { continue };
            if plugin.instance.is_some() && !plugin.has_options(fresh) {
                config.options.clone_from(&fresh.options);
                changed.push((position, plugin.id().to_owned()));
            }
        }
        let bring = |(position, id): &(usize, String), configured: &PluginsConfig| {
            let make = || self.bring_up(self.serving().plugins.clone(), *position, configured.clone(), true);
            self.noted(Change::Reload, id, asked_by, make)
        };
        for (done, plugin) in changed.iter().enumerate() {
            if let Err(error) = bring(plugin, &next) {
                // `noted` logs a plugin that does not start again.
                changed.iter().take(done).rev().for_each(|plugin| drop(bring(plugin, &former)));
                return Err(error);
            }
        }
        Ok(changed.into_iter().map(|(_, id)| id).collect())
    }

    /// Makes a change and logs its outcome.
    fn noted(
        &self,
        change: Change,
        name: &str,
        asked_by: &str,
        make: impl FnOnce() -> Result<Arc<Instance>, ChangeError>,
    ) -> Result<Arc<Instance>, ChangeError> {
        let outcome = make();
        match &outcome {
            Ok(instance) => change.made(asked_by, &instance.code),
            Err(error) => {
                let serving = self.serving();
                let known = serving.plugins.iter().find(|plugin| plugin.is_called(name));
                change.failed(asked_by, known.map_or(name, Plugin::id), error);
            }
        }
        outcome
    }

    fn stop_named(&self, name: &str) -> Result<Arc<Instance>, ChangeError> {
        let Serving { mut plugins, configured, .. } = Serving::clone(&self.serving());
        let plugin = plugins
            .iter_mut()
            .find(|plugin| plugin.is_called(name))
            .ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        let instance = plugin.instance.take().ok_or_else(|| not_running(plugin))?;
        self.publish(plugins, configured)?;
        self.retire(&instance);
        Ok(instance)
    }

    /// Starts a plugin, or reloads it if it runs.
    fn bring_up_named(&self, change: Change, name: &str) -> Result<Arc<Instance>, ChangeError> {
        let unusable = |reason| ChangeError::Refused(format!("The configuration cannot be used: {reason}"));
        let configured = (self.environment.reread)().map_err(unusable)?;
        let mut plugins = self.serving().plugins.clone();
        let position = self.position_of(&mut plugins, &configured, name)?;
        let plugin = plugins.get(position).ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        match &plugin.instance {
            Some(own) if change == Change::Start && !own.has_crashed() => {
                Err(ChangeError::Refused(format!("The plugin '{}' is running; reloadplugin replaces it", plugin.id())))
            }
            None if change == Change::Reload => Err(not_running(plugin)),
            _ => self.bring_up(plugins, position, configured, false),
        }
    }

    /// Starts a new instance of the plugin at a position, in place of an existing one. A running plugin that is linked into the program
    /// is replaced only `for_options`: its code cannot have changed.
    fn bring_up(
        &self,
        mut plugins: Vec<Plugin>,
        position: usize,
        configured: PluginsConfig,
        for_options: bool,
    ) -> Result<Arc<Instance>, ChangeError> {
        let former = plugins.clone();
        let others: Vec<Plugin> =
            plugins.iter().enumerate().filter(|(at, _)| *at != position).map(|(_, plugin)| plugin.clone()).collect();
        let unknown = || ChangeError::Unknown(String::new());
        let plugin = plugins.get_mut(position).ok_or_else(unknown)?;
        let fresh = configured.plugins.iter().find(|fresh| fresh.file == plugin.config.file);
        // A plugin that was removed from the configuration does not start, not even with its former settings.
        plugin.config = fresh.cloned().ok_or_else(|| ChangeError::Unknown(plugin.id().to_owned()))?;
        let code = self.open(plugin, others.iter())?;
        let runs = plugin.instance.as_ref().is_some_and(|old| !old.has_crashed());
        let was_built_in = plugin.code.as_ref().is_some_and(|code| code.form() == BUILT_IN);
        if runs && code.form() == BUILT_IN && !(for_options && was_built_in) {
            let reason = "needs its library in a folder: the program's own copy changes with the program";
            return Err(ChangeError::Refused(format!("A reload of the plugin '{}' {reason}", plugin.id())));
        }
        let old = plugin.instance.take();
        // Keeps the old instance's sockets listening until the new one has started, so that no connection is refused.
        let _listening = old.as_ref().map(|old| old.listening());
        if plugin.config.reload(&code.manifest) == Reload::Beside {
            let started = self.replace(plugins, position, code, configured.routes)?;
            if let Some(old) = old {
                self.retire(&old);
            }
            return Ok(started);
        }
        let _replacing = self.end_first(plugin, old.as_ref());
        let started = self.replace(plugins, position, code, configured.routes);
        match old {
            Some(_) => started.map_err(|error| self.go_back(former, position, error)),
            None => started,
        }
    }

    /// Starts an instance of the code for the plugin at a position, and serves it.
    pub(super) fn replace(
        &self,
        mut plugins: Vec<Plugin>,
        position: usize,
        code: Arc<LoadedLibrary>,
        routes: Routes,
    ) -> Result<Arc<Instance>, ChangeError> {
        let unknown = || ChangeError::Unknown(String::new());
        let plugin = plugins.get_mut(position).ok_or_else(unknown)?;
        let fault = plugin.health.replace_fault(None);
        self.launch(plugin, code).inspect_err(|_| drop(plugin.health.replace_fault(fault)))?;
        let started = plugin.instance.clone().ok_or_else(unknown)?;
        self.publish(plugins, routes).inspect_err(|_| self.retire(&started))?;
        Ok(started)
    }

    /// Serves changed plugins, unless the host is stopping. An instance that is served no more counts as retired before.
    pub(super) fn publish(&self, plugins: Vec<Plugin>, routes: Routes) -> Result<(), ChangeError> {
        let serving = self.serve(plugins, routes, false).map_err(|(_, error)| error)?;
        let stopped = self.stopped.lock();
        if *stopped {
            return Err(ChangeError::Stopping);
        }
        if serving.configured != self.serving().configured {
            tracing::info!("the configuration's section [routes] has changed and is applied");
        }
        let is_served = |old: &Arc<Instance>| serving.running().any(|instance| Arc::ptr_eq(instance, old));
        self.serving().running().filter(|old| !is_served(old)).for_each(|old| self.note_retired(old));
        self.serve_from_now_on(serving);
        Ok(())
    }

    fn note_retired(&self, instance: &Arc<Instance>) {
        let mut retired = self.retired.lock();
        retired.retain(|other| !other.is_gone() && other.id != instance.id);
        retired.push(instance.clone());
    }

    /// Ends an instance in the background. The caller has removed its routes.
    pub(super) fn retire(&self, instance: &Arc<Instance>) {
        self.note_retired(instance);
        instance.retire(DRAIN_PATIENCE);
    }

    /// The position of a plugin; a new entry of the configuration is appended.
    fn position_of(
        &self,
        plugins: &mut Vec<Plugin>,
        configured: &PluginsConfig,
        name: &str,
    ) -> Result<usize, ChangeError> {
        if let Some(position) = plugins.iter().position(|plugin| plugin.is_called(name)) {
            return Ok(position);
        }
        let file = file_name(name);
        let fresh = configured.plugins.iter().find(|plugin| plugin.file == file);
        let fresh = fresh.ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        plugins.push(self.plugin_of(fresh.clone()));
        Ok(plugins.len() - 1)
    }
}
