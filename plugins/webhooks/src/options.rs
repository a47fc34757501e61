//! The options: the hooks and their secrets.

use std::collections::HashMap;

use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::json::from_json;
use outrigger_sdk::service::wallet::LogKind;
use outrigger_sdk::wire::Secret;
use serde::Deserialize;
use serde_json::Value;

use crate::http::Url;

const MAX_HOOKS: usize = 16;

#[derive(PluginOptions)]
pub struct Options {
    /// The hooks, each { url, secret, wallets, kinds }: the receiver's URL, the name of the secret, the wallets (default: all), and
    /// the kinds of entries (default: all).
    hooks: Vec<HookOptions>,
    /// The secrets, one per line: the name, a space and the text.
    secrets: Secret,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookOptions {
    url: String,
    secret: String,
    wallets: Option<Vec<String>>,
    kinds: Option<Vec<String>>,
}

/// A hook that the operator configured.
pub struct Hook {
    /// The index in the options, from 0.
    pub number: usize,
    pub url: Url,
    pub secret: Secret,
    /// The names of the wallets; `None` for all.
    pub wallets: Option<Vec<String>>,
    /// The kinds of entries; `None` for all.
    pub kinds: Option<Vec<LogKind>>,
}

impl Options {
    /// Checks and converts the hooks.
    ///
    /// # Errors
    /// An option is invalid. The text names the first mistake to the operator.
    pub fn hooks(self) -> Result<Vec<Hook>, String> {
        if self.hooks.len() > MAX_HOOKS {
            return Err(format!("there are more than {MAX_HOOKS} hooks"));
        }
        let lines = self.secrets.expose().lines().filter_map(|line| line.trim().split_once(' '));
        let secrets: HashMap<&str, &str> = lines.map(|(name, text)| (name, text.trim())).collect();
        let mut hooks: Vec<Hook> = Vec::new();
        for given in self.hooks {
            let url = Url::parse(&given.url).map_err(|reason| format!("the hook '{}': {reason}", given.url))?;
            if hooks.iter().any(|hook| hook.url.text == url.text) {
                return Err(format!("two hooks have the URL '{}'", url.text));
            }
            let secret = secrets.get(&*given.secret).filter(|text| !text.is_empty());
            let secret = secret.ok_or_else(|| format!("the secret '{}' is not among the secrets", given.secret))?;
            let kind = |name: &String| {
                from_json::<LogKind>(&Value::from(name.as_str())).map_err(|_| format!("there is no kind '{name}'"))
            };
            let kinds = given.kinds.map(|kinds| kinds.iter().map(kind).collect::<Result<Vec<_>, _>>()).transpose()?;
            let secret = Secret::new((*secret).to_owned());
            hooks.push(Hook { number: hooks.len(), url, secret, wallets: given.wallets, kinds });
        }
        Ok(hooks)
    }
}
