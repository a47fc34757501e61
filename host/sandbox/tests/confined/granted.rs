//! Granted resources are reachable; their neighbours are not.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use libc::{ENOENT, EPERM};
use outrigger_sandbox::Policy;

use super::cases::combinations;
use super::host::{Confined, Layer, plan};

fn serve(accept: impl Fn() -> Box<dyn ReadWrite> + Send + 'static) {
    std::thread::spawn(move || {
        loop {
            let mut stream = accept();
            let _ = stream.read_exact(&mut [0]).and_then(|()| stream.write_all(b"y"));
        }
    });
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

/// The attempts, each with the expected errno and the expected denial. `port ^ 1` is not granted.
fn reached(folder: &Path, port: u16, root: bool) -> Vec<(&'static str, i64, Option<String>)> {
    let place = |text: &str| Some(text.replace("ROOT", folder.to_str().unwrap()));
    let (refused, none) = (i64::from(EPERM), None);
    let removed = if root { i64::from(libc::EROFS) } else { i64::from(libc::EACCES) };
    let link = if root { i64::from(ENOENT) } else { i64::from(libc::EACCES) };
    vec![
        ("read", 0, none.clone()),
        ("read_folder", 0, none.clone()),
        ("read_metadata", 0, none.clone()),
        ("read_write", refused, place("openat ROOT/read/file")),
        ("read_create", refused, place("openat ROOT/read/new")),
        ("read_remove", removed, none.clone()),
        ("read_beside", refused, place("openat ROOT/secret")),
        ("read_above", refused, place("openat ROOT/secret")),
        ("read_link", link, none.clone()),
        ("write", 0, none.clone()),
        ("write_read", 0, none.clone()),
        ("write_rename", 0, none.clone()),
        ("write_folder", 0, none.clone()),
        ("write_below", 0, none.clone()),
        ("write_remove", 0, none.clone()),
        ("write_too_much", 0, none.clone()),
        ("write_length", 0, none.clone()),
        ("write_too_long", i64::from(libc::EFBIG), none.clone()),
        ("write_length_of_memory", refused, Some("ftruncate".to_owned())),
        ("write_set_id", refused, place("openat ROOT/write/program")),
        ("write_symlink", refused, place("symlink /etc/passwd")),
        ("unix", 0, none.clone()),
        ("unix_other", refused, place("connect unix:ROOT/other.sock")),
        ("tcp", 0, none.clone()),
        ("tcp_options", 0, none.clone()),
        ("tcp_unwaited", 0, none.clone()),
        ("tcp_other", refused, Some(format!("connect tcp:127.0.0.1:{}", port ^ 1))),
        ("udp", refused, Some("socket family 2".to_owned())),
        ("listen", refused, Some("bind".to_owned())),
    ]
}

pub fn exactly_what_was_granted_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["read", "write"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("read/file"), "text").unwrap();
    fs::write(folder.join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", folder.join("read/link")).unwrap();
    let daemon = UnixListener::bind(folder.join("daemon.sock")).unwrap();
    let _other = UnixListener::bind(folder.join("other.sock")).unwrap();
    serve(move || Box::new(daemon.accept().unwrap().0));
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    serve(move || Box::new(server.accept().unwrap().0));
    let at = folder.display();
    let reach = [
        format!("read:{at}/read"),
        format!("write:{at}/write"),
        format!("connect:unix:{at}/daemon.sock"),
        format!("connect:tcp:127.0.0.1:{port}"),
    ];
    for without in combinations() {
        let _ = fs::remove_file(folder.join("write/b"));
        let mut confined = Confined::start("reach", &plan(&reach, &without, Policy::Require));
        let results = confined.results();
        let expected = reached(folder, port, confined.held().root);
        let errors: HashMap<String, i64> =
            expected.iter().map(|(name, error, _)| ((*name).to_owned(), *error)).collect();
        assert_eq!(results, errors, "without {without:?}");
        let denied: Vec<String> = confined.denied.try_iter().map(|denial| denial.to_string()).collect();
        let told: Vec<String> = expected.into_iter().filter_map(|(_, _, told)| told).collect();
        assert_eq!(denied, told, "without {without:?}");
        assert_eq!(fs::read_to_string(folder.join("write/b")).unwrap(), "text");
        assert_eq!(fs::read_to_string(folder.join("read/file")).unwrap(), "text");
        confined.end();
    }
}

pub fn grants_within_one_another_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    for inner in ["a/b", "c/d"] {
        fs::create_dir_all(folder.path().join(inner)).unwrap();
        fs::write(folder.path().join(inner).with_file_name("file"), "text").unwrap();
    }
    let reach = [format!("read:{at}/a"), format!("write:{at}/a/b"), format!("write:{at}/c"), format!("read:{at}/c/d")];
    for without in combinations() {
        let mut confined = Confined::start("nested", &plan(&reach, &without, Policy::Require));
        let results = confined.results();
        assert_eq!(results.len(), 8);
        for (name, error) in results {
            assert_eq!(error, if name == "write0" { i64::from(EPERM) } else { 0 }, "{name} without {without:?}");
        }
        confined.end();

        let absent = [format!("read:{at}/absent")];
        let confined = Confined::start("nothing", &plan(&absent, &without, Policy::Require));
        let reason = confined.enforced.as_ref().unwrap_err();
        assert!(reason.starts_with(&format!("{at}/absent: No such file")), "{reason}");
    }
}

