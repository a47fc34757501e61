//! The confined process. Each attempt prints its name and the errno, 0 if it succeeded.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use libc::{c_int, c_long};
use outrigger_sandbox::{Plan, Reach, SandboxLayers, confine};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::swapped;

/// Confines this process, runs the attempts `what`, prints `done`, and waits until the host closes standard input.
pub fn run(what: &str, plan: &str, support: &str) {
    let plan: Plan = serde_json::from_str(plan).unwrap();
    let support: SandboxLayers = serde_json::from_str(support).unwrap();
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    // Shared memory, such as a host passes. `confine` closes it unless it is in `keep`.
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let shared = (what == "reach").then(|| rustix::fs::memfd_create("shared", flags).unwrap());
    let mut keep = vec![stdout.as_fd(), stderr.as_fd()];
    keep.extend(shared.iter().map(AsFd::as_fd));
    // SAFETY: numbers only. The process ends with its host's thread, even when it is confined.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    match confine(&plan, &support, &keep, stdin.as_fd()) {
        Ok(enforced) => println!("enforced {}", serde_json::to_string(&enforced).unwrap()),
        Err(error) => {
            println!("refused {error}");
            return;
        }
    }
    match what {
        "forbidden" => forbidden(),
        "ordinary" => ordinary(&plan),
        "reach" => reached(&plan, shared.as_ref().map_or(-1, AsRawFd::as_raw_fd)),
        "flood" => flood(),
        "death" => death_signal(),
        "swapped" => swapped::run(&plan),
        "waiting" => waiting(&plan),
        "bounds" => bounds(),
        "nested" => nested(&plan),
        _ => {}
    }
    println!("done");
    let _ = std::io::stdin().read(&mut [0]);
}

fn errno(result: c_long) -> i32 {
    if result < 0 { std::io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

pub fn say(name: &str, error: i32) {
    println!("{name} {error}");
}

fn say_result<T>(name: &str, result: std::io::Result<T>) {
    say(name, result.err().map_or(0, |error| error.raw_os_error().unwrap_or(-1)));
}

macro_rules! call {
    ($name:literal, $number:ident $(, $argument:expr)*) => {
        // SAFETY: the sandbox refuses the call; otherwise the test fails.
        say($name, errno(unsafe { libc::syscall(libc::$number $(, $argument)*) }))
    };
}

fn forbidden() {
    // SAFETY: it has no arguments.
    let parent = unsafe { libc::getppid() };
    let (mut memory, mut limits) = ([0u8; 128], [1u64, 1]);
    let (memory, limits) = (memory.as_mut_ptr(), limits.as_mut_ptr());
    let none = std::ptr::null::<u8>();
    say_result("open_file", fs::File::open("/etc/passwd"));
    say_result("open_parent", fs::File::open(format!("/proc/{parent}/mem")));
    say_result("open_new", fs::File::create("/tmp/made-by-a-confined-process"));
    say_result("open_root", fs::read_dir("/"));
    say_result("open_shared_memory", fs::File::create("/dev/shm/made-by-a-confined-process"));
    say_result("open_library", fs::File::open("/usr/lib/libnone.so.1"));
    say_result("ask_file", fs::metadata("/etc/passwd"));
    say_result("change_folder", fs::create_dir("/tmp/made-by-a-confined-process"));
    say_result("remove", fs::remove_file("/etc/hostname"));
    say_result("connect_unix", connect_existing(0));
    say_result("tcp", TcpStream::connect("127.0.0.1:1"));
    say_result("pair", UnixStream::pair());
    call!("fork", SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
    // SAFETY: as above.
    say("libc_fork", errno(c_long::from(unsafe { libc::fork() })));
    call!("clone3", SYS_clone3, memory, 88);
    call!(
        "thread_in_namespace",
        SYS_clone,
        libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_NEWNET,
        0,
        0,
        0,
        0
    );
    call!("exec", SYS_execve, c"/bin/true".as_ptr(), none, none);
    call!("execat", SYS_execveat, 0, c"/bin/true".as_ptr(), none, none, 0);
    call!("ptrace", SYS_ptrace, libc::PTRACE_ATTACH, parent, 0, 0);
    call!("vm_read", SYS_process_vm_readv, parent, memory, 1, memory, 1, 0);
    call!("kill", SYS_kill, parent, 0);
    call!("tgkill", SYS_tgkill, parent, parent, 0);
    call!("mount", SYS_mount, c"tmpfs".as_ptr(), c"/usr".as_ptr(), c"tmpfs".as_ptr(), 0, none);
    call!("unshare", SYS_unshare, libc::CLONE_NEWUSER);
    call!("setns", SYS_setns, 0, 0);
    call!("chroot", SYS_chroot, c"/".as_ptr());
    call!("uring", SYS_io_uring_setup, 8, memory);
    call!("bpf", SYS_bpf, 0, memory, 128);
    call!("key", SYS_add_key, c"user".as_ptr(), c"a".as_ptr(), memory, 1, -4);
    call!("keyctl", SYS_keyctl, 0, -4, 1);
    call!("shm", SYS_shmget, 0, 4096, 0o1600);
    call!("memfd", SYS_memfd_create, c"a".as_ptr(), 0);
    call!("truncate", SYS_ftruncate, 1, 0);
    call!("change_owner", SYS_fchown, 1, 0, 0);
    say_result("random_device", fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut [0; 8])));
    call!("perf", SYS_perf_event_open, memory, 0, -1, -1, 0);
    call!("userfault", SYS_userfaultfd, 0);
    call!("dumpable", SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
    call!("death_signal", SYS_prctl, libc::PR_SET_PDEATHSIG, 0, 0, 0, 0);
    call!("limit_other", SYS_prlimit64, parent, libc::RLIMIT_NOFILE, none, limits);
    call!("limit_own", SYS_prlimit64, 0, libc::RLIMIT_FSIZE, limits, none);
    call!("limit_own_by_id", SYS_prlimit64, std::process::id(), libc::RLIMIT_NOFILE, limits, none);
    // One more than the test's plan allows.
    let raised = [65_u64; 2];
    call!("limit_raised", SYS_prlimit64, 0, libc::RLIMIT_NOFILE, raised.as_ptr(), none);
    call!("affinity", SYS_sched_setaffinity, 0, 8, memory);
    call!("seccomp", SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, memory);
    call!("chdir", SYS_chdir, c"/".as_ptr());
    // SAFETY: as above. The x32 table has the same calls at other numbers.
    say("x32", errno(unsafe { libc::syscall(0x4000_0000 | libc::SYS_getpid) }));
    say("in_flight", in_flight());
}

/// Queues descriptors on the socket to the host, which does not read them, until the system refuses one more message.
fn in_flight() -> i32 {
    const COPIES: usize = 16;
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    let copies = [stdout.as_fd(); COPIES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COPIES))];
    loop {
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&copies)));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if let Err(error) = sendmsg(&stdin, &[IoSlice::new(b"x")], &mut control, flags) {
            return error.raw_os_error();
        }
    }
}

