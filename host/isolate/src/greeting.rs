//! What host and runner tell one another before the first call.

use std::path::PathBuf;

use outrigger_sandbox::{Plan, Support};
use serde::{Deserialize, Serialize};

/// What a runner is told first.
#[derive(Serialize, Deserialize)]
pub struct Hello {
    /// The host's process.
    pub host: u32,
    /// The plugin's library.
    pub library: PathBuf,
    /// What to confine the process to, and what the system allows of it.
    pub sandbox: Option<(Plan, Support)>,
}

/// What an instance is made of.
#[derive(Serialize, Deserialize)]
pub struct Begin {
    /// The options, as JSON.
    pub options: Vec<u8>,
    /// The granted services with the number of their functions.
    pub services: Vec<(String, usize)>,
}