fn neighbours() -> (TcpListener, TcpListener) {
    loop {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = one.local_addr().unwrap().port() ^ 1;
        if let Ok(other) = TcpListener::bind(("127.0.0.1", port)) {
            return (one, other);
        }
    }
}

pub fn swapped_arguments_reach_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("read")).unwrap();
    fs::write(folder.join("read/file"), "text").unwrap();
    fs::write(folder.join("secret"), "secret").unwrap();
    let (granted, other) = neighbours();
    let port = granted.local_addr().unwrap().port();
    std::thread::spawn(move || granted.incoming().for_each(drop));
    let reach = [format!("read:{}/read", folder.display()), format!("connect:tcp:127.0.0.1:{port}")];
    let mut all: Vec<_> = combinations().into_iter().map(|without| (without, Policy::Require)).collect();
    if !all.is_empty() {
        all.push((vec![Layer::Namespaces, Layer::Landlock], Policy::BestEffort));
    }
    for (without, policy) in all {
        let mut confined = Confined::start("swapped", &plan(&reach, &without, policy));
        let results = confined.results();
        assert!(results.len() == 3 && results.values().all(|error| *error == 0), "without {without:?}: {results:?}");
        // Otherwise the test would prove nothing.
        let denials = confined.denials();
        assert!(denials.by_kind["open"].count > 0 && denials.by_kind["connect"].count > 0, "{denials:?}");
        confined.end();
    }
    other.set_nonblocking(true).unwrap();
    assert_eq!(other.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

/// A daemon that accepts nothing and whose queue is full.
fn full_daemon(path: &Path) -> (UnixListener, Vec<std::os::fd::OwnedFd>) {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
    let stream = || {
        socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
            .unwrap()
    };
    let address = SocketAddrUnix::new(path).unwrap();
    let daemon = stream();
    bind(&daemon, &address).unwrap();
    listen(&daemon, 1).unwrap();
    let mut clients = Vec::new();
    loop {
        let client = stream();
        match connect(&client, &address) {
            Ok(()) => clients.push(client),
            Err(error) => {
                assert_eq!(error, rustix::io::Errno::AGAIN);
                return (UnixListener::from(daemon), clients);
            }
        }
    }
}

pub fn a_connection_that_waits_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    for without in combinations().into_iter().take(1) {
        let _ = fs::remove_file(&path);
        let (daemon, clients) = full_daemon(&path);
        let mut confined =
            Confined::start("waiting", &plan(&[format!("connect:unix:{}", path.display())], &without, Policy::Require));
        assert_eq!(confined.denied.recv().unwrap().to_string(), "openat /etc/passwd");
        drop(clients);
        daemon.set_nonblocking(false).unwrap();
        serve(move || Box::new(daemon.accept().unwrap().0));
        let results = confined.results();
        assert_eq!(results["full"], i64::from(libc::EAGAIN));
        assert_eq!(results["meanwhile"], i64::from(EPERM));
        assert_eq!(results["accepted"], 0);
        confined.end();
    }
}
