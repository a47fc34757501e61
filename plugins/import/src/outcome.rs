//! The outcome of a request in the result of importmulti and importdescriptors.

use outrigger_kit::descriptor::without_private_keys;
use outrigger_sdk::RpcError;
use outrigger_sdk::service::wallet::{Import, ImportOutcome};
use serde::Serialize;

use crate::request::refuse_quoting;

/// The warning of a descriptor that lacks some of its private keys.
pub const MISSING_PRIVATE_KEYS: &str =
    "Not all private keys provided. Some wallet functionality may return unexpected errors";
/// The warning of a descriptor that cannot become active.
const UNKNOWN_OUTPUT_TYPE: &str = "Unknown output type, cannot set descriptor to active.";

/// An element of the result.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether the request imported a ranged descriptor.
    #[serde(skip)]
    pub ranged: bool,
}

impl Outcome {
    /// The outcome of a request that was not imported, with the warnings before the error.
    pub fn failed(error: RpcError, warnings: Vec<String>) -> Self {
        Self { success: false, error: Some(error), warnings, ranged: false }
    }
}

/// A request after its checks: the import, or the outcome of a refused request.
pub type Checked<'a> = Result<(Import, Accepted<'a>), Outcome>;

/// The item that the error names if the wallet cannot store it.
pub enum Item<'a> {
    Descriptor {
        text: &'a str,
        /// Whether the error for a narrower range has the code -4 and names the descriptor.
        names_range: bool,
    },
    /// "script", "key" or "address", of importmulti.
    Named(&'static str),
}

/// A request that passed its checks and waits for the wallet's answer.
pub struct Accepted<'a> {
    pub warnings: Vec<String>,
    pub item: Item<'a>,
    pub ranged: bool,
}

impl Accepted<'_> {
    /// The outcome of the request after the wallet's answer.
    pub fn outcome(mut self, answer: Option<ImportOutcome>) -> Outcome {
        let refusal = match answer {
            Some(ImportOutcome::Imported { unknown_output_type, .. }) => {
                self.warnings.extend(unknown_output_type.then(|| UNKNOWN_OUTPUT_TYPE.to_owned()));
                return Outcome { success: true, error: None, warnings: self.warnings, ranged: self.ranged };
            }
            Some(ImportOutcome::PrivateKeysDisabled) => private_keys_disabled(),
            Some(ImportOutcome::AlreadyOwned { script }) => RpcError::wallet(format!(
                "The wallet already contains the private key for this address or script (\"{}\")",
                script.to_hex_string()
            )),
            Some(ImportOutcome::NotExpandable) => not_expandable(),
            Some(ImportOutcome::NoPrivateKeys) => no_private_keys(),
            Some(ImportOutcome::RangeShrinks { begin, end }) => {
                let reason = format!("new range must include current range = [{begin},{end}]");
                match self.item {
                    Item::Descriptor { text, names_range: true } => {
                        RpcError::wallet(format!("{}: {reason}", descriptor_not_added(text)))
                    }
                    _ => RpcError::invalid_parameter(reason),
                }
            }
            Some(ImportOutcome::BadDescriptor { reason }) => refuse_quoting(&reason),
            Some(ImportOutcome::NotStored) => match self.item {
                Item::Descriptor { text, .. } => RpcError::wallet(descriptor_not_added(text)),
                Item::Named(item) => not_added(item),
            },
            None => RpcError::internal("The wallet gave no outcome for a request"),
        };
        Outcome::failed(refusal, self.warnings)
    }
}

/// Unlike Bitcoin Core's message, this one shows no private keys.
fn descriptor_not_added(text: &str) -> String {
    format!("Could not add descriptor '{}'", without_private_keys(text))
}

pub fn private_keys_disabled() -> RpcError {
    RpcError::wallet("Cannot import private keys to a wallet with private keys disabled")
}

pub fn not_expandable() -> RpcError {
    RpcError::wallet("Cannot expand descriptor. Probably because of hardened derivations without private keys provided")
}

pub fn no_private_keys() -> RpcError {
    RpcError::wallet("Cannot import descriptor without private keys to a wallet with private keys enabled")
}

/// The error if the wallet cannot store the `item`: "script", "key" or "address".
pub fn not_added(item: &str) -> RpcError {
    RpcError::wallet(format!("Error adding {item} to wallet"))
}
