//! One HTTP/1.1 request over a stream. Only the status of the answer counts.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use http::Uri;
use httparse::{EMPTY_HEADER, Response, Status};

/// The longest head of an answer, in bytes, and its most headers.
const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;

pub struct Url {
    /// As the operator wrote it.
    pub text: String,
    /// What the host connects to, as in `reach` without `connect:`.
    pub entry: String,
    authority: String,
    path: String,
}

impl Url {
    /// Reads a URL with `https`, or with `http` for this machine: an entry of a log is private.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|error| format!("no URL: {error}"))?;
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.ok_or("a URL has a host, and no user")?;
        let host = authority.host();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_here = address.map_or(host == "localhost", |address| address.is_loopback());
        let (kind, port) = match uri.scheme_str() {
            Some("https") => ("tls", 443),
            Some("http") if is_here => ("tcp", 80),
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
/// The connection ended, the time is over, or the answer is not HTTP.
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

/// A stream's timeout by its name.
fn in_time(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

fn status(stream: &mut UnixStream, until: Instant) -> io::Result<u16> {
    let mut head = Vec::new();
    loop {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut response = Response::new(&mut headers);
        match (response.parse(&head).map_err(io::Error::other)?, response.code) {
            // The final answer is still to come.
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
