//! Detects the system's sandbox features, in child processes.
#![allow(unsafe_code)]

use std::ffi::CString;

use libc::{c_int, c_ulong, c_void};

use super::{namespaces, raw};
use crate::plan::SandboxLayers;

/// The child's results, as bits of its exit status.
const USER: c_int = 1;
const MOUNT: c_int = 2;
const NET: c_int = 4;
const IPC: c_int = 8;
const ROOT: c_int = 16;
const SECCOMP: c_int = 32;
const NOTIFICATIONS: c_int = 64;

/// Allows every system call.
const ALLOW: libc::sock_filter = libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };

/// Made before the fork: the child must not allocate, since another thread may hold the allocator's lock.
struct ProbeInputs {
    user: [(CString, CString); 3],
    bases: Vec<CString>,
    program: libc::sock_fprog,
}

/// Detects which features the system, container or service unit allows. The child processes change nothing else.
pub fn probe() -> SandboxLayers {
    let mut allow = ALLOW;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let text = |text: String| CString::new(text).unwrap_or_default();
    let prepared = ProbeInputs {
        user: [
            (text("/proc/self/setgroups".into()), text("deny".into())),
            (text("/proc/self/uid_map".into()), text(format!("{user} {user} 1"))),
            (text("/proc/self/gid_map".into()), text(format!("{group} {group} 1"))),
        ],
        bases: namespaces::BASES.iter().map(|base| text((*base).into())).collect(),
        program: libc::sock_fprog { len: 1, filter: &raw mut allow },
    };
    // Each in its own child: a service unit may kill a process for a forbidden call.
    let bits = in_child(|| attempt(&prepared)) | in_child(|| filters(&prepared.program));
    let landlock = in_child(|| c_int::try_from(raw::landlock_abi()).unwrap_or(c_int::MAX).min(c_int::from(u8::MAX)));
    let has = |bit: c_int| bits & bit != 0;
    let named = [("user", USER), ("mount", MOUNT), ("net", NET), ("ipc", IPC)];
    let namespaces = named.iter().filter(|(_, bit)| has(*bit)).map(|(name, _)| (*name).to_owned()).collect();
    described(SandboxLayers {
        seccomp: has(SECCOMP) && filters_compile(),
        reported: has(NOTIFICATIONS) && filters_compile(),
        landlock_abi: landlock.unsigned_abs(),
        namespaces,
        root: has(ROOT),
        ..SandboxLayers::default()
    })
}

fn filters_compile() -> bool {
    seccompiler::TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

/// Sets the texts about missing features.
fn described(mut support: SandboxLayers) -> SandboxLayers {
    let missing = &mut support.missing;
    if !support.seccomp {
        missing.push("filters of system calls (seccomp)".to_owned());
    }
    if !support.reported {
        missing.push("reports of refused system calls, and granted connections".to_owned());
    }
    if support.landlock_abi == 0 {
        missing.push("Landlock".to_owned());
    }
    for (name, _) in namespaces::NAMESPACES {
        if !support.namespaces.iter().any(|has| has == name) {
            missing.push(format!("a namespace of its own: {name}"));
        }
    }
    if !support.root {
        missing.push("a root of its own".to_owned());
    }
    support
}

/// Runs a function in a child process. Returns its result, or 0 if the child was killed.
fn in_child(run: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the child makes system calls only, and ends by one: it allocates nothing, takes no lock and runs no
    // handler.
    let child = unsafe { libc::fork() };
    match child {
        -1 => 0,
        0 => {
            let bits = run();
            // SAFETY: it ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(bits) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the system writes one integer.
            while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {
                if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                    return 0;
                }
            }
            if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 0 }
        }
    }
}

/// The child's test of namespaces.
fn attempt(prepared: &ProbeInputs) -> c_int {
    let mut bits = 0;
    // SAFETY: system calls on integers, and on strings that end with a zero and outlive them.
    unsafe {
        if libc::unshare(libc::CLONE_NEWUSER) == 0 {
            if !prepared.user.iter().all(|(path, text)| write_file(path, text)) {
                // The process would have no user mapping.
                return 0;
            }
            bits |= USER;
        }
        if libc::unshare(libc::CLONE_NEWNET) == 0 {
            bits |= NET;
        }
        if libc::unshare(libc::CLONE_NEWIPC) == 0 {
            bits |= IPC;
        }
        if libc::unshare(libc::CLONE_NEWNS) == 0 {
            bits |= MOUNT;
            if root(&prepared.bases) {
                bits |= ROOT;
            }
        }
    }
    // The process must be able to drop the capabilities that it gained.
    if bits != 0 && !gives_up_capabilities() { 0 } else { bits }
}

fn gives_up_capabilities() -> bool {
    // The 64-bit version of the interface, and pid 0; then two empty sets.
    let (header, none): ([u32; 2], [u32; 6]) = ([0x2008_0522, 0], [0; 6]);
    // SAFETY: both have the lengths that this version of the interface reads.
    unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) == 0 }
}

/// # Safety
/// Makes system calls only.
unsafe fn write_file(path: &CString, text: &CString) -> bool {
    // SAFETY: the path ends with a zero, and the text has the given length.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return false;
        }
        let len = text.as_bytes().len();
        libc::write(file, text.as_ptr().cast::<c_void>(), len).cast_unsigned() == len
    }
}

/// Whether the process can mount and lock a tmpfs, and make it its root.
///
/// # Safety
/// Makes system calls only.
unsafe fn root(bases: &[CString]) -> bool {
    let none = std::ptr::null();
    let (tmpfs, here) = (c"tmpfs".as_ptr(), c".".as_ptr());
    // SAFETY: all strings end with a zero; the attributes have the given 32 bytes.
    unsafe {
        if libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) != 0 {
            return false;
        }
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        let data = namespaces::ROOT_OPTIONS.as_ptr().cast();
        let Some(base) = bases.iter().find(|base| libc::mount(tmpfs, base.as_ptr(), tmpfs, flags, data) == 0) else {
            return false;
        };
        let attributes: [u64; 4] = [2, 0, 0, 0];
        let (attributes, size) = (attributes.as_ptr(), size_of::<[u64; 4]>());
        libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, base.as_ptr(), 0, attributes, size) == 0
            && libc::chdir(base.as_ptr()) == 0
            && libc::syscall(libc::SYS_pivot_root, here, here) == 0
            && libc::umount2(here, libc::MNT_DETACH) == 0
    }
}

/// Whether filters can be installed, and whether they can forward calls.
fn filters(program: &libc::sock_fprog) -> c_int {
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: system calls on integers, and on a program of one instruction that outlives them.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1 as c_ulong, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) != 0 {
            return 0;
        }
        let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        let listens = raw::action_available(libc::SECCOMP_RET_USER_NOTIF)
            && libc::syscall(libc::SYS_seccomp, mode, listen, program as *const _) >= 0;
        let plain = libc::syscall(libc::SYS_seccomp, mode, 0 as c_ulong, program as *const _) == 0;
        (if plain { SECCOMP } else { 0 }) | (if listens { NOTIFICATIONS } else { 0 })
    }
}
