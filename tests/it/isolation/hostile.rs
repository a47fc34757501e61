//! The sandbox refuses each forbidden action of a plugin, and the host reports it.

use outrigger_tests::{Client, Host, all_groups, files_below, wait_until};
use serde_json::{Value, json};

use super::{Installed, alone, has_sandbox, process, refused, users};
use crate::metrics::ask;
use crate::operator::logged_with;

/// An attempt: the kind that it counts as, the reported text, the system call and its arguments.
type Attempt = (&'static str, String, i64, Value);

fn unix(path: &str) -> Value {
    let hex: String = path.bytes().map(|byte| format!("{byte:02x}")).collect();
    json!({"hex": format!("0100{hex}")})
}

/// An address to which a call would write.
fn memory() -> Value {
    json!({"hex": ""})
}

fn at(path: &str, flags: i32) -> Value {
    json!([libc::AT_FDCWD, path, flags, 0o600])
}

/// One attempt of each kind that the host logs for the operator.
fn logged_attempts(host: u32) -> Vec<Attempt> {
    let daemon = "/run/systemd/private";
    vec![
        ("open", "openat /etc/passwd".into(), libc::SYS_openat, at("/etc/passwd", 0)),
        ("connect", format!("connect unix:{daemon}"), libc::SYS_connect, json!([0, unix(daemon), 2 + daemon.len()])),
        ("fork", "clone flags 0x11".into(), libc::SYS_clone, json!([libc::SIGCHLD, 0, 0, 0, 0])),
        ("ptrace", format!("ptrace process {host}"), libc::SYS_ptrace, json!([libc::PTRACE_ATTACH, host, 0, 0])),
        ("kill", format!("kill process {host}"), libc::SYS_kill, json!([host, 0])),
    ]
}

/// Attempts on files and folders of the host and of others.
fn files(host: u32, own: &[String]) -> Vec<Attempt> {
    let mut paths: Vec<String> =
        ["mem", "environ", "maps", "root/etc/passwd", "fd/1"].map(|name| format!("/proc/{host}/{name}")).into();
    paths.extend(["/", "/etc/shadow", "/dev/mem", "/proc/self/mem", "/sys/kernel"].map(str::to_owned));
    paths.extend_from_slice(own);
    let open = |path: &String| ("open", format!("openat {path}"), libc::SYS_openat, at(path, 0));
    let mut all: Vec<Attempt> = paths.iter().map(open).collect();
    for path in ["/tmp/of-a-hostile-plugin", "/dev/shm/of-a-hostile-plugin"] {
        all.push(("open", format!("openat {path}"), libc::SYS_openat, at(path, libc::O_CREAT | libc::O_RDWR)));
    }
    all.push(("open", "mkdirat /tmp/made".into(), libc::SYS_mkdirat, json!([libc::AT_FDCWD, "/tmp/made", 0o700])));
    all.push((
        "open",
        "unlinkat /etc/hostname".into(),
        libc::SYS_unlinkat,
        json!([libc::AT_FDCWD, "/etc/hostname", 0]),
    ));
    all.push((
        "open",
        "linkat /etc/passwd".into(),
        libc::SYS_linkat,
        json!([libc::AT_FDCWD, "/etc/passwd", libc::AT_FDCWD, "/tmp/made", 0]),
    ));
    all
}

fn sockets() -> Vec<Attempt> {
    let socket = |family: i32, kind: i32, protocol: i32| {
        ("socket", format!("socket family {family}"), libc::SYS_socket, json!([family, kind, protocol]))
    };
    vec![
        socket(libc::AF_UNIX, libc::SOCK_STREAM, 0),
        socket(libc::AF_INET, libc::SOCK_STREAM, 0),
        socket(libc::AF_INET6, libc::SOCK_DGRAM, 0),
        socket(libc::AF_NETLINK, libc::SOCK_RAW, 0),
        socket(libc::AF_PACKET, libc::SOCK_RAW, 0),
        socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        ("socket", "socketpair".into(), libc::SYS_socketpair, json!([libc::AF_UNIX, libc::SOCK_STREAM, 0, memory()])),
        ("socket", "bind".into(), libc::SYS_bind, json!([0, unix("/tmp/made"), 11])),
        ("connect", "connect unix:@name".into(), libc::SYS_connect, json!([0, {"hex": "0100006e616d65"}, 7])),
        ("connect", "connect tcp:127.0.0.1:1".into(), libc::SYS_connect, json!([0, {"hex": "020000017f000001"}, 16])),
    ]
}

fn processes(host: u32) -> Vec<Attempt> {
    let namespace = libc::CLONE_NEWUSER | libc::SIGCHLD;
    vec![
        ("fork", format!("clone flags {namespace:#x}"), libc::SYS_clone, json!([namespace, 0, 0, 0, 0])),
        ("exec", "execve /bin/true".into(), libc::SYS_execve, json!(["/bin/true", none(), none()])),
        (
            "exec",
            "execveat /bin/true".into(),
            libc::SYS_execveat,
            json!([libc::AT_FDCWD, "/bin/true", none(), none(), 0]),
        ),
        (
            "ptrace",
            format!("process_vm_readv process {host}"),
            libc::SYS_process_vm_readv,
            json!([host, memory(), 1, memory(), 1, 0]),
        ),
        (
            "ptrace",
            format!("process_vm_writev process {host}"),
            libc::SYS_process_vm_writev,
            json!([host, memory(), 1, memory(), 1, 0]),
        ),
        ("ptrace", "pidfd_getfd process 0".into(), libc::SYS_pidfd_getfd, json!([0, 0, 0])),
        ("kill", format!("tgkill process {host}"), libc::SYS_tgkill, json!([host, host, 0])),
        ("kill", "pidfd_send_signal process 0".into(), libc::SYS_pidfd_send_signal, json!([0, 0, none(), 0])),
        ("pidfd_open", "pidfd_open".into(), libc::SYS_pidfd_open, json!([host, 0])),
        ("prlimit64", "prlimit64".into(), libc::SYS_prlimit64, json!([host, 7, none(), memory()])),
        ("setuid", "setuid".into(), libc::SYS_setuid, json!([0])),
        ("capset", "capset".into(), libc::SYS_capset, json!([memory(), memory()])),
        ("prctl", "prctl command 4".into(), libc::SYS_prctl, json!([libc::PR_SET_DUMPABLE, 1, 0, 0, 0])),
    ]
}

fn none() -> Value {
    json!(0)
}

/// Memory that is not counted for the process.
fn mmap(flags: i32) -> Attempt {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    ("mmap", "mmap".into(), libc::SYS_mmap, json!([0, 4096, access, flags, -1, 0]))
}

fn system() -> Vec<Attempt> {
    vec![
        ("mount", "mount /tmp".into(), libc::SYS_mount, json!(["tmpfs", "/tmp", "tmpfs", 0, none()])),
        ("mount", "umount2".into(), libc::SYS_umount2, json!(["/", libc::MNT_DETACH])),
        ("mount", "unshare".into(), libc::SYS_unshare, json!([libc::CLONE_NEWUSER])),
        ("mount", "setns".into(), libc::SYS_setns, json!([0, 0])),
        ("mount", "chroot".into(), libc::SYS_chroot, json!(["/"])),
        ("mount", "pivot_root".into(), libc::SYS_pivot_root, json!([".", "."])),
        ("mount", "open_tree".into(), libc::SYS_open_tree, json!([libc::AT_FDCWD, "/", 1])),
        ("mount", "fsopen".into(), libc::SYS_fsopen, json!(["tmpfs", 0])),
        mmap(libc::MAP_SHARED | libc::MAP_ANONYMOUS),
        mmap(libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_POPULATE),
        mmap(libc::MAP_SHARED_VALIDATE | libc::MAP_ANONYMOUS),
        mmap(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB),
        ("mremap", "mremap".into(), libc::SYS_mremap, json!([memory(), 0, 4096, libc::MREMAP_MAYMOVE, none()])),
        ("mremap", "mremap".into(), libc::SYS_mremap, json!([memory(), -4000, 4096, libc::MREMAP_MAYMOVE, none()])),
        ("close_range", "close_range".into(), libc::SYS_close_range, json!([900, 901, 2])),
        (
            "fcntl",
            format!("fcntl command {}", libc::F_SETPIPE_SZ),
            libc::SYS_fcntl,
            json!([0, libc::F_SETPIPE_SZ, 1 << 20]),
        ),
        ("ipc", "memfd_create made".into(), libc::SYS_memfd_create, json!(["made", 0])),
        ("ipc", "shmget".into(), libc::SYS_shmget, json!([0, 4096, 0o1600])),
        ("ipc", "semget".into(), libc::SYS_semget, json!([0, 1, 0o1600])),
        ("ipc", "mq_open".into(), libc::SYS_mq_open, json!(["made", libc::O_CREAT | libc::O_RDWR, 0o600, none()])),
        ("io_uring_setup", "io_uring_setup".into(), libc::SYS_io_uring_setup, json!([8, memory()])),
        ("bpf", "bpf command 0".into(), libc::SYS_bpf, json!([0, memory(), 128])),
        ("add_key", "add_key".into(), libc::SYS_add_key, json!(["user", "name", "key", 3, -4])),
        ("keyctl", "keyctl command 0".into(), libc::SYS_keyctl, json!([0, -4, 1])),
        ("personality", "personality".into(), libc::SYS_personality, json!([libc::ADDR_NO_RANDOMIZE])),
        ("perf_event_open", "perf_event_open".into(), libc::SYS_perf_event_open, json!([memory(), 0, -1, -1, 0])),
        ("userfaultfd", "userfaultfd".into(), libc::SYS_userfaultfd, json!([0])),
        ("seccomp", "seccomp".into(), libc::SYS_seccomp, json!([libc::SECCOMP_SET_MODE_FILTER, 0, memory()])),
        ("init_module", "init_module".into(), libc::SYS_init_module, json!([memory(), 0, ""])),
    ]
}

/// Checks that each attempt is refused and reported at once.
fn check(client: &mut Client, attempts: &[Attempt]) {
    for (kind, told, number, arguments) in attempts {
        let before = client.plugin("hostile")["denied"].clone();
        let error = client.call("hostilecall", json!([number, arguments]));
        assert_eq!(error, json!(libc::EPERM), "{told}");
        let denied = client.plugin("hostile")["denied"].clone();
        let count = |denied: &Value| denied["by_kind"][kind]["count"].as_u64().unwrap_or(0);
        assert_eq!(denied["by_kind"][kind]["last"], json!(told), "{denied}");
        assert_eq!(count(&denied), count(&before) + 1, "{told}: {denied}");
        assert_eq!(denied["count"], json!(before["count"].as_u64().unwrap() + 1), "{told}: {denied}");
    }
}

/// Private files of a running host: the cookie, and the files of a wallet.
fn own_files(host: &Host) -> Vec<String> {
    let folder = host.network_folder();
    let files = [vec![folder.join(".cookie")], files_below(&folder.join("wallets"), &[])].concat();
    assert!(files.len() > 1, "no file of a wallet: {files:?}");
    files.iter().map(|path| path.display().to_string()).collect()
}

#[test]
fn sandbox_refuses_a_hostile_plugin_everything_and_reports_each_attempt() {
    if !has_sandbox() {
        return;
    }
    let installed = Installed::new(&["chain", "mining", "wallet", "import", "signing", "psbt", "history"]);
    for user in users() {
        let set = ["metrics.listen=127.0.0.1:0", "plugin_defaults.isolated=none"];
        let (host, log) = logged_with(installed.options(&all_groups(), user, "").and(&set));
        let mut client = host.new_wallet("victim");
        let pid = host.process_id();
        let first = logged_attempts(pid);
        check(&mut client, &first);
        let text = log();
        for (kind, told, ..) in &first {
            let said =
                |line: &str| line.contains(&format!("the sandbox denied the plugin: {told} ")) && line.contains(kind);
            assert!(text.lines().any(said), "{told} as {user:?}: {text}");
        }
        let rest = [files(pid, &own_files(&host)), sockets(), processes(pid), system()].concat();
        check(&mut client, &rest);
        // The sandbox answers that this newer call does not exist, and reports no attempt.
        let unknown = client.call("hostilecall", json!([libc::SYS_clone3, [memory(), 88]]));
        assert_eq!(unknown, json!(libc::ENOSYS));
        let status = std::fs::read_to_string(
            process(client.plugin("hostile")["pid"].as_u64().unwrap().try_into().unwrap()).join("status"),
        );
        for line in ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
            assert!(status.as_ref().unwrap().contains(line), "{line} as {user:?}: {status:?}");
        }
        let told = client.plugin("hostile");
        assert_eq!((&told["crashes"], &told["state"]), (&json!(0), &json!("running")), "as {user:?}");
        assert_eq!(told["denied"]["count"], json!(first.len() + rest.len()));
        let page = ask(host.metrics.unwrap(), "GET /metrics");
        for line in [
            format!("outrigger_plugin_process_id{{plugin=\"hostile\"}} {}.0", told["pid"]),
            "outrigger_plugin_sandbox{plugin=\"hostile\",layer=\"seccomp\"} 1.0".to_owned(),
            format!(
                "outrigger_plugin_sandbox{{plugin=\"hostile\",layer=\"landlock_abi\"}} {}.0",
                told["sandbox"]["landlock_abi"]
            ),
            "outrigger_plugin_crashes_total{plugin=\"hostile\"} 0.0".to_owned(),
            "outrigger_plugin_denials_total{plugin=\"hostile\",kind=\"ptrace\"} 4.0".to_owned(),
            "outrigger_plugin_denials_total{plugin=\"hostile\",kind=\"bpf\"} 1.0".to_owned(),
        ] {
            assert!(page.lines().any(|found| found == line), "{line} as {user:?}\n{page}");
        }
        assert!(!page.contains("outrigger_plugin_sandbox{plugin=\"mining\""), "{page}");
        // Attempts through the C library are refused as well.
        assert_eq!(client.refused("hostileread", json!(["/etc/passwd"])), refused());
        assert_eq!(client.refused("hostileconnect", json!([host.address.to_string()])), refused());
    }
}