/// Calls that the layers other than the filter deny.
fn bounds() {
    // SAFETY: it has no arguments.
    let parent = unsafe { libc::getppid() };
    say_result("read", fs::read("/etc/passwd"));
    say_result("read_parent", fs::read(format!("/proc/{parent}/mem")));
    say_result("list", fs::read_dir("/usr"));
    say_result("create", fs::write("/tmp/made-by-a-confined-process", "text"));
    say_result("create_folder", fs::create_dir("/made-by-a-confined-process"));
    say_result("remove", fs::remove_file("/etc/hostname"));
    say_result("tcp", TcpStream::connect("127.0.0.1:1"));
    call!("kill", SYS_kill, parent, 0);
    call!("mount", SYS_mount, c"tmpfs".as_ptr(), c"/".as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null::<u8>());
    call!("ptrace", SYS_ptrace, libc::PTRACE_ATTACH, parent, 0, 0);
}

/// Connects a descriptor to systemd's private socket.
fn connect_existing(descriptor: c_int) -> std::io::Result<()> {
    // SAFETY: the struct is of integers only.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = 1;
    for (to, from) in address.sun_path.iter_mut().zip(b"/run/systemd/private") {
        *to = from.cast_signed();
    }
    let len = libc::socklen_t::try_from(size_of::<libc::sockaddr_un>()).unwrap();
    // SAFETY: the address has the given length.
    match unsafe { libc::connect(descriptor, (&raw const address).cast(), len) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Calls that a well-behaved library makes.
fn ordinary(plan: &Plan) {
    let library = CString::new(plan.library.as_ref().unwrap().to_str().unwrap()).unwrap();
    // SAFETY: the system's library has harmless constructors.
    let opened = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if opened.is_null() {
        // SAFETY: the loader has just failed, and returns the reason.
        let reason = unsafe { std::ffi::CStr::from_ptr(libc::dlerror()) };
        eprintln!("{}", reason.to_string_lossy());
    }
    say("dlopen", i32::from(opened.is_null()));
    // SAFETY: as above, for a library that does not exist.
    let absent = unsafe { libc::dlopen(c"libnone-of-this-name.so.9".as_ptr(), libc::RTLD_NOW) };
    say("dlopen_absent", i32::from(!absent.is_null()));
    let threads: Vec<_> = (0..8usize)
        .map(|number| {
            std::thread::Builder::new().name(format!("worker {number}")).spawn(move || {
                // Large and small blocks, in a thread's arena, grown and freed.
                let blocks: Vec<Vec<u8>> = (0..200).map(|at| vec![1; at * 370 % 70_000]).collect();
                std::thread::yield_now();
                blocks.iter().map(Vec::len).sum::<usize>()
            })
        })
        .collect();
    let joined = threads.into_iter().all(|thread| thread.is_ok_and(|thread| thread.join().is_ok()));
    say("threads", i32::from(!joined));
    let mut random = [0u8; 32];
    // SAFETY: the array has the given length.
    let len = unsafe { libc::getrandom(random.as_mut_ptr().cast(), 32, 0) };
    say("random", i32::from(len != 32));
    std::thread::sleep(std::time::Duration::from_millis(1));
    say("clock", i32::from(Instant::now().elapsed().as_secs() > 60));
    say("processors", i32::from(std::thread::available_parallelism().is_err()));
    let caught = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(1)));
    say("panic", i32::from(caught.is_ok()));
    // SAFETY: our own mapping, used within its length and unmapped.
    let mapped = unsafe {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let map = libc::mmap(std::ptr::null_mut(), 1 << 20, access, flags, -1, 0);
        map != libc::MAP_FAILED && {
            map.cast::<u8>().write(1);
            libc::munmap(map, 1 << 20) == 0
        }
    };
    say("map", i32::from(!mapped));
}

