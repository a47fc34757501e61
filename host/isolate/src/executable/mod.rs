//! The program itself, as the runners are started from it.

#[cfg(target_os = "linux")]
mod descriptor;
// Tested everywhere.
#[cfg(any(not(target_os = "linux"), test))]
mod path;

use std::os::unix::process::CommandExt;
use std::process::Command;

#[cfg(target_os = "linux")]
use self::descriptor::Program;
#[cfg(not(target_os = "linux"))]
use self::path::Program;

/// The hidden command of a runner.
pub const RUNNER_COMMAND: &str = "__runner";

/// The program that this process runs, opened once: a package upgrade may put another file in its place while the host runs, and a
/// runner of another version would not understand it.
#[derive(Debug)]
pub struct Executable(Program);

impl Executable {
    /// The program of this process.
    ///
    /// # Errors
    /// When the system does not show it.
    pub fn current() -> std::io::Result<Self> {
        Program::current().map(Self)
    }

    /// A command that starts a runner of this plugin, without environment and in the root folder.
    ///
    /// # Errors
    /// On systems that start programs by their paths alone, another file is there now.
    pub fn command(&self, plugin: &str) -> std::io::Result<Command> {
        let mut command = Command::new(self.0.place()?);
        command.arg0(format!("outrigger-runner {plugin}")).arg(RUNNER_COMMAND).env_clear().current_dir("/");
        Ok(command)
    }
}
