//! Every way in which the operations on PSBTs refuse, and bitcoind's code and message for each.

use bitcoin::OutPoint;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::sign::{SighashNameError, SignError};
use outrigger_sdk::{RpcError, RpcErrorCode};

use outrigger_sdk::psbt::DecodeError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum PsbtError {
    /// An argument breaks a rule that all methods share.
    #[error(transparent)]
    Argument(#[from] RpcError),
    /// A service of the host failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A text is no PSBT.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A text is no transaction.
    #[error("TX decode failed")]
    Transaction,
    /// A transaction to convert is signed.
    #[error("Inputs must not have scriptSigs and scriptWitnesses")]
    Signed,
    /// Nothing to combine.
    #[error("Parameter 'txs' cannot be empty")]
    NothingToCombine,
    /// PSBTs to combine are of different transactions.
    #[error("PSBTs not compatible (different transactions)")]
    DifferentTransactions,
    /// Fewer than two PSBTs to join.
    #[error("At least two PSBTs are required to join PSBTs.")]
    TooFewToJoin,
    /// PSBTs to join spend the same output.
    #[error("Input {0} exists in multiple PSBTs")]
    InputTwice(OutPoint),
    /// A descriptor was given as neither text nor object.
    #[error("Scan object needs to be either a string or an object")]
    ScanObject,
    /// An object without descriptor.
    #[error("Descriptor needs to be provided in scan object")]
    NoDescriptor,
    /// A text is no descriptor.
    #[error("{0}")]
    Descriptor(String),
    /// A descriptor whose keys cannot be derived without private keys.
    #[error("Cannot derive script without private keys: '{0}'")]
    Underivable(String),
    /// Descriptors that expand to more than is looked at.
    #[error("Range is too large")]
    TooManyKeys,
    /// No such signature hash type.
    #[error(transparent)]
    Sighash(#[from] SighashNameError),
    /// An input is to be signed with another hash type than the PSBT says.
    #[error("Specified sighash value does not match value stored in PSBT")]
    SighashMismatch,
    /// It spends too much, or would become too much, or nobody waits for it.
    #[error("{0}")]
    Sign(SignError),
}

impl From<SignError> for PsbtError {
    fn from(error: SignError) -> Self {
        match error {
            SignError::Keys(error) => Self::Service(error),
            other => Self::Sign(other),
        }
    }
}

impl From<PsbtError> for RpcError {
    fn from(error: PsbtError) -> Self {
        use PsbtError as E;
        let code = match &error {
            E::Argument(error) => return error.clone(),
            E::Service(error) => return error.clone().into(),
            E::Decode(_) | E::Transaction | E::Signed | E::SighashMismatch => RpcErrorCode::DESERIALIZATION,
            E::Descriptor(_) | E::Underivable(_) => RpcErrorCode::INVALID_ADDRESS_OR_KEY,
            E::NothingToCombine
            | E::DifferentTransactions
            | E::TooFewToJoin
            | E::InputTwice(_)
            | E::ScanObject
            | E::NoDescriptor
            | E::TooManyKeys
            | E::Sighash(_)
            | E::Sign(_) => RpcErrorCode::INVALID_PARAMETER,
        };
        Self::new(code, error.to_string())
    }
}
