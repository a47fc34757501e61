//! Failures of the node itself. A block or transaction that breaks a rule is none of them.

use std::path::PathBuf;

use bitcoin::{BlockHash, Network};
use outrigger_node::NodeError;

use outrigger_disk::pages::Fault;
use outrigger_disk::{Damage, MakeError, TableError, is_full};

/// A failure of the node. Nothing was changed, unless only the final sync failed.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error("the embedded node runs regtest only, not {0}: real money is validated by bitcoind")]
    Network(Network),
    #[error("Block not found")]
    UnknownBlock(BlockHash),
    /// The database has used up its address space (LMDB's map size).
    #[error("the chain database is full: raise its map size and start again")]
    Full,
    #[error("the disk of the chain database is full or fails")]
    DiskFull,
    #[error("too many snapshots of the chain are open")]
    TooManyReaders,
    #[error("the chain database failed: {0}")]
    Storage(heed::Error),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("cannot make the directory of the chain database: {0}")]
    Directory(std::io::Error),
    #[error("the chain database is not one of this version's regtest: {0}")]
    WrongDatabase(&'static str),
    #[error(
        "the chain database has layout {found}, which this version of the program cannot read: it needs {}",
        needed(program)
    )]
    OtherLayout {
        found: u64,
        /// The version of the program that wrote it; empty if unknown.
        program: String,
    },
    /// Found before the database was opened.
    #[error("the file {} is damaged: {fault}. Move the folder away, and the chain is made anew", file.display())]
    BadFile { file: PathBuf, fault: Fault },
    /// Found when a row was read.
    #[error(transparent)]
    Damage(Damage),
    /// A row is missing or invalid.
    #[error("the chain database is damaged: {table} at {key}")]
    Corrupt { table: &'static str, key: String },
}

impl EmbeddedError {
    pub fn corrupt(table: &'static str, key: impl ToString) -> Self {
        Self::Corrupt { table, key: key.to_string() }
    }
}

fn needed(program: &str) -> String {
    match program {
        "" => "another version of the program".to_owned(),
        program => format!("version {program} of the program or a later one"),
    }
}

impl From<TableError> for EmbeddedError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Storage(error) => error.into(),
            TableError::Damaged(damage) => Self::Damage(damage),
        }
    }
}

impl From<MakeError> for EmbeddedError {
    fn from(error: MakeError) -> Self {
        match error {
            MakeError::Table(error) => error.into(),
            MakeError::File(error) => Self::from(heed::Error::Io(error)),
        }
    }
}

impl From<heed::Error> for EmbeddedError {
    fn from(error: heed::Error) -> Self {
        use heed::MdbError;
        match error {
            heed::Error::Mdb(MdbError::MapFull) => Self::Full,
            heed::Error::Mdb(MdbError::ReadersFull) => Self::TooManyReaders,
            heed::Error::Io(error) if is_full(&error) => Self::DiskFull,
            error => Self::Storage(error),
        }
    }
}

impl From<EmbeddedError> for NodeError {
    fn from(error: EmbeddedError) -> Self {
        let text = error.to_string();
        match error {
            EmbeddedError::UnknownBlock(hash) => Self::UnknownBlock(hash),
            EmbeddedError::Network(_) => Self::Refused(text),
            EmbeddedError::Thread(_) => Self::Internal(text),
            EmbeddedError::Full
            | EmbeddedError::DiskFull
            | EmbeddedError::TooManyReaders
            | EmbeddedError::Storage(_)
            | EmbeddedError::Directory(_)
            | EmbeddedError::WrongDatabase(_)
            | EmbeddedError::OtherLayout { .. }
            | EmbeddedError::BadFile { .. }
            | EmbeddedError::Damage(_)
            | EmbeddedError::Corrupt { .. } => Self::Storage(text),
        }
    }
}