#[test]
fn host_ignores_a_hostile_plugins_control_socket_and_counts_its_exit_as_a_crash() {
    let host = Host::start_with(alone("sandbox = \"best-effort\"\n"));
    let mut client = host.client();
    let pid = client.plugin("hostile")["pid"].clone();
    let write = json!([libc::SYS_write, [libc::STDIN_FILENO, {"hex": "0b"}, 1]]);
    assert_eq!(client.call("hostilecall", write), json!(0));
    client.call("hostilenothing", json!([]));
    let told = client.plugin("hostile");
    assert_eq!((&told["pid"], &told["crashes"]), (&pid, &json!(0)), "{told}");
    if !has_sandbox() {
        return;
    }
    // Calls that the sandbox allows and that end the process. `rt_sigreturn` loads the registers from garbage on
    // the stack. The kernel then sends the process one of two signals.
    let ways = [
        (libc::SYS_rt_sigreturn, json!([]), &["SIGSEGV", "SIGBUS"][..]),
        (libc::SYS_shutdown, json!([0, libc::SHUT_RDWR]), &["exit code 0"]),
        (libc::SYS_exit_group, json!([7]), &["exit code 7"]),
    ];
    for (crashes, (number, arguments, endings)) in (1..).zip(ways) {
        // The answer may come before the process has ended.
        if let Err(error) = client.try_call("hostilecall", json!([number, arguments])) {
            assert_eq!((error.code, error.message.as_str()), (-32603, "The plugin 'hostile' crashed"));
        }
        wait_until("it has ended", || client.plugin("hostile")["crashes"] == json!(crashes));
        // The next call waits for the new process.
        assert_eq!(client.call("hostilecall", json!([libc::SYS_getpid, []])), 0);
        let told = client.plugin("hostile");
        assert_eq!((&told["crashes"], &told["denied"]["count"]), (&json!(crashes), &json!(0)));
        assert!(endings.iter().any(|ending| told["last_crash"]["ending"] == *ending), "{told}");
    }
}
