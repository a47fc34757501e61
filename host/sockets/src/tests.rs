use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::*;

fn open(plugin: &str, reach: &[&str]) -> Sockets {
    opened(plugin, &reach.iter().map(|entry| entry.parse().unwrap()).collect::<Vec<_>>(), Place::Entry).unwrap()
}

fn opened(plugin: &str, reach: &[Reach], place: Place) -> Result<Sockets, SocketsError> {
    Sockets::open(plugin, reach, place, Box::new(|_| {})).map(Option::unwrap)
}

/// Sends a request, and returns the connection and the first line.
fn ask(sockets: &Sockets, entry: &str) -> (BufReader<UnixStream>, String) {
    let mut stream = BufReader::new(UnixStream::connect(sockets.path()).unwrap());
    writeln!(stream.get_mut(), "{entry}").unwrap();
    let line = read_line(&mut stream);
    (stream, line)
}

fn read_line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[test]
fn a_connection_carries_the_bytes_of_both_sides_until_both_have_ended() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let entry = format!("connect:tcp:localhost:{}", server.local_addr().unwrap().port());
    let sockets = open("pump", &[&entry]);
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        stream.write_all(b"first\n").unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        stream.write_all(b"last\n").unwrap();
        heard.len()
    });
    let (mut stream, line) = ask(&sockets, &entry);
    assert_eq!((line, read_line(&mut stream)), ("ok".to_owned(), "first".to_owned()));
    stream.get_mut().write_all(&vec![7; 1 << 20]).unwrap();
    stream.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_line(&mut stream), "last");
    assert_eq!((read_line(&mut stream), serving.join().unwrap()), (String::new(), 1 << 20));
}

#[test]
fn only_an_entry_of_reach_is_connected_to() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let (denied, told) = channel();
    let reach = [format!("connect:tls:localhost:{port}").parse().unwrap(), "read:/etc".parse().unwrap()];
    let denied = Box::new(move |entry: &str| denied.send(entry.to_owned()).unwrap());
    let sockets = Sockets::open("bounded", &reach, Place::Entry, denied).unwrap().unwrap();
    for entry in [
        &format!("connect:tcp:localhost:{port}"),
        &format!("connect:tcp:127.0.0.1:{port}"),
        &format!("connect:tls:127.0.0.1:{port}"),
        &format!("listen:tcp:127.0.0.1:{port}"),
        "read:/etc",
        "",
    ] {
        let (_, line) = ask(&sockets, entry);
        assert_eq!(line, format!("refused the plugin's reach has no \"{entry}\""));
        assert_eq!(told.recv().unwrap(), entry);
    }
    assert_eq!(server.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(Sockets::open("none", &reach[1..], Place::Entry, Box::new(|_| {})).unwrap().is_none());
}

#[test]
fn requests_and_connections_are_bounded() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let entry = format!("connect:tcp:{}", server.local_addr().unwrap());
    let sockets = open("many", &[&entry]);
    // The host closes a connection with a longer request.
    let mut long = UnixStream::connect(sockets.path()).unwrap();
    let _ = long.write_all(&[b'a'; 1000]);
    assert!(matches!(long.read(&mut [0; 10]), Ok(0) | Err(_)));
    let mut open: Vec<_> = (0..128).map(|_| ask(&sockets, &entry)).collect();
    assert!(open.iter().all(|(_, line)| line == "ok"));
    let over = read_line(&mut BufReader::new(UnixStream::connect(sockets.path()).unwrap()));
    assert_eq!(over, "failed there are 128 open connections");
    // A connection that both sides have ended makes room.
    drop(server.accept().unwrap());
    let mut first = open.remove(0).0;
    assert_eq!(read_line(&mut first), "");
    drop(first);
    while ask(&sockets, &entry).1 != "ok" {}
}

#[test]
fn a_failure_is_reported_with_its_reason() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (refused, unknown) = (format!("connect:tcp:localhost:{port}"), "connect:tcp:name.invalid:80");
    let sockets = open("failing", &[&refused, unknown]);
    let line = ask(&sockets, &refused).1;
    assert!(line.starts_with("failed Connection refused"), "{line}");
    let line = ask(&sockets, unknown).1;
    assert!(line.starts_with("failed failed to lookup address information"), "{line}");
}

#[test]
fn instances_of_a_plugin_share_a_listening_socket_until_the_last_has_ended() {
    let entry = [Reach::ListenTcp("127.0.0.1:0".parse().unwrap())];
    let first = opened("shared", &entry, Place::Entry).unwrap();
    let address = |sockets: &Sockets| {
        let socket = sockets.listening()[0].as_fd().try_clone_to_owned().unwrap();
        TcpListener::from(socket).local_addr().unwrap()
    };
    let at = address(&first);
    let other = opened("other", &[Reach::ListenTcp(at)], Place::Entry).unwrap_err().to_string();
    assert!(other.starts_with(&format!("listen:tcp:{at}: Address already in use")), "{other}");
    let second = opened("shared", &entry, Place::Entry).unwrap();
    assert_eq!(address(&second), at);
    drop(first);
    TcpStream::connect(at).unwrap();
    let held = second.listening().to_vec();
    drop(second);
    TcpStream::connect(at).unwrap();
    drop(held);
    // The port is free once the system has closed the socket.
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpListener::bind(at).is_err() {
        assert!(Instant::now() < deadline, "the socket is still open");
    }
}

#[test]
fn a_unix_socket_that_nobody_serves_is_replaced_and_a_served_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let entry = format!("listen:unix:{}", path.display());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let first = open("unix", &[&entry]);
    UnixStream::connect(&path).unwrap();
    let other = opened("other", &[entry.parse().unwrap()], Place::Entry).unwrap_err().to_string();
    assert!(other.contains("Address already in use"), "{other}");
    let free = opened("checked", &[entry.parse().unwrap()], Place::Free).unwrap();
    assert!(free.path().exists());
    drop(first);
    while path.exists() {}
    fs::write(&path, "a file").unwrap();
    assert!(opened("file", &[entry.parse().unwrap()], Place::Entry).is_err());
}

#[test]
fn nothing_is_left_after_the_end() {
    let sockets = open("ended", &["connect:tcp:127.0.0.1:1"]);
    let path = sockets.path().to_owned();
    let mut idle = UnixStream::connect(&path).unwrap();
    drop(sockets);
    assert!(!path.exists() && !path.parent().unwrap().exists());
    assert_eq!(idle.read(&mut [0; 1]).unwrap_or(0), 0);
}
