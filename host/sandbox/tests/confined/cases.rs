//! The cases, each run by its own host.
#![allow(unsafe_code)]

use std::fs;

use libc::{ENOENT, ENOSYS, EPERM, ETOOMANYREFS};
use outrigger_sandbox::{FLOOD, Kind, Policy, probe};

use super::granted::{
    a_connection_that_waits_holds_up_nothing, exactly_what_was_granted_is_reached, grants_within_one_another_add_up,
    swapped_arguments_reach_nothing,
};
use super::host::{Confined, Layer, plan};
use super::libraries::a_library_is_opened_with_its_own;

const CASES: &[(&str, fn())] = &[
    ("the_system_is_probed_without_a_trace", the_system_is_probed_without_a_trace),
    ("forbidden_things_are_refused_and_counted", forbidden_things_are_refused_and_counted),
    ("ordinary_things_work_in_every_layer", ordinary_things_work_in_every_layer),
    ("exactly_what_was_granted_is_reached", exactly_what_was_granted_is_reached),
    ("a_process_is_bounded_and_has_no_power", a_process_is_bounded_and_has_no_power),
    ("require_names_what_is_missing", require_names_what_is_missing),
    ("a_flood_of_denials_is_reported_and_the_process_can_be_killed", a_flood_is_reported),
    ("hidden_memory_is_read_by_the_host_alone", hidden_memory_is_read_by_the_host_alone),
    ("a_killed_process_ends_its_notifier", a_killed_process_ends_its_notifier),
    ("swapped_arguments_reach_nothing", swapped_arguments_reach_nothing),
    ("a_connection_that_waits_holds_up_nothing", a_connection_that_waits_holds_up_nothing),
    ("the_signal_of_death_is_kept", the_signal_of_death_is_kept),
    ("each_layer_alone_bounds_files", each_layer_alone_bounds_files),
    ("a_library_is_opened_with_those_in_its_own_folders", a_library_is_opened_with_its_own),
    ("grants_within_one_another_add_up", grants_within_one_another_add_up),
];

pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

pub fn run(name: &str) {
    let (_, case) = CASES.iter().find(|(known, _)| *known == name).expect("a case of this name");
    case();
}

pub fn combinations() -> Vec<Vec<Layer>> {
    let all = [vec![], vec![Layer::Namespaces], vec![Layer::Landlock], vec![Layer::UserNamespace]];
    let support = probe();
    let mut possible = Vec::new();
    for without in all {
        let namespaces = support.root && !without.contains(&Layer::Namespaces);
        let landlock = support.landlock_abi > 0 && !without.contains(&Layer::Landlock);
        // Only root can create other namespaces without a user namespace.
        let able = !without.contains(&Layer::UserNamespace) || rustix::process::getuid().is_root();
        if support.reported && (namespaces || landlock) && able {
            possible.push(without);
        }
    }
    if possible.is_empty() {
        println!("  skipped: this system allows no sandbox");
    }
    possible
}

fn the_system_is_probed_without_a_trace() {
    let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let filters = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let told = |line: &&str| line.starts_with("Seccomp") || line.starts_with("NoNewPrivs");
        status.lines().filter(told).map(str::to_owned).collect::<Vec<_>>()
    };
    let filters_before = filters();
    let namespaces = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
    let own = ["user", "mnt", "net", "ipc"].map(namespaces);
    let support = probe();
    println!("  {support:?}");
    assert_eq!(before, fs::read_to_string("/proc/self/mountinfo").unwrap());
    assert_eq!(own, ["user", "mnt", "net", "ipc"].map(namespaces));
    assert_eq!(filters_before, filters());
}

