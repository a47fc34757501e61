//! A process's planned confinement, and the enforced part. Host and process exchange both as JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::reach::Reach;

/// Paths must be UTF-8, since they are sent as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The library that the process loads; `None` if all of its code is in the program.
    pub library: Option<PathBuf>,
    /// The other files that loading the library needs: see [`library_closure`](crate::library_closure).
    pub closure: Vec<PathBuf>,
    pub reach: Vec<Reach>,
    /// The largest file that the process may write, in bytes.
    pub file_size: u64,
    pub open_files: u64,
    pub policy: Policy,
}

/// Whether a process is confined, and the fallback if the system does not support every layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Fail unless system calls are filtered, and a root or Landlock bounds files.
    #[default]
    Require,
    /// Enforce what is supported, and report the rest.
    BestEffort,
    /// Not confined: for debugging.
    None,
}

/// The layers that a system supports, or that a process enforces. A system has neither `limits` nor `hidden`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLayers {
    pub seccomp: bool,
    /// Whether denied calls are forwarded to the host, which also makes granted connections.
    pub reported: bool,
    /// 0 without Landlock.
    pub landlock_abi: u32,
    pub namespaces: Vec<String>,
    /// Whether the process has a root with granted files only.
    pub root: bool,
    /// The enforced resource limits, as text.
    pub limits: Vec<String>,
    /// Whether its memory is protected from other processes of the same user and from debuggers (`PR_SET_DUMPABLE` 0).
    /// It is not if the process may connect or write, since the host then copies descriptors.
    ///
    /// An unprivileged host cannot open the memory of such a child either, nor copy its sockets. It reads the arguments
    /// of denied calls through a descriptor that the process opened before.
    pub hidden: bool,
    /// The parts that are not supported or not enforced, as text.
    pub missing: Vec<String>,
}

impl SandboxLayers {
    /// Whether a layer other than the filter denies files outside the grants.
    pub fn bounds_files(&self) -> bool {
        self.root || self.landlock_abi > 0
    }

    /// Whether [`Policy::Require`] is satisfied.
    pub fn suffices(&self) -> bool {
        self.seccomp && self.bounds_files()
    }
}

/// Why a process could not be confined. The process must exit, since some layers may already be in force.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("this system does not allow a sandbox: {}", .missing.join("; "))]
    Missing { missing: Vec<String> },
    /// Other threads would not be confined.
    #[error("the process has {0} threads, and only one can be confined")]
    Threads(usize),
    /// A granted path, the library, or a dependency does not exist or cannot be opened.
    #[error("{}: {source}", .path.display())]
    Path { path: PathBuf, source: std::io::Error },
    /// A step failed that every system should allow.
    #[error("{step}: {source}")]
    Step { step: &'static str, source: std::io::Error },
}

impl SandboxError {
    #[cfg(target_os = "linux")]
    pub(crate) fn step<E: Into<std::io::Error>>(step: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Step { step, source: error.into() }
    }
}