/// Writes and reads a file in each granted folder.
fn nested(plan: &Plan) {
    for (at, (folder, _)) in plan.reach.iter().filter_map(Reach::files).enumerate() {
        say_result(&format!("write{at}"), fs::write(folder.join("file"), "text"));
        say_result(&format!("read{at}"), fs::read(folder.join("file")));
    }
}

fn set_length(path: &std::path::Path, len: u64) -> std::io::Result<()> {
    let file = fs::File::create(path)?;
    file.set_len(len)?;
    if file.metadata()?.len() == len { Ok(()) } else { Err(std::io::ErrorKind::InvalidData.into()) }
}

fn errno_of_length(descriptor: c_int) -> i32 {
    // SAFETY: numbers only.
    errno(c_long::from(unsafe { libc::ftruncate(descriptor, 0) }))
}

fn set_id(path: &std::path::Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o4755).open(path)
}

fn talk(mut stream: impl Read + Write) -> std::io::Result<()> {
    stream.write_all(b"x")?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer == *b"y" { Ok(()) } else { Err(std::io::ErrorKind::InvalidData.into()) }
}

fn reached(plan: &Plan, shared: c_int) {
    for reach in &plan.reach {
        match reach {
            Reach::Read(folder) => {
                say_result("read", fs::read(folder.join("file")));
                say_result("read_folder", fs::read_dir(folder).and_then(|mut entries| entries.next().unwrap()));
                say_result("read_metadata", fs::metadata(folder.join("file")));
                say_result("read_write", fs::write(folder.join("file"), "no"));
                say_result("read_create", fs::write(folder.join("new"), "no"));
                say_result("read_remove", fs::remove_file(folder.join("file")));
                say_result("read_beside", fs::read(folder.with_file_name("secret")));
                say_result("read_above", fs::read(folder.join("../secret")));
                say_result("read_link", fs::read(folder.join("link")));
            }
            Reach::Write(folder) => {
                say_result("write", fs::write(folder.join("a"), "text"));
                say_result("write_read", fs::read(folder.join("a")));
                say_result("write_rename", fs::rename(folder.join("a"), folder.join("b")));
                say_result("write_folder", fs::create_dir(folder.join("sub")));
                say_result("write_below", fs::write(folder.join("sub/c"), "text"));
                say_result("write_remove", fs::remove_dir_all(folder.join("sub")));
                say_result("write_too_much", fs::write(folder.join("kept"), "kept"));
                say_result("write_length", set_length(&folder.join("long"), 5000));
                say_result("write_too_long", set_length(&folder.join("long"), 2 << 20));
                say("write_length_of_memory", errno_of_length(shared));
                say_result("write_set_id", set_id(&folder.join("program")));
                say_result("write_symlink", std::os::unix::fs::symlink("/etc/passwd", folder.join("link")));
            }
            Reach::Unix(path) => {
                say_result("unix", UnixStream::connect(path).and_then(talk));
                say_result("unix_other", UnixStream::connect(path.with_file_name("other.sock")));
            }
            Reach::Tcp(address) => {
                say_result("tcp", TcpStream::connect(address).and_then(talk));
                say_result("tcp_options", tcp_with_options(*address));
                say_result("tcp_unwaited", tcp_unwaited(*address));
                let other = (address.ip(), address.port() ^ 1);
                say_result("tcp_other", TcpStream::connect(other));
                say_result("udp", std::net::UdpSocket::bind("127.0.0.1:0"));
                say_result("listen", std::net::TcpListener::bind("127.0.0.1:0"));
            }
            // The host makes these sockets, not the sandbox. Tests of the whole host cover them.
            Reach::TcpName(_) | Reach::Tls(_) | Reach::ListenTcp(_) | Reach::ListenUnix(_) => {}
        }
    }
}

