//! A program by its descriptor, which Linux can start even if its path names another file now.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

#[derive(Debug)]
pub struct Program(File);

impl Program {
    pub fn current() -> std::io::Result<Self> {
        File::open("/proc/self/exe").map(Self)
    }

    /// The path to start. The child has the same descriptor: it is closed on exec.
    pub fn place(&self) -> std::io::Result<PathBuf> {
        Ok(format!("/proc/self/fd/{}", self.0.as_raw_fd()).into())
    }
}
