//! The messages before the first call.

use outrigger_sandbox::{Plan, SandboxLayers};
use serde::{Deserialize, Serialize};

use crate::launch::RunnerCode;

/// The first message to a runner.
#[derive(Serialize, Deserialize)]
pub struct Hello {
    /// The host's process ID.
    pub host: u32,
    pub code: RunnerCode,
    /// The sandbox plan, with the features that the kernel supports.
    pub sandbox: Option<(Plan, SandboxLayers)>,
}

/// The arguments of a plugin's `init`.
#[derive(Serialize, Deserialize)]
pub struct Begin {
    pub options: Vec<u8>,
    /// The names of the granted services, each with its number of functions.
    pub services: Vec<(String, usize)>,
}
