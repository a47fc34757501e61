//! What a plugin asks to reach beyond its services, where it runs in a process of its own.

use outrigger_values::text::printable;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ManifestError, OptionSpec, OptionType};

/// What the text of a [`ReachSpec`] begins with.
const KINDS: [&str; 7] =
    ["read:", "write:", "connect:unix:", "connect:tcp:", "connect:tls:", "listen:tcp:", "listen:unix:"];

/// One thing that the plugin asks to reach. The configuration decides what is granted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReachSpec {
    /// As a configuration grants it: `read:/etc/acme`, `write:/var/lib/acme`, `connect:unix:/run/vault.sock`,
    /// `connect:tcp:127.0.0.1:8443`, `connect:tls:hooks.example.com:443`, `listen:tcp:127.0.0.1:9000`. `{name}` stands for the value of the option of that name.
    pub to: String,
    /// What for, in a line that an operator reads before granting it.
    pub help: String,
}

impl ReachSpec {
    /// What is asked for with these options, which are complete. None where an option in it is an empty text: then the plugin
    /// has nothing to reach.
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

    /// Whether it is of a kind that there is, and the options in it are the plugin's.
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

/// The first place of an option in a text: what stands before it, the option's name, and what stands behind.
fn place(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}
