//! What the system says of a disk that takes no more.

use std::io::{Error, ErrorKind};

/// Whether a file could not grow: the disk is full, as much of it as the process may use, or it fails. LMDB calls a write that
/// got only a part of the way, as the last one before a disk is full, an input/output error.
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
