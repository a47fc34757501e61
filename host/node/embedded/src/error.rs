//! Failures of the node itself, as opposed to blocks and transactions that break a rule.

use bitcoin::{BlockHash, Network};
use outrigger_node::NodeError;

use outrigger_disk::StoreError;

/// A failure of the node. The chain is unchanged, unless only the final sync failed.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error("the embedded node runs regtest only, not {0}: real money is validated by bitcoind")]
    Network(Network),
    #[error("Block not found")]
    UnknownBlock(BlockHash),
    #[error("the chain database: {}{}", .0, advice(.0))]
    Store(#[from] StoreError),
    #[error("cannot make the directory of the chain database: {0}")]
    Directory(std::io::Error),
    /// A row is missing or invalid.
    #[error("the chain database is damaged: {table} at {key}")]
    Corrupt { table: &'static str, key: String },
}

impl EmbeddedError {
    pub fn corrupt(table: &'static str, key: impl ToString) -> Self {
        Self::Corrupt { table, key: key.to_string() }
    }
}

fn advice(error: &StoreError) -> &'static str {
    match error {
        StoreError::BadFile { .. } => " Move the folder away, and the node creates a new chain.",
        _ => "",
    }
}

impl From<heed::Error> for EmbeddedError {
    fn from(error: heed::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<EmbeddedError> for NodeError {
    fn from(error: EmbeddedError) -> Self {
        let text = error.to_string();
        match error {
            EmbeddedError::UnknownBlock(hash) => Self::UnknownBlock(hash),
            EmbeddedError::Network(_) => Self::Refused(text),
            EmbeddedError::Store(_) | EmbeddedError::Directory(_) | EmbeddedError::Corrupt { .. } => {
                Self::Storage(text)
            }
        }
    }
}
