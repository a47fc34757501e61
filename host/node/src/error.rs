//! What can go wrong in a node itself, as against a block or a transaction that breaks a rule.

use bitcoin::BlockHash;
use outrigger_service::{ErrorKind, ServiceError};

/// Why a node could not do what it was asked. Nothing was changed, unless the text says so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NodeError {
    /// It cannot be reached, or is not ready yet.
    #[error("{0}")]
    Unavailable(String),
    /// It has no such function, or lacks the index for it.
    #[error("{0}")]
    Unsupported(String),
    /// A block was named that it does not know.
    #[error("Block not found")]
    UnknownBlock(BlockHash),
    /// It refuses, for this reason.
    #[error("{0}")]
    Refused(String),
    /// Its storage failed.
    #[error("{0}")]
    Storage(String),
    /// It failed inside.
    #[error("{0}")]
    Internal(String),
}

impl From<NodeError> for ServiceError {
    fn from(error: NodeError) -> Self {
        let kind = match error {
            NodeError::Unavailable(_) => ErrorKind::NodeUnavailable,
            NodeError::Unsupported(_) => ErrorKind::Unsupported,
            NodeError::UnknownBlock(_) => ErrorKind::NotFound,
            NodeError::Refused(_) => ErrorKind::Refused,
            NodeError::Storage(_) => ErrorKind::Storage,
            NodeError::Internal(_) => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}
