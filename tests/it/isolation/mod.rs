//! Plugins in processes of their own: what a crash costs, what they reach, what is refused and told, and what a system that allows less
//! makes of it.

#[cfg(target_os = "linux")]
mod connecting;
#[cfg(target_os = "linux")]
mod crashes;
#[cfg(target_os = "linux")]
mod degraded;
#[cfg(target_os = "linux")]
mod greedy;
#[cfg(target_os = "linux")]
mod hostile;
mod inline;
#[cfg(target_os = "linux")]
mod lasting;
#[cfg(target_os = "linux")]
mod liar;
#[cfg(target_os = "linux")]
mod native;
mod operating;
#[cfg(target_os = "linux")]
mod reach;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger_tests::{Host, HostOptions, all_groups, built, skip_unprivileged};
use tempfile::TempDir;

const NOBODY: u32 = 65534;

const GROUPS: [&str; 7] = ["chain", "mining", "wallet", "import", "signing", "psbt", "history"];

/// Whether this system allows a sandbox that tells of what it refuses.
pub fn has_sandbox() -> bool {
    let support = outrigger_sandbox::probe();
    let has = support.suffices() && support.notifications;
    if !has {
        skip_unprivileged(&format!("this system allows no sandbox: {}", support.missing.join("; ")));
    }
    has
}

/// The users that hosts are started as: that of the test, and nobody where that can be.
fn users() -> Vec<Option<u32>> {
    let root = rustix::process::getuid().is_root();
    if !root {
        skip_unprivileged("only root can start a host as another user");
    }
    [None, root.then_some(NOBODY)]
        .into_iter()
        .enumerate()
        .filter(|(at, user)| *at == 0 || user.is_some())
        .map(|(_, user)| user)
        .collect()
}

/// The program, the groups and the plugin `hostile` in a folder that any user may read.
struct Installed(TempDir);

impl Installed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let libraries = GROUPS.iter().chain(&["hostile"]).map(|name| built().library(&format!("outrigger_{name}")));
        for file in libraries.chain([&built().binary]) {
            // Not by this process: a child that another test makes meanwhile would hold the copy open for writing, and a file that
            // is open for writing cannot be started.
            assert!(Command::new("cp").arg(file).arg(folder.path()).status().unwrap().success());
        }
        Self(folder)
    }

    fn program(&self) -> PathBuf {
        self.0.path().join(built().binary.file_name().unwrap())
    }

    /// All groups and `hostile` in a process of its own; `rest` belongs to its section.
    fn options(&self, user: Option<u32>, rest: &str) -> HostOptions {
        let library = self.0.path().join(built().library("outrigger_hostile").file_name().unwrap());
        let rest = format!("isolated = true\ngrants = [\"log/1\"]\n{rest}");
        let options = HostOptions::with_plugin(&all_groups(), &library, &rest);
        HostOptions { user, program: Some(self.program()), ..options }
    }
}

/// A host with `hostile` alone, in a process of its own; `rest` belongs to its section.
fn alone(rest: &str) -> HostOptions {
    let rest = format!("isolated = true\ngrants = [\"log/1\"]\n{rest}");
    HostOptions::with_plugin("", built().library("outrigger_hostile"), &rest)
}

fn process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// The processes that this one has started and that have not ended.
fn children(of: &Host) -> Vec<u32> {
    let own = of.process_id().to_string();
    let parent = |stat: &str| Some(stat.rsplit_once(") ")?.1.split(' ').nth(1)? == own);
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.filter(|pid| fs::read_to_string(process(*pid).join("stat")).is_ok_and(|stat| parent(&stat) == Some(true)))
        .collect()
}

/// The code of what the system refuses `hostile`, and the message: EPERM.
fn refused() -> (i64, String) {
    (-90, "1".to_owned())
}
