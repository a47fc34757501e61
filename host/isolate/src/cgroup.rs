//! Control groups (cgroup v2): limits on plugins' processes that the kernel enforces, if the service manager delegated
//! a group to the host (systemd: `Delegate=`).
//!
//! The kernel allows no limited groups below a group that contains processes. So the host moves from its group into a
//! child group, and puts each plugin's process into another child group.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::usage::Bounds;

/// The mount point of the cgroup file system.
const MOUNT: &str = "/sys/fs/cgroup";

/// The magic number of the cgroup file system (`CGROUP2_SUPER_MAGIC` of linux/magic.h).
#[cfg(target_os = "linux")]
const KIND: u64 = 0x6367_7270;

/// The attribute by which systemd, from version 251 on, marks a delegated group.
#[cfg(target_os = "linux")]
const DELEGATED: &str = "user.delegate";

const HOST: &str = "host";

const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

/// The host's CPU weight. A plugin has the kernel's default of 100.
const HOST_WEIGHT: u32 = 1000;
const PLUGIN_WEIGHT: u32 = 100;

/// A control group that was delegated to the host.
#[derive(Debug)]
pub struct Delegation {
    folder: PathBuf,
    /// Whether the host already is in a child group of it.
    is_below: bool,
    /// The limited resources of a plugin's group, by the kernel's names.
    pub controllers: Vec<&'static str>,
    made: AtomicU64,
}

impl Delegation {
    /// The delegated group of this process, if any. Changes nothing.
    pub fn find() -> Option<Self> {
        let mount = Path::new(MOUNT);
        if !is_cgroup_mount(mount) {
            return None;
        }
        let own = own_group(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
        Self::of(mount, &own, is_delegated)
    }

    fn of(mount: &Path, own: &Path, is_delegated: impl Fn(&Path) -> bool) -> Option<Self> {
        let own = mount.join(own);
        let is_below = !is_delegated(&own);
        // systemd can put the service into a group below the delegated one (DelegateSubgroup=).
        let folder = if is_below { own.parent().filter(|parent| is_delegated(parent))?.to_owned() } else { own };
        let there = fs::read_to_string(folder.join("cgroup.controllers")).ok()?;
        let controllers = CONTROLLERS.into_iter().filter(|name| there.split_whitespace().any(|one| one == *name));
        let controllers: Vec<_> = controllers.collect();
        (!controllers.is_empty()).then(|| Self { folder, is_below, controllers, made: AtomicU64::new(0) })
    }

    /// Moves the processes of the group into a child group, and enables the controllers for the child groups.
    fn enter(&self) -> Result<(), GroupError> {
        let host = self.folder.join(HOST);
        if !self.is_below {
            make(&host)?;
            for process in read(&self.folder, "cgroup.procs")?.lines() {
                // A process that has ended meanwhile is skipped.
                write(&host, "cgroup.procs", process).or_else(|error| error.unless(libc::ESRCH))?;
            }
        }
        let all: Vec<String> = self.controllers.iter().map(|name| format!("+{name}")).collect();
        write(&self.folder, "cgroup.subtree_control", &all.join(" "))?;
        // If the service manager made the host's group, it also set its weight.
        if self.is_below || !self.controllers.contains(&"cpu") {
            return Ok(());
        }
        write(&host, "cpu.weight", &HOST_WEIGHT.to_string())
    }

    fn group(&self, plugin: &str, bounds: Bounds) -> Result<Group, GroupError> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        // Another host may have left groups in the same place.
        let folder = self.folder.join(format!("plugin-{plugin}-{}-{number}", std::process::id()));
        make(&folder)?;
        let mut group = Group { folder, limits: Vec::new() };
        for (file, value) in limits(bounds, &self.controllers) {
            match write(&group.folder, file, &value) {
                Ok(()) => group.limits.push(format!("{file} {value}")),
                // Older kernels lack some files.
                Err(error) => error.unless(libc::ENOENT)?,
            }
        }
        Ok(group)
    }
}

