//! Unix sockets whose process has ended.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Whether there is a socket at `path` that nobody listens on, as a killed process leaves it.
pub fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}
