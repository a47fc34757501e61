//! The supervisor: restarts failed plugins if their manifest allows it.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::note::Change;
use super::{Plugin, Registry, Serving};
use crate::Reload;
use crate::instance::PluginFailure;
use outrigger_base::contain::contain;

/// How often the supervisor restarts a plugin within [`RESTART_WINDOW`].
const MAX_RESTARTS: usize = 5;

/// A plugin with this many lost threads is not restarted: a new instance could lose as many again.
const MAX_LOST_THREADS: usize = 16;

/// The period over which restarts are counted.
const RESTART_WINDOW: Duration = Duration::from_secs(600);

/// Starts the supervisor's thread; it ends with the registry.
pub(super) fn start(registry: &Arc<Registry>, failures: Receiver<(u64, PluginFailure)>) -> std::io::Result<()> {
    let registry: Weak<Registry> = Arc::downgrade(registry);
    let work = move || {
        for (instance, failure) in failures {
            let Some(registry) = registry.upgrade() else { return };
            contain("starting a plugin again", || registry.tend(instance, failure));
        }
    };
    std::thread::Builder::new().name("supervisor".to_owned()).spawn(work).map(drop)
}

impl Registry {
    /// Restarts the plugin of an instance, if the instance is current and the restart is allowed.
    fn tend(&self, instance: u64, failure: PluginFailure) {
        let _changing = self.changing.lock();
        let serving = self.serving();
        let of = |plugin: &Plugin| plugin.instance.as_ref().is_some_and(|own| own.id == instance);
        let Some(position) = serving.plugins.iter().position(of) else { return };
        let Some(plugin) = serving.plugins.get(position) else { return };
        let Some(code) = &plugin.code else { return };
        if failure == PluginFailure::Quarantined {
            return self.quarantine(&serving, position);
        }
        // The host's threads return once it ends an isolated plugin's process. The plugin continues in a new process.
        let is_ended = failure == PluginFailure::Stuck && plugin.instance.as_ref().is_some_and(|own| own.end_runner());
        if is_ended && code.manifest.restartable {
            return;
        }
        let outcome = if code.manifest.restartable { self.start_again(&serving, position) } else { Err(None) };
        let why = match failure {
            PluginFailure::Fault => "the host, after a fault",
            PluginFailure::Stuck => "the host, since its calls do not end",
            PluginFailure::Crashed | PluginFailure::Quarantined => "the host, since its process has ended",
        };
        let reason = match outcome {
            Ok(()) => {
                Change::Restart.made(why, code);
                return;
            }
            // A fault without a restart was logged where it happened; the instance continues.
            Err(None) if failure == PluginFailure::Fault => return,
            Err(None) if failure == PluginFailure::Crashed => "its process has ended".to_owned(),
            Err(None) => "it does not end its calls".to_owned(),
            Err(Some(reason)) => reason,
        };
        Change::Restart.failed(why, plugin.id(), &reason);
        if code.manifest.critical {
            (self.environment.fatal)(format!("the plugin '{}', which the host needs, has died: {reason}", plugin.id()));
        }
    }

    /// Stops a plugin that keeps crashing. An operator starts it again.
    fn quarantine(&self, serving: &Serving, position: usize) {
        let Serving { mut plugins, configured, .. } = serving.clone();
        let Some(plugin) = plugins.get_mut(position) else { return };
        let id = plugin.id().to_owned();
        let reason = "its process ended three times in a row within a minute of its start, and answered no call";
        let is_critical = plugin.code.as_ref().is_some_and(|code| code.manifest.critical);
        plugin.in_quarantine = true;
        let ended = plugin.instance.take();
        // Found by its id until it has ended.
        self.retired.lock().extend(ended.clone());
        match self.publish(plugins, configured) {
            Ok(()) => {
                tracing::error!(plugin = id, "the plugin is in quarantine: {reason}; startplugin starts it again");
                if let Some(instance) = ended {
                    self.retire(&instance);
                }
            }
            Err(error) => tracing::error!(plugin = id, %error, "the plugin cannot be put into quarantine"),
        }
        if is_critical {
            (self.environment.fatal)(format!("the plugin '{id}', which the host needs, is in quarantine: {reason}"));
        }
    }

    fn start_again(&self, serving: &Serving, position: usize) -> Result<(), Option<String>> {
        let Serving { mut plugins, configured, .. } = serving.clone();
        let plugin = plugins.get_mut(position).ok_or(None)?;
        let now = Instant::now();
        plugin.restarts.retain(|earlier| now.duration_since(*earlier) < RESTART_WINDOW);
        if plugin.restarts.len() >= MAX_RESTARTS {
            let minutes = RESTART_WINDOW.as_secs() / 60;
            return Err(Some(format!("it was started again {MAX_RESTARTS} times in {minutes} minutes")));
        }
        let lost = plugin.health.lost_threads();
        if lost >= MAX_LOST_THREADS {
            return Err(Some(format!("{lost} threads are lost to its calls")));
        }
        let (old, code) = (plugin.instance.take(), plugin.code.clone().ok_or(None)?);
        let _listening = old.as_ref().map(|old| old.listening());
        let replacing =
            (plugin.config.reload(&code.manifest) == Reload::After).then(|| self.end_first(plugin, old.as_ref()));
        // From here on the failed instance cannot write the store.
        self.tell_serving(Some(plugin.owner));
        if let Err(error) = self.launch(plugin, code) {
            self.tell_serving(None);
            if replacing.is_some() {
                self.serve_without(plugins, position, configured);
            }
            return Err(Some(error.to_string()));
        }
        plugin.restarts.push(now);
        plugin.restart_count += 1;
        let started = plugin.instance.clone();
        // Found by its id until it has ended.
        self.retired.lock().extend(old.clone());
        let published = self.publish(plugins, configured).map_err(|error| Some(error.to_string()));
        // The instance that is not served ends.
        let unserved = if published.is_ok() { old } else { started };
        if let Some(instance) = unserved {
            self.retire(&instance);
        }
        published
    }
}
