//! A plugin's configuration: one `[[plugins]]` entry.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger_base::paths::{NoHome, absolute_text};
use outrigger_isolate::Bounds;
use outrigger_sandbox::{Policy, Reach};
use outrigger_sdk::manifest::Manifest;
use outrigger_service::policy::POLICY;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::answer::DEFAULT_MAX_BYTES;
use crate::file::is_path;
use crate::grants::{Grant, STORE};

/// The default limits of an isolated plugin's process: memory in MiB, and threads. The longest answers of the bundled
/// plugins exceed 100 MB, and building one needs several times its length.
pub const DEFAULT_MAX_MEMORY_MIB: u32 = 2048;
pub const DEFAULT_MAX_THREADS: u32 = 256;

/// The default bound of a plugin's store, in MiB.
pub const DEFAULT_MAX_STORE_MIB: u32 = 256;

/// A section `[[plugins]]`. Its `Default` is for plugins that no configuration has; in the file, `enabled` is true by default.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PluginConfig {
    /// The library: a path, or a bare name that the host looks up in `--plugin-dir`, beside the executable, in
    /// `../lib/outrigger` relative to the executable, and among the plugins linked into the program.
    #[serde(deserialize_with = "path_or_name")]
    pub file: String,
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// The SHA-256 that the file must have, in hexadecimal; any file if left out.
    pub sha256: Option<String>,
    /// The deadline of its calls, in seconds; 0 for none. Methods marked `long_running` have none. The default is
    /// `rpc.call_deadline_seconds`.
    pub deadline_seconds: Option<u64>,
    /// The longest answer of an untrusted plugin, in bytes; 64 MiB if left out.
    pub max_answer_bytes: Option<usize>,
    /// Whether the plugin is trusted: its inline methods run on the network threads, and its answers have no
    /// size limit and are only checked for line ends.
    #[serde(default)]
    pub trusted: bool,
    /// Whether the plugin runs in its own process. The default is `plugin_defaults.isolated`.
    pub isolated: Option<bool>,
    /// The sandbox of its process, if it is isolated.
    #[serde(default)]
    pub sandbox: Policy,
    /// The files and addresses that its process may reach, besides its services.
    #[serde(default)]
    pub reach: Vec<Reach>,
    /// The lowest level of its lines in the log: `error`, `warn`, `info` or `debug`. The default is the host's.
    pub log: Option<LogLevel>,
    /// Whether the host logs the text of its panics even if it may use private keys or wallets: the text may hold a
    /// secret.
    #[serde(default)]
    pub panic_text: bool,
    /// The memory limit of its process, in MiB; default 2048.
    pub max_memory_mib: Option<u32>,
    /// The thread limit of its process; default 256.
    pub max_threads: Option<u32>,
    /// The bound of its store, in MiB; default 256.
    pub max_store_mib: Option<u32>,
    /// Whether a new instance starts beside the old one, or after it has ended. The default is [`PluginConfig::reload`]'s.
    pub reload: Option<Reload>,
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// Its options, as declared in its manifest.
    #[serde(default)]
    pub options: Map<String, Value>,
}

/// The most plugins in the chain of a call.
pub const MAX_LINKS: usize = 8;

/// The key of `[routes]` for the wrappers. No method has this name.
pub const WRAP: &str = "wrap";

/// The section `[routes]`: which plugins answer a method, and which are put before methods.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Routes {
    /// The ids of a method's plugins. The first gets the call. A plugin may pass the call on to the next one.
    pub chains: BTreeMap<String, Vec<String>>,
    /// The wrappers. A wrapper without a list of methods stands before every method.
    pub wrap: Vec<Wrap>,
}

/// A plugin that is put before methods.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wrap {
    pub plugin: String,
    /// The methods; a `*` at the end matches any rest. All methods if left out.
    #[serde(default)]
    pub methods: Vec<String>,
    #[serde(default)]
    pub on_failure: OnFailure,
}

/// How the host treats a call whose wrapper has crashed, is late or does not run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    #[default]
    Refuse,
    /// The next plugin, the host or the node gets the call.
    Pass,
}

