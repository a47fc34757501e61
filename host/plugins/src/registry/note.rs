//! The log lines about started, stopped and reloaded plugins: one each, with the plugin and the operator.

use std::fmt;

use outrigger_values::text::printable;

use super::Plugin;
use crate::file::PluginFile;
use crate::instance::LoadedLibrary;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Start,
    Stop,
    /// It is replaced by the present content of its file.
    Reload,
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
            Self::Reload => "the plugin was not reloaded; the old instance continues",
            Self::Restart => "the plugin was not started again",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Subject {
    id: String,
    version: String,
    hash: String,
}

impl Subject {
    /// Version and hash are empty while the file was never opened.
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

    /// The name in a request; there may be no such plugin.
    pub fn named(name: &str) -> Self {
        Self { id: printable(name).into_owned(), ..Self::default() }
    }
}

pub(super) fn made(change: Change, asked_by: &str, Subject { id, version, hash }: &Subject) {
    tracing::info!(plugin = id, version, hash, asked_by, "{}", change.made());
}

/// A change failed, and the plugin is unchanged.
pub(super) fn failed(
    change: Change,
    asked_by: &str,
    Subject { id, version, hash }: &Subject,
    reason: &dyn fmt::Display,
) {
    let reason = reason.to_string();
    tracing::error!(plugin = id, version, hash, asked_by, reason, "{}", change.failed());
}
