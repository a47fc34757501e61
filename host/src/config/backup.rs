//! Section `[backup]`.

use std::str::FromStr as _;

use age::x25519::Recipient;
use outrigger_base::paths::AbsolutePath;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The units of durations, in seconds.
const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackupConfig {
    /// The folder of the backups; without one there are none.
    pub folder: Option<AbsolutePath>,
    /// The time from one backup of a wallet to the next, in seconds, or with a unit such as "90m", "6h" or "1d".
    #[serde(deserialize_with = "seconds_or_text")]
    pub every: u64,
    /// How many backups of each wallet and store are kept.
    pub keep: u32,
    /// The age recipient that backups are encrypted to.
    pub recipient: Option<String>,
}

impl BackupConfig {
    /// The recipient, if there is one.
    pub fn recipient(&self) -> Result<Option<Recipient>, String> {
        let parse = |text: &String| Recipient::from_str(text).map_err(|reason| format!("no age recipient: {reason}"));
        self.recipient.as_ref().map(parse).transpose()
    }
}

fn seconds_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let seconds = match toml::Value::deserialize(deserializer)? {
        toml::Value::Integer(seconds) => u64::try_from(seconds).ok(),
        toml::Value::String(text) => UNITS.iter().find_map(|(unit, seconds)| {
            let count: u64 = text.strip_suffix(*unit)?.parse().ok()?;
            count.checked_mul(*seconds)
        }),
        _ => None,
    };
    seconds.ok_or_else(|| Error::custom("must be a number of seconds, or a text such as \"90m\", \"6h\" or \"1d\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        let every = |value: &str| {
            let config: Result<BackupConfig, _> = toml::from_str(&format!("every = {value}"));
            config.map(|config| config.every).map_err(|error| error.message().to_owned())
        };
        for (value, seconds) in [("90", 90), ("\"30s\"", 30), ("\"90m\"", 5400), ("\"6h\"", 21_600), ("\"1d\"", 86_400)]
        {
            assert_eq!(every(value), Ok(seconds), "{value}");
        }
        for wrong in ["-1", "1.5", "\"6\"", "\"h\"", "\"1 h\"", "\"-1h\"", "\"99999999999999999999h\""] {
            assert!(every(wrong).unwrap_err().contains("such as \"90m\""), "{wrong}");
        }
    }

    #[test]
    fn a_recipient_is_one_of_age() {
        let of = |text: &str| BackupConfig { recipient: Some(text.to_owned()), ..BackupConfig::default() }.recipient();
        let key = age::x25519::Identity::generate();
        assert!(of(&key.to_public().to_string()).unwrap().is_some());
        for wrong in ["", "age1x", "ssh-ed25519 AAAA"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
