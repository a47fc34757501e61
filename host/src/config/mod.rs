//! The configuration: a TOML file, or the built-in one, with overrides from the command line.
//!
//! An unknown key is an error, and errors name the file and the key, and the line if it is known.

mod backend;
mod backup;
mod check;
pub mod former;
mod notify;
mod paths;
mod reach;
#[cfg(test)]
mod reference;
mod settings;
mod wallet;
mod words;

use std::fmt;
use std::path::Path;

use bitcoin::hex::DisplayHex;
use outrigger_standard::work;
use serde::Deserialize;

pub use notify::{NotifyConfig, Publication, Topic};
pub use paths::path_argument;
pub use settings::{BackendConfig, Config, LogFormat, PluginConfig, UnknownMethods, UserConfig, Wallets, seconds};

/// The default configuration of `run`: `config/regtest.toml`.
pub const BUILT_IN: &str = include_str!("../../config/regtest.toml");

/// The default configuration of `run --bitcoind`: `config/bitcoind.toml`.
pub const FOR_BITCOIND: &str = include_str!("../../config/bitcoind.toml");

/// The prefix of the folder name of a custom signet's data.
pub const CUSTOM_SIGNET: &str = "signet_";

const BUILT_IN_NAME: &str = "built-in configuration";

/// A configuration error: its place, key and reason.
#[derive(Debug)]
pub struct ConfigError {
    file: String,
    line: Option<usize>,
    key: Option<String>,
    reason: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    /// An error about an argument of the command line, or about a file as a whole.
    pub fn of_whole(name: &str, reason: String) -> Self {
        Self { file: name.to_owned(), line: None, key: None, reason }
    }
}

/// A configuration and its origin.
pub struct LoadedConfig {
    pub config: Config,
    name: String,
    text: String,
    sets: Vec<String>,
}

impl LoadedConfig {
    /// Reads a file, or the built-in configuration, and applies `sets`, each `section.key=value`.
    pub fn read(file: Option<&Path>, sets: &[String]) -> Result<Self, ConfigError> {
        Self::read_or(file, BUILT_IN, sets)
    }

    /// Reads a file, or a built-in configuration, and applies `sets`.
    pub fn read_or(file: Option<&Path>, built_in: &str, sets: &[String]) -> Result<Self, ConfigError> {
        let (name, text) = match file {
            None => (BUILT_IN_NAME.to_owned(), built_in.to_owned()),
            Some(path) => {
                let name = path.display().to_string();
                let failed = |error: std::io::Error| ConfigError::of_whole(&name, error.to_string());
                let text = std::fs::read_to_string(path).map_err(failed)?;
                (name, text)
            }
        };
        // `sets` may replace a wrong setting of the file. `parse` tells its line.
        let config = apply(&name, &text, sets).or_else(|error| parse(&name, &text).and(Err(error)))?;
        let loaded = Self { config, name, text, sets: sets.to_vec() };
        loaded.check()?;
        Ok(loaded)
    }

    /// The settings as they were written, those of the command line included.
    pub fn table(&self) -> Result<toml::Table, ConfigError> {
        table(&self.name, &self.text, &self.sets)
    }

    /// The name of the folder, within the data directory, of the chain's data: the network's, and for a custom signet
    /// with the message start that nodes derive from the challenge.
    pub fn folder_name(&self) -> String {
        let network = &self.config.network;
        let chain = self.config.backend.as_ref().zip(work::network(network).ok());
        let magic = chain.and_then(|(backend, network)| backend.chain(network)?.custom_signet_magic());
        magic.map_or_else(|| network.clone(), |magic| format!("{CUSTOM_SIGNET}{}", magic.to_lower_hex_string()))
    }

    /// Applies the network of the command line.
    ///
    /// # Errors
    /// The embedded chain does not support the network.
    pub fn set_network(&mut self, network: &str) -> Result<(), ConfigError> {
        self.config.network = network.to_owned();
        self.check().map_err(|error| ConfigError { file: "--network".to_owned(), line: None, ..error })
    }

    /// An error about a key of a plugin, by the plugin's position in the configuration.
    pub fn plugin_error(&self, plugin: Option<usize>, key: &str, reason: String) -> ConfigError {
        self.entry_error("plugins", plugin, key, reason)
    }

    /// An error about a key of a user, by the user's position in the configuration.
    pub fn user_error(&self, user: usize, key: &str, reason: String) -> ConfigError {
        self.entry_error("rpc.users", Some(user), key, reason)
    }

