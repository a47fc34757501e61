//! LMDB files: opening them, tables with checksums, damage and full disks.
//!
//! Invariants:
//! - Every page of a file is checked before the file is mapped (`pages`).
//! - `Table` is the only access to rows. Each value has a checksum over table, key and value, which every read
//!   verifies. A mismatch is an error that names file and table, and stops all writes to that file.
//! - A new file appears whole or not at all: it is written in a separate folder and renamed (`make`). The next start
//!   overwrites and removes an unfinished file, since it may contain keys.

mod damage;
mod environment;
mod error;
mod examine;
mod make;
pub mod pages;
mod table;

pub use damage::Damage;
pub use environment::{DATA_FILE, Environment, LOCK_FILE, Opening};
pub use error::StoreError;
pub use examine::{check, check_file, examine};
pub use heed::Error as StorageError;
pub use make::{MAKING, finish, make, make_by, sign};
pub use table::{CHECK_LEN, Checksum, META, Pair, Reading, Rows, Table};

use std::io::{Error, ErrorKind};

/// Whether a file could not grow: disk, quota or file size limit are exhausted, or the disk fails. LMDB reports a
/// partial write, such as the last one on a full disk, as an I/O error.
pub fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::FileTooLarge | ErrorKind::QuotaExceeded)
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn a_disk_that_takes_no_more_is_full_whatever_the_system_calls_it() {
        for errno in [Errno::NOSPC, Errno::FBIG, Errno::DQUOT, Errno::IO] {
            assert!(is_full(&errno.into()), "{errno}");
        }
        for errno in [Errno::ACCESS, Errno::NOENT, Errno::INTR] {
            assert!(!is_full(&errno.into()), "{errno}");
        }
    }
}
