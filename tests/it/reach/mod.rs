//! Connections to the RPC server: TCP, TLS, the Unix socket, and proxies.

mod programs;
mod proxies;
mod socket;
mod tls;

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outrigger_tests::{Host, Reply, WebSocket, exchange};
use serde_json::json;

/// How long a busy machine may take for a reload.
const PATIENCE: Duration = Duration::from_secs(20);

fn connect(host: &Host) -> TcpStream {
    TcpStream::connect(host.address).unwrap()
}

/// A request with further header lines, and with credentials unless they are empty.
pub fn request_of(credentials: &str, headers: &str, body: &str) -> String {
    let encoded = STANDARD.encode(credentials);
    let login = if credentials.is_empty() { String::new() } else { format!("Authorization: Basic {encoded}\r\n") };
    format!("POST / HTTP/1.1\r\nHost: localhost\r\n{login}{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A call of `uptime`.
fn request(credentials: &str) -> String {
    request_of(credentials, "", r#"{"method":"uptime","id":1}"#)
}

pub fn ask(stream: impl Read + Write, request: &str) -> std::io::Result<Reply> {
    exchange(&mut BufReader::new(stream), request)
}

/// Upgrades the connection to a WebSocket, and makes a call on it.
fn websocket_call(stream: &mut BufReader<impl Read + Write>, credentials: &str) {
    let authorization = format!("Basic {}", STANDARD.encode(credentials));
    let mut socket = WebSocket::open(stream.get_mut(), "/", &authorization);
    assert_eq!(socket.call("getblockcount", json!([])), Ok(json!(0)));
}

/// Replaces the configuration, and has the host reload it.
fn reload(host: &Host, text: &str) {
    std::fs::write(host.config_file().path(), text).unwrap();
    host.hang_up();
}

/// Whether the host ends this connection.
fn ends(stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = stream;
    !stream.read(&mut [0; 1024]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}
