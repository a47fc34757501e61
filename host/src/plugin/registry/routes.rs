//! Who answers which method.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_sdk::manifest::MethodSpec;

use super::RegistryError;
use crate::plugin::instance::Instance;
use crate::plugin::pace::Pace;

/// A method and who answers it.
#[derive(Clone)]
pub struct Route {
    /// The plugin's instance.
    pub instance: Arc<Instance>,
    /// The method, as the manifest has it.
    pub method: Arc<MethodSpec>,
    /// Where it stands in the manifest.
    pub position: usize,
    /// How it has turned out, where it is a quick one.
    pub pace: Arc<Pace>,
}

/// The methods by name, in order.
pub type RouteTable = BTreeMap<String, Route>;

/// An error, and the position of the plugin that it is about.
pub(super) type Misrouted = (Option<usize>, RegistryError);

/// Makes the table: a method belongs to its only claimant, or to the plugin that the configuration says. One that belongs
/// to a plugin that is not running is nobody's: falling back to another would change what the method does unseen.
///
/// `instances` are the running ones with their positions, `known` the ids of all plugins.
pub(super) fn routes(
    instances: &[(usize, Arc<Instance>)],
    known: &[String],
    overrides: &BTreeMap<String, String>,
    builtins: &[&str],
) -> Result<RouteTable, Misrouted> {
    let mut table = RouteTable::new();
    for (position, instance) in instances {
        let manifest = instance.manifest();
        for (at, method) in manifest.methods.iter().enumerate() {
            let name = &method.name;
            let claimed = |first: &str| {
                let (method, second) = (name.clone(), manifest.id.clone());
                (Some(*position), RegistryError::DuplicateMethod { method, first: first.to_owned(), second })
            };
            if builtins.contains(&name.as_str()) {
                let (method, plugin) = (name.clone(), manifest.id.clone());
                return Err((Some(*position), RegistryError::Reserved { method, plugin }));
            }
            if overrides.get(name).is_some_and(|owner| *owner != manifest.id) {
                continue;
            }
            let (instance, method) = (instance.clone(), Arc::new(method.clone()));
            let route = Route { instance, method, position: at, pace: Arc::default() };
            if let Some(first) = table.insert(name.clone(), route) {
                return Err(claimed(&first.instance.manifest().id));
            }
        }
    }
    for (method, plugin) in overrides {
        if builtins.contains(&method.as_str()) {
            let (method, plugin, reason) = (method.clone(), plugin.clone(), "that method is reserved for the host");
            return Err((None, RegistryError::Route { method, plugin, reason }));
        }
        let owner = instances.iter().find(|(_, instance)| instance.manifest().id == *plugin);
        let reason = match owner {
            Some(_) if table.contains_key(method) => continue,
            Some(_) => "that plugin has no such method",
            None if known.contains(plugin) => continue,
            None => "no such plugin is enabled",
        };
        return Err((None, RegistryError::Route { method: method.clone(), plugin: plugin.clone(), reason }));
    }
    Ok(table)
}
