//! The arguments for starting an isolated plugin.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_sandbox::{Policy, Reach};
use serde::{Deserialize, Serialize};

use crate::executable::Executable;
use crate::status::{RunnerStatus, Runners};
use crate::usage::Bounds;

/// The sandbox of a plugin's process.
#[derive(Clone, Debug)]
pub struct Confinement {
    /// The fallback if the system does not allow a sandbox.
    pub policy: Policy,
    /// What it may reach beyond its services.
    pub reach: Vec<Reach>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RunnerCode {
    /// The copy of the plugin's library.
    Library(PathBuf),
    /// A plugin that the program links, by its name.
    Linked(String),
}

pub struct Launch {
    pub plugin: String,
    pub code: RunnerCode,
    pub services: Vec<String>,
    /// Whether it may be restarted after a crash.
    pub restartable: bool,
    /// Whether it runs in `plugin check`: then a crash in a function without an answer is also reported as a fault of
    /// that function, and the pause before restarts does not grow.
    pub is_checked: bool,
    /// Its inline methods, whose functions return at once.
    pub inline: Arc<[String]>,
    /// The length limit of its answers, in bytes.
    pub max_answer: usize,
    pub executable: Arc<Executable>,
    pub confinement: Option<Confinement>,
    pub bounds: Bounds,
    /// The statistics of all of the plugin's instances.
    pub status: Arc<RunnerStatus>,
    pub runners: Arc<Runners>,
    /// Called when it has ended and is not restarted; with `true` if it kept ending by itself.
    pub given_up: Box<dyn Fn(bool) + Send + Sync>,
}
