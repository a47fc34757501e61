//! Changes that an operator makes while the host runs.
//!
//! Only plugins of the configuration can be started: a client of the RPC interface must not be able to load code of its
//! own. The configuration is read anew for each change, so that options, grants and pins can change with the file.

use std::sync::Arc;
use std::time::Duration;

use super::note::{self, Change, Subject};
use super::{Configured, Plugin, Registry, RegistryError, Serving};
use crate::instance::Instance;

/// How long the calls of a replaced or stopped instance may go on, in the background, before they are answered for it.
const DRAIN_PATIENCE: Duration = Duration::from_secs(600);

/// Why a change was not made. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Neither running nor in the configuration.
    #[error("No plugin '{0}' in the configuration")]
    Unknown(String),
    /// It runs already.
    #[error("The plugin '{0}' is running; reloadplugin replaces it")]
    Running(String),
    /// It does not run.
    #[error("The plugin '{0}' is not running; startplugin starts it")]
    NotRunning(String),
    /// The configuration cannot be read any more.
    #[error("The configuration cannot be used: {0}")]
    Configuration(String),
    /// The plugin did not come up.
    #[error(transparent)]
    Plugin(#[from] RegistryError),
    /// The host is stopping.
    #[error("Shutting down")]
    Stopping,
}

impl Registry {
    /// Starts a plugin of the configuration, by its id or by what the configuration calls it. `asked_by` is who wants it.
    ///
    /// # Errors
    /// Whatever keeps it from starting.
    pub fn start_plugin(&self, name: &str, asked_by: &str) -> Result<Arc<Instance>, ChangeError> {
        let _changing = self.changing.lock();
        self.noted(Change::Start, name, asked_by, || self.start_named(name))
    }

    fn start_named(&self, name: &str) -> Result<Arc<Instance>, ChangeError> {
        let configured = self.reread()?;
        let mut plugins = self.serving().plugins.clone();
        let position = self.position_of(&mut plugins, &configured, name)?;
        match plugins.get(position) {
            Some(plugin) if plugin.instance.as_ref().is_some_and(|own| !own.has_crashed()) => {
                Err(ChangeError::Running(plugin.id().to_owned()))
            }
            _ => self.bring_up(plugins, position, configured),
        }
    }

    /// Replaces a running plugin by what its file and the configuration hold now. The new instance starts beside the old
    /// one, which finishes the calls it has; if the new one does not come up, the old one goes on. `asked_by` is who wants it.
    ///
    /// # Errors
    /// Whatever keeps the new one from starting.
    pub fn reload_plugin(&self, name: &str, asked_by: &str) -> Result<Arc<Instance>, ChangeError> {
        let _changing = self.changing.lock();
        self.noted(Change::Reload, name, asked_by, || self.reload_named(name))
    }

    fn reload_named(&self, name: &str) -> Result<Arc<Instance>, ChangeError> {
        let configured = self.reread()?;
        let mut plugins = self.serving().plugins.clone();
        let position = self.position_of(&mut plugins, &configured, name)?;
        match plugins.get(position) {
            Some(plugin) if plugin.instance.is_none() => Err(ChangeError::NotRunning(plugin.id().to_owned())),
            _ => self.bring_up(plugins, position, configured),
        }
    }

    /// Stops a running plugin: its methods are gone at once, the calls it has go on to their end. Gives its instance.
    /// `asked_by` is who wants it.
    ///
    /// # Errors
    /// When there is no such plugin, or it does not run.
    pub fn stop_plugin(&self, name: &str, asked_by: &str) -> Result<Arc<Instance>, ChangeError> {
        let _changing = self.changing.lock();
        self.noted(Change::Stop, name, asked_by, || self.stop_named(name))
    }

