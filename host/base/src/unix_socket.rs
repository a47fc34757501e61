//! Unix sockets whose process has ended.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Whether there is a socket at `path` that nobody listens on, as a killed process leaves it.
pub fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Binds a socket at `path` by `bind`. An abandoned one is replaced.
pub fn bind_unix<T>(path: &Path, bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match bind() {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_abandoned(path) => {
            fs::remove_file(path)?;
            bind()
        }
        bound => bound,
    }
}
