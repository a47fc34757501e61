//! The host's executable, which also runs the runners.
//!
//! It is opened once: a package upgrade may replace the file while the host runs, and a runner of another version would
//! not understand the host.

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

pub const RUNNER_COMMAND: &str = "__runner";

impl Executable {
    /// A command that starts a runner of this plugin, without environment and in the root folder.
    ///
    /// # Errors
    /// The path names another file now, on systems that start programs only by path.
    pub fn command(&self, plugin: &str) -> std::io::Result<Command> {
        let mut command = self.own_command(RUNNER_COMMAND)?;
        command.arg0(format!("outrigger-runner {plugin}"));
        Ok(command)
    }

    /// A command that starts the program with this argument, without environment and in the root folder.
    ///
    /// # Errors
    /// The path names another file now, on systems that start programs only by path.
    pub fn own_command(&self, argument: &str) -> std::io::Result<Command> {
        let mut command = Command::new(self.place()?);
        command.arg(argument).env_clear().current_dir("/");
        Ok(command)
    }
}
