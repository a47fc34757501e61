//! Errors of the engine, and their form for callers of the service.

use std::path::PathBuf;

use bitcoin::BlockHash;
use outrigger_node::{ChainIdentity, NodeError};
use outrigger_service::wire::WireError;
use outrigger_service::{ErrorKind, ServiceError};

use outrigger_base::client_files::ClientFileError;
use outrigger_disk::{StorageError, StoreError};

/// Every error aborts its write as a whole.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    #[error("{}{}", .0, advice(.0))]
    Store(#[from] StoreError),
    /// A row does not decode.
    #[error("the wallet's storage is damaged: {0}")]
    Damaged(#[from] WireError),
    #[error("{0}")]
    File(#[from] std::io::Error),
    #[error("{list}, {}, cannot be read: {reason}", .path.display())]
    List { list: &'static str, path: PathBuf, reason: String },
    #[error(transparent)]
    ClientFile(#[from] ClientFileError),
    #[error("Data is not in recognized format.")]
    NotAWallet,
    #[error("the stored descriptor {number} cannot be used: {reason}")]
    BadDescriptor { number: u32, reason: String },
    /// The node lacks a block of its own best chain.
    #[error("the chain cannot give block {0}")]
    MissingBlock(String),
    /// The node has pruned a block that the wallet has not followed yet. The text begins like bitcoind's.
    #[error(
        "Prune: last wallet synchronisation goes beyond pruned data. You need to -reindex (download the whole blockchain again in \
         case of a pruned node). {}",
        without_reindex(*height, *first)
    )]
    Pruned {
        height: u32,
        /// The height from which the node has all blocks.
        first: u32,
    },
    /// The node has not yet downloaded a block that the wallet must follow. The text is bitcoind's.
    #[error(
        "Error loading wallet. Wallet requires blocks to be downloaded, and software does not currently support loading wallets \
         while blocks are being downloaded out of order when using assumeutxo snapshots. Wallet should be able to load \
         successfully after node sync reaches height {first}"
    )]
    Background { first: u32 },
    /// Another writer holds the write lock for long. The follower thread retries at the wallet's next turn.
    #[error("another write to the wallet takes long")]
    Occupied,
    /// The wallet's blocks are not in the node's chain, and the fork is too deep to rewind without consent.
    #[error(
        "The wallet is read-only: it has followed {depth} blocks that the node's chain does not have. If the node is right, set \
         backend.allow_rewind_to = \"{fork}\" and restart: the wallet then goes back to height {height} and reads {blocks} blocks \
         again."
    )]
    Rewind {
        /// The last common block, as far as the wallet knows.
        fork: BlockHash,
        height: u32,
        /// How many blocks the wallet has above the fork.
        depth: u32,
        /// How many blocks the node has above the fork.
        blocks: u32,
    },
    #[error(
        "Wallet loading failed. Wallet files should not be reused across chains. The wallet is of {found}, and the node is on \
         {expected}."
    )]
    OtherChain { found: ChainIdentity, expected: ChainIdentity },
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Passed to the caller unchanged.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl WalletError {
    /// Whether the only problem is that the node is unreachable.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Node(NodeError::Unavailable(_)))
    }

    /// The error for a value of `len` bytes that does not decode.
    pub fn damaged(len: usize) -> Self {
        Self::Damaged(WireError { offset: 0, len })
    }
}

/// The most blocks worth fetching one by one.
const MAX_FETCHED: u32 = 100;

/// Advice for a wallet that needs the blocks from `height` on, although its node has only the blocks from `first` on.
fn without_reindex(height: u32, first: u32) -> String {
    let last = first.saturating_sub(1);
    if first.saturating_sub(height) > MAX_FETCHED {
        return "Or let the host use a node that is not pruned (backend.url) until the wallet has followed the chain."
            .into();
    }
    format!(
        "Or have the node fetch the blocks of heights {height} to {last} again (getblockfrompeer), and load the wallet before it \
         prunes them again."
    )
}

/// The last commit that loads wallets of layouts up to 4. No release had these layouts.
const LOADS_FOUR: &str = "fb151e5407d8";
/// The last commit that loads wallets of layout 5.
const LOADS_FIVE: &str = "038d4830f085";

fn advice(error: &StoreError) -> String {
    let former = |commit, methods| format!(" A build of commit {commit} loads it: its {methods} the keys.");
    match error {
        StoreError::MapFull => "; unload and load the wallet, and it gets four times its size".to_owned(),
        StoreError::OtherLayout { found: 5, .. } => former(LOADS_FIVE, "listdescriptors tells"),
        StoreError::OtherLayout { found: ..5, .. } => former(LOADS_FOUR, "listdescriptors and dumpwallet tell"),
        _ => String::new(),
    }
}

impl From<StorageError> for WalletError {
    fn from(error: StorageError) -> Self {
        Self::Store(error.into())
    }
}

impl From<ErrorKind> for WalletError {
    fn from(kind: ErrorKind) -> Self {
        Self::Service(kind.into())
    }
}

impl From<WalletError> for ServiceError {
    fn from(error: WalletError) -> Self {
        match error {
            WalletError::Service(error) => error,
            WalletError::Node(error) => error.into(),
            error @ (WalletError::Rewind { .. } | WalletError::OtherChain { .. }) => {
                Self::new(ErrorKind::Refused, error.to_string())
            }
            error @ (WalletError::Pruned { .. } | WalletError::Background { .. }) => {
                Self::new(ErrorKind::Refused, format!("Wallet loading failed. {error}"))
            }
            other => Self::new(ErrorKind::Storage, other.to_string()),
        }
    }
}

pub type Result<T> = std::result::Result<T, WalletError>;
