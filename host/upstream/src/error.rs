use std::fmt::Display;

use outrigger_values::RpcError;

use super::credentials::CredentialsError;
use super::endpoint::Endpoint;

/// Why a node gave no usable reply. A method's own error is a usable reply.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection to the node. Nothing was sent.
    #[error("{0}")]
    Unreachable(std::io::Error),
    /// No credentials. Nothing was sent.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The node refused the credentials (401). It executed nothing.
    #[error("the node refuses the credentials")]
    Unauthorized,
    /// The node's work queue is full (503). It executed nothing.
    #[error("the node's work queue is full")]
    Overloaded,
    /// The node is starting or stopping (503 for another reason than a full work queue). It executed nothing.
    #[error("the node starts or stops")]
    Unavailable,
    /// A proxy cannot reach the node, or did not wait for its answer (502, 504): the node may have executed the request.
    #[error("a proxy in front of the node answers with status {0}")]
    Gateway(http::StatusCode),
    /// Another node listens at the address. The text names its chain and the expected one. Only the greeting was sent.
    #[error("{0}")]
    Foreign(String),
    /// The node or a proxy closes each connection after one answer, so the host cannot check the node on the connection of a call. Only the
    /// greeting was sent.
    #[error(
        "Each connection to {0} ends after one answer, as through a proxy without keep-alive: the host cannot tell to which node the \
         next one leads, and passes on only methods without effects"
    )]
    Ended(Endpoint),
    /// The node answers the greeting with this error, for example while it warms up. Only the greeting was sent.
    #[error("{0}")]
    NotReady(RpcError),
    /// The user may not call this method (403, `-rpcwhitelist`). The node executed nothing.
    #[error("the node's -rpcwhitelist refuses the method")]
    Forbidden,
    /// The connection ended after the request was sent: the node may have executed it.
    #[error("the connection ended before the reply: {0}")]
    Lost(hyper::Error),
    /// The reply is not bitcoind's, or it is too long.
    #[error("the reply is not one of bitcoind's (status {0})")]
    Strange(http::StatusCode),
    /// The reply did not come in time: the node may still execute the request.
    #[error("the node did not reply in time")]
    TimedOut,
}

impl UpstreamError {
    /// Whether it is certain that the node executed nothing.
    pub fn is_without_effect(&self) -> bool {
        !matches!(self, Self::Gateway(_) | Self::Lost(_) | Self::Strange(_) | Self::TimedOut)
    }

    /// Whether the node is unreachable at present, so that any other request would fail, too.
    pub fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::Credentials(_)
                | Self::Unauthorized
                | Self::Unavailable
                | Self::Gateway(_)
                | Self::Lost(_)
                | Self::TimedOut
        )
    }
}

/// The text for a server whose first reply is [`UpstreamError::Strange`].
pub const NO_BITCOIND: &str = "the server at this address does not answer like bitcoind";

/// The beginning of [`lost_message`].
pub const LOST: &str = "The answer of bitcoind was lost";

/// The message for a client whose call the node may have executed.
pub fn lost_message(method: &str, reason: &dyn Display) -> String {
    format!("{LOST} ({reason}): it may have done '{method}'. Look for what it did before you call again")
}
