//! What an operator says of a plugin.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::DEFAULT_MAX_BYTES;
use crate::grants::Grant;

/// A plugin.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginConfig {
    /// A bare name, looked for beside the executable and in `--plugin-dir`, or a path.
    pub file: String,
    /// Whether it is started.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The SHA-256 that the file must have, in hexadecimal.
    #[serde(default)]
    pub sha256: Option<String>,
    /// How long a call of it may take, in seconds, unless its manifest calls the method long-running; 0 for as long as it
    /// likes. By default `rpc.call_deadline_seconds`.
    #[serde(default)]
    pub deadline_seconds: Option<u64>,
    /// The longest answer that is taken from it, in bytes, where it is not trusted; 64 MiB where it is left out.
    #[serde(default)]
    pub max_answer_bytes: Option<usize>,
    /// Whether it is trusted: its inline methods run on the threads that serve connections, and its answers are neither
    /// checked nor bounded.
    #[serde(default)]
    pub trusted: bool,
    /// The services it may use.
    #[serde(default)]
    grants: Option<Vec<Grant>>,
    /// Its options.
    #[serde(default)]
    pub options: Map<String, Value>,
}

impl PluginConfig {
    /// The services it may use.
    pub fn grants(&self) -> &[Grant] {
        self.grants.as_deref().unwrap_or_default()
    }

    /// The longest answer that is taken from it, in bytes, where it is not trusted.
    pub fn max_answer_bytes(&self) -> usize {
        self.max_answer_bytes.unwrap_or(DEFAULT_MAX_BYTES)
    }

    /// How long a call of it may take; `otherwise` where the plugin's own configuration does not say.
    pub fn deadline(&self, otherwise: Option<Duration>) -> Option<Duration> {
        self.deadline_seconds.map_or(otherwise, seconds)
    }
}

/// A time limit of the configuration: 0 is none.
pub fn seconds(limit: u64) -> Option<Duration> {
    (limit > 0).then(|| Duration::from_secs(limit))
}

fn enabled() -> bool {
    true
}
