//! A program by a descriptor, as Linux starts one: whatever is at its path meanwhile.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A program.
#[derive(Debug)]
pub struct Program(File);

impl Program {
    /// That of this process.
    ///
    /// # Errors
    /// When the system does not show it.
    pub fn current() -> std::io::Result<Self> {
        File::open("/proc/self/exe").map(Self)
    }

    /// Where it is started from. In the child, too, this is the descriptor: it is closed only once the program runs.
    ///
    /// # Errors
    /// None.
    pub fn place(&self) -> std::io::Result<PathBuf> {
        Ok(format!("/proc/self/fd/{}", self.0.as_raw_fd()).into())
    }
}
