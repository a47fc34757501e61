//! Checks of plugins that execute none of their code.

use std::path::PathBuf;

use outrigger_sdk::manifest::Manifest;
use serde_json::{Map, Value};

use super::routes::{Known, routes, wrappers};
use super::{Failure, PluginsConfig, RegistryError, Requirements};
use crate::PluginConfig;
use crate::file::{PluginFile, find};
use crate::grants::{self, ServiceSource};
use crate::instance::StartError;
use crate::secrets::reveal;

/// Reads a plugin's file, and checks its owner, permissions and pinned SHA-256.
pub(super) fn read(config: &PluginConfig, folders: &[PathBuf]) -> Result<PluginFile, RegistryError> {
    let file = PluginFile::read(&find(&config.file, folders)?)?;
    file.check_owner()?;
    if let Some(pinned) = &config.sha256 {
        file.check_pin(pinned)?;
    }
    Ok(file)
}

/// Checks the configured options and grants of a plugin.
///
/// # Errors
/// The first that its manifest does not allow.
pub(super) fn check_settings(
    config: &PluginConfig,
    manifest: &Manifest,
    services: &dyn ServiceSource,
) -> Result<(), RegistryError> {
    options(config, manifest)?;
    Ok(grants::check(manifest, config.grants(), services).map_err(StartError::from)?)
}

/// Checks a plugin's `requires` against the node.
pub(super) fn check_requirements(manifest: &Manifest, requirements: &Requirements) -> Result<(), RegistryError> {
    let refused = |reason| RegistryError::Requires { plugin: manifest.id.clone(), reason };
    requirements(&manifest.requires).map_err(refused)
}

/// The options of an instance, with its secrets.
///
/// # Errors
/// The first option that its manifest does not allow, or that cannot be read.
pub(super) fn options(config: &PluginConfig, manifest: &Manifest) -> Result<Map<String, Value>, RegistryError> {
    let plugin = || manifest.id.clone();
    let options = manifest.options(&config.options);
    let mut options = options.map_err(|source| RegistryError::Option { plugin: plugin(), source })?;
    reveal(manifest, &mut options).map_err(|source| RegistryError::Secret { plugin: plugin(), source })?;
    Ok(options)
}

/// Checks the plugins and routes of a configuration without starting them. Returns the manifests of the enabled
/// plugins.
///
/// # Errors
/// The first error that would keep the host from starting, and its plugin.
pub fn check(
    configured: &PluginsConfig,
    folders: &[PathBuf],
    builtins: &[&str],
    services: &dyn ServiceSource,
) -> Result<Vec<Manifest>, Failure> {
    let mut files: Vec<(usize, PluginFile)> = Vec::new();
    for (position, config) in configured.plugins.iter().enumerate().filter(|(_, config)| config.enabled) {
        let failed = |error| Failure { plugin: Some(position), error };
        let file = read(config, folders).map_err(failed)?;
        check_settings(config, &file.manifest, services).map_err(failed)?;
        if let Some((_, first)) = files.iter().find(|(_, earlier)| earlier.manifest.id == file.manifest.id) {
            let (id, first, second) = (file.manifest.id.clone(), first.path.clone(), file.path.clone());
            return Err(failed(RegistryError::SameId { id, first, second }));
        }
        files.push((position, file));
    }
    let known = files.iter().map(|(position, file)| Known {
        position: *position,
        manifest: &file.manifest,
        runs: true,
        instance: None,
    });
    let known: Vec<_> = known.collect();
    let failed = |(plugin, error)| Failure { plugin, error };
    let wrappers = wrappers(&known, &configured.routes, true).map_err(failed)?;
    routes(&known, &configured.routes, &wrappers, builtins, true).map_err(failed)?;
    drop(known);
    Ok(files.into_iter().map(|(_, file)| file.manifest).collect())
}
