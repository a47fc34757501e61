//! Namespaces of the process, and a root with granted files only.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, unmount,
};
use rustix::process::{chdir, getegid, geteuid, pivot_root};
use rustix::thread::UnshareFlags;

use super::files::plain;
use super::raw::{self, Locks};
use crate::plan::{Plan, SandboxError, SandboxLayers};
use crate::reach::Reach;

/// Names in reports, and flags. There is no pid namespace: the calling process could not start threads.
pub(super) const NAMESPACES: [(&str, UnshareFlags); 4] = [
    ("user", UnshareFlags::NEWUSER),
    ("mount", UnshareFlags::NEWNS),
    ("net", UnshareFlags::NEWNET),
    ("ipc", UnshareFlags::NEWIPC),
];

/// Folders of most systems. The new root is mounted over one of them, in this process only.
pub(super) const BASES: [&str; 4] = ["/tmp", "/run", "/var", "/mnt"];

/// The root has only mount points: folders and empty files.
pub(super) const ROOT_OPTIONS: &std::ffi::CStr = c"size=1m,nr_inodes=8192,mode=755";

/// The former root's mount point until all is mounted.
const FORMER: &str = "former-root";

/// Enters the supported namespaces. The process keeps its user id.
pub(super) fn enter(support: &SandboxLayers) -> Result<Vec<String>, SandboxError> {
    let step = SandboxError::step("making namespaces");
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let wanted = NAMESPACES.iter().filter(|(name, _)| support.namespaces.iter().any(|has| has == name));
    let flags = wanted.clone().fold(UnshareFlags::empty(), |all, (_, flag)| all | *flag);
    if flags.is_empty() {
        return Ok(Vec::new());
    }
    raw::unshare(flags).map_err(step)?;
    if flags.contains(UnshareFlags::NEWUSER) {
        // Otherwise an unprivileged process may not map its group.
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
        write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    }
    Ok(wanted.map(|(name, _)| (*name).to_owned()).collect())
}

/// Writes one of the process's files in a single write.
fn write(path: &str, text: &str) -> Result<(), SandboxError> {
    fs::write(path, text).map_err(|source| SandboxError::Path { path: path.into(), source })
}

/// Replaces the root. Only granted folders are writable, no program can be executed, and no file is a device.
pub(super) fn replace_root(plan: &Plan) -> Result<(), SandboxError> {
    let base = BASES.iter().find(|path| Path::new(path).is_dir()).ok_or_else(no_base)?;
    // Sources are resolved in the former root, and later mounted from below it.
    let sources = sources(plan)?;
    let step = SandboxError::step("making a root");
    let io_step = |source| SandboxError::Step { step: "making a root", source };
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(&step)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", *base, "tmpfs", flags, ROOT_OPTIONS).map_err(&step)?;
    chdir(*base).map_err(&step)?;
    DirBuilder::new().mode(0o755).create(FORMER).map_err(io_step)?;
    pivot_root(".", FORMER).map_err(&step)?;
    chdir("/").map_err(&step)?;
    for source in &sources {
        source.mount().map_err(|error| SandboxError::Path { path: source.path.clone(), source: error })?;
    }
    let former = Path::new("/").join(FORMER);
    unmount(&former, UnmountFlags::DETACH).map_err(&step)?;
    fs::remove_dir(&former).map_err(io_step)?;
    raw::lock_mount(Path::new("/"), Locks { read_only: true, no_exec: true, recursive: false }).map_err(io_step)
}

fn no_base() -> SandboxError {
    let source = io::Error::new(io::ErrorKind::NotFound, "none of the folders to build it over exists");
    SandboxError::Step { step: "making a root", source }
}

struct Source {
    /// In the new root.
    path: PathBuf,
    /// The present path, without symbolic links.
    real: PathBuf,
    folder: bool,
    writes: bool,
    /// Libraries are mapped executable; granted files are data.
    runs: bool,
}

/// The files and folders to mount, outer folders first.
fn sources(plan: &Plan) -> Result<Vec<Source>, SandboxError> {
    let libraries = plan.library.iter().chain(&plan.closure).map(|path| (path.as_path(), false, true));
    let granted = plan.reach.iter().filter_map(|reach| reach.files()).map(|(path, writes)| (path, writes, false));
    let mut all = Vec::new();
    for (path, writes, runs) in granted.chain(libraries) {
        let error = |source| SandboxError::Path { path: path.to_owned(), source };
        let real = path.canonicalize().map_err(error)?;
        let folder = fs::metadata(&real).map_err(error)?.is_dir();
        // Grants add up: a readable path in a writable folder is writable.
        let writes = writes || (!runs && Reach::opens(&plan.reach, path, true));
        all.push(Source { path: plain(path), real, folder, writes, runs });
    }
    all.sort_by_key(|source| source.path.components().count());
    Ok(all)
}

impl Source {
    /// Mounts it at its own path.
    fn mount(&self) -> io::Result<()> {
        let from = Path::new("/").join(FORMER).join(self.real.strip_prefix("/").unwrap_or(&self.real));
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().mode(0o755).recursive(true).create(parent)?;
        // Below a mounted folder the mount point exists already.
        if self.folder && !self.path.is_dir() {
            DirBuilder::new().mode(0o755).create(&self.path)?;
        } else if !self.folder && !self.path.exists() {
            File::create(&self.path)?;
        }
        mount_bind_recursive(&from, &self.path)?;
        raw::lock_mount(&self.path, Locks { read_only: !self.writes, no_exec: !self.runs, recursive: true })
    }
}
