//! Why manifests and options are refused.

use outrigger_service::policy::POLICY;
use outrigger_service::provider::KEYS_PROVIDER;
use outrigger_values::params::json_words;
use outrigger_values::text::printable;

use super::MAX_METHOD_NAME;
use super::reach::KINDS;

/// Members of earlier manifests, and their successors.
const FORMER: [(&str, &str); 1] = [("node_methods", "calls")];

/// Why a manifest is refused.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not the JSON of a manifest.
    #[error("the manifest is not valid: {}", printable(&json_words(&.0.to_string())))]
    Json(#[from] serde_json::Error),
    /// An id with other characters than lower-case letters, digits and `-`.
    #[error("the plugin id '{}' is not made of lower-case letters, digits and '-'", printable(.0))]
    Id(String),
    /// A timer without a time.
    #[error("the timer '{}' must have 'every', 1 to 2592000 seconds, or 'at', a time such as \"03:30\"", printable(.0))]
    Timer(String),
    /// A method's name that is not plain.
    #[error(
        "the method name '{}' is not plain: it must be made of letters, digits, '_', '.' and '-', and of at most {MAX_METHOD_NAME}",
        printable(.0)
    )]
    MethodName(String),
    /// A control character, which could forge lines of a log and move a terminal's cursor. Only `help` and `result` may have several
    /// lines.
    #[error("the manifest has a control character in {0}")]
    ControlCharacter(String),
    /// A member of earlier manifests.
    #[error("the manifest has a member '{former}', which is '{successor}' now")]
    Former {
        /// The member.
        former: &'static str,
        /// The member with the same meaning.
        successor: &'static str,
    },
    /// A method that is listed twice.
    #[error("the manifest lists the method '{0}' twice")]
    DuplicateMethod(String),
    /// A required parameter after an optional one: it could never be left out.
    #[error("the method '{method}' requires '{param}' after an optional parameter")]
    RequiredAfterOptional {
        /// The method.
        method: String,
        /// The parameter.
        param: String,
    },
    /// Members of a parameter that is no object, or members that must be given or have members themselves.
    #[error("the method '{method}' declares members of '{param}' that cannot be given by name")]
    Members {
        /// The method.
        method: String,
        /// The parameter.
        param: String,
    },
    /// A service that no host asks plugins for.
    #[error("the manifest provides '{0}', which no host asks plugins for; it may be '{KEYS_PROVIDER}' or '{POLICY}'")]
    UnknownProvided(String),
    /// An event that no host tells of.
    #[error("the manifest asks for an event '{0}' that does not exist")]
    UnknownEvent(String),
    /// What a plugin asks to reach is of no known kind.
    #[error(
        "the manifest asks to reach '{}', which does not begin with {}",
        printable(.0),
        KINDS.join(", ")
    )]
    ReachKind(String),
    /// What a plugin asks to reach depends on an option that it does not have.
    #[error("the manifest asks to reach '{}', and has no option '{}'", printable(reach), printable(option))]
    ReachOption {
        /// What it asks to reach.
        reach: String,
        /// The option.
        option: String,
    },
    /// An option whose default is not of its own type.
    #[error("the default of option '{0}' is not of its type")]
    OptionDefault(String),
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

impl ManifestError {
    /// The refusal of text that is not the JSON of a manifest.
    pub(super) fn of_json(error: serde_json::Error) -> Self {
        let text = error.to_string();
        let former = FORMER.into_iter().find(|(former, _)| text.starts_with(&format!("unknown field `{former}`")));
        former.map_or(Self::Json(error), |(former, successor)| Self::Former { former, successor })
    }
}
