//! A plugin's description of itself: its methods with their parameters and help, the services it needs, its options.
//!
//! The manifest is JSON in the plugin's file, read without running any of its code.
//!
//! ```
//! use outrigger_sdk::manifest::Manifest;
//! use outrigger_sdk::serde_json::Map;
//!
//! let manifest = Manifest::parse(
//!     br#"{
//!         "id": "acme-mining",
//!         "version": "2.1.0",
//!         "summary": "Acme's block policy",
//!         "services": ["chain/1", "mempool/1"],
//!         "optional": ["log/1"],
//!         "events": ["tip"],
//!         "restartable": true,
//!         "options": [
//!             {"name": "min_feerate", "type": "integer", "default": 5000, "help": "The least feerate that is mined."}
//!         ],
//!         "methods": [
//!             {
//!                 "name": "getacmeblock",
//!                 "category": "Mining",
//!                 "help": "Gives what Acme's pool mines next.",
//!                 "check_types": true,
//!                 "params": [
//!                     {"name": "height", "type": "numeric", "required": true, "help": "For which height."},
//!                     {"name": "verbose", "type": "boolean", "default": "false", "help": "Whether to list all."}
//!                 ],
//!                 "result": "{...}    (json object) The block.",
//!                 "example": "700000 true"
//!             }
//!         ]
//!     }"#,
//! )?;
//! // What `help` shows of the method: optional parameters stand in brackets.
//! assert_eq!(manifest.methods[0].usage(), "getacmeblock height ( verbose )");
//! // The options that the plugin gets if the configuration sets none.
//! assert_eq!(manifest.options(&Map::new()).unwrap()["min_feerate"], 5000);
//! # Ok::<(), outrigger_sdk::manifest::ManifestError>(())
//! ```

mod error;
mod help;
mod reach;
mod text;
mod timer;

use std::borrow::Cow;

use bitcoin::Network;
use serde::Deserialize;
use serde_json::{Map, Value};

use outrigger_service::PROVIDED;
use outrigger_service::policy::POLICY;
use outrigger_service::provider::KEYS_PROVIDER;
use outrigger_standard::release::Rules;
use outrigger_values::text::printable;

pub use error::{ManifestError, OptionError};
pub use reach::ReachSpec;
use text::control_character;
pub use timer::TimerSpec;

/// The service by which a plugin makes `calls`.
const RPC: &str = "rpc/1";
/// The group in `help` of methods that bitcoind does not have.
const OWN_CATEGORY: &str = "Outrigger";
/// The longest name of a method, in characters.
pub const MAX_METHOD_NAME: usize = 64;

/// A plugin's manifest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The plugin's name, unique in a host: lower-case letters, digits and `-`.
    pub id: String,
    /// The plugin's own version.
    pub version: String,
    /// What the plugin is for, in one line.
    pub summary: String,
    /// The services that it requires, such as `chain/1`.
    #[serde(default)]
    pub services: Vec<String>,
    /// Further services that it uses where they are granted.
    #[serde(default)]
    pub optional: Vec<String>,
    /// The methods that it calls by `rpc/1`; the operator's grant must list them.
    #[serde(default)]
    pub calls: Vec<String>,
    /// Access that it requests beyond its services if it runs in its own process. The operator sees it and grants it.
    #[serde(default)]
    pub reach: Vec<ReachSpec>,
    /// The services that it implements for the host ([`outrigger_service::PROVIDED`]).
    #[serde(default)]
    pub provides: Vec<String>,
    /// Whether messages of `provides` are hexadecimal bytes (set by `#[plugin]`) instead of JSON.
    #[serde(default)]
    pub binary_messages: bool,
    /// The events that it receives ([`outrigger_service::events::TOPICS`]).
    #[serde(default)]
    pub events: Vec<String>,
    /// The options of its configuration.
    #[serde(default)]
    pub options: Vec<OptionSpec>,
    /// Whether the host may start it again after a fault.
    #[serde(default)]
    pub restartable: bool,
    /// Whether the host must stop when it dies.
    #[serde(default)]
    pub critical: bool,
    /// Whether the host makes a private folder for its files.
    #[serde(default)]
    pub folder: bool,
    /// Times at which it receives an event.
    #[serde(default)]
    pub timers: Vec<TimerSpec>,
    /// What it requires of the node.
    #[serde(default)]
    pub requires: Requires,
    /// Whether a configuration may put it before methods of other plugins, and where it sees their calls.
    #[serde(default)]
    pub wrapper: Option<WrapperKind>,
    /// The methods it answers.
    pub methods: Vec<MethodSpec>,
}