fn socket(kind: c_int) -> std::io::Result<std::os::fd::OwnedFd> {
    // SAFETY: numbers only.
    match unsafe { libc::socket(libc::AF_INET, kind | libc::SOCK_CLOEXEC, 0) } {
        -1 => Err(std::io::Error::last_os_error()),
        // SAFETY: the system has just made the descriptor for us.
        number => Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(number) }),
    }
}

/// Sets options before a connect, and checks them after.
fn tcp_with_options(address: std::net::SocketAddr) -> std::io::Result<()> {
    let stream = TcpStream::from(socket(libc::SOCK_STREAM)?);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(77)))?;
    rustix::net::connect(&stream, &address)?;
    let kept = stream.nodelay()? && stream.read_timeout()?.is_some_and(|time| time.as_secs() == 77);
    let waits = !rustix::fs::fcntl_getfl(&stream)?.contains(rustix::fs::OFlags::NONBLOCK);
    if kept && waits { talk(stream) } else { Err(std::io::ErrorKind::InvalidData.into()) }
}

fn tcp_unwaited(address: std::net::SocketAddr) -> std::io::Result<()> {
    let stream = TcpStream::from(socket(libc::SOCK_STREAM | libc::SOCK_NONBLOCK)?);
    match rustix::net::connect(&stream, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let mut polled = [rustix::event::PollFd::new(&stream, rustix::event::PollFlags::OUT)];
    rustix::event::poll(&mut polled, None)?;
    rustix::net::sockopt::socket_error(&stream)??;
    stream.set_nonblocking(false)?;
    talk(stream)
}

fn death_signal() {
    let mut signal: c_int = 0;
    // SAFETY: the system writes one integer.
    let error = unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut signal, 0, 0, 0) };
    say("asked", error);
    say("signal", signal);
}

/// Connects to a daemon with a full queue while the host answers other calls, then again once the daemon accepts.
fn waiting(plan: &Plan) {
    let Some(Reach::Unix(path)) = plan.reach.first() else { return };
    let path = path.clone();
    let timed = |limit: Option<std::time::Duration>| {
        // SAFETY: numbers only; the system has just made the descriptor for us.
        let stream = unsafe {
            let number = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
            <UnixStream as std::os::fd::FromRawFd>::from_raw_fd(number)
        };
        stream.set_write_timeout(limit)?;
        rustix::net::connect(&stream, &rustix::net::SocketAddrUnix::new(&path)?)?;
        talk(stream)
    };
    say_result("full", timed(Some(std::time::Duration::from_millis(60))));
    std::thread::scope(|scope| {
        let connecting = scope.spawn(|| timed(None));
        say_result("meanwhile", fs::File::open("/etc/passwd"));
        say_result("accepted", connecting.join().unwrap());
    });
}

fn flood() {
    for _ in 0..1_000_000 {
        // SAFETY: the sandbox refuses the call; otherwise signal 0 does nothing.
        unsafe { libc::kill(1, 0) };
    }
}
