//! Errors of a node. The rejection of an invalid block or transaction is not a [`NodeError`].

use bitcoin::BlockHash;
use outrigger_service::{ErrorKind, ServiceError};

/// Why a request to a node failed. The request had no effect, except perhaps after [`NodeError::OutcomeUnknown`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NodeError {
    /// The node cannot be reached, or is not ready yet.
    #[error("{0}")]
    Unavailable(String),
    /// The node makes no block templates, since it has no peers.
    #[error("{0}")]
    Unconnected(String),
    /// The node makes no block templates, since it is in its initial download.
    #[error("{0}")]
    Downloading(String),
    /// The host did not send the request, since it cannot tell which node would get it.
    #[error("{0}")]
    Withheld(String),
    /// The answer was lost: the node may have executed the request, or may do so later.
    #[error("{0}")]
    OutcomeUnknown(String),
    /// The node lacks the function, or an index that the function needs.
    #[error("{0}")]
    Unsupported(String),
    #[error("Block not found")]
    UnknownBlock(BlockHash),
    /// The node rejected the request, with this reason.
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
            NodeError::Unconnected(_) => ErrorKind::NodeUnconnected,
            NodeError::Downloading(_) => ErrorKind::NodeDownloading,
            NodeError::Unsupported(_) => ErrorKind::Unsupported,
            NodeError::UnknownBlock(_) => ErrorKind::NotFound,
            NodeError::Withheld(_) | NodeError::Refused(_) => ErrorKind::Refused,
            NodeError::Storage(_) => ErrorKind::Storage,
            NodeError::OutcomeUnknown(_) => ErrorKind::OutcomeUnknown,
            NodeError::Internal(_) => ErrorKind::Internal,
        };
        Self::new(kind, error.to_string())
    }
}
