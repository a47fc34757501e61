//! The log lines about started, stopped and reloaded plugins: one each, with the plugin and the operator.

use std::fmt;

use outrigger_values::text::printable;

use crate::instance::LoadedLibrary;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Start,
    Stop,
    /// Replaced by an instance from its current file.
    Reload,
    Restart,
}

impl Change {
    pub fn made(self, asked_by: &str, code: &LoadedLibrary) {
        let what = match self {
            Self::Start => "started the plugin",
            Self::Stop => "stopped the plugin",
            Self::Reload => "reloaded the plugin",
            Self::Restart => "started the plugin again",
        };
        let (manifest, form, hash) = (&code.manifest, code.form(), code.hash.as_deref());
        tracing::info!(plugin = manifest.id, version = manifest.version, form, hash, asked_by, "{what}");
    }

    /// The change failed, and the plugin is unchanged. `name` may come from a request; there may be no such plugin.
    pub fn failed(self, asked_by: &str, name: &str, reason: &dyn fmt::Display) {
        let what = match self {
            Self::Start => "the plugin was not started",
            Self::Stop => "the plugin was not stopped",
            Self::Reload => "the plugin was not reloaded; the old instance continues",
            Self::Restart => "the plugin was not started again",
        };
        let (plugin, reason) = (&*printable(name), reason.to_string());
        tracing::error!(plugin, asked_by, reason, "{what}");
    }
}