/// The files and values for these limits.
fn limits(bounds: Bounds, controllers: &[&str]) -> Vec<(&'static str, String)> {
    let or_max = |bound: u64| if bound == u64::MAX { "max".to_owned() } else { bound.to_string() };
    let all = [
        ("memory", "memory.max", or_max(bounds.memory)),
        // Swapped memory would not count, and may hold keys.
        ("memory", "memory.swap.max", "0".to_owned()),
        ("memory", "memory.oom.group", "1".to_owned()),
        ("pids", "pids.max", or_max(bounds.threads)),
        ("cpu", "cpu.weight", PLUGIN_WEIGHT.to_string()),
    ];
    let bounded = all.into_iter().filter(|(controller, ..)| controllers.contains(controller));
    bounded.map(|(_, file, value)| (file, value)).collect()
}

/// The control group of one runner. Dropping it removes the group, so it must outlive the process.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    /// The limits in force: each is a file of the kernel and its value.
    pub limits: Vec<String>,
}

impl Group {
    /// A group for a plugin's process; `None` without a delegated group.
    pub fn new(plugin: &str, bounds: Bounds) -> Option<Self> {
        let warn = |error: &GroupError| tracing::warn!(plugin, %error, "the plugin's process gets no control group");
        delegation()?.group(plugin, bounds).inspect_err(warn).ok()
    }

    /// Moves a process into the group.
    pub fn take(&self, process: u32) -> Result<(), GroupError> {
        write(&self.folder, "cgroup.procs", &process.to_string())
    }

    /// Whether the kernel's OOM killer ended its process.
    pub fn was_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count != "0"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            tracing::warn!(group = %self.folder.display(), %error, "cannot remove a plugin's control group");
        }
    }
}

/// The delegated group. The first call moves the host into a group below it.
fn delegation() -> Option<&'static Delegation> {
    static DELEGATION: OnceLock<Option<Delegation>> = OnceLock::new();
    let enter = || {
        let found = Delegation::find()?;
        let group = found.folder.display();
        let entered = found.enter();
        match &entered {
            Ok(()) => {
                tracing::info!(%group, bounds = found.controllers.join(", "), "plugins' processes get control groups")
            }
            Err(error) => tracing::warn!(%group, %error, "plugins' processes get no control groups"),
        }
        entered.is_ok().then_some(found)
    };
    DELEGATION.get_or_init(enter).as_ref()
}

/// The path of a process's group, relative to the mount point, from `/proc/PID/cgroup` (cgroups(7)).
fn own_group(text: &str) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A group outside of this process's view begins with "..".
    (!path.split('/').any(|part| part == "..")).then(|| path.into())
}

#[cfg(target_os = "linux")]
fn is_cgroup_mount(mount: &Path) -> bool {
    rustix::fs::statfs(mount).is_ok_and(|system| u64::try_from(system.f_type) == Ok(KIND))
}

#[cfg(target_os = "linux")]
fn is_delegated(folder: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::getxattr(folder, DELEGATED, &mut value) == Ok(1) && value == *b"1"
}

/// Other systems have no control groups.
#[cfg(not(target_os = "linux"))]
fn is_cgroup_mount(_: &Path) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn is_delegated(_: &Path) -> bool {
    false
}

#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}", path = path.display())]
pub struct GroupError {
    path: PathBuf,
    #[source]
    error: io::Error,
}

impl GroupError {
    /// `Ok` if the error has this OS error code, else the error.
    fn unless(self, code: i32) -> Result<(), Self> {
        if self.error.raw_os_error() == Some(code) { Ok(()) } else { Err(self) }
    }
}

fn make(folder: &Path) -> Result<(), GroupError> {
    let made = fs::create_dir(folder).map_err(|error| GroupError { path: folder.to_owned(), error });
    made.or_else(|error| error.unless(libc::EEXIST))
}

fn read(folder: &Path, file: &str) -> Result<String, GroupError> {
    let path = folder.join(file);
    fs::read_to_string(&path).map_err(|error| GroupError { path, error })
}

