//! The system calls that a confined process may make without the host. Others are denied and reported.
//!
//! The C library's functions for memory, threads, clocks and waiting work, and so do reads and writes of open
//! descriptors. A call from another architecture's table (`int 0x80`) kills the process.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, Ge, Le, MaskedEq};
use seccompiler::{BpfProgram, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, TargetArch};

use crate::reach::Reach;

/// Marks the instructions that become notifications: the filter compiler does not support that action.
const MARK: u32 = 0x0b57;

pub(super) struct Shape<'a> {
    pub(super) reach: &'a [Reach],
    /// Whether denied calls are forwarded to the host.
    pub(super) reported: bool,
    /// Whether the process has its own root, which bounds queries of files by name.
    pub(super) root: bool,
    /// Whether another layer bounds the files that it can name.
    pub(super) bounded: bool,
    pub(super) pid: u32,
}

/// `mseal`, by which newer loaders protect mappings. It has this number on all architectures.
const MSEAL: c_long = 462;

/// Calls that affect only the process's memory, threads, time and descriptors.
const ALLOWED: &[c_long] = &[
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_msync,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_munlock,
    libc::SYS_membarrier,
    MSEAL,
    libc::SYS_getrandom,
    // Threads and signals.
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_getcpu,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    // Returns from a signal handler. Elsewhere, it ends the process with SIGSEGV; the filter cannot distinguish the two.
    // So a process that tries every call number ends at this one.
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    // Clocks and properties of the process.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_times,
    libc::SYS_getrusage,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getcwd,
    // Existing descriptors.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_fstat,
    libc::SYS_getdents64,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_fadvise64,
];

/// Older calls, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_dup2,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_pipe,
    libc::SYS_time,
    libc::SYS_getdents,
    libc::SYS_pause,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// Queries of a file by name. Landlock does not bound them.
pub(super) const ASKING: &[c_long] = &[
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_faccessat,
    libc::SYS_readlinkat,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
];
#[cfg(target_arch = "x86_64")]
pub(super) const OLDER_ASKING: &[c_long] = &[libc::SYS_stat, libc::SYS_lstat, libc::SYS_access, libc::SYS_readlink];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OLDER_ASKING: &[c_long] = &[];

#[cfg(target_arch = "x86_64")]
pub(super) const OPENING: &[c_long] = &[libc::SYS_openat, libc::SYS_open];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const OPENING: &[c_long] = &[libc::SYS_openat];

/// Operations on open files, allowed with a grant of writing.
const KEEPING: &[c_long] =
    &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_flock, libc::SYS_fallocate, libc::SYS_umask];

/// The process cannot create a listening socket itself.
const ACCEPTING: &[c_long] = &[libc::SYS_accept, libc::SYS_accept4];

/// Changes of folders. Only a root and Landlock bound them.
const CHANGING: &[c_long] = &[libc::SYS_mkdirat, libc::SYS_unlinkat, libc::SYS_renameat2];
#[cfg(target_arch = "x86_64")]
const OLDER_CHANGING: &[c_long] =
    &[libc::SYS_mkdir, libc::SYS_rmdir, libc::SYS_unlink, libc::SYS_rename, libc::SYS_renameat];
/// `renameat`, which the C library uses here.
#[cfg(target_arch = "aarch64")]
const OLDER_CHANGING: &[c_long] = &[38];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OLDER_CHANGING: &[c_long] = &[];

/// Newer calls with arguments in memory, which a filter cannot read. On ENOSYS, programs fall back to older calls.
const UNKNOWN: &[c_long] = &[libc::SYS_clone3, libc::SYS_openat2, libc::SYS_faccessat2];

const THREAD: libc::c_int =
    libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
const NO_THREAD: libc::c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_VFORK
    | libc::CLONE_PTRACE
    | libc::CLONE_PARENT;

/// An error only on architectures that the filter compiler does not support.
type RuleResult<T> = Result<T, seccompiler::Error>;

/// A condition on a 32-bit argument.
fn is(argument: u8, value: u64) -> RuleResult<SeccompCondition> {
    Ok(SeccompCondition::new(argument, Dword, Eq, value)?)
}

/// A condition on some bits of an argument.
fn bits(argument: u8, mask: libc::c_int, value: libc::c_int) -> RuleResult<SeccompCondition> {
    let (mask, value) = (u64::from(mask.cast_unsigned()), u64::from(value.cast_unsigned()));
    Ok(SeccompCondition::new(argument, Dword, MaskedEq(mask), value)?)
}

fn null(argument: u8) -> RuleResult<SeccompCondition> {
    Ok(SeccompCondition::new(argument, Qword, Eq, 0)?)
}

