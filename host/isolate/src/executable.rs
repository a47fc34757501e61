//! The program itself, as the runners are started from it.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The hidden command of a runner.
pub const RUNNER_COMMAND: &str = "__runner";

/// The program that this process runs, opened once: a package upgrade may put another file in its place while the host runs, and a
/// runner of another version would not understand it.
#[derive(Debug)]
pub struct Executable(OwnedFd);

impl Executable {
    /// The program of this process.
    ///
    /// # Errors
    /// When the system does not show it.
    pub fn current() -> std::io::Result<Self> {
        let path = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
        Ok(Self(File::open(path)?.into()))
    }

    /// A command that starts a runner of this plugin, without environment and in the root folder.
    pub fn command(&self, plugin: &str) -> Command {
        // In the child, too, this is the descriptor: it is closed only once the program runs.
        let folder = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
        let mut command = Command::new(format!("{folder}/{}", self.0.as_raw_fd()));
        command.arg0(format!("outrigger-runner {plugin}")).arg(RUNNER_COMMAND).env_clear().current_dir("/");
        command
    }
}
