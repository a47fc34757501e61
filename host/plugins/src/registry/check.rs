//! Checks of plugins that execute none of their code.

use std::path::PathBuf;

use outrigger_sdk::manifest::Manifest;

use super::routes::owners;
use super::{Failure, PluginsConfig, RegistryError};
use crate::PluginConfig;
use crate::file::{PluginFile, find};
use crate::grants::{self, ServiceSource};
use crate::instance::StartError;

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
    let option = |source| RegistryError::Option { plugin: manifest.id.clone(), source };
    manifest.options(&config.options).map_err(option)?;
    Ok(grants::check(manifest, config.grants(), services).map_err(StartError::from)?)
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
    let manifests: Vec<_> = files.iter().map(|(position, file)| (*position, &file.manifest)).collect();
    owners(&manifests, &[], &configured.routes, builtins).map_err(|(plugin, error)| Failure { plugin, error })?;
    Ok(files.into_iter().map(|(_, file)| file.manifest).collect())
}