    /// Makes a change, and writes a line of what came of it.
    fn noted(
        &self,
        change: Change,
        name: &str,
        asked_by: &str,
        make: impl FnOnce() -> Result<Arc<Instance>, ChangeError>,
    ) -> Result<Arc<Instance>, ChangeError> {
        self.just_read();
        let outcome = make();
        let read = self.just_read();
        match &outcome {
            Ok(instance) => note::made(change, asked_by, &Subject::running(&instance.code)),
            Err(error) => {
                let serving = self.serving();
                // A file that was refused is named by what it is, not by what it was to replace.
                let known = || serving.plugins.iter().find(|plugin| plugin.is_called(name)).map(Subject::of);
                let known = read.or_else(known);
                note::failed(change, asked_by, &known.unwrap_or_else(|| Subject::named(name)), error);
            }
        }
        outcome
    }

    fn stop_named(&self, name: &str) -> Result<Arc<Instance>, ChangeError> {
        let Serving { mut plugins, overrides, .. } = Serving::clone(&self.serving());
        let plugin = plugins
            .iter_mut()
            .find(|plugin| plugin.is_called(name))
            .ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        let instance = plugin.instance.take().ok_or_else(|| ChangeError::NotRunning(plugin.id().to_owned()))?;
        let routes = self.routes(&plugins, &overrides).map_err(|(_, error)| error)?;
        self.publish(Serving { plugins, routes, overrides })?;
        self.retire(&instance);
        Ok(instance)
    }

    fn reread(&self) -> Result<Configured, ChangeError> {
        (self.environment.reread)().map_err(ChangeError::Configuration)
    }

    /// Brings up a new instance of the plugin at a position, and puts it in the place of the one that may be there.
    fn bring_up(
        &self,
        mut plugins: Vec<Plugin>,
        position: usize,
        configured: Configured,
    ) -> Result<Arc<Instance>, ChangeError> {
        let others: Vec<Plugin> =
            plugins.iter().enumerate().filter(|(at, _)| *at != position).map(|(_, plugin)| plugin.clone()).collect();
        let unknown = || ChangeError::Unknown(String::new());
        let plugin = plugins.get_mut(position).ok_or_else(unknown)?;
        let fresh = configured.plugins.iter().find(|fresh| fresh.file == plugin.config.file);
        // What was taken out of the configuration is not to run, also not as it once stood there.
        plugin.config = fresh.cloned().ok_or_else(|| ChangeError::Unknown(plugin.id().to_owned()))?;
        let code = self.open(plugin, others.iter())?;
        let old = plugin.instance.take();
        self.launch(plugin, code)?;
        let started = plugin.instance.clone().ok_or_else(unknown)?;
        let taken_down = |error: ChangeError| {
            self.retire(&started);
            error
        };
        let routes = self.routes(&plugins, &configured.routes).map_err(|(_, error)| taken_down(error.into()))?;
        self.publish(Serving { plugins, routes, overrides: configured.routes }).map_err(taken_down)?;
        if let Some(old) = old {
            self.retire(&old);
        }
        Ok(started)
    }

    /// Lets a change take effect, unless the host is stopping.
    pub(super) fn publish(&self, serving: Serving) -> Result<(), ChangeError> {
        let stopped = self.stopped.lock();
        if *stopped {
            return Err(ChangeError::Stopping);
        }
        self.serving.store(Arc::new(serving));
        Ok(())
    }

    /// Lets an instance that is not served any more come to its end in the background.
    pub(super) fn retire(&self, instance: &Arc<Instance>) {
        let mut retired = self.retired.lock();
        retired.retain(|instance| !instance.is_gone());
        retired.push(instance.clone());
        drop(retired);
        instance.retire(DRAIN_PATIENCE);
    }

    /// Where a plugin stands; one that the configuration has and that was not known is added at the end.
    fn position_of(
        &self,
        plugins: &mut Vec<Plugin>,
        configured: &Configured,
        name: &str,
    ) -> Result<usize, ChangeError> {
        if let Some(position) = plugins.iter().position(|plugin| plugin.is_called(name)) {
            return Ok(position);
        }
        let fresh = configured.plugins.iter().find(|plugin| plugin.file == name);
        let fresh = fresh.ok_or_else(|| ChangeError::Unknown(name.to_owned()))?;
        plugins.push(self.plugin_of(fresh.clone()));
        Ok(plugins.len() - 1)
    }
}