fn write(folder: &Path, file: &str, value: &str) -> Result<(), GroupError> {
    let path = folder.join(file);
    let opened = fs::OpenOptions::new().write(true).open(&path);
    opened.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|error| GroupError { path, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { memory: 1 << 20, threads: 7 };

    /// A plain folder in place of a group, with the files that the kernel would make.
    fn made_by_hand(folder: &Path, controllers: &str) {
        fs::create_dir_all(folder).unwrap();
        for file in ["cgroup.procs", "cgroup.subtree_control", "cpu.weight"] {
            fs::write(folder.join(file), "").unwrap();
        }
        fs::write(folder.join("cgroup.controllers"), controllers).unwrap();
    }

    #[test]
    fn own_group_is_read() {
        assert_eq!(own_group("1:name=systemd:/x\n0::/system.slice/a.service\n"), Some("system.slice/a.service".into()));
        assert_eq!(own_group("0::/\n"), Some("".into()));
        assert_eq!(own_group("0::/../a\n"), None, "it is outside of what is shown");
        assert_eq!(own_group("4:memory:/a\n"), None, "there is only the former interface");
    }

    #[test]
    fn a_group_is_used_only_if_it_was_delegated() {
        let mount = tempfile::tempdir().unwrap();
        let service = mount.path().join("a.service");
        made_by_hand(&service, "cpuset cpu io memory pids\n");
        made_by_hand(&service.join(HOST), "");
        let find =
            |own: &str, delegated: &Path| Delegation::of(mount.path(), own.as_ref(), |folder| folder == delegated);
        assert!(find("a.service", Path::new("/other")).is_none());
        let found = find("a.service", &service).unwrap();
        assert_eq!((found.folder.as_path(), found.is_below), (service.as_path(), false));
        assert_eq!(found.controllers, ["memory", "pids", "cpu"]);
        let below = find("a.service/host", &service).unwrap();
        assert_eq!((below.folder.as_path(), below.is_below), (service.as_path(), true));
        fs::write(service.join("cgroup.controllers"), "io\n").unwrap();
        assert!(find("a.service", &service).is_none(), "nothing could be bounded");
    }

    #[test]
    fn the_host_moves_and_bounds_the_groups_beside_it() {
        let mount = tempfile::tempdir().unwrap();
        made_by_hand(mount.path(), "memory pids cpu");
        let host = mount.path().join(HOST);
        made_by_hand(&host, "");
        fs::write(mount.path().join("cgroup.procs"), "71\n").unwrap();
        let found = Delegation::of(mount.path(), Path::new(""), |folder| folder == mount.path()).unwrap();
        found.enter().unwrap();
        let text = |folder: &Path, file: &str| fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(text(&host, "cgroup.procs"), "71");
        assert_eq!(text(mount.path(), "cgroup.subtree_control"), "+memory +pids +cpu");
        assert_eq!(text(&host, "cpu.weight"), "1000");
        let group = found.group("a", BOUNDS).unwrap();
        let folder = group.folder.clone();
        assert!(group.take(1).is_err(), "only the kernel makes its files");
        fs::write(folder.join("memory.events"), "oom 1\noom_kill 0\n").unwrap();
        assert!(!group.was_out_of_memory());
        fs::write(folder.join("memory.events"), "oom 1\noom_kill 1\n").unwrap();
        assert!(group.was_out_of_memory());
        fs::remove_file(folder.join("memory.events")).unwrap();
        drop(group);
        assert!(!folder.exists());
    }

    #[test]
    fn bounds_are_written_for_the_controllers_that_are_there() {
        let written = limits(BOUNDS, &["memory"]);
        assert_eq!(written[0], ("memory.max", "1048576".to_owned()));
        assert_eq!(written.len(), 3);
        let written = limits(Bounds::NONE, &["pids", "cpu"]);
        assert_eq!(written, [("pids.max", "max".to_owned()), ("cpu.weight", "100".to_owned())]);
    }
}