    /// An error about a key of one table of an array.
    fn entry_error(&self, array: &str, position: Option<usize>, key: &str, reason: String) -> ConfigError {
        let opens = |line: &str| line.trim_start().starts_with("[[") && section_of(line) == Some(array);
        let part = format!("{array}.");
        let mut headers = self.text.lines().enumerate().filter(|(_, line)| opens(line));
        let header = position.and_then(|position| headers.nth(position)).map(|(line, _)| line);
        let of_key = header.and_then(|header| {
            let body = self.text.lines().enumerate().skip(header + 1);
            let mut body = body.take_while(|(_, line)| section_of(line).is_none_or(|name| name.starts_with(&part)));
            body.find(|(_, line)| names_key(line, key)).map(|(line, _)| line)
        });
        let line = of_key.or(header).map(|line| line + 1);
        ConfigError { file: self.name.clone(), line, key: Some(format!("{array}.{key}")), reason }
    }

    /// An error about the first line that sets `key` to a value that contains `value`, or else begins the table of that name.
    pub fn error(&self, key: &str, value: &str, reason: String) -> ConfigError {
        let (section, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut open = "";
        let sets =
            |line: &str| line.split_once('=').is_some_and(|(left, right)| left.trim() == last && right.contains(value));
        let line = self.text.lines().position(|line| {
            open = section_of(line).unwrap_or(open);
            open == section && sets(line)
        });
        let line = line.or_else(|| self.text.lines().position(|line| section_of(line) == Some(key)));
        let line = line.map(|index| index + 1);
        ConfigError { file: self.name.clone(), line, key: Some(key.to_owned()), reason }
    }
}

/// Whether a line sets a key, or begins the table of that name.
fn names_key(line: &str, key: &str) -> bool {
    let line = line.trim();
    line.split_once('=').is_some_and(|(left, _)| left.trim() == key) || line == format!("[plugins.{key}]")
}

/// Parses a text without the defaults.
fn parse(name: &str, text: &str) -> Result<Config, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start.min(text.len())));
        let line = before.map(|before| before.matches('\n').count() + 1);
        // The line of the error counts, since an error at a section's header concerns that section.
        let section = line.and_then(|line| text.lines().take(line).filter_map(section_of).last());
        let written = line.and_then(|line| text.lines().nth(line - 1));
        let key = written.filter(|line| !line.trim_start().starts_with('[')).and_then(key_of_line);
        let key = match (section, key) {
            (Some(section), Some(key)) => Some(format!("{section}.{key}")),
            (section, key) => key.or(section).map(str::to_owned),
        };
        let former = error.span().and_then(|span| former::setting_at(text, span.start));
        let key = former.map(str::to_owned).or(key);
        let refusal = former.and_then(former::refusal);
        let reason = refusal.unwrap_or_else(|| words::in_words(error.message().trim_end()));
        ConfigError { file: name.to_owned(), line, key, reason }
    })
}

fn key_of_line(line: &str) -> Option<&str> {
    line.split_once('=').map(|(key, _)| key.trim()).filter(|key| !key.is_empty())
}

/// The section that a line opens: `rpc` of `[rpc]`, and `plugins` of `[[plugins]]`.
fn section_of(line: &str) -> Option<&str> {
    let (name, _) = line.trim_start().strip_prefix('[')?.trim_start_matches('[').split_once(']')?;
    Some(name.trim())
}

fn apply(name: &str, text: &str, sets: &[String]) -> Result<Config, ConfigError> {
    let mut table = table(name, text, sets)?;
    let mut defaults = defaults();
    defaults.retain(|section, _| section != "backend" || table.contains_key(section));
    complete(&mut table, defaults);
    let name = format!("--set {}", sets.join(" --set "));
    Config::deserialize(toml::Value::Table(table))
        .map_err(|error| ConfigError::of_whole(&name, words::in_words(error.message())))
}

/// The defaults: the settings of the built-in configurations, without their plugins, node and fallback fee.
fn defaults() -> toml::Table {
    let [mut defaults, mut of_node] =
        [BUILT_IN, FOR_BITCOIND].map(|text| text.parse::<toml::Table>().unwrap_or_default());
    defaults.remove("plugins");
    defaults.extend(of_node.remove("backend").map(|backend| ("backend".to_owned(), backend)));
    for (section, key) in [("wallet", "fallbackfee"), ("backend", "url"), ("backend", "cookie")] {
        defaults.get_mut(section).and_then(toml::Value::as_table_mut).and_then(|table| table.remove(key));
    }
    defaults
}

