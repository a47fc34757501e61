//! Replaces Unix sockets that a killed process has left.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Whether `path` is a socket that no process listens on, such as one left by a killed process.
pub fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Binds a socket at `path` with `bind`, and replaces an abandoned socket.
pub fn bind_unix<T>(path: &Path, bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match bind() {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_abandoned(path) => {
            fs::remove_file(path)?;
            bind()
        }
        bound => bound,
    }
}