/// Each forbidden call, its errno and the reported denial; empty if none is reported.
const FORBIDDEN: &[(&str, i32, &str)] = &[
    ("open_file", EPERM, "openat /etc/passwd"),
    ("open_parent", EPERM, "openat /proc/PARENT/mem"),
    ("open_new", EPERM, "openat /tmp/made-by-a-confined-process"),
    ("open_root", EPERM, "openat /"),
    ("open_shared_memory", EPERM, "openat /dev/shm/made-by-a-confined-process"),
    ("open_library", ENOENT, "openat /usr/lib/libnone.so.1"),
    ("change_folder", EPERM, "mkdir /tmp/made-by-a-confined-process"),
    ("remove", EPERM, "unlink /etc/hostname"),
    ("connect_unix", EPERM, "connect unix:/run/systemd/private"),
    ("tcp", EPERM, "socket family 2"),
    ("pair", EPERM, "socketpair"),
    ("fork", EPERM, "clone flags 0x11"),
    ("libc_fork", EPERM, "clone flags 0x1200011"),
    ("clone3", ENOSYS, ""),
    ("thread_in_namespace", EPERM, "clone flags 0x40010900"),
    ("exec", EPERM, "execve /bin/true"),
    ("execat", EPERM, "execveat /bin/true"),
    ("ptrace", EPERM, "ptrace process PARENT"),
    ("vm_read", EPERM, "process_vm_readv process PARENT"),
    ("kill", EPERM, "kill process PARENT"),
    ("tgkill", EPERM, "tgkill process PARENT"),
    ("mount", EPERM, "mount /usr"),
    ("unshare", EPERM, "unshare"),
    ("setns", EPERM, "setns"),
    ("chroot", EPERM, "chroot"),
    ("uring", EPERM, "io_uring_setup"),
    ("bpf", EPERM, "bpf command 0"),
    ("key", EPERM, "add_key"),
    ("keyctl", EPERM, "keyctl command 0"),
    ("shm", EPERM, "shmget"),
    ("memfd", EPERM, "memfd_create a"),
    ("truncate", EPERM, "ftruncate"),
    ("perf", EPERM, "perf_event_open"),
    ("userfault", EPERM, "userfaultfd"),
    ("dumpable", EPERM, "prctl command 4"),
    ("death_signal", EPERM, "prctl command 1"),
    ("limit_other", EPERM, "prlimit64"),
    ("limit_own", EPERM, "prlimit64"),
    ("limit_own_by_id", EPERM, "prlimit64"),
    ("change_owner", EPERM, ""),
    // The host opens this device for the process.
    ("random_device", 0, ""),
    // The system refuses to raise the hard limit of descriptors.
    ("limit_raised", EPERM, ""),
    ("affinity", EPERM, "sched_setaffinity"),
    ("seccomp", EPERM, "seccomp"),
    ("chdir", EPERM, "chdir /"),
    ("x32", EPERM, "unknown"),
    // The limit of open descriptors counts those in flight, too. A full queue would refuse the message with EAGAIN.
    ("in_flight", ETOOMANYREFS, ""),
];

fn forbidden_things_are_refused_and_counted() {
    for without in combinations() {
        let mut confined = Confined::start("forbidden", &plan(&[], &without, Policy::Require));
        let results = confined.results();
        let denied: Vec<String> = confined.denied.try_iter().map(|denial| denial.to_string()).collect();
        let parent = std::process::id().to_string();
        let mut expected: Vec<String> = Vec::new();
        for (name, error, told) in FORBIDDEN {
            assert_eq!(results[*name], i64::from(*error), "{name} without {without:?}");
            expected.extend((!told.is_empty()).then(|| told.replace("PARENT", &parent)));
        }
        // Without a root, the process's queries are forwarded as well.
        let root = confined.held().root;
        assert_eq!(results["ask_file"], i64::from(if root { ENOENT } else { EPERM }));
        let told: Vec<&String> = denied.iter().filter(|denial| !denial.starts_with("statx ")).collect();
        assert_eq!(told, expected.iter().collect::<Vec<_>>(), "without {without:?}");
        assert_eq!(results.len(), FORBIDDEN.len() + 1);

        let denials = confined.denials();
        assert_eq!(denials.count, denied.len() as u64);
        for (kind, least) in [(Kind::Open, 8), (Kind::Connect, 1), (Kind::Fork, 3), (Kind::Ptrace, 2), (Kind::Kill, 2)]
        {
            assert!(denials.by_kind[kind.name()].count >= least, "{denials:?}");
        }
        assert_eq!((denials.by_kind["bpf"].count, denials.by_kind["exec"].count), (1, 2));
        assert_eq!(denials.last.as_ref().unwrap().to_string(), "unknown");
        confined.end();
    }
}

