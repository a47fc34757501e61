//! Plugins in processes of their own: crashes, granted and refused access, reports of refusals, and systems with fewer sandbox
//! features.

mod connecting;
mod crashes;
mod degraded;
mod greedy;
mod hostile;
mod inline;
mod lasting;
mod liar;
mod native;
mod operating;
mod reach;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger_tests::{HostOptions, built, skip_unprivileged};
use tempfile::TempDir;

const NOBODY: u32 = 65534;

/// Whether this system allows a sandbox that reports its refusals.
pub fn has_sandbox() -> bool {
    let support = outrigger_sandbox::probe();
    let has = support.suffices() && support.reported;
    if !has {
        skip_unprivileged(&format!("this system allows no sandbox: {}", support.missing.join("; ")));
    }
    has
}

/// The users that hosts are started as: the test's user, and `nobody` if the test runs as root.
fn users() -> Vec<Option<u32>> {
    if rustix::process::getuid().is_root() {
        return vec![None, Some(NOBODY)];
    }
    skip_unprivileged("only root can start a host as another user");
    vec![None]
}

/// The program, groups and the plugin `hostile`, in a folder that any user may read.
struct Installed(TempDir);

impl Installed {
    fn new(groups: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let libraries = groups.iter().chain(&["hostile"]).map(|name| built().library(&format!("outrigger_{name}")));
        for file in libraries.chain([&built().binary]) {
            // Not copied by this process: a child of another test could hold the copy open for writing, and the system starts no file that
            // is open for writing.
            assert!(Command::new("cp").arg(file).arg(folder.path()).status().unwrap().success());
        }
        Self(folder)
    }

    fn program(&self) -> PathBuf {
        self.0.path().join(built().binary.file_name().unwrap())
    }

    /// A host with this configuration and `hostile` in a process of its own; `rest` is added to its section.
    fn options(&self, configuration: &str, user: Option<u32>, rest: &str) -> HostOptions {
        let library = self.0.path().join(built().library("outrigger_hostile").file_name().unwrap());
        let rest = format!("isolated = true\ngrants = [\"log/1\"]\n{rest}");
        let options = HostOptions::with_plugin(configuration, &library, &rest);
        HostOptions { user, program: Some(self.program()), ..options }
    }
}

/// A host with only `hostile`, in a process of its own; `rest` is added to its section.
fn alone(rest: &str) -> HostOptions {
    let rest = format!("isolated = true\ngrants = [\"log/1\"]\n{rest}");
    HostOptions::with_plugin("", built().library("outrigger_hostile"), &rest)
}

fn process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// The error of `hostile` for a call that the sandbox refused: its code, and EPERM as the message.
fn refused() -> (i64, String) {
    (-90, "1".to_owned())
}
