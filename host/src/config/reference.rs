//! Compares the reference of the configuration, `config/regtest.toml`, with the code.
//!
//! A commented line that sets a key, or begins a table, is an example of that key or table.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use toml::{Table, Value};

use super::notify::NotifyConfig;
use super::settings::{
    AuditConfig, BackendConfig, BackupConfig, ChainConfig, Config, LogConfig, MetricsConfig, PluginConfig,
    PluginDefaults, RpcConfig, TlsConfig, UserConfig, WalletConfig,
};
use super::{BUILT_IN, parse};

/// A deserializer that only collects the keys of a struct.
struct KeysOf;

/// The collected keys.
#[derive(Debug)]
struct Keys(&'static [&'static str]);

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Keys {}

impl Error for Keys {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for KeysOf {
    type Error = Keys;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Keys> {
        Err(Keys(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Keys> {
        Err(Keys(fields))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn keys<T: for<'de> Deserialize<'de>>() -> BTreeSet<&'static str> {
    let Err(Keys(keys)) = T::deserialize(KeysOf) else { panic!("a struct that is made of nothing") };
    assert!(!keys.is_empty(), "not a struct");
    keys.iter().copied().collect()
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
fn written(value: &Value) -> BTreeSet<&str> {
    match value {
        Value::Table(table) => table.keys().map(String::as_str).collect(),
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
    // The keys of `routes` are methods, so any is possible.
    let named =
        sections.iter().map(|(name, _)| *name).chain(["network", "datadir", "release", "deprecatedrpc", "routes"]);
    assert_eq!(keys::<Config>(), named.collect(), "a section that is not looked at here");
    assert_eq!(keys::<Config>(), table.keys().map(String::as_str).collect());
    for (name, known) in sections {
        assert_eq!(known, written(&table[name]), "[{name}]");
    }
    assert_eq!(keys::<UserConfig>(), written(&table["rpc"]["users"]), "[[rpc.users]]");
    assert_eq!(keys::<TlsConfig>(), written(&table["rpc"]["tls"]), "[rpc.tls]");
}

#[test]
fn the_values_of_the_reference_are_the_defaults() {
    let without_plugins = |text: &str| {
        let mut config = parse("config/regtest.toml", text).unwrap();
        config.plugins.clear();
        // The embedded chain has few data for an estimate.
        config.wallet.fallbackfee = outrigger_values::FeeRate::ZERO;
        format!("{config:#?}")
    };
    assert_eq!(without_plugins(BUILT_IN), without_plugins(""));
}
