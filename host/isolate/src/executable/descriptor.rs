//! The host's program as an open file, which Linux can execute even if its path now names another file.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

#[derive(Debug)]
pub struct Executable(File);

impl Executable {
    pub fn current() -> std::io::Result<Self> {
        File::open("/proc/self/exe").map(Self)
    }

    /// The path to execute. The child inherits the descriptor, which is closed on exec.
    pub(super) fn place(&self) -> std::io::Result<PathBuf> {
        Ok(format!("/proc/self/fd/{}", self.0.as_raw_fd()).into())
    }
}
