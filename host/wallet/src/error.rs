//! What can go wrong inside the wallet engine, and what a service's caller hears of it.

use std::path::PathBuf;

use bitcoin::BlockHash;
use outrigger_node::{ChainIdentity, NodeError};
use outrigger_service::wire::WireError;
use outrigger_service::{ErrorKind, ServiceError};

use super::layout::{LAST_OF_FORMER, LAYOUT};
use outrigger_base::client_files::ClientFileError;
use outrigger_disk::pages::Fault;
use outrigger_disk::{Damage, MakeError, MdbError, StorageError, TableError, is_full};

/// Why the engine did not do what it was asked. Whatever it was, the write it happened in was aborted whole.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    #[error("the wallet's storage failed: {0}")]
    Storage(StorageError),
    /// The address space that was reserved when the wallet was loaded is full.
    #[error(
        "the wallet fills the space that it got when it was loaded, so nothing was stored; unload and load it, and it gets \
         four times its size ({0})"
    )]
    MapFull(StorageError),
    /// The disk is full or fails.
    #[error("the wallet's storage is full or fails, so nothing was stored: {0}")]
    Full(StorageError),
    /// A row does not read as what it must be.
    #[error("the wallet's storage is damaged: {0}")]
    Damaged(WireError),
    /// A folder or file could not be read or made.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The list of wallets to load at start cannot be read.
    #[error("the list of wallets to load at start, {}, cannot be read: {reason}", .path.display())]
    LoadList {
        /// Its file.
        path: PathBuf,
        reason: String,
    },
    /// A file that a client named may not or cannot be read or written.
    #[error(transparent)]
    ClientFile(#[from] ClientFileError),
    /// The folder holds something else.
    #[error("Data is not in recognized format.")]
    NotAWallet,
    /// The wallet was written by another version of this program.
    #[error("{}", other_layout(*found, program))]
    OtherLayout {
        /// The version of its layout.
        found: u32,
        /// The version of the program that wrote it, where that is known.
        program: String,
    },
    /// The wallet's file is damaged, which was seen before it was opened.
    #[error("The file {} is damaged: {fault}.", file.display())]
    BadFile { file: PathBuf, fault: Fault },
    /// The wallet's file is damaged, which was seen when a row was read.
    #[error(transparent)]
    Damage(Damage),
    /// A stored descriptor does not parse or derive.
    #[error("the stored descriptor {number} cannot be used: {reason}")]
    BadDescriptor { number: u32, reason: String },
    /// The chain cannot give a block of its own best chain.
    #[error("the chain cannot give block {0}")]
    MissingBlock(String),
    /// The node has dropped a block that the wallet has not followed yet. The text begins as bitcoind's.
    #[error(
        "Prune: last wallet synchronisation goes beyond pruned data. You need to -reindex (download the whole blockchain again in \
         case of a pruned node). {}",
        without_reindex(*height, *first)
    )]
    Pruned {
        /// The block's height.
        height: u32,
        /// The lowest height from which on the node has all blocks.
        first: u32,
    },
    /// The node has not fetched a block yet that the wallet has not followed. The text is bitcoind's.
    #[error(
        "Error loading wallet. Wallet requires blocks to be downloaded, and software does not currently support loading wallets \
         while blocks are being downloaded out of order when using assumeutxo snapshots. Wallet should be able to load \
         successfully after node sync reaches height {first}"
    )]
    Background {
        /// The lowest height from which on the node has all blocks.
        first: u32,
    },
    /// Another writes to the wallet, and has for some time: the thread that follows the node for it goes on later.
    #[error("another write to the wallet takes long")]
    Occupied,
    /// The blocks that the wallet has followed are not those of the node, and it does not go that far back by itself.
    #[error(
        "The wallet is read-only: it has followed {depth} blocks that the node's chain does not have. If the node is right, set \
         backend.allow_rewind_to = \"{fork}\" and restart: the wallet then goes back to height {height} and reads {blocks} blocks \
         again."
    )]
    Rewind {
        /// The last block that both have, as far as the wallet knows.
        fork: BlockHash,
        height: u32,
        /// How many blocks of the wallet come after it.
        depth: u32,
        /// How many of the node do.
        blocks: u32,
    },
    /// The wallet is of another chain than the node.
    #[error(
        "Wallet loading failed. Wallet files should not be reused across chains. The wallet is of {found}, and the node is on \
         {expected}."
    )]
    OtherChain { found: ChainIdentity, expected: ChainIdentity },
    /// The node could not be asked.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The caller is told this as it is.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl WalletError {
    /// Whether it is only that the node cannot be reached.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Node(NodeError::Unavailable(_)))
    }

    /// A value of `len` bytes is not what it must be.
    pub fn damaged(len: usize) -> Self {
        Self::Damaged(WireError { offset: 0, len })
    }
}

/// The most blocks that are worth fetching one by one.
const MAX_FETCHED: u32 = 100;

/// How a wallet gets the blocks from `height` on, of which its node has those from `first` on.
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

/// What is said of a wallet of another layout.
fn other_layout(found: u32, program: &str) -> String {
    if found < LAYOUT {
        return format!(
            "The wallet has layout {found}, which no release had, and this version of the program reads layout {LAYOUT}. A build of \
             commit {LAST_OF_FORMER} loads it: its listdescriptors and dumpwallet tell the keys."
        );
    }
    let needed = match program {
        "" => "a later version of the program".to_owned(),
        program => format!("version {program} of the program or a later one"),
    };
    format!(
        "The wallet has layout {found}, and this version of the program reads layouts up to {LAYOUT}: it needs {needed}."
    )
}

impl From<TableError> for WalletError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            TableError::Damaged(damage) => Self::Damage(damage),
        }
    }
}

impl From<StorageError> for WalletError {
    fn from(error: StorageError) -> Self {
        match &error {
            StorageError::Mdb(MdbError::MapFull) => Self::MapFull(error),
            StorageError::Io(cause) if is_full(cause) => Self::Full(error),
            _ => Self::Storage(error),
        }
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

/// What a function of the engine gives.
pub type Result<T> = std::result::Result<T, WalletError>;

impl From<MakeError> for WalletError {
    fn from(error: MakeError) -> Self {
        match error {
            MakeError::Table(error) => error.into(),
            MakeError::File(error) => error.into(),
        }
    }
}