/// What a plugin requires of the node, checked before it starts and by `run --check`.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Requires {
    /// The embedded chain. In front of a bitcoind, the node answers such a plugin's methods itself.
    pub embedded: bool,
    /// The only network that the plugin supports: `main`, `test`, `testnet4`, `signet` or `regtest`.
    pub network: Option<String>,
    /// The earliest release of Bitcoin Core, such as 28. The development chain counts as the latest.
    pub release: Option<u32>,
    /// The index of all transactions (`txindex=1`).
    pub txindex: bool,
    /// The index of block filters (`blockfilterindex=1`).
    pub blockfilterindex: bool,
    /// The outputs that each block spends, which a pruned node does not keep.
    pub spent_outputs: bool,
}

/// Where a wrapper sees calls, or whether it only observes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WrapperKind {
    /// On a thread of the pool, where it may wait
    Pooled,
    /// On the thread that read the call from the network, if the operator trusts the plugin: see [`MethodSpec::inline`]
    Inline,
    /// Nowhere: it receives an event after each call ([`outrigger_service::events::Event::CallEnded`]), which delays no call
    Observe,
}

/// An option of a plugin's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionSpec {
    /// Its key under `[plugins.options]`.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// Its value if the configuration sets none. Without a default, the configuration must set the option.
    #[serde(default, deserialize_with = "given")]
    pub default: Option<Value>,
    /// What it is for.
    pub help: String,
}

/// Reads a default; null is a default too.
fn given<'d, D: serde::Deserializer<'d>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The type of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptionType {
    /// `true` or `false`
    Boolean,
    /// A whole number of 64 bits
    Integer,
    /// Any number
    Number,
    /// Text
    String,
    /// A list
    List,
    /// A table
    Table,
    /// Text that is never shown. The configuration names its source: `{ file = "/path" }` or `{ env = "NAME" }`.
    Secret,
}

impl OptionType {
    /// Whether a value is of the type.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.is_i64(),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
            Self::List => value.is_array(),
            Self::Table => value.is_object(),
            Self::Secret => value.is_string() || value.is_object(),
        }
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::List => "list",
            Self::Table => "table",
            Self::Secret => "secret",
        }
    }
}

/// A method.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MethodSpec {
    /// Its name: letters, digits, `_`, `.` and `-`, at most 64.
    pub name: String,
    /// The group in `help`: `Blockchain`, `Mining`, `Rawtransactions`, `Wallet`, ...
    pub category: String,
    /// What it does.
    pub help: String,
    /// Its parameters by position.
    #[serde(default)]
    pub params: Vec<ParamSpec>,
    /// What it answers.
    #[serde(default)]
    pub result: String,
    /// Arguments of an example call, as typed in a shell.
    #[serde(default)]
    pub example: String,
    /// Whether the host checks the arguments' types before the call, with -3 `Wrong type passed`.
    #[serde(default)]
    pub check_types: bool,
    /// Whether a call has no deadline: long polls, rescans, payments. At the deadline of any other call the host
    /// answers in the plugin's place.
    #[serde(default)]
    pub long_running: bool,
    /// Whether a call with short parameters (up to 2 KiB) takes at most a millisecond or two and waits only for the
    /// host's services. The host then runs it inline: on the thread that read it from the network, without a deadline.
    #[serde(default)]
    pub inline: bool,
    /// Whether a call reads only its wallet and the heights and hashes of blocks. If the host reads blocks, coins and the mempool from
    /// a bitcoind, a method that needs the tip runs inline only with this flag.
    #[serde(default)]
    pub wallet_only: bool,
    /// Whether a call may use private keys or passphrases. After its code has returned, the host overwrites the data that
    /// it left on the thread's stack.
    #[serde(default)]
    pub private_keys: bool,
    /// Whether a call waits until its wallet has followed the chain to the tip (bitcoind's
    /// `BlockUntilSyncedToCurrentChain`). Other calls use the wallet's current state.
    #[serde(default = "yes")]
    pub needs_tip: bool,
}

