//! The files that a confined process may open, and the names that it may query.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use crate::plan::Plan;
use crate::reach::Reach;

/// Files that the C and Rust libraries try to open but do not need. Attempts to open them are not counted.
const PROBED: [&str; 14] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/suid-debug",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/self/maps",
    "/proc/self/mountinfo",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
    "/sys/devices/system/cpu/online",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];

/// The devices that every process may read. The host opens them, since the process's root has no devices.
const RANDOM: [&str; 2] = ["/dev/random", "/dev/urandom"];

pub(super) fn is_random(path: &Path) -> bool {
    RANDOM.iter().any(|device| path == Path::new(device))
}

/// The loader checks whether these exist.
const LIBRARY_FOLDERS: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Granted,
    /// The loader or the C library checks for the file. The answer is that it does not exist, and is not counted.
    Absent,
    /// Not granted. The loader's search for a library goes on only if the answer is that the file does not exist.
    Refused {
        /// Whether the path names a library.
        library: bool,
    },
}

pub(super) struct Files {
    libraries: HashSet<PathBuf>,
    /// The loader searches the libraries' file names in many folders.
    names: HashSet<OsString>,
    reach: Vec<Reach>,
}

/// An absolute path without `.` and `..`. Links are not resolved.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::Normal(name) => plain.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

impl Files {
    pub(super) fn new(plan: &Plan) -> Self {
        let libraries: HashSet<PathBuf> = plan.library.iter().chain(&plan.closure).map(|path| plain(path)).collect();
        let names = libraries.iter().filter_map(|path| path.file_name()).map(OsString::from).collect();
        Self { libraries, names, reach: plan.reach.clone() }
    }

