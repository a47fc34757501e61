//! `outrigger run --check`: finds errors that would keep the host from starting, as far as this is possible without
//! starting it.

use super::confined::{ConfinementReport, bounded};
use super::limits::check_limits;
use super::log::init_log;
use super::node_report::report;
use super::sources::sources;
use super::{Before, RunArgs, RunError, configuration, data_folder, parts, places, requirements, users};
use crate::router::builtins;
use outrigger_plugins::linked::Found;
use outrigger_plugins::registry::{self, PluginsConfig};
use outrigger_sdk::manifest::Manifest;
use outrigger_standard::work;

/// Checks the configuration, the users, the files of enabled plugins with their options, grants and routes, the data directory, the
/// ports and the audit log's file, and queries the node. It executes no plugin code and writes nothing. Returns a summary, and lines
/// about the methods that plugins may call, the sandbox of isolated plugins, and the node.
pub fn check(args: &RunArgs, before: Before) -> Result<String, RunError> {
    check_limits(None)?;
    let loaded = configuration(args)?;
    drop(init_log(&loaded)?);
    check_limits(Some(&loaded.config))?;
    let data = data_folder(&loaded);
    let sources = sources(args);
    users(&loaded, &sources)?;
    loaded.tls()?;
    let config = &loaded.config;
    let configured = PluginsConfig { plugins: config.plugins.clone(), routes: config.routes.clone() };
    let found = registry::check(&configured, &sources, &builtins::RESERVED)
        .map_err(|failure| parts::plugin_error(&loaded, &failure))?;
    let manifests: Vec<&Manifest> = found.iter().map(Found::manifest).collect();
    parts::check_providers(&loaded, args, &manifests)?;
    let methods: usize = manifests.iter().map(|manifest| manifest.methods.len()).sum();
    let enabled = config.plugins.iter().enumerate().filter(|(_, plugin)| plugin.enabled).zip(manifests.iter().copied());
    let required: Vec<_> = enabled.clone().map(|((position, _), manifest)| (position, manifest)).collect();
    if let Ok(network) = work::network(&config.network) {
        for (position, manifest) in &required {
            let refused = |reason| format!("plugin '{}' {reason}", manifest.id);
            requirements::check_chain(&manifest.requires, network, config.backend.is_some())
                .map_err(|reason| loaded.plugin_error(Some(*position), "file", refused(reason)))?;
        }
    }
    let mut confined = ConfinementReport::default();
    let mut isolated = Vec::new();
    for ((position, plugin), manifest) in enabled.clone() {
        let told = confined.report(config.plugin_defaults.isolated, plugin, manifest);
        isolated.extend(told.map_err(|(key, reason)| loaded.plugin_error(Some(position), key, reason))?);
    }
    isolated.extend(confined.denied());
    if !isolated.is_empty() {
        isolated.push(bounded());
    }
    // The grants that let a plugin call methods.
    let of_node = enabled.flat_map(|((_, plugin), manifest)| {
        let granted = plugin.grants().iter().filter(|grant| grant.methods.is_some());
        granted.map(|grant| format!("\nplugin '{}' is granted {grant}", manifest.id))
    });
    let of_node: String = of_node.collect();
    places::try_places(&loaded, args, &data, before)?;
    let used = format!("The configuration is valid: {} plugins with {methods} methods{of_node}", manifests.len());
    let node = config.backend.as_ref().map(|backend| report(&loaded, backend, &required)).transpose()?;
    let unused = manifests.iter().filter_map(|manifest| registry::unused_wrapper(manifest, &config.routes)).collect();
    let own: Vec<_> = found.iter().filter(|one| one.path().is_none()).map(|one| &*one.manifest().id).collect();
    let built_in = format!("the program's own copies run, since no folder has their libraries: {}", own.join(", "));
    let built_in = (!own.is_empty()).then_some(built_in);
    Ok([vec![used], built_in.into_iter().collect(), unused, isolated, node.unwrap_or_default()].concat().join("\n"))
}