/// Adds the settings that a table lacks.
fn complete(table: &mut toml::Table, defaults: toml::Table) {
    for (key, default) in defaults {
        match (table.get_mut(&key), default) {
            (Some(toml::Value::Table(table)), toml::Value::Table(defaults)) => complete(table, defaults),
            (Some(_), _) => {}
            (None, default) => drop(table.insert(key, default)),
        }
    }
}

fn table(name: &str, text: &str, sets: &[String]) -> Result<toml::Table, ConfigError> {
    let error = |set: &str, reason: String| ConfigError::of_whole(&format!("--set {set}"), reason);
    let mut table: toml::Table = toml::from_str(text).map_err(|e| error(name, e.message().to_owned()))?;
    for set in sets {
        let (path, value) = set.split_once('=').ok_or_else(|| error(set, "expected section.key=value".to_owned()))?;
        if let Some(refusal) = former::refusal(path) {
            return Err(error(set, refusal));
        }
        // A value that is not TOML is text: `--set network=regtest` needs no quotes.
        let value = value.parse::<toml::Value>().unwrap_or_else(|_| toml::Value::String(value.to_owned()));
        insert(&mut table, path, value).map_err(|reason| error(set, reason))?;
    }
    Ok(table)
}

fn insert(table: &mut toml::Table, path: &str, value: toml::Value) -> Result<(), String> {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
            Ok(())
        }
        Some((section, rest)) => {
            let entry = table.entry(section).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let inner = entry.as_table_mut().ok_or_else(|| format!("'{section}' is not a section"))?;
            insert(inner, rest, value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refusal(text: &str, sets: &[&str]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let error = LoadedConfig::read(Some(file.path()), &sets).err().unwrap().to_string();
        error.replace(&file.path().display().to_string(), "FILE")
    }

    #[test]
    fn the_built_in_configuration_starts_all_groups() {
        let loaded = LoadedConfig::read(None, &[]).unwrap();
        let files: Vec<_> = loaded.config.plugins.iter().map(|plugin| plugin.file.as_str()).collect();
        assert_eq!(files, ["chain", "mining", "wallet", "import", "signing", "psbt", "history"]);
    }

    #[test]
    fn errors_name_file_line_and_key() {
        let text = refusal("[rpc]\nallow_from = {}\n", &[]);
        assert!(text.starts_with("FILE:2: rpc.allow_from: invalid type: table, expected an array"), "{text}");
        let text = refusal("# chain\nnetwork = \"main\"\n", &[]);
        assert!(text.starts_with("FILE:2: network: the embedded chain is regtest"), "{text}");
        let text = refusal("network = \"regtest\"\ndeprecatedrpc = [\"bip125\", \"accounts\"]\n", &[]);
        let told =
            "FILE:2: deprecatedrpc: 'accounts' is no deprecated feature; there are: removeprunedfunds, bip125, fullrbf";
        assert_eq!(text, told);
        let text = refusal("[rpc] # of clients\nqueue_depth = 0\n", &[]);
        assert!(text.starts_with("FILE:2: rpc.queue_depth: "), "{text}");
        let text = refusal("[rpc] # of clients\nthread = 4\n", &[]);
        assert!(text.starts_with("FILE:2: rpc.thread: "), "{text}");
        for wallets in ["[]", "[\"h*t\"]", "[\"**\"]"] {
            let text = refusal(&format!("[[wallet.policies]]\nwallets = {wallets}\nplugin = \"judge\"\n"), &[]);
            assert!(
                text.starts_with("FILE:2: wallet.policies.wallets: ") && text.contains("a '*' at the end"),
                "{text}"
            );
        }
        let missing = LoadedConfig::read(Some(Path::new("/nonexistent.toml")), &[]).err().unwrap().to_string();
        assert!(missing.starts_with("/nonexistent.toml: "), "{missing}");
    }

    #[test]
    fn the_command_line_sets_single_keys() {
        let loaded = LoadedConfig::read(None, &["rpc.threads=3".into(), "log.level=debug".into()]).unwrap();
        assert_eq!((loaded.config.rpc.threads, loaded.config.log.level.as_str()), (3, "debug"));
        assert!(refusal("", &["rpc"]).contains("expected section.key=value"));
    }
}
