//! Compares the reference of the configuration, `config/regtest.toml`, with the code.
//!
//! A commented line that sets a key, or begins a table, is an example of that key or table.

use std::collections::BTreeSet;

use outrigger_rpc::TlsSettings;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::notify::NotifyConfig;
use super::settings::{
    AuditConfig, BackendConfig, BackupConfig, ChainConfig, Config, LogConfig, MetricsConfig, PluginConfig,
    PluginDefaults, RpcConfig, UserConfig, WalletConfig,
};
use super::{BUILT_IN, defaults, parse};

/// The keys of a struct, read from serde's error for an unknown key.
fn keys<T: DeserializeOwned>() -> BTreeSet<String> {
    let refused = toml::from_str::<T>("none_of_these = 0").err().unwrap();
    let (_, known) = refused.message().split_once(", expected ").unwrap();
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The file with its examples uncommented.
fn with_examples() -> String {
    let is_example = |line: &str| {
        let key = line.split_once(" = ").map_or("", |(key, _)| key);
        line.starts_with('[')
            || (!key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
    };
    let line = |line| match str::strip_prefix(line, "# ") {
        Some(example) if is_example(example) => example,
        _ => line,
    };
    BUILT_IN.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The keys of a table, or of all tables of an array.
fn written(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Table(table) => table.keys().cloned().collect(),
        Value::Array(tables) => tables.iter().flat_map(written).collect(),
        _ => BTreeSet::new(),
    }
}

#[test]
fn every_key_of_the_code_stands_in_the_reference_and_no_other() {
    let text = with_examples();
    // Everything in the reference can be parsed.
    parse("config/regtest.toml", &text).unwrap();
    let table: Table = text.parse().unwrap();
    let sections = [
        ("rpc", keys::<RpcConfig>()),
        ("chain", keys::<ChainConfig>()),
        ("wallet", keys::<WalletConfig>()),
        ("log", keys::<LogConfig>()),
        ("metrics", keys::<MetricsConfig>()),
        ("audit", keys::<AuditConfig>()),
        ("backup", keys::<BackupConfig>()),
        ("notify", keys::<NotifyConfig>()),
        ("plugin_defaults", keys::<PluginDefaults>()),
        ("plugins", keys::<PluginConfig>()),
        ("backend", keys::<BackendConfig>()),
    ];
    // The keys of `routes` are method names, so it has no fixed keys.
    let named =
        sections.iter().map(|(name, _)| *name).chain(["network", "datadir", "release", "deprecatedrpc", "routes"]);
    assert_eq!(keys::<Config>(), named.map(str::to_owned).collect(), "a section that is not looked at here");
    assert_eq!(keys::<Config>(), table.keys().cloned().collect());
    for (name, known) in sections {
        assert_eq!(known, written(&table[name]), "[{name}]");
    }
    assert_eq!(keys::<UserConfig>(), written(&table["rpc"]["users"]), "[[rpc.users]]");
    assert_eq!(keys::<TlsSettings>(), written(&table["rpc"]["tls"]), "[rpc.tls]");
}

#[test]
fn settings_without_a_default_are_options_and_lists() {
    let unset = |section: &str, known: BTreeSet<String>| -> Vec<String> {
        let set = defaults().get(section).map(written).unwrap_or_default();
        known.difference(&set).cloned().collect()
    };
    assert_eq!(unset("chain", keys::<ChainConfig>()), ["min_relay_feerate"]);
    let rpc = ["bitcoin_conf", "console", "listen", "max_long_calls", "tls", "users"];
    assert_eq!(unset("rpc", keys::<RpcConfig>()), rpc);
    // The host refuses payments for which it knows no feerate.
    assert_eq!(unset("wallet", keys::<WalletConfig>()), ["changetype", "fallbackfee", "policies", "signer"]);
    assert_eq!(unset("log", keys::<LogConfig>()), [""; 0]);
    assert_eq!(unset("audit", keys::<AuditConfig>()), ["file"]);
    assert_eq!(unset("backup", keys::<BackupConfig>()), ["folder", "recipient"]);
    assert!(unset("notify", keys::<NotifyConfig>()).iter().all(|key| !key.ends_with("hwm")));
    let of_node = ["allow_rewind_to", "cookie", "max_rewind", "password_file", "signet_challenge", "url", "user"];
    assert_eq!(unset("backend", keys::<BackendConfig>()), of_node);
    // The examples of the reference are the defaults, too.
    let (examples, defaults) = (with_examples().parse::<Table>().unwrap(), defaults());
    for (key, default) in defaults["backend"].as_table().unwrap() {
        assert_eq!(&examples["backend"][key], default, "backend.{key}");
    }
}
