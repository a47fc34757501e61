//! Why manifests and options are refused.

use outrigger_values::params::json_words;
use outrigger_values::text::printable;

/// Why a manifest is refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ManifestError(pub(super) String);

/// Members of former manifests, and their successors.
const FORMER: [(&str, &str); 2] = [("node_methods", "calls"), ("quick", "inline")];

impl From<serde_json::Error> for ManifestError {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        let former = FORMER.iter().find(|(former, _)| text.starts_with(&format!("unknown field `{former}`")));
        Self(match former {
            Some((former, now)) => format!("the manifest has a member '{former}', which is '{now}' now"),
            None => format!("the manifest is not valid: {}", printable(&json_words(&text))),
        })
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