    /// Whether a process may open a [`plain`] path.
    pub(super) fn open(&self, path: &Path, flags: OFlags) -> Verdict {
        // Only newer versions of Landlock bound O_TRUNC with read access. O_TMPFILE is not tested below: it shares a bit
        // with O_DIRECTORY, which does not write, and requires a writing mode.
        if flags.contains(OFlags::TRUNC) && !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
            return Verdict::Refused { library: false };
        }
        let writing = flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC);
        if Reach::opens(&self.reach, path, writing) || (!writing && (self.libraries.contains(path) || is_random(path)))
        {
            return Verdict::Granted;
        }
        if writing { Verdict::Refused { library: false } } else { self.outside(path) }
    }

    /// Whether a process may query a [`plain`] path. The folders above granted files are no secret.
    pub(super) fn ask(&self, path: &Path) -> Verdict {
        let above = |granted: &Path| granted.starts_with(path);
        let granted = self.libraries.iter().any(|library| above(library))
            || self.reach.iter().filter_map(Reach::files).any(|(folder, _)| above(folder))
            || Reach::opens(&self.reach, path, false);
        // The loader also searches beside the libraries, but not in `/etc`, which only has its cache.
        let beside = |library: &PathBuf| {
            let folder = library.parent().filter(|folder| folder.parent().is_some() && *folder != Path::new("/etc"));
            folder.is_some_and(|folder| path.starts_with(folder))
        };
        let searched =
            LIBRARY_FOLDERS.iter().any(|folder| path.starts_with(folder)) || self.libraries.iter().any(beside);
        match granted {
            true => Verdict::Granted,
            false if searched => Verdict::Absent,
            false => self.outside(path),
        }
    }

    fn outside(&self, path: &Path) -> Verdict {
        let name = path.file_name().unwrap_or_default();
        let text = path.as_os_str().as_encoded_bytes();
        let probed = PROBED.iter().any(|probed| path == Path::new(probed))
            || text.starts_with(b"/etc/ld-musl-")
            || path.starts_with("/sys/fs/cgroup");
        // The loader checks folders with libraries for newer processors.
        if probed || self.names.contains(name) || path.components().any(|part| part.as_os_str() == "glibc-hwcaps") {
            return Verdict::Absent;
        }
        Verdict::Refused { library: name.as_encoded_bytes().windows(3).any(|part| part == b".so") }
    }

    /// Opens a granted file for a process that no other layer bounds, so that the opened file is the checked one.
    pub(super) fn open_for(&self, path: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let known = OFlags::RWMODE
            | OFlags::CREATE
            | OFlags::EXCL
            | OFlags::TRUNC
            | OFlags::APPEND
            | OFlags::DIRECTORY
            | OFlags::NOFOLLOW;
        // A FIFO without a reader must not block the host.
        let flags = (flags & known) | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        if self.libraries.contains(path) || is_random(path) {
            return open(path, flags, mode);
        }
        let granted = self.reach.iter().filter_map(Reach::files).find(|(granted, _)| path.starts_with(granted));
        let Some((granted, _)) = granted else { return Err(rustix::io::Errno::PERM) };
        if granted == path {
            return open(path, flags, mode);
        }
        let folder = File::open(granted)
            .map_err(|error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::PERM))?;
        let below = path.strip_prefix(granted).unwrap_or(path);
        openat2(&folder, below, flags, mode, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Policy;

    #[test]
    fn a_name_is_granted_absent_or_refused() {
        let files = Files::new(&Plan {
            library: Some("/data/copies/abc.so".into()),
            closure: vec!["/lib/libz.so.1".into(), "/opt/a/../lib/libq.so".into()],
            reach: ["read:/etc/acme", "write:/var/lib/acme"].map(|text| text.parse().unwrap()).into(),
            file_size: 1,
            open_files: 1,
            policy: Policy::Require,
        });
        let open = |path: &str, flags| files.open(&plain(Path::new(path)), flags);
        let (read, write) = (OFlags::RDONLY | OFlags::CLOEXEC, OFlags::WRONLY | OFlags::CREATE);
        for path in [
            "/dev/urandom",
            "/data/copies/abc.so",
            "/lib/libz.so.1",
            "/opt/lib/libq.so",
            "/etc/acme/a",
            "/var/lib/acme",
        ] {
            assert_eq!(open(path, read), Verdict::Granted, "{path}");
        }
        assert_eq!(open("/etc/acme", read | OFlags::DIRECTORY), Verdict::Granted);
        assert_eq!(open("/var/lib/acme/x", write), Verdict::Granted);
        for path in ["/usr/lib/libz.so.1", "/usr/lib/glibc-hwcaps/x86-64-v3/libz.so.1", "/proc/self/maps"] {
            assert_eq!(open(path, read), Verdict::Absent, "{path}");
        }
        assert_eq!(open("/lib/libc.so.6", read), Verdict::Refused { library: true });
        assert_eq!(open("/etc/shadow", read), Verdict::Refused { library: false });
        assert_eq!(open("/etc/acme/../shadow", read), Verdict::Refused { library: false });
        for (path, flags) in [
            ("/lib/libz.so.1", OFlags::RDWR),
            ("/etc/acme/a", write),
            ("/dev/random", OFlags::RDWR),
            ("/proc/self/maps", write),
        ] {
            assert_eq!(open(path, flags), Verdict::Refused { library: false }, "{path}");
        }
        assert_eq!(open("/var/lib/acme/x", OFlags::RDONLY | OFlags::TRUNC), Verdict::Refused { library: false });
        assert_eq!(open("/etc/acme", OFlags::TMPFILE | OFlags::RDWR), Verdict::Refused { library: false });
        assert_eq!(files.ask(Path::new("/var")), Verdict::Granted);
        assert_eq!(files.ask(Path::new("/usr/lib/tls")), Verdict::Absent);
        assert_eq!(files.ask(Path::new("/data/copies/tls")), Verdict::Absent);
        assert_eq!(files.ask(Path::new("/etc/passwd")), Verdict::Refused { library: false });
    }
}