fn ordinary_things_work_in_every_layer() {
    let mut all: Vec<_> = combinations().into_iter().map(|without| (without, Policy::Require)).collect();
    // For a process that no other layer bounds, the host opens files. Without notifications no call is forwarded.
    all.push((vec![Layer::Namespaces, Layer::Landlock], Policy::BestEffort));
    all.push((vec![Layer::Notifications], Policy::BestEffort));
    all.push((vec![Layer::Seccomp], Policy::BestEffort));
    all.push((vec![Layer::Seccomp, Layer::Namespaces, Layer::Landlock], Policy::BestEffort));
    for (without, policy) in all {
        let mut confined = Confined::start("ordinary", &plan(&[], &without, policy));
        let results = confined.results();
        assert!(results.values().all(|error| *error == 0) && results.len() > 6, "without {without:?}: {results:?}");
        let denied: Vec<String> = confined.denied.try_iter().map(|denial| denial.to_string()).collect();
        // The missing library is reported once, and nothing else.
        let reported = confined.held().seccomp && confined.held().reported;
        assert!(
            denied.iter().all(|denial| denial.ends_with("/libnone-of-this-name.so.9")),
            "without {without:?}: {denied:?}"
        );
        assert_eq!(denied.len(), usize::from(reported), "without {without:?}: {denied:?}");
        confined.end();
    }
}

fn a_process_is_bounded_and_has_no_power() {
    for without in combinations() {
        // With granted connections it stays dumpable, so that this process can read its files in /proc.
        let reach = ["connect:tcp:127.0.0.1:1".to_owned()];
        let mut confined = Confined::start("nothing", &plan(&reach, &without, Policy::Require));
        confined.results();
        let held = confined.held().clone();
        println!("  {held:?}");
        let pid = confined.child.id();
        let own = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
        let status = own("status");
        for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
            assert!(status.contains(line), "{line} in {status}");
        }
        let limits = own("limits");
        let line = |name: &str| limits.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
        assert!(line("Max open files").contains("64") && line("Max file size").contains("1048576"), "{limits}");
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
        assert_eq!(descriptors, 3);
        let differs = |name: &str| {
            fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap()
                != fs::read_link(format!("/proc/self/ns/{name}")).unwrap()
        };
        for (name, link) in [("user", "user"), ("mount", "mnt"), ("net", "net"), ("ipc", "ipc")] {
            assert_eq!(held.namespaces.iter().any(|has| has == name), differs(link), "{name}");
        }
        assert_eq!(held.root, !without.contains(&Layer::Namespaces));
        if held.root {
            let mounts = own("mountinfo");
            assert!(mounts.lines().all(|line| line.split(' ').nth(5).unwrap().contains("ro,nosuid,nodev")), "{mounts}");
        }
        confined.end();
    }
}

fn require_names_what_is_missing() {
    if combinations().is_empty() {
        return;
    }
    let refused = |without: &[Layer]| {
        let confined = Confined::start("nothing", &plan(&[], without, Policy::Require));
        assert!(confined.notifier.is_none());
        confined.enforced.clone().unwrap_err()
    };
    let reason = refused(&[Layer::Namespaces, Layer::Landlock]);
    assert!(reason.ends_with("Namespaces; Landlock"), "{reason}");
    let reason = refused(&[Layer::Seccomp]);
    assert!(reason.ends_with("Seccomp"), "{reason}");

    // A system without support: this process and its children have a filter from the start.
    let denied = [libc::SYS_unshare, libc::SYS_landlock_create_ruleset];
    let mut program = vec![libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 }];
    for call in denied {
        program.push(libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: u32::try_from(call).unwrap() });
        program.push(libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | EPERM.unsigned_abs() });
    }
    program.push(libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW });
    let filter = libc::sock_fprog { len: u16::try_from(program.len()).unwrap(), filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the calls and has the given length.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
    let support = probe();
    assert!(support.seccomp && !support.suffices() && support.namespaces.is_empty(), "{support:?}");
    let reason = refused(&[]);
    assert!(reason.contains("Landlock") && reason.contains("a root of its own"), "{reason}");
    let mut confined = Confined::start("ordinary", &plan(&[], &[], Policy::BestEffort));
    assert!(confined.results().values().all(|error| *error == 0));
    assert_eq!(confined.held().missing, support.missing);
    confined.end();
}

