//! A plugin's configuration: one `[[plugins]]` entry.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::DEFAULT_MAX_BYTES;
use crate::grants::Grant;

/// A `[[plugins]]` entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginConfig {
    /// The library: a path, or a bare name that is searched in `--plugin-dir` and beside the executable.
    pub file: String,
    /// Whether the plugin is started.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The SHA-256 that the file must have, in hexadecimal; any if left out.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The deadline of its calls, in seconds; 0 for none. Methods marked `long_running` have none. By default
    /// `rpc.call_deadline_seconds`.
    #[serde(default)]
    pub deadline_seconds: Option<u64>,
    /// The longest answer of an untrusted plugin, in bytes; 64 MiB if left out.
    #[serde(default)]
    pub max_answer_bytes: Option<usize>,
    /// Whether the plugin is trusted: its inline methods run on the network threads, and its answers are not bounded and only
    /// checked for line ends.
    #[serde(default)]
    pub trusted: bool,
    /// The services that the plugin may use.
    #[serde(default)]
    grants: Option<Vec<Grant>>,
    /// The plugin's options, as its manifest declares them.
    #[serde(default)]
    pub options: Map<String, Value>,
}

impl PluginConfig {
    /// The services that the plugin may use.
    pub fn grants(&self) -> &[Grant] {
        self.grants.as_deref().unwrap_or_default()
    }

    /// The longest answer of an untrusted plugin, in bytes.
    pub fn max_answer_bytes(&self) -> usize {
        self.max_answer_bytes.unwrap_or(DEFAULT_MAX_BYTES)
    }

    /// The deadline of its calls; `default` where the entry sets none. `None` is no deadline.
    pub fn deadline(&self, default: Option<Duration>) -> Option<Duration> {
        self.deadline_seconds.map_or(default, seconds)
    }
}

/// A time limit of the configuration, in seconds; 0 means none.
pub fn seconds(limit: u64) -> Option<Duration> {
    (limit > 0).then(|| Duration::from_secs(limit))
}

fn enabled() -> bool {
    true
}
