//! Names and kinds of denied system calls.

use libc::c_long;

use crate::denial::Kind;

/// The name of an unlisted call: of another system-call table, or newer than this list.
const UNNAMED: &str = "unknown";

macro_rules! named {
    ($($call:ident)*) => { &[$((libc::$call, stringify!($call))),*] };
}

type CallsOfKind = (Kind, &'static [(c_long, &'static str)]);

const TRIED: &[CallsOfKind] = &[
    (
        Kind::Open,
        named!(SYS_openat SYS_openat2 SYS_open_by_handle_at SYS_name_to_handle_at SYS_newfstatat SYS_statx SYS_faccessat
        SYS_readlinkat SYS_statfs SYS_fstatfs SYS_mkdirat SYS_mknodat SYS_unlinkat SYS_symlinkat SYS_linkat
        SYS_renameat2 SYS_truncate SYS_chdir SYS_fchdir SYS_fchmodat SYS_fchownat SYS_utimensat SYS_setxattr
        SYS_lsetxattr SYS_getxattr SYS_lgetxattr SYS_listxattr SYS_removexattr SYS_inotify_add_watch SYS_fanotify_mark),
    ),
    (Kind::Connect, named!(SYS_connect)),
    (
        Kind::Socket,
        named!(SYS_socket SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_setsockopt SYS_sendto
        SYS_sendmsg SYS_sendmmsg SYS_recvmmsg),
    ),
    (Kind::Fork, named!(SYS_clone SYS_clone3)),
    (Kind::Exec, named!(SYS_execve SYS_execveat)),
    (
        Kind::Ptrace,
        named!(SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_process_madvise SYS_process_mrelease
        SYS_pidfd_getfd SYS_kcmp),
    ),
    (Kind::Kill, named!(SYS_kill SYS_tkill SYS_tgkill SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_pidfd_send_signal)),
    (
        Kind::Mount,
        named!(SYS_mount SYS_umount2 SYS_pivot_root SYS_chroot SYS_unshare SYS_setns SYS_open_tree SYS_move_mount
        SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr),
    ),
    (
        Kind::Ipc,
        named!(SYS_shmget SYS_shmat SYS_shmctl SYS_shmdt SYS_semget SYS_semop SYS_semctl SYS_semtimedop SYS_msgget
        SYS_msgsnd SYS_msgrcv SYS_msgctl SYS_mq_open SYS_mq_unlink SYS_memfd_create SYS_memfd_secret),
    ),
    (
        Kind::Other,
        named!(SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register SYS_bpf SYS_perf_event_open SYS_userfaultfd
        SYS_add_key SYS_request_key SYS_keyctl SYS_seccomp SYS_prctl SYS_ioctl SYS_fcntl SYS_ftruncate SYS_prlimit64
        SYS_setpriority SYS_getpriority SYS_sched_setaffinity SYS_sched_setscheduler SYS_sched_setparam
        SYS_sched_setattr SYS_ioprio_set SYS_personality SYS_pidfd_open SYS_wait4 SYS_waitid SYS_setsid SYS_setpgid
        SYS_getpgid SYS_getsid SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setgroups
        SYS_setfsuid SYS_setfsgid SYS_capset SYS_capget SYS_reboot SYS_kexec_load SYS_init_module SYS_finit_module
        SYS_delete_module SYS_swapon SYS_swapoff SYS_acct SYS_quotactl SYS_syslog SYS_settimeofday SYS_clock_settime
        SYS_adjtimex SYS_clock_adjtime SYS_sethostname SYS_setdomainname SYS_inotify_init1 SYS_fanotify_init
        SYS_signalfd4 SYS_splice SYS_tee SYS_vmsplice SYS_mmap SYS_mremap SYS_close_range SYS_setitimer SYS_getitimer
        SYS_timer_create SYS_timer_settime SYS_timer_delete SYS_fchmod SYS_fchown SYS_fallocate SYS_fsync SYS_fdatasync
        SYS_flock SYS_umask SYS_sync SYS_syncfs SYS_readahead SYS_landlock_create_ruleset SYS_landlock_add_rule
        SYS_landlock_restrict_self SYS_mlockall SYS_munlockall SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect
        SYS_remap_file_pages SYS_mbind SYS_set_mempolicy SYS_get_mempolicy SYS_migrate_pages SYS_move_pages
        SYS_get_robust_list SYS_io_setup SYS_io_submit SYS_lookup_dcookie SYS_nfsservctl SYS_vhangup SYS_fgetxattr
        SYS_fsetxattr),
    ),
];

/// Calls of this architecture only.
#[cfg(target_arch = "x86_64")]
const OLDER: &[CallsOfKind] = &[
    (
        Kind::Open,
        named!(SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_readlink SYS_mkdir SYS_rmdir SYS_unlink SYS_rename
        SYS_renameat SYS_link SYS_symlink SYS_mknod SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat),
    ),
    (Kind::Fork, named!(SYS_fork SYS_vfork)),
    (
        Kind::Other,
        named!(SYS_arch_prctl SYS_iopl SYS_ioperm SYS_modify_ldt SYS_getpgrp SYS_alarm SYS_ustat SYS_sysfs SYS__sysctl
        SYS_inotify_init SYS_signalfd SYS_uselib SYS_setrlimit SYS_getrlimit),
    ),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[CallsOfKind] = &[];

pub(super) fn named(call: i64) -> (Kind, &'static str) {
    let mut all = TRIED.iter().chain(OLDER).flat_map(|(kind, calls)| calls.iter().map(|one| (*kind, *one)));
    match all.find(|(_, (number, _))| *number == call) {
        Some((kind, (_, name))) => (kind, name.trim_start_matches("SYS_")),
        None => (Kind::Other, UNNAMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_name_and_kind() {
        assert_eq!(named(libc::SYS_openat), (Kind::Open, "openat"));
        assert_eq!(named(libc::SYS_clone), (Kind::Fork, "clone"));
        assert_eq!(named(libc::SYS_bpf), (Kind::Other, "bpf"));
        // The x32 table, and a number of no system.
        assert_eq!(named(0x4000_0000 | libc::SYS_openat), (Kind::Other, UNNAMED));
        assert_eq!(named(-1), (Kind::Other, UNNAMED));
    }
}
