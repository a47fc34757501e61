//! What a process is confined to, and what of it held: both are sent between processes, so both are plain data.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::reach::Reach;

/// What a process is to be confined to. Paths that are no UTF-8 cannot be sent as JSON, which is an error of the sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The library that it will open.
    pub library: PathBuf,
    /// What else opening it needs by path: see [`library_closure`](crate::library_closure).
    pub closure: Vec<PathBuf>,
    /// What was granted beyond.
    pub reach: Vec<Reach>,
    /// Bounds on what it may use.
    pub limits: Limits,
    /// What to do where the system does not allow all of it.
    pub policy: Policy,
    /// Keeps the process's memory from other processes of the same user, and a debugger out (`PR_SET_DUMPABLE` 0).
    ///
    /// An unprivileged host may then not open the memory of its own child either, nor copy its sockets: the tests try both. It
    /// reads the arguments of refused calls all the same, by a descriptor that the process opened of itself before it hid. With
    /// a grant of connections or of writing this has no effect, since for these the host copies the process's descriptors.
    pub hide_memory: bool,
    /// Leaves the limit of core files as it was given, for debugging; else there are none. A file is written only where the process
    /// may write one, and a program that takes cores through a pipe gets them.
    pub core: bool,
    /// Layers that are left out: for tests, and to find out what a system lacks.
    #[serde(default)]
    pub without: Vec<Layer>,
}

/// What to do where the system does not allow every layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Refuse unless system calls are filtered, and files are bounded by a root of the process's own or by Landlock.
    Require,
    /// Enforce what there is, and say what is missing.
    BestEffort,
}

/// One layer of the confinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A user namespace, and all that only it permits.
    UserNamespace,
    /// All namespaces, and so the root of its own.
    Namespaces,
    /// Landlock.
    Landlock,
    /// That refused system calls are told to the host.
    Notifications,
    /// The filter of system calls.
    Seccomp,
}

/// Bounds on what a process may use. `None` leaves what it inherited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The largest file that it may write, in bytes.
    pub file_size: Option<u64>,
    /// Open descriptors.
    pub open_files: u64,
    /// Threads. It holds only in a user namespace, and not for root: the system counts those of a whole user.
    pub threads: Option<u64>,
    /// How far it stands back for others when the processors are busy, from 0 to 19.
    pub nice: i32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_size: None, open_files: 64, threads: None, nice: 0 }
    }
}

/// What holds a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// System calls are filtered.
    pub seccomp: bool,
    /// Refused calls are told to the host, and granted connections are made by it.
    pub reported: bool,
    /// The version of Landlock's interface that holds; 0 without Landlock.
    pub landlock_abi: u32,
    /// The namespaces of its own.
    pub namespaces: Vec<String>,
    /// It has a root of its own, with nothing in it but what was granted.
    pub root: bool,
    /// The limits that were set, in words.
    pub limits: Vec<String>,
    /// Its memory is hidden from others of its user.
    pub hidden: bool,
    /// What does not hold, in words.
    pub missing: Vec<String>,
}

impl Enforced {
    /// Whether files outside what was granted are out of reach whatever the process does.
    #[must_use]
    pub fn bounds_files(&self) -> bool {
        self.root || self.landlock_abi > 0
    }

    /// Whether [`Policy::Require`] is satisfied.
    #[must_use]
    pub fn suffices(&self) -> bool {
        self.seccomp && self.bounds_files()
    }
}

/// What the system allows, found without leaving anything behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// System calls can be filtered.
    pub seccomp: bool,
    /// A filter may tell the host of refused calls.
    pub notifications: bool,
    /// The version of Landlock's interface; 0 without Landlock.
    pub landlock_abi: u32,
    /// The namespaces that may be made.
    pub namespaces: Vec<String>,
    /// A root of its own may be made.
    pub root: bool,
    /// What is missing, in words.
    pub missing: Vec<String>,
}

impl Support {
    /// Whether [`Policy::Require`] can be satisfied here.
    #[must_use]
    pub fn suffices(&self) -> bool {
        self.seccomp && (self.root || self.landlock_abi > 0)
    }
}

/// Why a process could not be confined. It must end then: part of the confinement may hold already.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The system does not allow what [`Policy::Require`] needs.
    #[error("this system does not allow a sandbox: {}", .missing.join("; "))]
    Missing {
        /// What is missing, in words.
        missing: Vec<String>,
    },
    /// The process has threads already, which would stay outside.
    #[error("the process has {0} threads, and only one can be confined")]
    Threads(usize),
    /// A granted path, the library, or what it needs is not there or cannot be opened.
    #[error("{}: {source}", .path.display())]
    Path {
        /// As planned.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A step failed that no system should refuse.
    #[error("{step}: {source}")]
    Step {
        /// What was done.
        step: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl SandboxError {
    /// Names the step that an error of the system ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn step(step: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::Step { step, source: errno.into() }
    }
}
