//! Access that a plugin requests beyond its services if it runs in its own process.

use outrigger_values::text::printable;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ManifestError, OptionSpec, OptionType};

/// The prefixes of [`ReachSpec::to`].
const KINDS: [&str; 7] =
    ["read:", "write:", "connect:unix:", "connect:tcp:", "connect:tls:", "listen:tcp:", "listen:unix:"];

/// One resource that the plugin asks to reach. The configuration decides whether it is granted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReachSpec {
    /// As a configuration grants it: `read:/etc/acme`, `write:/var/lib/acme`, `connect:unix:/run/vault.sock`,
    /// `connect:tcp:127.0.0.1:8443`, `connect:tls:hooks.example.com:443`, `listen:tcp:127.0.0.1:9000`.
    /// `{name}` stands for the value of the option of that name.
    pub to: String,
    /// The purpose, in one line that the operator reads before granting it.
    pub help: String,
}

impl ReachSpec {
    /// `to` with the values of these options, which must be complete. None if one of them is null or an empty text: the plugin
    /// then requests nothing.
    pub fn with(&self, options: &Map<String, Value>) -> Option<String> {
        let mut text = String::new();
        let mut rest = self.to.as_str();
        while let Some((before, name, after)) = place(rest) {
            let value = match options.get(name)? {
                Value::Null => return None,
                Value::String(value) if value.is_empty() => return None,
                Value::String(value) => value.clone(),
                value => value.to_string(),
            };
            text += before;
            text += &value;
            rest = after;
        }
        Some(text + rest)
    }

    /// Checks that the kind exists, and that the plugin has the named options.
    pub(super) fn check(&self, options: &[OptionSpec]) -> Result<(), ManifestError> {
        if !KINDS.iter().any(|kind| self.to.starts_with(kind)) {
            let (to, kinds) = (printable(&self.to), KINDS.join(", "));
            return Err(ManifestError(format!("the manifest asks to reach '{to}', which does not begin with {kinds}")));
        }
        let mut rest = self.to.as_str();
        while let Some((_, name, after)) = place(rest) {
            let is_text = |option: &OptionSpec| option.name == name && option.kind != OptionType::Secret;
            if !options.iter().any(is_text) {
                let (to, option) = (printable(&self.to), printable(name));
                return Err(ManifestError(format!("the manifest asks to reach '{to}', and has no option '{option}'")));
            }
            rest = after;
        }
        Ok(())
    }
}

/// Splits a text at its first `{name}`: the text before it, the name, and the text after it.
fn place(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}
