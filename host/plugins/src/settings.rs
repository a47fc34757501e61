//! A plugin's configuration: one `[[plugins]]` entry.

use std::time::Duration;

use outrigger_isolate::{Bounds, Confinement};
use outrigger_sandbox::{Policy, Reach};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answer::DEFAULT_MAX_BYTES;
use crate::grants::Grant;

/// The memory that an isolated plugin's process may use, in MiB, and its threads, where its entry does not say. The longest answers
/// of the groups that come with the host, of 100 MB and more, take several times their length.
pub const DEFAULT_MAX_MEMORY_MIB: u32 = 2048;
pub const DEFAULT_MAX_THREADS: u32 = 256;

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
    /// Whether the plugin runs in a process of its own; by default as `plugin_defaults.isolated` says.
    #[serde(default)]
    pub isolated: Option<bool>,
    /// What is done where the system does not allow a sandbox around its process.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// What it may reach from its process beyond its services.
    #[serde(default)]
    pub reach: Vec<Reach>,
    /// Whether its process may leave a core file when it crashes, which has all of its memory: for debugging.
    #[serde(default)]
    pub core: bool,
    /// Whether the log has the text of its panics, though it may use private keys or wallets and the text may hold a secret.
    #[serde(default)]
    pub panic_text: bool,
    /// The memory that its process may use, in MiB; 2048 if left out.
    #[serde(default)]
    pub max_memory_mib: Option<u32>,
    /// The threads that its process may have; 256 if left out.
    #[serde(default)]
    pub max_threads: Option<u32>,
    /// The services that the plugin may use.
    #[serde(default)]
    grants: Option<Vec<Grant>>,
    /// The plugin's options, as its manifest declares them.
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// How an isolated plugin's process is confined.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// It is not started where the system does not allow a sandbox.
    #[default]
    Require,
    /// It is confined as far as the system allows.
    BestEffort,
    /// It is not confined: for debugging.
    None,
}

/// Which plugins run in processes of their own, where their entries do not say.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Those that are not trusted.
    #[default]
    Untrusted,
    /// All of them.
    All,
    /// None of them.
    None,
}

impl Isolation {
    /// Whether a plugin runs in a process of its own.
    pub fn applies_to(self, plugin: &PluginConfig) -> bool {
        plugin.isolated.unwrap_or(match self {
            Self::Untrusted => !plugin.trusted,
            Self::All => true,
            Self::None => false,
        })
    }
}

impl PluginConfig {
    /// What its process is confined to, where it is isolated.
    pub fn confinement(&self) -> Option<Confinement> {
        let policy = match self.sandbox {
            Sandbox::Require => Policy::Require,
            Sandbox::BestEffort => Policy::BestEffort,
            Sandbox::None => return None,
        };
        Some(Confinement { policy, reach: self.reach.clone(), core: self.core })
    }

    /// What its process may use, where it is isolated.
    pub fn bounds(&self) -> Bounds {
        let memory = u64::from(self.max_memory_mib.unwrap_or(DEFAULT_MAX_MEMORY_MIB)) << 20;
        Bounds { memory, threads: self.max_threads.unwrap_or(DEFAULT_MAX_THREADS).into() }
    }

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
