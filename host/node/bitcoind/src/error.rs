//! Errors of requests to bitcoind, of the mirror of its headers, and of following its chain.

use bitcoin::BlockHash;
use outrigger_disk::StoreError;
use outrigger_node::{ChainIdentity, NodeError};
use outrigger_standard::release;
use outrigger_upstream::{Endpoint, Method, NO_BITCOIND, UpstreamError, lost_message, method};
use outrigger_values::{RpcError, RpcErrorCode};

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The host's user may not call the method. The node executed nothing.
    #[error("the node's -rpcwhitelist refuses {0}")]
    Forbidden(String),
    /// The answer to a call with effects was lost: the node may have executed the call.
    #[error("{}", lost_message(.method, .error))]
    Lost { method: String, error: UpstreamError },
    #[error("{method}: {error}")]
    Rpc { method: String, error: RpcError },
    /// The node returned another block or transaction than the requested one.
    #[error("the node at fault: {0}")]
    Unproven(String),
    /// The answer does not have bitcoind's form.
    #[error("{method}: {reason}")]
    Form { method: String, reason: String },
}

impl AskError {
    /// The error of a request that calls this method.
    pub fn of(method: &str, error: UpstreamError) -> Self {
        match error {
            UpstreamError::Forbidden => Self::Forbidden(method.to_owned()),
            error => Self::Upstream(error),
        }
    }

    pub fn form(method: &str, error: &dyn std::fmt::Display) -> Self {
        Self::Form { method: method.to_owned(), reason: error.to_string() }
    }

    /// Whether the node certainly executed nothing.
    pub fn is_without_effect(&self) -> bool {
        match self {
            Self::Upstream(error) => error.is_without_effect(),
            Self::Rpc { .. } | Self::Forbidden(_) => true,
            Self::Lost { .. } | Self::Form { .. } | Self::Unproven(_) => false,
        }
    }

    pub fn code(&self) -> Option<RpcErrorCode> {
        match self {
            Self::Rpc { error, .. } => Some(error.code),
            _ => None,
        }
    }
}

/// The answer; `None` if the node does not know the object of the question.
pub fn known<T>(answer: Result<T, AskError>) -> Result<Option<T>, AskError> {
    match answer {
        Err(error) if error.code() == Some(RpcErrorCode::INVALID_ADDRESS_OR_KEY) => Ok(None),
        answer => answer.map(Some),
    }
}

