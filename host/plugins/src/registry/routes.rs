//! The route of each method.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_sdk::manifest::{Manifest, MethodSpec};

use super::RegistryError;
use crate::instance::Instance;
use crate::latency::Latency;

#[derive(Clone)]
pub struct Route {
    pub instance: Arc<Instance>,
    pub method: Arc<MethodSpec>,
    /// Its position in the manifest.
    pub position: usize,
    /// The recent latency, if it is an inline method.
    pub latency: Arc<Latency>,
}

pub type RouteTable = BTreeMap<String, Route>;

/// An error, and the position of its plugin.
pub(super) type RouteError = (Option<usize>, RegistryError);

/// The table of the running instances, each with its position. `known` are the ids of all plugins.
pub(super) fn routes(
    instances: &[(usize, Arc<Instance>)],
    known: &[String],
    overrides: &BTreeMap<String, String>,
    builtins: &[&str],
) -> Result<RouteTable, RouteError> {
    let manifests: Vec<_> = instances.iter().map(|(position, instance)| (*position, instance.manifest())).collect();
    let route = |(name, owner): (String, usize)| {
        let (_, instance) = instances.get(owner)?;
        let methods = &instance.manifest().methods;
        let position = methods.iter().position(|method| method.name == name)?;
        let method = Arc::new(methods.get(position)?.clone());
        Some((name, Route { instance: instance.clone(), method, position, latency: Arc::default() }))
    };
    Ok(owners(&manifests, known, overrides, builtins)?.into_iter().filter_map(route).collect())
}

/// The owner of each method: its only claimant, or the configured plugin. If the configured plugin does not run, the
/// method has no owner: falling back to another would silently change the method.
///
/// `manifests` are those of the running plugins with their positions, `known` the ids of all plugins.
pub(super) fn owners(
    manifests: &[(usize, &Manifest)],
    known: &[String],
    overrides: &BTreeMap<String, String>,
    builtins: &[&str],
) -> Result<BTreeMap<String, usize>, RouteError> {
    let mut owners = BTreeMap::new();
    for (index, (position, manifest)) in manifests.iter().enumerate() {
        for method in &manifest.methods {
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
            let first = owners.insert(name.clone(), index).and_then(|first| manifests.get(first));
            if let Some((_, first)) = first {
                return Err(claimed(&first.id));
            }
        }
    }
    for (method, plugin) in overrides {
        if builtins.contains(&method.as_str()) {
            let (method, plugin, reason) = (method.clone(), plugin.clone(), "that method is reserved for the host");
            return Err((None, RegistryError::Route { method, plugin, reason }));
        }
        let reason = match manifests.iter().any(|(_, manifest)| manifest.id == *plugin) {
            true if owners.contains_key(method) => continue,
            true => "that plugin has no such method",
            false if known.contains(plugin) => continue,
            false => "no such plugin is enabled",
        };
        return Err((None, RegistryError::Route { method: method.clone(), plugin: plugin.clone(), reason }));
    }
    Ok(owners)
}
