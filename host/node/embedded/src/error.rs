//! What can go wrong in the node itself, as against a block or a transaction that breaks a rule.

use std::path::PathBuf;

use bitcoin::{BlockHash, Network};
use outrigger_node::NodeError;

use outrigger_disk::pages::Fault;
use outrigger_disk::{Damage, MakeError, TableError, is_full};

/// Why the node could not do what it was asked. Nothing was changed, unless only the last wait for the disk failed.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// The embedded node runs a development chain only.
    #[error("the embedded node runs regtest only, not {0}: real money is validated by bitcoind")]
    Network(Network),
    /// A block was named that is not in the index.
    #[error("Block not found")]
    UnknownBlock(BlockHash),
    /// The database has used up its address space.
    #[error("the chain database is full: raise its map size and start again")]
    Full,
    /// The disk is full or fails.
    #[error("the disk of the chain database is full or fails")]
    DiskFull,
    /// As many snapshots are open as are allowed.
    #[error("too many snapshots of the chain are open")]
    TooManyReaders,
    /// The database failed.
    #[error("the chain database failed: {0}")]
    Storage(heed::Error),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The directory of the database cannot be made.
    #[error("cannot make the directory of the chain database: {0}")]
    Directory(std::io::Error),
    /// The database belongs to another chain or version.
    #[error("the chain database is not one of this version's regtest: {0}")]
    WrongDatabase(&'static str),
    /// The database was written by another version of this program.
    #[error(
        "the chain database has layout {found}, which this version of the program cannot read: it needs {}",
        needed(program)
    )]
    OtherLayout {
        /// The version of its layout.
        found: u64,
        /// The version of the program that wrote it, where that is known.
        program: String,
    },
    /// The database's file is damaged, which was seen before it was opened.
    #[error("the file {} is damaged: {fault}. Move the folder away, and the chain is made anew", file.display())]
    BadFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The database's file is damaged, which was seen when a row was read.
    #[error(transparent)]
    Damage(Damage),
    /// The database lacks or misstates what it must hold.
    #[error("the chain database is damaged: {table} at {key}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The key, in hexadecimal or decimal.
        key: String,
    },
}

impl EmbeddedError {
    /// A row of `table` that is missing or cannot be read.
    pub fn corrupt(table: &'static str, key: impl ToString) -> Self {
        Self::Corrupt { table, key: key.to_string() }
    }
}

/// The version of the program that a database needs.
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