impl<'de> Deserialize<'de> for Routes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// A plugin's id alone, or a table.
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "the id of a plugin, or a table with plugin, methods and on_failure (`refuse` or `pass`)"
        )]
        enum Named {
            Id(String),
            Table(Wrap),
        }

        /// One plugin's id, or a list of them.
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "the id of a plugin, or a list of ids")]
        enum Plugins {
            One(String),
            Many(Vec<String>),
        }

        #[derive(Deserialize)]
        struct Section {
            #[serde(default)]
            wrap: Vec<Named>,
            #[serde(flatten)]
            chains: BTreeMap<String, Plugins>,
        }

        let Section { wrap, chains } = Section::deserialize(deserializer)?;
        let of_id = |plugin| Wrap { plugin, methods: Vec::new(), on_failure: OnFailure::Refuse };
        let wrap = wrap.into_iter().map(|named| match named {
            Named::Id(id) => of_id(id),
            Named::Table(wrap) => wrap,
        });
        let wrap: Vec<Wrap> = wrap.collect();
        let chains = chains.into_iter().map(|(method, plugins)| match plugins {
            Plugins::One(id) => (method, vec![id]),
            Plugins::Many(ids) => (method, ids),
        });
        let chains: BTreeMap<_, _> = chains.collect();
        if wrap.len() > MAX_LINKS {
            return Err(D::Error::custom(format!("wrap has more than {MAX_LINKS} plugins")));
        }
        // The first entry of a plugin that concerns a method applies.
        let is_covered = |(at, entry): &(usize, &Wrap)| {
            wrap.iter().take(*at).any(|earlier| earlier.plugin == entry.plugin && earlier.methods.is_empty())
        };
        if let Some((_, entry)) = wrap.iter().enumerate().find(is_covered) {
            return Err(D::Error::custom(format!(
                "wrap: an earlier entry puts '{}' before every method",
                entry.plugin
            )));
        }
        let is_wrong = |name: &&String| name.trim_end_matches('*').contains('*') || name.ends_with("**");
        if let Some(name) = wrap.iter().flat_map(|wrap| &wrap.methods).find(is_wrong) {
            return Err(D::Error::custom(format!("'{name}': a '*' stands at the end of a method's name, or nowhere")));
        }
        if let Some((method, _)) = chains.iter().find(|(_, ids)| ids.is_empty()) {
            return Err(D::Error::custom(format!("the route of {method} names no plugin")));
        }
        Ok(Self { chains, wrap })
    }
}

/// The lowest level of a plugin's lines in the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

/// When the new instance of a reloaded plugin starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reload {
    /// While the old one still answers calls.
    Beside,
    /// After the old one has ended. Calls wait meanwhile.
    After,
}

/// Which plugins run in their own processes by default.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    #[default]
    Untrusted,
    All,
    None,
}

impl Isolation {
    pub fn applies_to(self, plugin: &PluginConfig) -> bool {
        plugin.isolated.unwrap_or(match self {
            Self::Untrusted => !plugin.trusted,
            Self::All => true,
            Self::None => false,
        })
    }
}

impl PluginConfig {
    /// Whether it is a policy with a store. Two instances that judge at the same time would each allow up to the policy's limit.
    pub fn judges_by_its_store(&self, manifest: &Manifest) -> bool {
        let judges = manifest.provides.iter().any(|service| service == POLICY);
        judges && self.grants().iter().any(|grant| grant.service == STORE)
    }

    /// When its new instance starts. Two instances that write to one folder might damage its files.
    pub fn reload(&self, manifest: &Manifest) -> Reload {
        let ends_first = manifest.folder || self.judges_by_its_store(manifest);
        self.reload.unwrap_or(if ends_first { Reload::After } else { Reload::Beside })
    }

    /// The limits of its process, if it is isolated.
    pub fn bounds(&self) -> Bounds {
        let memory = u64::from(self.max_memory_mib.unwrap_or(DEFAULT_MAX_MEMORY_MIB)) << 20;
        Bounds { memory, threads: self.max_threads.unwrap_or(DEFAULT_MAX_THREADS).into() }
    }

    /// The bound of its store, in bytes.
    pub fn max_store(&self) -> u64 {
        u64::from(self.max_store_mib.unwrap_or(DEFAULT_MAX_STORE_MIB)) << 20
    }

    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    pub fn max_answer_bytes(&self) -> usize {
        self.max_answer_bytes.unwrap_or(DEFAULT_MAX_BYTES)
    }

    pub fn deadline(&self, default: Option<Duration>) -> Option<Duration> {
        self.deadline_seconds.map_or(default, seconds)
    }
}

/// A time limit of the configuration, in seconds; 0 means none.
pub fn seconds(limit: u64) -> Option<Duration> {
    (limit > 0).then(|| Duration::from_secs(limit))
}

fn path_or_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    absolute_file(String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Makes a plugin's file absolute if it is a path, not a bare name.
fn absolute_file(file: String) -> Result<String, NoHome> {
    if is_path(&file) { absolute_text(&file) } else { Ok(file) }
}

/// The file that a client names, in the form of [`PluginConfig::file`].
pub fn file_name(name: &str) -> String {
    absolute_file(name.to_owned()).unwrap_or_else(|_| name.to_owned())
}

fn enabled() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_names_a_plugin_as_the_configuration_does() {
        let here = std::env::current_dir().unwrap();
        for file in ["./acme.so", "acme.so"] {
            let config: PluginConfig = toml::from_str(&format!("file = '{file}'")).unwrap();
            assert_eq!(
                (config.file.as_str(), file_name(file)),
                (here.join("acme.so").to_str().unwrap(), config.file.clone())
            );
        }
        assert_eq!(file_name("mining"), "mining");
    }

    #[test]
    fn a_policy_with_a_store_ends_before_its_successor_starts() {
        let manifest =
            serde_json::json!({"id": "guard", "version": "1", "summary": "s", "provides": ["policy/1"], "methods": []});
        let manifest: Manifest = serde_json::from_value(manifest).unwrap();
        let reload = |rest: &str| {
            let config: PluginConfig = toml::from_str(&format!("file = 'guard'\n{rest}")).unwrap();
            config.reload(&manifest)
        };
        assert_eq!(reload("grants = ['store/1']"), Reload::After);
        assert_eq!((reload("grants = ['chain/1']"), reload("reload = 'after'")), (Reload::Beside, Reload::After));
    }
}