fn yes() -> bool {
    true
}

/// A parameter of a method.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamSpec {
    /// Its name.
    pub name: String,
    /// Other names of it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ParamType,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// The default that help shows, in words or as JSON. With a default, a required parameter may be null.
    #[serde(default)]
    pub default: String,
    /// What it is.
    pub help: String,
    /// For an object: members that a call by name may also pass as separate arguments. The host puts them into the object,
    /// and refuses a call that passes both. Help lists them as `Named Arguments`.
    #[serde(default)]
    pub members: Vec<ParamSpec>,
}

/// The declared type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParamType {
    /// Text
    String,
    /// Text of hexadecimal digits
    Hex,
    /// A number
    Numeric,
    /// A number or text that holds an amount of money
    Amount,
    /// `true` or `false`
    Boolean,
    /// A list
    Array,
    /// An object
    Object,
    /// An object of amounts by address, without duplicate keys: a reader that keeps one of two values would change the
    /// payment
    Amounts,
    /// Amounts by address, as such an object or as a list of objects with one key each
    Outputs,
    /// A number or a boolean, for a verbosity
    Verbosity,
    /// Anything
    Any,
}

impl ParamType {
    /// The name in help texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::String | Self::Hex => "string",
            Self::Numeric => "numeric",
            Self::Amount => "numeric or string",
            Self::Boolean => "boolean",
            Self::Array => "json array",
            Self::Object | Self::Amounts => "json object",
            Self::Outputs => "json array or object",
            Self::Verbosity => "numeric or boolean",
            Self::Any => "any",
        }
    }

    /// The JSON type that Bitcoin Core 29 names when it refuses another type; none if several types fit.
    pub fn expected(self) -> Option<&'static str> {
        match self {
            Self::String | Self::Hex => Some("string"),
            Self::Numeric => Some("number"),
            Self::Boolean => Some("bool"),
            Self::Array => Some("array"),
            Self::Object | Self::Amounts => Some("object"),
            Self::Amount | Self::Outputs | Self::Verbosity | Self::Any => None,
        }
    }
}

impl Manifest {
    /// Reads a manifest and checks that it is consistent.
    pub fn parse(json: &[u8]) -> Result<Self, ManifestError> {
        let manifest: Self = serde_json::from_slice(json)?;
        // A control character could forge lines of a log and move a terminal's cursor.
        if let Some(place) = control_character(&serde_json::from_slice(json)?, "", false) {
            return Err(ManifestError(format!("the manifest has a control character in {place}")));
        }
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if manifest.id.is_empty() || !manifest.id.bytes().all(good) {
            let id = printable(&manifest.id);
            let reason = format!("the plugin id '{id}' is not made of lower-case letters, digits and '-'");
            return Err(ManifestError(reason));
        }
        for (index, method) in manifest.methods.iter().enumerate() {
            if manifest.methods.iter().take(index).any(|earlier| earlier.name == method.name) {
                return Err(ManifestError(format!("the manifest lists the method '{}' twice", method.name)));
            }
            method.check()?;
        }
        if let Some(event) = manifest.events.iter().find(|e| !outrigger_service::events::TOPICS.contains(&e.as_str())) {
            return Err(ManifestError(format!("the manifest asks for an event '{event}' that does not exist")));
        }
        let is_known = |service: &&String| PROVIDED.iter().any(|known| known.name == **service);
        if let Some(service) = manifest.provides.iter().find(|service| !is_known(service)) {
            return Err(ManifestError(format!(
                "the manifest provides '{service}', which no host asks plugins for; \
                 it may be '{KEYS_PROVIDER}' or '{POLICY}'"
            )));
        }
        if let Some(network) = manifest.requires.network.as_ref().filter(|name| Network::from_core_arg(name).is_err()) {
            return Err(ManifestError(format!(
                "the manifest requires the network '{}': it may be main, test, testnet4, signet or regtest",
                printable(network)
            )));
        }
        let mut services = manifest.services.iter().chain(&manifest.optional);
        if !manifest.calls.is_empty() && !services.any(|service| service == RPC) {
            let reason = format!("the manifest has `calls` without '{RPC}' in `services` or `optional`");
            return Err(ManifestError(reason));
        }
        // Null is the default of an option that may be left out.
        let bad = |option: &&OptionSpec| {
            option.default.as_ref().is_some_and(|default| !default.is_null() && !option.kind.fits(default))
        };
        if let Some(option) = manifest.options.iter().find(bad) {
            return Err(ManifestError(format!("the default of option '{}' is not of its type", option.name)));
        }
        manifest.timers.iter().try_for_each(TimerSpec::check)?;
        manifest.reach.iter().try_for_each(|reach| reach.check(&manifest.options))?;
        Ok(manifest)
    }

