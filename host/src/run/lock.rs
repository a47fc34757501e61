//! Locks the data directory.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use outrigger_plugins::trust;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::RunError;
use super::refusals::in_use;

/// How many times the host tries to create the lock file, in case something removes it.
const LOCK_ATTEMPTS: usize = 10;

pub const LOCK_FILE: &str = ".lock";

pub struct FolderLock {
    /// The lock of the directory itself. Unlike a lock file, it cannot be bypassed by unlinking.
    _folder: File,
    /// The lock of [`LOCK_FILE`], which earlier versions use.
    _file: File,
}

/// Locks the data directory, so that only one host uses it at a time.
///
/// # Errors
/// The directory is in use, other users may change it, or it cannot be opened.
pub fn lock_folder(folder: &Path) -> Result<FolderLock, RunError> {
    let io = |error: std::io::Error| RunError::Failed(format!("{}: {error}", folder.display()));
    // The directory must be private: it holds keys, the cookie, and code that the host loads.
    trust::own_folder(folder).map_err(|error| RunError::Failed(error.to_string()))?;
    let in_use = || RunError::Failed(in_use(folder));
    let lock = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive);
    let of_folder = File::open(folder).map_err(io)?;
    match lock(&of_folder) {
        Err(Errno::WOULDBLOCK) => return Err(in_use()),
        // Some file systems cannot lock a directory.
        Err(error) => tracing::warn!(%error, "only the file .lock locks the data directory"),
        Ok(()) => {}
    }
    let path = folder.join(LOCK_FILE);
    let file = lock_file(&path, lock).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => in_use(),
        _ if path.symlink_metadata().is_ok() => RunError::Failed(format!("{}: {error}", path.display())),
        _ => io(error),
    })?;
    Ok(FolderLock { _folder: of_folder, _file: file })
}

/// Whether another host has locked a file or folder.
pub fn is_locked(path: impl AsRef<Path>) -> bool {
    let locked = |file: File| flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    File::open(path).is_ok_and(locked)
}

/// Creates the lock file and locks it by `lock`. If a clean-up script removes the file before it is locked, another host could lock a new
/// one, so this creates the file again.
fn lock_file(path: &Path, lock: impl Fn(&File) -> rustix::io::Result<()>) -> std::io::Result<File> {
    // The system refuses to open a symbolic link, and does not wait for a reader of a FIFO.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = flags.bits().cast_signed();
    for _ in 0..LOCK_ATTEMPTS {
        let file = File::options().write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
        lock(&file)?;
        let locked = file.metadata()?.ino();
        if path.metadata().is_ok_and(|found| found.ino() == locked) {
            return Ok(file);
        }
    }
    Err(Errno::WOULDBLOCK.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_that_is_replaced_before_it_is_locked_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        for replaced in [0, 1, LOCK_ATTEMPTS - 1, LOCK_ATTEMPTS] {
            let left = std::cell::Cell::new(replaced);
            let lock = |_: &File| {
                if left.get() > 0 {
                    left.set(left.get() - 1);
                    std::fs::remove_file(&path).unwrap();
                    File::create(&path).unwrap();
                }
                Ok(())
            };
            match lock_file(&path, lock) {
                Ok(file) => {
                    assert!(replaced < LOCK_ATTEMPTS, "{replaced}");
                    assert_eq!(file.metadata().unwrap().ino(), path.metadata().unwrap().ino(), "{replaced}");
                }
                Err(error) => assert_eq!((replaced, error.kind()), (LOCK_ATTEMPTS, ErrorKind::WouldBlock)),
            }
        }
    }

    #[test]
    fn a_lock_file_that_is_a_link_or_a_fifo_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (other, link, fifo) = (folder.path().join("other"), folder.path().join("link"), folder.path().join("fifo"));
        std::fs::write(&other, "text").unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [link, fifo] {
            assert!(lock_file(&path, |_| Ok(())).is_err(), "{}", path.display());
        }
        assert_eq!(std::fs::read_to_string(other).unwrap(), "text");
    }
}