/// One rule for each value of an argument.
fn any_of(argument: u8, values: &[libc::c_int]) -> RuleResult<Vec<SeccompRule>> {
    let value = |value: &libc::c_int| u64::from(value.cast_unsigned());
    values.iter().map(|one| Ok(SeccompRule::new(vec![is(argument, value(one))?])?)).collect()
}

/// Calls that are allowed with some arguments only.
fn conditional(shape: &Shape<'_>) -> RuleResult<Vec<(c_long, Vec<SeccompRule>)>> {
    let rule = |conditions: Vec<SeccompCondition>| -> RuleResult<SeccompRule> { Ok(SeccompRule::new(conditions)?) };
    let own = u64::from(shape.pid);
    let mut rules = vec![
        (libc::SYS_clone, vec![rule(vec![bits(0, THREAD | NO_THREAD, THREAD)?])?]),
        (libc::SYS_tgkill, vec![rule(vec![is(0, own)?])?]),
        // The process may read its limits. It may also set that of descriptors, since `confine` lowers it after the filter. To raise the
        // hard limit, it would need CAP_SYS_RESOURCE, which it has dropped.
        (
            libc::SYS_prlimit64,
            vec![
                rule(vec![is(0, 0)?, null(2)?])?,
                rule(vec![is(0, own)?, null(2)?])?,
                rule(vec![is(0, 0)?, is(1, u64::from(libc::RLIMIT_NOFILE))?])?,
            ],
        ),
        (libc::SYS_prctl, any_of(0, &[libc::PR_SET_NAME, libc::PR_GET_NAME, PR_SET_VMA])?),
        // No process is charged for shared anonymous memory after it is unmapped, nor ever for huge pages.
        (
            libc::SYS_mmap,
            vec![
                rule(vec![bits(3, libc::MAP_ANONYMOUS | libc::MAP_HUGETLB, 0)?])?,
                rule(vec![bits(3, libc::MAP_SHARED | libc::MAP_HUGETLB, 0)?])?,
            ],
        ),
        // With an old size that is 0, or is rounded up to 0, the call duplicates a shared mapping.
        (
            libc::SYS_mremap,
            vec![rule(vec![
                SeccompCondition::new(1, Qword, Ge, 1)?,
                SeccompCondition::new(1, Qword, Le, i64::MAX.unsigned_abs())?,
            ])?],
        ),
        // A thread with its own descriptor table would have its own limit of descriptors.
        (libc::SYS_close_range, vec![rule(vec![bits(2, CLOSE_RANGE_UNSHARE, 0)?])?]),
        // A sending call must not connect.
        (libc::SYS_sendto, vec![rule(vec![bits(3, libc::MSG_FASTOPEN, 0)?, null(4)?])?]),
        // The limit of open descriptors also bounds those in flight, with their memory.
        (libc::SYS_sendmsg, vec![rule(vec![bits(2, libc::MSG_FASTOPEN, 0)?])?]),
        (libc::SYS_ioctl, any_of(1, &[FIONBIO, FIONREAD, FIOCLEX, FIONCLEX, TCGETS])?),
    ];
    let mut controls =
        vec![libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL, libc::F_DUPFD, libc::F_DUPFD_CLOEXEC];
    controls.push(libc::F_GET_SEALS);
    if writes(shape) {
        controls.extend([libc::F_GETLK, libc::F_SETLK, libc::F_SETLKW]);
        controls.extend([libc::F_OFD_GETLK, libc::F_OFD_SETLK, libc::F_OFD_SETLKW]);
    }
    rules.push((libc::SYS_fcntl, any_of(1, &controls)?));
    rules.push((libc::SYS_setsockopt, options()?));
    if !shape.reported {
        rules.extend(openings()?);
    }
    if shape.reported && shape.reach.iter().any(Reach::is_connect) {
        rules.push((libc::SYS_socket, sockets(shape.reach)?));
    }
    Ok(rules)
}

fn sockets(reach: &[Reach]) -> RuleResult<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    let kind = !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let mut stream = |family: libc::c_int, protocol: libc::c_int| -> RuleResult<()> {
        let family = is(0, u64::from(family.cast_unsigned()))?;
        let protocol = is(2, u64::from(protocol.cast_unsigned()))?;
        rules.push(SeccompRule::new(vec![family, bits(1, kind, libc::SOCK_STREAM)?, protocol])?);
        Ok(())
    };
    if reach.iter().any(|one| matches!(one, Reach::Unix(_))) {
        stream(libc::AF_UNIX, 0)?;
    }
    if reach.iter().any(|one| matches!(one, Reach::Tcp(_))) {
        for family in [libc::AF_INET, libc::AF_INET6] {
            stream(family, 0)?;
            stream(family, libc::IPPROTO_TCP)?;
        }
    }
    Ok(rules)
}