    /// The options of an instance: those given, checked, and the defaults of the others.
    pub fn options(&self, given: &Map<String, Value>) -> Result<Map<String, Value>, OptionError> {
        if let Some(name) = given.keys().find(|name| !self.options.iter().any(|option| option.name == **name)) {
            return Err(OptionError::Unknown(name.clone()));
        }
        let value = |option: &OptionSpec| match given.get(&option.name) {
            Some(value) if !option.kind.fits(value) => {
                Err(OptionError::Type { name: option.name.clone(), wanted: option.kind.name() })
            }
            Some(value) => Ok((option.name.clone(), value.clone())),
            None => match &option.default {
                Some(default) => Ok((option.name.clone(), default.clone())),
                None => Err(OptionError::Missing(option.name.clone())),
            },
        };
        self.options.iter().map(value).collect()
    }
}

impl MethodSpec {
    /// The method under a release's rules: without the arguments that the release lacks, and in the host's own category if
    /// Bitcoin Core has removed it.
    pub fn under(&self, rules: &Rules) -> Cow<'_, Self> {
        let is_removed = rules.has_removed(&self.name);
        if !is_removed && !rules.narrows(&self.name) {
            return Cow::Borrowed(self);
        }
        let mut method = self.clone();
        if is_removed {
            OWN_CATEGORY.clone_into(&mut method.category);
        }
        method.params.retain(|param| !rules.lacks(&self.name, &param.name));
        for param in &mut method.params {
            param.members.retain(|member| !rules.lacks(&self.name, &member.name));
        }
        Cow::Owned(method)
    }

    fn check(&self) -> Result<(), ManifestError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if self.name.is_empty() || self.name.len() > MAX_METHOD_NAME || !self.name.bytes().all(plain) {
            return Err(ManifestError(format!(
                "the method name '{}' is not plain: it must be made of letters, digits, '_', '.' and '-', \
                 and of at most {MAX_METHOD_NAME}",
                printable(&self.name)
            )));
        }
        let bad_members = |param: &&ParamSpec| {
            let bad = |member: &ParamSpec| member.required || !member.members.is_empty();
            let is_object = matches!(param.kind, ParamType::Object | ParamType::Any);
            !param.members.is_empty() && (!is_object || param.members.iter().any(bad))
        };
        if let Some(param) = self.params.iter().find(bad_members) {
            return Err(ManifestError(format!(
                "the method '{}' declares members of '{}' that cannot be given by name",
                self.name, param.name
            )));
        }
        let first_optional = self.params.iter().position(|param| !param.required).unwrap_or(self.params.len());
        match self.params.iter().skip(first_optional).find(|param| param.required) {
            Some(param) => Err(ManifestError(format!(
                "the method '{}' requires '{}' after an optional parameter",
                self.name, param.name
            ))),
            None => Ok(()),
        }
    }

    /// The number of arguments that must be given.
    pub fn required(&self) -> usize {
        self.params.iter().filter(|param| param.required).count()
    }
}

#[cfg(test)]
mod tests;
