//! Connections and listening sockets that the host opens for a plugin, as the plugin's `reach` in the configuration allows. The host
//! resolves names and checks certificates. An isolated plugin and a plugin in the host's process use the same functions.
//!
//! ```no_run
//! # fn in_a_plugin(host: &outrigger_sdk::Host) -> std::io::Result<()> {
//! use std::io::{Read, Write};
//! use std::net::TcpListener;
//!
//! use outrigger_sdk::net;
//!
//! // reach = ["connect:tls:hooks.example.com:443", "listen:tcp:127.0.0.1:9000"]
//! let mut stream = net::connect(host, "tls:hooks.example.com:443")?;
//! stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//!
//! let listener: TcpListener = net::listener(host, "tcp:127.0.0.1:9000")?.into();
//! # Ok(())
//! # }
//! ```
//!
//! A plugin in another language connects to the Unix socket `sockets` of `host/1`, and sends the entry and a newline. The host answers
//! with one line: `ok`, `refused REASON` or `failed REASON`. After `ok`, the bytes of the connection follow. The host sends a listening
//! socket together with `ok`, as `SCM_RIGHTS`. For `check:` and an entry, the host only looks the entry up.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use outrigger_service::Host;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The longest answer, in bytes.
const MAX_ANSWER: usize = 2048;

/// Connects to `tcp:NAME:PORT`, `tcp:IP:PORT`, `tls:NAME:PORT` or `unix:PATH`. For `tls` the host checks the certificate, and the stream
/// carries the plain bytes. Waits up to 30 seconds.
///
/// # Errors
/// `PermissionDenied` if `reach` has no such entry, or the reason of the failure.
pub fn connect(host: &Host, to: &str) -> io::Result<UnixStream> {
    let stream = begin(host, to)?;
    finish(&stream)?;
    Ok(stream)
}

/// Asks the host whether `reach` allows [`connect`] to this address, without connecting. A plugin asks at its start, and refuses to start
/// with the error, which names the missing entry.
///
/// # Errors
/// `PermissionDenied` if `reach` has no such entry.
pub fn check(host: &Host, to: &str) -> io::Result<()> {
    finish(&ask(host, &format!("check:connect:{to}"))?)
}

/// Starts to connect like [`connect`], without waiting. [`finish`] waits for the connection, at most for the stream's read timeout.
/// Another thread can end that wait with `shutdown`.
///
/// # Errors
/// See [`connect`].
pub fn begin(host: &Host, to: &str) -> io::Result<UnixStream> {
    ask(host, &format!("connect:{to}"))
}

/// Waits for a connection started by [`begin`].
///
/// # Errors
/// See [`connect`]. The plugin must not send bytes on the stream after an error.
pub fn finish(stream: &UnixStream) -> io::Result<()> {
    answer(stream).map(drop)
}

/// The listening socket of `tcp:IP:PORT` or `unix:PATH`. Convert it to a `TcpListener` or a `UnixListener`. The host opens the socket
/// before the plugin starts. All instances of the plugin share it, so connections wait in its queue while the plugin is reloaded.
/// After [`quiesce`](crate::Plugin::quiesce), the plugin must accept no more connections.
///
/// # Errors
/// `PermissionDenied` if `reach` has no such entry.
pub fn listener(host: &Host, at: &str) -> io::Result<OwnedFd> {
    let listener = answer(&ask(host, &format!("listen:{at}"))?)?;
    listener.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the host sent no socket"))
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

fn ask(host: &Host, entry: &str) -> io::Result<UnixStream> {
    let about = host.about().map_err(io::Error::other)?;
    let lacks = || format!("the plugin's reach has no \"{}\"", entry.trim_start_matches("check:"));
    // What follows a line end would be bytes of the connection.
    let path = about.sockets.filter(|_| !entry.contains('\n')).ok_or_else(|| refused(&lacks()))?;
    send(UnixStream::connect(path)?, entry)
}

fn send(mut stream: UnixStream, entry: &str) -> io::Result<UnixStream> {
    match stream.write_all(format!("{entry}\n").as_bytes()) {
        Ok(()) => Ok(stream),
        // The host has answered without reading: it has too many connections of the plugin.
        Err(error) => answer(&stream).and(Err(error)),
    }
}

/// Waits for the host's answer. Returns the socket that comes with it.
fn answer(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let (line, socket) = read_line(stream)?;
    match line.split_once(' ').unwrap_or((&line, "")) {
        ("ok", _) => Ok(socket),
        ("refused", reason) => Err(refused(reason)),
        (_, reason) => Err(io::Error::other(reason.to_owned())),
    }
}

/// Reads a line without reading beyond it, and the socket that comes with the line.
fn read_line(stream: &UnixStream) -> io::Result<(String, Option<OwnedFd>)> {
    let (mut line, mut socket) = (Vec::new(), None);
    loop {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let receive = || recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC);
        let received = rustix::io::retry_on_intr(receive)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(mut rights) = message {
                socket = rights.next().or(socket);
            }
        }
        match byte {
            _ if received.bytes == 0 || line.len() == MAX_ANSWER => return Err(io::ErrorKind::UnexpectedEof.into()),
            [b'\n'] => return Ok((String::from_utf8_lossy(&line).into_owned(), socket)),
            [byte] => line.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StubHost;

    #[test]
    fn host_that_answers_without_reading_gives_the_reason() {
        let (own, mut other) = UnixStream::pair().unwrap();
        other.write_all(b"failed there are 128 open connections\n").unwrap();
        drop(other);
        assert_eq!(send(own, "connect:tcp:a:1").unwrap_err().to_string(), "there are 128 open connections");
    }

    #[test]
    fn entry_with_a_line_end_is_refused() {
        let stub = StubHost::new();
        stub.info.set(|about| about.sockets = Some("/nonexistent".to_owned()));
        assert_eq!(connect(&stub.handle(), "tcp:a:1").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(connect(&stub.handle(), "tcp:a:1\nx").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
