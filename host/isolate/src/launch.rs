//! What an isolated plugin is started with.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_sandbox::{Policy, Reach};

use crate::executable::Executable;
use crate::status::{RunnerStatus, Runners};
use crate::usage::Bounds;

/// What a plugin's process is confined to.
#[derive(Clone, Debug)]
pub struct Confinement {
    /// What to do where the system does not allow a sandbox.
    pub policy: Policy,
    /// What it may reach beyond its services.
    pub reach: Vec<Reach>,
    /// Whether it may leave a core file, and be looked into by others of its user: for debugging.
    pub core: bool,
}

/// What an isolated plugin is started with.
pub struct Launch {
    /// Its id.
    pub plugin: String,
    /// Its library, as it is opened.
    pub library: PathBuf,
    /// The services that it was granted.
    pub services: Vec<String>,
    /// Whether it may be started again when it ends by itself.
    pub restartable: bool,
    /// Whether it is run to be checked: then the end of its process in a function without an answer is told as that function's fault,
    /// beside a crash, and the pause before the next one does not grow.
    pub is_checked: bool,
    /// The longest answer that is taken from it, in bytes.
    pub max_answer: usize,
    /// The program of its runners.
    pub executable: Arc<Executable>,
    /// What they are confined to; none where they are not.
    pub confinement: Option<Confinement>,
    /// What they may use.
    pub bounds: Bounds,
    /// Where it is told how those of all of the plugin's instances fare.
    pub status: Arc<RunnerStatus>,
    /// Those of this instance.
    pub runners: Arc<Runners>,
    /// Told when it has ended and is not started again.
    pub given_up: Box<dyn Fn() + Send + Sync>,
}

impl Launch {
    /// Whether its process may leave a core file.
    pub fn leaves_core(&self) -> bool {
        self.confinement.as_ref().is_none_or(|confinement| confinement.core)
    }
}