impl From<AskError> for NodeError {
    fn from(error: AskError) -> Self {
        match &error {
            // The reason is for the log alone: it may name the file of the credentials.
            AskError::Upstream(inner) if inner.is_absent() => {
                tracing::debug!(%error, "the node does not answer");
                Self::Unavailable("Waiting for bitcoind...".to_owned())
            }
            // Temporary, like a node that is away: callers retry.
            AskError::Upstream(UpstreamError::Overloaded | UpstreamError::Foreign(_)) | AskError::Unproven(_) => {
                Self::Unavailable(error.to_string())
            }
            AskError::Upstream(UpstreamError::Ended(_)) => Self::Withheld(error.to_string()),
            AskError::Forbidden(_) => Self::Refused(error.to_string()),
            // Warming up, as below.
            AskError::Upstream(UpstreamError::NotReady(inner)) => Self::Unavailable(inner.message.clone()),
            AskError::Lost { .. } => Self::OutcomeUnknown(error.to_string()),
            // The node may have executed the call.
            AskError::Form { method: name, reason } if method(name).is_some_and(Method::has_effects) => {
                Self::OutcomeUnknown(lost_message(name, reason))
            }
            AskError::Rpc { error: RpcError { code, message }, .. } => match *code {
                RpcErrorCode::IN_WARMUP => Self::Unavailable(message.clone()),
                RpcErrorCode::CLIENT_NOT_CONNECTED => Self::Unconnected(message.clone()),
                RpcErrorCode::CLIENT_IN_INITIAL_DOWNLOAD => Self::Downloading(message.clone()),
                _ => Self::Refused(message.clone()),
            },
            _ => Self::Internal(error.to_string()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a row of '{0}' is invalid")]
    Row(&'static str),
    #[error("the mirror is of {found}, but the host is configured for {expected}")]
    OtherChain { found: ChainIdentity, expected: ChainIdentity },
    /// A header does not follow its predecessor, or has no proof of work.
    #[error("the node's header {0} does not follow from the one before it, or has no proof of work")]
    BadHeader(BlockHash),
}

impl From<heed::Error> for MirrorError {
    fn from(error: heed::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<MirrorError> for NodeError {
    fn from(error: MirrorError) -> Self {
        Self::Storage(error.to_string())
    }
}

/// Why the mirror cannot be synchronised.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    #[error("the node's best chain changed while it was read")]
    Moved,
    /// The node's best block is an earlier block of our chain, and further back than the limit allows.
    #[error(
        "the node's best block {best} is {depth} blocks before ours, and at most {limit} are gone back (backend.max_rewind); if the \
         node is right, set backend.allow_rewind_to = \"{best}\" and restart"
    )]
    Rewind { best: BlockHash, depth: u32, limit: u32 },
    /// The node switched to a branch with less work, and the fork is beyond the limit.
    #[error(
        "the node's best block {best} has less work than ours and leaves our chain {depth} blocks before its end, and at most {limit} are \
         gone back (backend.max_rewind); if the node is right, set backend.allow_rewind_to = \"{fork}\" and restart"
    )]
    Branch {
        best: BlockHash,
        /// The last common block.
        fork: BlockHash,
        /// The number of our blocks after it.
        depth: u32,
        limit: u32,
    },
    /// The node is executing invalidateblock. The host follows its chain afterwards.
    #[error("the node is going back (invalidateblock), and is {depth} blocks before ours so far")]
    Invalidating { depth: u32 },
    #[error("the node is {depth} blocks behind, and is downloading the chain")]
    Behind { depth: u32 },
}

impl From<SyncError> for NodeError {
    fn from(error: SyncError) -> Self {
        match error {
            SyncError::Ask(error) => error.into(),
            SyncError::Mirror(error) => error.into(),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the mirror of the node's headers: {0}")]
    Mirror(String),
    /// The text names the node's chain and the configured one.
    #[error("{0}")]
    Foreign(String),
    #[error("{0} refuses the credentials")]
    Credentials(String),
    #[error(
        "the node is Bitcoin Core {release}; the host needs {first} or later, whose gettxspendingprevout finds the transactions that \
         conflict with a payment",
        first = release::FIRST
    )]
    TooOld { release: u32 },
    #[error("cannot start the threads of the node: {0}")]
    Threads(std::io::Error),
}

impl OpenError {
    /// Classifies an error of the first request: `Err` if it is permanent, so that the host cannot start, else `Ok` with the same error.
    pub fn of_first_question(endpoint: &Endpoint, error: AskError) -> Result<AskError, Self> {
        match error {
            AskError::Upstream(UpstreamError::Foreign(reason)) => Err(Self::Foreign(reason)),
            AskError::Upstream(UpstreamError::Strange(_)) => Err(Self::Foreign(NO_BITCOIND.into())),
            AskError::Upstream(UpstreamError::Unauthorized) => Err(Self::Credentials(endpoint.to_string())),
            error => Ok(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use outrigger_upstream::Login;

    use super::*;

    #[test]
    fn clients_do_not_learn_the_path_of_the_cookie() {
        let error = Login::Cookie("/nowhere/.cookie".into()).read().unwrap_err();
        let error = AskError::Upstream(error.into());
        assert!(error.to_string().starts_with("/nowhere/.cookie"), "the log names it");
        assert_eq!(NodeError::from(error), NodeError::Unavailable("Waiting for bitcoind...".into()));
    }
}
