//! Errors of an LMDB file.

use std::io;
use std::path::PathBuf;

use heed::MdbError;
use rustix::process::{Resource, getrlimit};

use super::damage::Damage;
use super::is_full;
use super::pages::Fault;

/// The address space for the host's growth besides the maps, in bytes.
const ROOM: u64 = 1 << 30;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address space reserved at opening (LMDB's map size) is used up.
    #[error("the file fills the space reserved for it, so nothing was stored")]
    MapFull,
    #[error("the disk is full or failing, so nothing was stored: {0}")]
    DiskFull(io::Error),
    /// The process may not map the file into memory. `limit` and `needed` are in MiB.
    #[error(
        "the limit on address space (ulimit -v, LimitAS) is too low: it is {limit} MiB, and the host needs {needed} MiB to open \
         another file"
    )]
    AddressSpace { limit: u64, needed: u64 },
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

impl StoreError {
    /// The error for a map of `size` bytes that the system refuses.
    pub(crate) fn of_map(error: heed::Error, size: usize) -> Self {
        // The pages of address space that the process uses.
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = pages.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
        let used = pages.map(|pages| pages.saturating_mul(rustix::param::page_size() as u64));
        let wanted = used.map(|used| used.saturating_add(size as u64));
        match (error, getrlimit(Resource::As).current.zip(wanted)) {
            (heed::Error::Io(error), Some((limit, wanted)))
                if wanted > limit && error.raw_os_error() == Some(rustix::io::Errno::NOMEM.raw_os_error()) =>
            {
                Self::AddressSpace { limit: limit >> 20, needed: wanted.saturating_add(ROOM) >> 20 }
            }
            (error, _) => error.into(),
        }
    }
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
