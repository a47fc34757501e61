//! Why manifests and options are refused.

use outrigger_values::params::json_words;
use outrigger_values::text::printable;

/// Why a manifest is refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ManifestError(pub(super) String);

impl From<serde_json::Error> for ManifestError {
    fn from(error: serde_json::Error) -> Self {
        Self(format!("the manifest is not valid: {}", printable(&json_words(&error.to_string()))))
    }
}

/// Why options are refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// The manifest has no such option.
    #[error("option '{0}' is not known to the plugin")]
    Unknown(String),
    /// An option without a default that is not set.
    #[error("option '{0}' must be set")]
    Missing(String),
    /// A value of another type.
    #[error("option '{name}' must be of type {wanted}")]
    Type {
        /// The option.
        name: String,
        /// Its declared type.
        wanted: &'static str,
    },
}