/// The options that clients may set. The host copies them to a granted connection.
fn options() -> RuleResult<Vec<SeccompRule>> {
    let all = super::options::COPIED;
    let value = |number: libc::c_int| u64::from(number.cast_unsigned());
    all.iter().map(|(level, name)| Ok(SeccompRule::new(vec![is(1, value(*level))?, is(2, value(*name))?])?)).collect()
}

/// Allows opening files without a notification, but not creating set-user-id programs.
fn openings() -> RuleResult<Vec<(c_long, Vec<SeccompRule>)>> {
    let rules = OPENING.iter().map(|call| {
        let flags = if *call == libc::SYS_openat { 2 } else { 1 };
        let makes_none = SeccompRule::new(vec![bits(flags, libc::O_CREAT, 0)?])?;
        let plain = SeccompRule::new(vec![bits(flags + 1, SET_ID, 0)?])?;
        Ok((*call, vec![makes_none, plain]))
    });
    rules.collect()
}

fn writes(shape: &Shape<'_>) -> bool {
    shape.reach.iter().filter_map(Reach::files).any(|(_, writes)| writes)
}

/// Set-user-id and set-group-id.
pub(super) const SET_ID: libc::c_int = 0o6000;

/// Gives the thread its own descriptor table.
const CLOSE_RANGE_UNSHARE: libc::c_int = 2;
/// Names a range of anonymous memory.
const PR_SET_VMA: libc::c_int = 0x5356_4d41;
const FIONBIO: libc::c_int = libc::FIONBIO as libc::c_int;
const FIONREAD: libc::c_int = libc::FIONREAD as libc::c_int;
const FIOCLEX: libc::c_int = libc::FIOCLEX as libc::c_int;
const FIONCLEX: libc::c_int = libc::FIONCLEX as libc::c_int;
const TCGETS: libc::c_int = libc::TCGETS as libc::c_int;

/// The two filters in the order of installation: the first answers nonexistent calls, the second all others.
pub(super) fn compile(shape: &Shape<'_>) -> RuleResult<[BpfProgram; 2]> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect::<BTreeMap<_, _>>();
    let no_such_call = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let unknown = SeccompFilter::new(unknown, SeccompAction::Allow, no_such_call, architecture)?;

    // The first filter's error takes precedence over the second's permission or notification.
    let mut calls: Vec<c_long> = [ALLOWED, OLDER, UNKNOWN].concat();
    if shape.root || !shape.reported {
        calls.extend([ASKING, OLDER_ASKING].concat());
    }
    if writes(shape) {
        calls.extend(KEEPING);
    }
    if shape.reach.iter().any(Reach::is_listen) {
        calls.extend(ACCEPTING);
    }
    // These calls can name any file, and the host does not execute them for the process.
    if writes(shape) && shape.bounded {
        calls.extend([CHANGING, OLDER_CHANGING].concat());
    }
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = calls.into_iter().map(|call| (call, Vec::new())).collect();
    rules.extend(conditional(shape)?);
    let refused = match shape.reported {
        true => SeccompAction::Trace(MARK),
        false => SeccompAction::Errno(libc::EPERM.unsigned_abs()),
    };
    let mut main: BpfProgram =
        SeccompFilter::new(rules, refused.clone(), SeccompAction::Allow, architecture)?.try_into()?;
    if shape.reported {
        const RETURN: u16 = 0x06;
        let marked = u32::from(refused);
        for instruction in main.iter_mut().filter(|one| one.code == RETURN && one.k == marked) {
            instruction.k = libc::SECCOMP_RET_USER_NOTIF;
        }
    }
    Ok([unknown.try_into()?, main])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_of_the_filter_is_a_notification_where_calls_are_reported() {
        let count =
            |program: &BpfProgram, value: u32| program.iter().filter(|one| one.code == 6 && one.k == value).count();
        let reach =
            ["write:/var/lib/acme", "connect:unix:/run/a", "connect:tcp:127.0.0.1:1"].map(|text| text.parse().unwrap());
        for root in [false, true] {
            let [unknown, main] =
                compile(&Shape { reach: &reach, reported: true, root, bounded: root, pid: 7 }).unwrap();
            assert!(count(&main, libc::SECCOMP_RET_USER_NOTIF) > 0);
            assert_eq!(count(&main, libc::SECCOMP_RET_TRACE | MARK), 0);
            assert_eq!(count(&unknown, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()), UNKNOWN.len());
        }
        let [_, silent] = compile(&Shape { reach: &[], reported: false, root: true, bounded: true, pid: 7 }).unwrap();
        assert_eq!(count(&silent, libc::SECCOMP_RET_USER_NOTIF), 0);
    }
}
