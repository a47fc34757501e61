//! The options of a plugin's configuration as a struct.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use outrigger_sdk::options::PluginOptions;
//! use outrigger_sdk::wire::Secret;
//!
//! #[derive(PluginOptions)]
//! struct Options {
//!     /// How long a block takes, in seconds.
//!     #[option(default = 600)]
//!     spacing_seconds: u64,
//!     /// The most that each label may pay, in satoshi.
//!     #[option(default = {})]
//!     limits: BTreeMap<String, u64>,
//!     /// The addresses that payments are allowed to; any without it.
//!     allowed: Option<Vec<String>>,
//!     /// The PIN of the device.
//!     pin: Secret,
//! }
//! assert!(Options::MANIFEST.contains(r#""limits","type":"table","default":{}"#));
//! ```
//!
//! The documentation comment of a field is the option's help. An option without a default must be set, unless it is an `Option`. The
//! host checks the options of a configuration against these declarations before it starts the plugin.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use outrigger_service::wire::Secret;
use outrigger_values::params::json_words;

pub use outrigger_macros::PluginOptions;

/// The options of a plugin. `#[derive(PluginOptions)]` implements it.
pub trait PluginOptions: Sized {
    /// The declarations for the manifest, as JSON objects with commas between them.
    const MANIFEST: &'static str;

    /// Reads the complete options of an instance.
    ///
    /// # Errors
    /// The reason, for the operator.
    fn read(given: Map<String, Value>) -> Result<Self, String>;
}

/// A plugin without options.
pub struct NoOptions;

impl PluginOptions for NoOptions {
    const MANIFEST: &'static str = "";

    fn read(_: Map<String, Value>) -> Result<Self, String> {
        Ok(Self)
    }
}

/// The given options without a struct, for a plugin with a handwritten manifest.
impl PluginOptions for Map<String, Value> {
    const MANIFEST: &'static str = "";

    fn read(given: Self) -> Result<Self, String> {
        Ok(given)
    }
}

/// The type of an option.
pub trait OptionValue: DeserializeOwned {
    /// The type that the manifest declares: the name of a [`crate::manifest::OptionType`].
    const TYPE: &'static str;
    /// The manifest's `default` where the declaration has none.
    #[doc(hidden)]
    const DEFAULT: &'static str = "";
}

macro_rules! values {
    ($($name:literal: $($value:ty),*;)*) => {
        $($(impl OptionValue for $value {
            const TYPE: &'static str = $name;
        })*)*
    };
}

values! {
    "boolean": bool;
    "integer": u8, u16, u32, u64, usize, i8, i16, i32, i64;
    "number": f64;
    "string": String;
    "table": Map<String, Value>;
    // No method, log or check shows it. The configuration names its file or environment variable, which the host reads.
    "secret": Secret;
}

impl<T: DeserializeOwned> OptionValue for Vec<T> {
    const TYPE: &'static str = "list";
}

impl<T: DeserializeOwned> OptionValue for BTreeMap<String, T> {
    const TYPE: &'static str = "table";
}

impl<T: OptionValue> OptionValue for Option<T> {
    const TYPE: &'static str = T::TYPE;
    const DEFAULT: &'static str = ",\"default\":null";
}

/// Removes an option from `given` and reads it.
#[doc(hidden)]
pub fn read<T: OptionValue>(given: &mut Map<String, Value>, name: &str) -> Result<T, String> {
    let value = given.remove(name).unwrap_or_default();
    T::deserialize(value).map_err(|error| format!("option '{name}': {}", json_words(&error.to_string())))
}
