//! An HTTP/1.1 POST request over a stream. Of the answer, only the status is read.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use http::Uri;
use httparse::{EMPTY_HEADER, Response, Status};

/// The longest head of an answer, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// The most headers of an answer.
const MAX_HEADERS: usize = 64;

pub struct Url {
    /// As the operator wrote it.
    pub text: String,
    /// The receiver's address as in an entry of `reach`, without `connect:`.
    pub entry: String,
    authority: String,
    path: String,
}

impl Url {
    /// Parses an `https` URL. Since entries are private, `http` is allowed only to this machine.
    ///
    /// # Errors
    /// The text is no such URL. The operator sees the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("no URL: {error}"))?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.ok_or("a URL has a host, and no user")?;
        let host = authority.host();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_local = address.map_or(host == "localhost", |address| address.is_loopback());
        let (kind, port) = match uri.scheme_str() {
            Some("https") => ("tls", 443),
            Some("http") if is_local => ("tcp", 80),
            Some("http") => return Err("http is for this machine only; use https".to_owned()),
            _ => return Err("a URL begins with https:// or http://".to_owned()),
        };
        let entry = format!("{kind}:{host}:{}", authority.port_u16().unwrap_or(port));
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self { text: text.to_owned(), entry, authority: authority.to_string(), path: path.to_owned() })
    }
}

fn remaining(until: Instant) -> io::Result<Option<Duration>> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
}

/// Posts a body, and returns the status of the answer.
///
/// # Errors
/// The connection ended, the deadline `until` passed, or the answer is not HTTP.
pub fn post(
    stream: &mut UnixStream,
    url: &Url,
    headers: &[(&str, &str)],
    body: &[u8],
    until: Instant,
) -> io::Result<u16> {
    let (path, authority, length) = (&url.path, &url.authority, body.len());
    let mut request = format!("POST {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
    let request = [request.as_bytes(), body].concat();
    let mut rest = &request[..];
    while !rest.is_empty() {
        stream.set_write_timeout(remaining(until)?)?;
        let written = stream.write(rest).map_err(in_time)?;
        rest = rest.get(written..).unwrap_or_default();
    }
    status(stream, until)
}

/// Converts `WouldBlock`, the error of a stream's timeout, to `TimedOut`.
fn in_time(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

fn status(stream: &mut UnixStream, until: Instant) -> io::Result<u16> {
    let mut head = Vec::new();
    loop {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut response = Response::new(&mut headers);
        match (response.parse(&head).map_err(io::Error::other)?, response.code) {
            // An interim answer: the final one follows.
            (Status::Complete(length), Some(100..200)) => {
                head.drain(..length);
                continue;
            }
            (Status::Complete(_), Some(code)) => return Ok(code),
            _ if head.len() > MAX_HEAD => return Err(io::Error::other("the head of the answer is too long")),
            _ => {}
        }
        let mut part = [0; 1024];
        stream.set_read_timeout(remaining(until)?)?;
        match stream.read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => head.extend_from_slice(part.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(in_time(error)),
        }
    }
}
