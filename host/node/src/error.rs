//! Failures of a node itself. A block or transaction that breaks a rule is none.

use bitcoin::BlockHash;
use outrigger_service::{ErrorKind, ServiceError};

/// Why a node could not do a request. Nothing was changed, except perhaps with [`NodeError::OutcomeUnknown`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NodeError {
    /// It cannot be reached, or is not ready yet.
    #[error("{0}")]
    Unavailable(String),
    /// Its answer was lost: it may have done the request, or may do it yet.
    #[error("{0}")]
    OutcomeUnknown(String),
    /// It has no such function, or lacks the index for it.
    #[error("{0}")]
    Unsupported(String),
    /// It does not know the block.
    #[error("Block not found")]
    UnknownBlock(BlockHash),
    /// It refuses the request, for this reason.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Storage(String),
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
            NodeError::OutcomeUnknown(_) | NodeError::Internal(_) => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}