fn a_flood_is_reported() {
    if combinations().is_empty() {
        return;
    }
    let mut confined = Confined::start("flood", &plan(&[], &[], Policy::Require));
    confined.floods.recv().unwrap();
    confined.child.kill().unwrap();
    assert!(!confined.child.wait().unwrap().success());
    let denials = confined.denials();
    assert!(denials.count > u64::from(FLOOD) && denials.count < 1_000_000, "{denials:?}");
    assert_eq!(denials.last.as_ref().unwrap().to_string(), "kill process 1");
}

/// An unprivileged host cannot open the memory of a process that is not dumpable, but can use a descriptor that the
/// process opened before.
fn hidden_memory_is_read_by_the_host_alone() {
    if combinations().is_empty() {
        return;
    }
    for hide in [false, true] {
        // A process with granted connections stays dumpable.
        let reach = if hide { Vec::new() } else { vec!["connect:tcp:127.0.0.1:1".to_owned()] };
        let mut confined = Confined::start("forbidden", &plan(&reach, &[], Policy::Require));
        confined.results();
        assert_eq!(confined.held().hidden, hide);
        let denied: Vec<String> = confined.denied.try_iter().map(|denial| denial.to_string()).collect();
        assert_eq!(denied[0], "openat /etc/passwd");
        let opened = fs::File::open(format!("/proc/{}/mem", confined.child.id()));
        let able = !hide || rustix::process::getuid().is_root();
        assert_eq!(opened.is_ok(), able, "{opened:?}");
        // An unprivileged host cannot copy the process's sockets either.
        let pid = rustix::process::Pid::from_child(&confined.child);
        let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        let copied = rustix::process::pidfd_getfd(&process, 0, rustix::process::PidfdGetfdFlags::empty());
        assert_eq!(copied.is_ok(), able, "{copied:?}");
        confined.end();
    }
}

fn the_signal_of_death_is_kept() {
    let mut confined = Confined::start("death", &plan(&[], &[Layer::Seccomp], Policy::BestEffort));
    let results = confined.results();
    assert_eq!((results["asked"], results["signal"]), (0, i64::from(libc::SIGKILL)));
    confined.end();
}

fn each_layer_alone_bounds_files() {
    let layers = [Layer::Namespaces, Layer::Landlock];
    for without in combinations().into_iter().filter(|without| layers.iter().any(|layer| without.contains(layer))) {
        let mut confined =
            Confined::start("bounds", &plan(&[], &[&without[..], &[Layer::Seccomp]].concat(), Policy::BestEffort));
        let results = confined.results();
        let root = confined.held().root;
        for name in ["read", "read_parent", "list", "create", "create_folder", "remove", "tcp", "mount", "ptrace"] {
            // A closed port would also refuse, but with another error.
            assert!(
                results[name] != 0 && results[name] != i64::from(libc::ECONNREFUSED),
                "{name} {results:?} {without:?}"
            );
        }
        // No namespace blocks signals to other processes of the same user.
        if !root && confined.held().landlock_abi >= 6 {
            assert_eq!(results["kill"], i64::from(EPERM), "{results:?}");
        }
        confined.end();
    }
}

fn a_killed_process_ends_its_notifier() {
    if combinations().is_empty() {
        return;
    }
    let mut confined = Confined::start("ordinary", &plan(&[], &[], Policy::Require));
    confined.results();
    confined.child.kill().unwrap();
    // The thread drops its sender when it ends, so waiting for the next denial fails.
    confined.denied.iter().for_each(drop);
    assert!(confined.floods.recv().is_err());
}
