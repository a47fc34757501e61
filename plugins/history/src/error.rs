//! Why a question about the history is not answered.

use outrigger_sdk::service::ServiceError;
use outrigger_sdk::wire::WireError;
use outrigger_sdk::{RpcError, RpcErrorCode};

/// A rule that a call broke, or a service that failed it.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// An argument is not what it must be; the checks are shared with all plugins.
    #[error(transparent)]
    Argument(#[from] RpcError),
    /// A service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The wallet has no such transaction.
    #[error("Invalid or non-wallet transaction id")]
    UnknownTransaction,
    /// The node has no such block.
    #[error("Block not found")]
    UnknownBlock,
    /// `target_confirmations` is below 1.
    #[error("Invalid parameter")]
    TargetConfirmations,
    /// A block that left the best chain cannot be read.
    #[error("Can't read block from disk")]
    UnreadableBlock,
    /// An empty label.
    #[error("Label argument must be a valid label name or \"*\".")]
    EmptyLabel,
    /// The label that stands for all labels elsewhere.
    #[error("Invalid label name")]
    ReservedLabel,
    /// Not an address.
    #[error("Invalid Bitcoin address")]
    Address,
    /// A filter that is no address.
    #[error("address_filter parameter was invalid")]
    AddressFilter,
    /// An address that is not the wallet's, or a label of such addresses alone.
    #[error("Address not found in wallet")]
    UnknownAddress,
    /// A label that no address has.
    #[error("Label not found in wallet")]
    UnknownLabel,
    /// A count below 0.
    #[error("Negative count")]
    NegativeCount,
    /// A skip below 0.
    #[error("Negative from")]
    NegativeSkip,
    /// The transaction is in a block or in the mempool, or was given up before.
    #[error("Transaction not eligible for abandonment")]
    NotAbandonable,
    /// A note of so many bytes.
    #[error("A comment has at most {max} bytes, this one has {0}", max = outrigger_sdk::service::wallet::MAX_TEXT_LEN)]
    TextTooLong(usize),
    /// What the wallet stores does not decode.
    #[error("The wallet's copy of transaction {0} is damaged")]
    Damaged(bitcoin::Txid),
}

impl From<WireError> for HistoryError {
    fn from(error: WireError) -> Self {
        Self::Service(error.into())
    }
}

impl From<HistoryError> for RpcError {
    fn from(error: HistoryError) -> Self {
        let code = match &error {
            HistoryError::Argument(error) => return error.clone(),
            HistoryError::Service(error) => return error.clone().into(),
            HistoryError::UnknownTransaction
            | HistoryError::UnknownBlock
            | HistoryError::NotAbandonable
            | HistoryError::Address => RpcErrorCode::INVALID_ADDRESS_OR_KEY,
            HistoryError::AddressFilter | HistoryError::UnknownAddress | HistoryError::UnknownLabel => {
                RpcErrorCode::WALLET
            }
            HistoryError::TargetConfirmations
            | HistoryError::EmptyLabel
            | HistoryError::NegativeCount
            | HistoryError::NegativeSkip
            | HistoryError::TextTooLong(_) => RpcErrorCode::INVALID_PARAMETER,
            HistoryError::ReservedLabel => RpcErrorCode::WALLET_INVALID_LABEL,
            HistoryError::UnreadableBlock | HistoryError::Damaged(_) => RpcErrorCode::INTERNAL,
        };
        Self::new(code, error.to_string())
    }
}
