//! The host's executable, which the runners also execute.
//!
//! The host opens the file once: a package upgrade may replace it while the host runs, and a runner of another version
//! could not talk to the host.

#[cfg(target_os = "linux")]
mod descriptor;
// Compiled on all systems for its tests.
#[cfg(any(not(target_os = "linux"), test))]
mod path;

use std::os::unix::process::CommandExt;
use std::process::Command;

#[cfg(target_os = "linux")]
pub use self::descriptor::Executable;
#[cfg(not(target_os = "linux"))]
pub use self::path::Executable;

/// The first argument of a process that runs as a runner.
pub const RUNNER_COMMAND: &str = "__runner";

impl Executable {
    /// A command that starts a runner of this plugin, with an empty environment and the working directory `/`.
    ///
    /// # Errors
    /// The file was replaced, on systems that can start a program only by its path.
    pub fn command(&self, plugin: &str) -> std::io::Result<Command> {
        let mut command = self.own_command(RUNNER_COMMAND)?;
        command.arg0(format!("outrigger-runner {plugin}"));
        Ok(command)
    }

    /// A command that starts the program with this argument, an empty environment and the working directory `/`.
    pub fn own_command(&self, argument: &str) -> std::io::Result<Command> {
        let mut command = Command::new(self.place()?);
        command.arg(argument).env_clear().current_dir("/");
        Ok(command)
    }
}
