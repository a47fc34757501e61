//! The arguments for starting an isolated plugin.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_sandbox::{Policy, Reach};
use serde::{Deserialize, Serialize};

use crate::executable::Executable;
use crate::status::{Crash, RunnerStatus, Runners};
use crate::usage::Bounds;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RunnerCode {
    /// The path of the host's copy of the plugin's library.
    Library(PathBuf),
    /// The name of a plugin that is linked into the program.
    Linked(String),
}

pub struct Launch {
    pub plugin: String,
    pub code: RunnerCode,
    pub services: Vec<String>,
    /// Whether the host restarts the plugin after a crash.
    pub restartable: bool,
    /// Whether `plugin check` runs the plugin. If so, a crash in a function that has no answer is also reported as a fault
    /// of that function, and the host starts the process again after any number of crashes.
    pub is_checked: bool,
    /// The plugin's inline methods. Their functions return at once.
    pub inline: Vec<String>,
    /// The maximum length of an answer, in bytes.
    pub max_answer: usize,
    pub executable: Arc<Executable>,
    pub policy: Policy,
    /// The files and addresses that a process in a sandbox may reach besides its services.
    pub reach: Vec<Reach>,
    pub bounds: Bounds,
    pub status: Arc<RunnerStatus>,
    pub runners: Arc<Runners>,
    /// How many calls wait for the call with this token, one for the other.
    pub depth: Box<dyn Fn(u64) -> usize + Send + Sync>,
    /// Called after each crash, before the next process starts. Not if `is_checked`, which reports crashes in another way.
    pub crashed: Box<dyn Fn(&Crash) + Send + Sync>,
    /// Called when the process has ended and the host does not restart it, with `true` if the process kept ending.
    pub given_up: Box<dyn Fn(bool) + Send + Sync>,
}
