//! Checks of plugins that execute none of their code.

use bitcoin::hashes::{Hash, sha256};
use outrigger_base::nearest::suggestion;
use outrigger_sdk::manifest::{Manifest, OptionError};
use serde_json::{Map, Value};

use super::routes::{Known, routes};
use super::{Failure, PluginsConfig, RegistryError};
use crate::grants;
use crate::instance::StartError;
use crate::linked::{Found, Sources};
use crate::secrets::reveal;
use crate::{PluginConfig, Reload, Routes};

/// Finds a plugin, and checks the owner, permissions and pinned SHA-256 of its file.
pub(super) fn read(config: &PluginConfig, sources: &Sources) -> Result<Found, RegistryError> {
    let found = sources.read(config)?;
    if let Found::File(file) = &found {
        file.check_owner()?;
        if let Some(pinned) = &config.sha256 {
            file.check_pin(pinned)?;
        }
    }
    Ok(found)
}

/// Checks the configured options, grants and `reload` of a plugin.
///
/// # Errors
/// The first option or grant that its manifest does not allow, or a policy with a store that would run twice.
pub(super) fn check_settings(config: &PluginConfig, manifest: &Manifest) -> Result<(), RegistryError> {
    if config.reload == Some(Reload::Beside) && config.judges_by_its_store(manifest) {
        return Err(RegistryError::Reload(manifest.id.clone()));
    }
    options(config, manifest)?;
    Ok(grants::check(manifest, config.grants()).map_err(StartError::from)?)
}

/// The options of an instance, with its secrets.
///
/// # Errors
/// The first option that its manifest does not allow, or the first secret that cannot be read.
pub(super) fn options(config: &PluginConfig, manifest: &Manifest) -> Result<Map<String, Value>, RegistryError> {
    let refused = |reason| RegistryError::Option { plugin: manifest.id.clone(), reason };
    let options = manifest.options(&config.options);
    let mut options = options.map_err(|error| {
        let known = manifest.options.iter().map(|option| &*option.name);
        let suggestion = match &error {
            OptionError::Unknown(name) => suggestion(name, known),
            _ => String::new(),
        };
        refused(format!("{error}{suggestion}"))
    })?;
    reveal(manifest, &mut options).map_err(refused)?;
    Ok(options)
}

pub(super) fn digest(options: &Map<String, Value>) -> sha256::Hash {
    sha256::Hash::hash(&serde_json::to_vec(options).unwrap_or_default())
}

/// Checks the plugins and routes of a configuration without starting them. Returns the enabled plugins.
///
/// # Errors
/// The first error that would keep the host from starting, and its plugin.
pub fn check(configured: &PluginsConfig, sources: &Sources, builtins: &[&str]) -> Result<Vec<Found>, Failure> {
    let mut all: Vec<(usize, Found)> = Vec::new();
    for (position, config) in configured.plugins.iter().enumerate().filter(|(_, config)| config.enabled) {
        let failed = |error| Failure { plugin: Some(position), error };
        let found = read(config, sources).map_err(failed)?;
        let manifest = found.manifest();
        check_settings(config, manifest).map_err(failed)?;
        if let Some((_, first)) = all.iter().find(|(_, earlier)| earlier.manifest().id == manifest.id) {
            return Err(failed(RegistryError::same_id(&manifest.id, first.path(), found.path())));
        }
        all.push((position, found));
    }
    let known = all.iter().map(|(position, found)| Known {
        position: *position,
        manifest: found.manifest(),
        runs: true,
        instance: None,
    });
    let known: Vec<_> = known.collect();
    routes(&known, &configured.routes, builtins, true).map_err(|(plugin, error)| Failure { plugin, error })?;
    drop(known);
    Ok(all.into_iter().map(|(_, found)| found).collect())
}

/// A line about a wrapper that no entry of `wrap` names. `None` for any other plugin.
pub fn unused_wrapper(manifest: &Manifest, routes: &Routes) -> Option<String> {
    let is_named = routes.wrap.iter().any(|wrap| wrap.plugin == manifest.id);
    let id = &manifest.id;
    (manifest.wrapper.is_some() && !is_named)
        .then(|| format!("the plugin '{id}' wraps no methods: `wrap` in [routes] does not name it"))
}
