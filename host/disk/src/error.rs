//! Errors of an LMDB file.

use std::io;
use std::path::PathBuf;

use heed::MdbError;

use super::damage::Damage;
use super::is_full;
use super::pages::Fault;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address space reserved at opening (LMDB's map size) is used up.
    #[error("the file fills the space reserved for it, so nothing was stored")]
    MapFull,
    #[error("the disk is full or failing, so nothing was stored: {0}")]
    DiskFull(io::Error),
    #[error("too many snapshots are open")]
    TooManyReaders,
    #[error("the storage failed: {0}")]
    Failed(heed::Error),
    /// Another version of the program wrote the file.
    #[error(
        "The file {} has layout {found}, but this build of the program reads layout {known}. {} wrote it.",
        file.display(), writer(program)
    )]
    OtherLayout {
        file: PathBuf,
        found: u64,
        known: u64,
        /// The version of the program that wrote it; empty if unknown.
        program: String,
    },
    /// Damage found before the file was opened.
    #[error("The file {} is damaged: {fault}.", file.display())]
    BadFile { file: PathBuf, fault: Fault },
    /// Damage found when a row was read.
    #[error(transparent)]
    Damage(#[from] Damage),
}

fn writer(program: &str) -> String {
    match program {
        "" => "Another version".to_owned(),
        version => format!("A build of version {version}"),
    }
}

impl From<heed::Error> for StoreError {
    fn from(error: heed::Error) -> Self {
        match error {
            heed::Error::Mdb(MdbError::MapFull) => Self::MapFull,
            heed::Error::Mdb(MdbError::ReadersFull) => Self::TooManyReaders,
            heed::Error::Io(error) if is_full(&error) => Self::DiskFull(error),
            error => Self::Failed(error),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        heed::Error::Io(error).into()
    }
}
