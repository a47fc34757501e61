//! System calls without a safe wrapper: seccomp filters and notifications, close_range, mount flags, raw socket
//! options.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{mem, ptr};

use libc::{c_int, c_long, c_uint, c_ulong, c_void};

/// A forwarded system call of the confined process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice {
    pub(crate) id: u64,
    pub(crate) call: i64,
    pub(crate) args: [u64; 6],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    Fail(i32),
    /// The kernel executes the call. The process can still change the memory behind its pointers, so another layer
    /// must bound the call.
    Continue,
}

fn checked(result: impl Into<c_long>) -> io::Result<c_long> {
    let result = result.into();
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Closes every descriptor except these.
pub(crate) fn close_others(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<c_uint> = keep.iter().filter_map(|descriptor| c_uint::try_from(*descriptor).ok()).collect();
    keep.sort_unstable();
    let mut first: c_uint = 0;
    let close = |first: c_uint, last: c_uint| {
        // SAFETY: the call touches no memory. The caller, a process that has just started, must not use the owner of a
        // closed descriptor.
        checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) }).map(drop)
    };
    for kept in keep {
        if kept > first {
            close(first, kept - 1)?;
        }
        first = kept.saturating_add(1).max(first);
    }
    close(first, c_uint::MAX)
}

/// Whether the kernel supports this filter action.
pub(crate) fn action_available(action: u32) -> bool {
    let flags: c_ulong = 0;
    // SAFETY: the system reads four bytes from the pointer, which is valid.
    unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, flags, &raw const action) == 0 }
}

/// The kernel's Landlock ABI version; 0 without Landlock.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: c_uint = 1;
    let (size, none): (usize, *const c_void) = (0, ptr::null());
    // SAFETY: with this flag the system reads no memory.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, size, VERSION) };
    u32::try_from(abi).unwrap_or(0)
}

/// Installs a filter on this thread permanently. With `listen`, returns the listener for notifications.
pub(crate) fn install(program: &[libc::sock_filter], listen: bool) -> io::Result<Option<OwnedFd>> {
    let len = libc::c_ushort::try_from(program.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let set = |flags: c_ulong| {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: the system reads `len` instructions from a slice of that length, and writes nothing.
        checked(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) })
    };
    if !listen {
        return set(0).map(|_| None);
    }
    // With WAIT_KILLABLE_RECV, only fatal signals interrupt a call that the host has received. Older kernels lack it.
    let listener = set(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
        .or_else(|_| set(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER))?;
    let listener = RawFd::try_from(listener).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    // SAFETY: the system has just made the descriptor for us, and nothing else owns it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(listener) }))
}

/// # Safety
/// `argument` must point to the type that `request` reads or writes.
unsafe fn control<T>(listener: BorrowedFd<'_>, request: libc::Ioctl, argument: *mut T) -> io::Result<()> {
    // SAFETY: the caller upholds this function's condition.
    checked(unsafe { libc::ioctl(listener.as_raw_fd(), request, argument) }).map(drop)
}

/// Asks for synchronous wake-ups: host and process run on one CPU in turn. Ignores the error of older kernels.
pub(crate) fn wake_together(listener: BorrowedFd<'_>) {
    const SYNC_WAKE_UP: c_ulong = 1;
    // SAFETY: this request takes a number instead of a pointer.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
}

/// Receives the next notification. Fails if the calling process has ended meanwhile.
pub(crate) fn next_notice(listener: BorrowedFd<'_>) -> io::Result<Notice> {
    // SAFETY: the struct has only integers. The kernel requires zeroes.
    let mut notice: libc::seccomp_notif = unsafe { mem::zeroed() };
    // SAFETY: the request writes one `seccomp_notif`.
    unsafe { control(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notice) }?;
    Ok(Notice { id: notice.id, call: i64::from(notice.data.nr), args: notice.data.args })
}

/// Whether the call still waits. If so, memory that the host has read was the caller's.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, mut id: u64) -> bool {
    // SAFETY: the request reads one `u64`.
    unsafe { control(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw mut id) }.is_ok()
}

/// Fails if the calling process has ended.
pub(crate) fn answer(listener: BorrowedFd<'_>, id: u64, answer: Answer) -> io::Result<()> {
    let (error, flags) = match answer {
        Answer::Done => (0, 0),
        Answer::Fail(errno) => (-errno, 0),
        Answer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
    };
    let mut response = libc::seccomp_notif_resp { id, val: 0, error, flags };
    // SAFETY: the request reads one `seccomp_notif_resp`.
    unsafe { control(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) }
}

/// Installs a descriptor in the process. With `at`, it replaces the descriptor of that number; otherwise, it gets a free
/// number, which is the result of the waiting call.
pub(crate) fn put(listener: BorrowedFd<'_>, id: u64, descriptor: BorrowedFd<'_>, at: Option<u32>) -> io::Result<()> {
    let flags = if at.is_some() { libc::SECCOMP_ADDFD_FLAG_SETFD } else { libc::SECCOMP_ADDFD_FLAG_SEND };
    let srcfd = u32::try_from(descriptor.as_raw_fd()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let newfd_flags = libc::O_CLOEXEC.unsigned_abs();
    let mut added = libc::seccomp_notif_addfd { id, flags: flags as u32, srcfd, newfd: at.unwrap_or(0), newfd_flags };
    // SAFETY: the request reads one `seccomp_notif_addfd`.
    unsafe { control(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw mut added) }
}

#[derive(Clone, Copy)]
pub(crate) struct Locks {
    pub(crate) read_only: bool,
    pub(crate) no_exec: bool,
    pub(crate) recursive: bool,
}

/// Sets the flags of a mount. `nosuid` and `nodev` are always set.
pub(crate) fn lock_mount(path: &Path, locks: Locks) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let read_only = if locks.read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let no_exec = if locks.no_exec { libc::MOUNT_ATTR_NOEXEC } else { 0 };
    let attr_set = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | read_only | no_exec;
    let attributes = libc::mount_attr { attr_set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = if locks.recursive { libc::AT_RECURSIVE } else { 0 };
    let (attributes, size) = (&raw const attributes, size_of::<libc::mount_attr>());
    // SAFETY: the path ends with a zero, and the struct has the given size.
    checked(unsafe { libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, path.as_ptr(), flags, attributes, size) })
        .map(drop)
}

pub(crate) fn option(socket: BorrowedFd<'_>, level: c_int, name: c_int) -> Option<Vec<u8>> {
    let mut value = [0u8; 32];
    let mut len: libc::socklen_t = 32;
    // SAFETY: the system writes at most `len` bytes into an array of that length.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast::<c_void>(), &raw mut len) };
    (result == 0).then(|| value.get(..len as usize).unwrap_or_default().to_vec())
}

pub(crate) fn set_option(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let len = libc::socklen_t::try_from(value.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the system reads `len` bytes from a slice of that length.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast::<c_void>(), len) })
        .map(drop)
}

pub(crate) fn unshare(flags: rustix::thread::UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: the function is unsafe only for `CLONE_FILES`, which no caller passes: all threads share their
    // descriptors.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}
