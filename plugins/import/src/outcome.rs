//! What became of a request, as the client is told, and how the wallet's word becomes that.

use outrigger_sdk::RpcError;
use outrigger_sdk::service::wallet::{Import, ImportOutcome};
use serde::Serialize;

use crate::error::ImportError;

/// An element of the result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Outcome {
    /// Whether the request was imported.
    pub success: bool,
    /// Why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// What the client may want to look at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether it was of a descriptor with a range, which may grow.
    #[serde(skip)]
    pub ranged: bool,
}

/// An error as an object in a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ErrorObject {
    code: i32,
    message: String,
}

impl From<RpcError> for ErrorObject {
    fn from(error: RpcError) -> Self {
        Self { code: error.code.0, message: error.message }
    }
}

impl Outcome {
    /// A request that was not imported, with the warnings that came before.
    pub fn failed(error: impl Into<RpcError>, warnings: Vec<String>) -> Self {
        Self { success: false, error: Some(error.into().into()), warnings, ranged: false }
    }
}

/// A request after its checks.
pub struct Checked {
    /// What there is to store, until it is taken out; or why there is nothing.
    pub import: Result<Option<Import>, ImportError>,
    /// What the client may want to look at.
    pub warnings: Vec<String>,
    /// The error where the storage fails.
    pub not_stored: ImportError,
    /// Whether the descriptor was to become active.
    pub active: bool,
    /// Whether it is a descriptor with a range, which may grow.
    pub ranged: bool,
}

impl Checked {
    /// A request that failed its checks.
    pub fn refused(error: ImportError, warnings: Vec<String>) -> Self {
        Self { import: Err(error), warnings, not_stored: ImportError::AddressNotStored, active: false, ranged: false }
    }

    /// Takes out what there is to store.
    pub fn take_import(&mut self) -> Option<Import> {
        self.import.as_mut().ok().and_then(Option::take)
    }

    /// What the client is told once the wallet has answered.
    pub fn outcome(mut self, answer: Option<&ImportOutcome>) -> Outcome {
        let taken = match (&self.import, answer) {
            (Err(error), _) => Err(error.clone()),
            (Ok(_), Some(answer)) => self.take(answer),
            (Ok(_), None) => Err(ImportError::NoOutcome),
        };
        match taken {
            Ok(()) => Outcome { success: true, error: None, warnings: self.warnings, ranged: self.ranged },
            Err(error) => Outcome::failed(error, self.warnings),
        }
    }

    fn take(&mut self, answer: &ImportOutcome) -> Result<(), ImportError> {
        Err(match answer {
            ImportOutcome::Imported { missing_private_keys, unknown_output_type } => {
                if *missing_private_keys {
                    self.warn(MISSING_PRIVATE_KEYS);
                }
                if *unknown_output_type && self.active {
                    self.warn(UNKNOWN_OUTPUT_TYPE);
                }
                return Ok(());
            }
            ImportOutcome::PrivateKeysDisabled => ImportError::PrivateKeysDisabled,
            ImportOutcome::AlreadyOwned { script } => ImportError::AlreadyOwned(script.clone()),
            ImportOutcome::NotExpandable => ImportError::NotExpandable,
            ImportOutcome::NoPrivateKeys => ImportError::NoPrivateKeys,
            ImportOutcome::RangeShrinks { begin, end } => ImportError::RangeShrinks { begin: *begin, end: *end },
            ImportOutcome::BadDescriptor { reason } => ImportError::DescriptorRefused(reason.clone()),
            ImportOutcome::NotStored => self.not_stored.clone(),
        })
    }

    /// Adds a warning that is not there yet.
    fn warn(&mut self, text: &str) {
        if !self.warnings.iter().any(|warning| warning == text) {
            self.warnings.push(text.to_owned());
        }
    }
}

/// The warning of a descriptor that lacks some of its private keys.
pub const MISSING_PRIVATE_KEYS: &str =
    "Not all private keys provided. Some wallet functionality may return unexpected errors";
/// The warning of a descriptor that cannot become active.
pub const UNKNOWN_OUTPUT_TYPE: &str = "Unknown output type, cannot set descriptor to active.";
