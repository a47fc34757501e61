//! Errors of calls.

use std::path::PathBuf;

use outrigger_base::paths::NoHome;

use super::arguments::ArgumentError;

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("cannot reach the host at {address}: {source}; is it running?")]
    Connect { address: String, source: std::io::Error },
    #[error("no TLS connection to {address}: {source}; --ca-file names the authority of the host's certificate")]
    Tls { address: String, source: std::io::Error },
    #[error("hosts have run here on several networks ({0}): name one by --network")]
    Networks(String),
    #[error("cannot read the cookie {}: {source}; is the host running?", .path.display())]
    Cookie { path: PathBuf, source: std::io::Error },
    #[error("the host answered {0}")]
    Status(String),
    #[error("waited {seconds} seconds: {last}")]
    Waited { seconds: u64, last: String },
    #[error("the host's answer is not JSON-RPC")]
    Answer,
    #[error("{0}")]
    Arguments(#[from] ArgumentError),
    #[error("{0}")]
    NoHome(#[from] NoHome),
}
