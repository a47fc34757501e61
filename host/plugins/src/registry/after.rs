//! Plugins whose instances must not run at the same time (`reload = "after"`): the old instance ends before its successor starts,
//! and calls wait for the successor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::change::{ChangeError, DRAIN_PATIENCE};
use super::{Plugin, Registry};
use crate::Routes;
use crate::instance::Instance;

/// How long an isolated plugin's process may run on after its instance has ended.
const PROCESS_PATIENCE: Duration = Duration::from_secs(10);

/// How often the host checks whether the process has ended.
const PROCESS_POLL: Duration = Duration::from_millis(2);

/// Marks an instance that ends before its successor starts. New calls wait until this guard is dropped.
pub(super) struct Replacing<'a> {
    registry: &'a Registry,
    instance: Option<u64>,
}

impl Drop for Replacing<'_> {
    fn drop(&mut self) {
        self.registry.replacing.send_modify(|replacing| replacing.retain(|id| Some(*id) != self.instance));
    }
}

impl Registry {
    /// Ends all instances of a plugin. New calls to `old`, the serving instance, wait for its successor. Calls that `old` has begun end by
    /// their deadline.
    pub(super) fn end_first(&self, plugin: &Plugin, old: Option<&Arc<Instance>>) -> Replacing<'_> {
        let replacing = Replacing { registry: self, instance: old.map(|old| old.id) };
        if let Some(old) = old {
            self.replacing.send_modify(|replacing| replacing.push(old.id));
            self.retire(old);
        }
        let ending: Vec<_> =
            self.retired.lock().iter().filter(|instance| instance.owner == plugin.owner).cloned().collect();
        for instance in &ending {
            let patience = instance.deadline.unwrap_or(DRAIN_PATIENCE);
            instance.retire(patience);
            if !instance.wait_ended(Instant::now() + patience + PROCESS_PATIENCE) {
                tracing::error!(plugin = plugin.id(), "an instance has not ended in time; its successor starts anyway");
            }
        }
        self.tell_serving(Some(plugin.owner));
        let until = Instant::now() + PROCESS_PATIENCE;
        while !plugin.runners.read().pids.is_empty() && Instant::now() < until {
            std::thread::sleep(PROCESS_POLL);
        }
        replacing
    }

    /// Whether an instance is being replaced and its successor has not started yet.
    pub fn awaits_successor(&self, instance: u64) -> bool {
        self.replacing.borrow().contains(&instance)
    }

    /// Waits for the successor of an instance. Returns false at once if the instance is not being replaced.
    pub async fn successor(&self, instance: u64) -> bool {
        let mut replacing = self.replacing.subscribe();
        let is_awaited = replacing.borrow_and_update().contains(&instance);
        // The registry has the sender.
        is_awaited && replacing.wait_for(|replacing| !replacing.contains(&instance)).await.is_ok()
    }

    /// Starts the former library and configuration of a plugin again after its successor failed with `reason`. Returns the final error.
    pub(super) fn go_back(&self, plugins: Vec<Plugin>, position: usize, reason: ChangeError) -> ChangeError {
        let routes = self.serving().configured.clone();
        let Some((plugin, code)) = plugins.get(position).and_then(|plugin| Some((plugin, plugin.code.clone()?))) else {
            return reason;
        };
        let id = plugin.id().to_owned();
        // The successor may have started before it failed.
        let _replacing = self.end_first(plugin, None);
        let outcome = match self.replace(plugins.clone(), position, code, routes.clone()) {
            Ok(_) => format!("The former library of the plugin '{id}' was started again"),
            Err(again) => {
                self.serve_without(plugins, position, routes);
                format!("The plugin '{id}' does not run, since its former library did not start again either: {again}")
            }
        };
        ChangeError::Refused(format!("{reason}. {outcome}"))
    }

    /// Publishes the routes without a plugin whose instance has ended.
    pub(super) fn serve_without(&self, mut plugins: Vec<Plugin>, position: usize, routes: Routes) {
        if let Some(plugin) = plugins.get_mut(position) {
            plugin.instance = None;
        }
        if let Err(error) = self.publish(plugins, routes) {
            tracing::error!(%error, "cannot remove the routes of a plugin that has ended");
        }
    }
}
