//! Why a request has no reply.

use outrigger_values::RpcError;

use super::credentials::CredentialsError;
use super::endpoint::Endpoint;

/// Why a node gave no reply that can be used. What a method answers with an error is none of these.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection to the node could be made. Nothing was sent.
    #[error("{0}")]
    Unreachable(std::io::Error),
    /// There are no credentials. Nothing was sent.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The node refuses the credentials (401). It did nothing.
    #[error("the node refuses the credentials")]
    Unauthorized,
    /// The node's work queue is full (503). It did nothing.
    #[error("the node's work queue is full")]
    Overloaded,
    /// The node starts or stops (503 for another reason than a full work queue). It did nothing.
    #[error("the node starts or stops")]
    Unavailable,
    /// What listens at the address is another node: what it is, and what it should be. It was sent nothing but questions about that.
    #[error("{0}")]
    Foreign(String),
    /// Connections end after each answer, so that none can be asked first which node it leads to. Nothing was sent but questions.
    #[error(
        "Each connection to {0} ends after one answer, as through a proxy without keep-alive: the host cannot tell to which node the \
         next one leads, and passes on only methods without effects"
    )]
    Ended(Endpoint),
    /// The node does not say yet which one it is, but answers with this error, as while it warms up. It was sent nothing else.
    #[error("{0}")]
    NotReady(RpcError),
    /// The user may not call this method (403, `-rpcwhitelist`). The node did nothing.
    #[error("the node's -rpcwhitelist refuses the method")]
    Forbidden,
    /// The connection ended after the request was sent: the node may have done it.
    #[error("the connection ended before the reply: {0}")]
    Lost(hyper::Error),
    /// The reply is not one of bitcoind's: this is another server, or the reply is longer than what is taken.
    #[error("the reply is not one of bitcoind's (status {0})")]
    Strange(http::StatusCode),
    /// The reply did not come in time: the node may still do it.
    #[error("the node did not reply in time")]
    TimedOut,
}

impl UpstreamError {
    /// Whether the node certainly did nothing.
    pub fn is_without_effect(&self) -> bool {
        !matches!(self, Self::Lost(_) | Self::Strange(_) | Self::TimedOut)
    }

    /// Whether the node cannot be asked now, whatever the request.
    pub fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::Credentials(_)
                | Self::Unauthorized
                | Self::Unavailable
                | Self::Lost(_)
                | Self::TimedOut
        )
    }
}
