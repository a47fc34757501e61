//! The log's lines about plugins that are started, stopped and reloaded: one each, with what it was and who asked for it.

use std::fmt;

use outrigger_values::text::printable;

use super::Plugin;
use crate::file::PluginFile;
use crate::instance::LoadedLibrary;

/// What is done with a plugin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// It is started.
    Start,
    /// It is stopped.
    Stop,
    /// It is replaced by what its file holds now.
    Reload,
    /// It is started again after a fault.
    Restart,
}

impl Change {
    fn made(self) -> &'static str {
        match self {
            Self::Start => "started the plugin",
            Self::Stop => "stopped the plugin",
            Self::Reload => "reloaded the plugin",
            Self::Restart => "started the plugin again",
        }
    }

    fn failed(self) -> &'static str {
        match self {
            Self::Start => "the plugin was not started",
            Self::Stop => "the plugin was not stopped",
            Self::Reload => "the plugin was not reloaded; it goes on as it was",
            Self::Restart => "the plugin was not started again",
        }
    }
}

/// The plugin that a line is about.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Subject {
    id: String,
    version: String,
    hash: String,
}

impl Subject {
    /// A plugin of the configuration; version and hash are empty while its file was never opened.
    pub fn of(plugin: &Plugin) -> Self {
        let opened = plugin.code.as_deref().map(Self::running);
        opened.unwrap_or_else(|| Self::named(plugin.id()))
    }

    /// A plugin whose code was opened.
    pub fn running(code: &LoadedLibrary) -> Self {
        let (manifest, hash) = (&code.manifest, code.hash.clone());
        Self { id: manifest.id.clone(), version: manifest.version.clone(), hash }
    }

    /// A file that was read, whether or not it is opened.
    pub fn read(file: &PluginFile) -> Self {
        let (manifest, hash) = (&file.manifest, file.hash.to_string());
        Self { id: manifest.id.clone(), version: manifest.version.clone(), hash }
    }

    /// What somebody calls a plugin that may not be there.
    pub fn named(name: &str) -> Self {
        Self { id: printable(name).into_owned(), ..Self::default() }
    }
}

/// A change was made.
pub(super) fn made(change: Change, asked_by: &str, Subject { id, version, hash }: &Subject) {
    tracing::info!(plugin = id, version, hash, asked_by, "{}", change.made());
}

/// A change failed, and the plugin is as it was.
pub(super) fn failed(
    change: Change,
    asked_by: &str,
    Subject { id, version, hash }: &Subject,
    reason: &dyn fmt::Display,
) {
    let reason = reason.to_string();
    tracing::error!(plugin = id, version, hash, asked_by, reason, "{}", change.failed());
}
