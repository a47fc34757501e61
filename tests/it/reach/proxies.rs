//! Trusted proxies: their headers, and the PROXY protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use outrigger_tests::proxy::{connect_from, proxy_port};
use outrigger_tests::{Host, HostOptions, Reply, all_groups, wait_until};
use serde_json::Value;
use tempfile::TempDir;

use super::{ask, request, request_of};

/// A host that trusts 127.0.0.1 and 127.0.0.9, with an audit log.
pub struct Proxied {
    pub host: Host,
    folder: TempDir,
    wallets: usize,
}

impl Proxied {
    pub fn start(options: HostOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let audit = format!("audit.file='{}'", file("audit").display());
        let options = options.and(&["rpc.trusted_proxies=['127.0.0.1', '127.0.0.9/32']", &audit]);
        let listen = Some("127.0.0.1:0 proxy:127.0.0.1:0".to_owned());
        let options = HostOptions { log: Some(file("log")), listen, ..options };
        Self { host: Host::start_with(options), folder, wallets: 0 }
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The request of a call that the audit log records, by the cookie's user.
    pub fn audited(&mut self, headers: &str) -> String {
        self.wallets += 1;
        // A wallet without keys.
        let body = format!(r#"{{"method":"createwallet","params":["w{}",true],"id":1}}"#, self.wallets);
        request_of(&self.host.cookie(), headers, &body)
    }

    /// The client's address in the audit log's last line.
    pub fn last_peer(&self) -> String {
        let read = || std::fs::read_to_string(self.folder.path().join("audit")).unwrap();
        // The host may write the line after its answer.
        wait_until("the call is in the audit log", || read().lines().count() >= self.wallets);
        let audit = read();
        let line: Value = serde_json::from_str(audit.lines().last().unwrap()).unwrap();
        assert_eq!(line["method"], "createwallet");
        line["peer"].as_str().unwrap().to_owned()
    }

    fn from(&self, last: u8) -> TcpStream {
        connect_from(last, self.host.address.port()).unwrap()
    }

    /// The reply to a call of `uptime` from 127.0.0.1 with these headers.
    fn with_headers(&self, headers: &str, credentials: &str) -> Reply {
        ask(self.from(1), &request_of(credentials, headers, r#"{"method":"uptime","id":1}"#)).unwrap()
    }
}

#[test]
fn proxies_name_clients_by_headers_or_by_the_proxy_protocol_as_the_address_is_set() {
    let mut proxied = Proxied::start(HostOptions::default());
    check_headers(&mut proxied);
    check_bad_headers(&proxied);
    check_protocol(&mut proxied);
    check_protocol_without_a_client(&mut proxied);
    // Behind a proxy, the console is off by default.
    let request = "GET /console HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(ask(proxied.from(1), request).unwrap().status, 404);
}

/// The client's address is the right-most one that is not trusted.
fn check_headers(proxied: &mut Proxied) {
    let cases = [
        (1, "", "127.0.0.1"),
        (1, "X-Forwarded-For: 127.0.0.7, 127.0.0.5:4711, 127.0.0.9\r\n", "127.0.0.5"),
        (1, "X-Forwarded-For: unknown, 127.0.0.7\r\nX-Forwarded-For: 127.0.0.5\r\n", "127.0.0.5"),
        (9, "Forwarded: for=_x, for=\"127.0.0.6\";proto=https\r\n", "127.0.0.6"),
        // Headers from others are ignored, even invalid ones.
        (2, "X-Forwarded-For: 127.0.0.5\r\nForwarded: for=127.0.0.6\r\n", "127.0.0.2"),
        (2, "Forwarded: for=unknown\r\n", "127.0.0.2"),
    ];
    for (last, headers, peer) in cases {
        let call = proxied.audited(headers);
        assert_eq!(ask(proxied.from(last), &call).unwrap().status, 200, "{headers}");
        assert_eq!(proxied.last_peer(), peer, "127.0.0.{last}: {headers}");
    }
    // One connection of a proxy carries requests of several clients.
    let mut kept = std::io::BufReader::new(proxied.from(1));
    for peer in ["127.0.0.5", "127.0.0.6"] {
        let call = proxied.audited(&format!("X-Forwarded-For: {peer}\r\n"));
        assert_eq!(outrigger_tests::exchange(&mut kept, &call).unwrap().status, 200);
        assert_eq!(proxied.last_peer(), peer);
    }
}

/// Headers that name no client are refused.
fn check_bad_headers(proxied: &Proxied) {
    let cookie = proxied.host.cookie();
    let both = proxied.with_headers("X-Forwarded-For: 127.0.0.5\r\nForwarded: for=127.0.0.5\r\n", &cookie);
    assert_eq!((both.status, both.body.as_str()), (400, "Forwarded and X-Forwarded-For cannot be combined"));
    for headers in
        ["X-Forwarded-For: unknown\r\n", "X-Forwarded-For: \r\n", "Forwarded: for=_x\r\n", "Forwarded: by=1\r\n"]
    {
        let refused = proxied.with_headers(headers, &cookie);
        let told = "The proxy's header does not name the client";
        assert_eq!((refused.status, refused.body.as_str()), (400, told), "{headers}");
    }
}

#[test]
fn proxies_clients_need_an_allowed_network_for_calls_pages_and_health() {
    let proxied = Proxied::start(HostOptions::with(&["rpc.console=true", "rpc.allow_from=['203.0.113.0/24']"]));
    let (inside, outside) = ("X-Forwarded-For: 203.0.113.5\r\n", "X-Forwarded-For: 198.51.100.5\r\n");
    let cookie = proxied.host.cookie();
    assert_eq!(proxied.with_headers(inside, &cookie).status, 200);
    assert_eq!(proxied.with_headers(outside, &cookie).status, 403);
    assert!(std::fs::read_to_string(proxied.log()).unwrap().contains("198.51.100.5"));
    let status = |path: &str, headers: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        ask(proxied.from(1), &request).unwrap().status
    };
    for path in ["/console", "/healthz"] {
        assert_eq!((status(path, ""), status(path, inside), status(path, outside)), (200, 200, 403), "{path}");
    }
}

/// Clients at one address guess passwords until the host refuses further guesses. It then still serves a client at another address.
pub fn guess(
    bad: impl Fn() -> std::io::Result<TcpStream> + Sync,
    good: impl FnOnce(),
    headers: &str,
    status: impl Fn(TcpStream, &str) -> u16 + Sync,
) {
    let is_over = AtomicBool::new(false);
    let wrong = request_of("__cookie__:wrong", headers, r#"{"method":"uptime","id":1}"#);
    thread::scope(|scope| {
        let guessers: Vec<_> = (0..40)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let answered = bad().map(|stream| status(stream, &wrong)).unwrap();
                        assert!([401, 429].contains(&answered), "{answered}");
                        if answered == 429 {
                            return true;
                        }
                    }
                    false
                })
            })
            .collect();
        // More guessers than the queue holds, so the address has no credit and no place left.
        while !guessers.iter().any(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(5));
        }
        good();
        is_over.store(true, Ordering::Relaxed);
        assert!(guessers.into_iter().any(|guesser| guesser.join().unwrap()));
    });
}

#[test]
fn proxies_clients_with_wrong_passwords_slow_no_other_client() {
    let proxied = Proxied::start(HostOptions::default());
    let right = proxied.host.cookie();
    let good = || assert_eq!(proxied.with_headers("X-Forwarded-For: 127.0.0.6\r\n", &right).status, 200);
    let status = |stream, request: &str| ask(stream, request).unwrap().status;
    guess(|| Ok(proxied.from(1)), good, "X-Forwarded-For: 127.0.0.5\r\n", status);
    let log = std::fs::read_to_string(proxied.log()).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("wrong credentials")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("peer=127.0.0.5")), "{log}");
}

/// A PROXY protocol header with the source 127.0.0.N.
fn header(last: u8) -> Vec<u8> {
    let addresses = [127, 0, 0, last, 127, 0, 0, 1, 0x12, 0x34, 0x20, 0x8d];
    [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &addresses].concat()
}

/// The whole answer to these bytes, until the host closes the connection.
fn answer(mut stream: TcpStream, bytes: &[u8]) -> String {
    let mut answer = Vec::new();
    // The host may close the connection before it has read everything.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn check_protocol(proxied: &mut Proxied) {
    let (port, cookie) = (proxy_port(&proxied.host).unwrap(), proxied.host.cookie());
    let from = |last| connect_from(last, port).unwrap();
    let call = proxied.audited("");
    assert!(answer(from(1), &[&header(5)[..], call.as_bytes()].concat()).starts_with("HTTP/1.1 200"));
    assert_eq!(proxied.last_peer(), "127.0.0.5");
    // A trusted proxy behind this proxy may also name its client.
    let call = proxied.audited("X-Forwarded-For: 127.0.0.6\r\n");
    assert!(answer(from(1), &[&header(9)[..], call.as_bytes()].concat()).starts_with("HTTP/1.1 200"));
    assert_eq!(proxied.last_peer(), "127.0.0.6");
    // A connection of the proxy itself, such as a health check.
    let call = proxied.audited("");
    assert!(
        answer(from(1), &[&b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"[..], call.as_bytes()].concat())
            .starts_with("HTTP/1.1 200")
    );
    assert_eq!(proxied.last_peer(), "127.0.0.1");

    let call = request(&cookie);
    let mut foreign = header(5);
    foreign[16..20].copy_from_slice(&[203, 0, 113, 5]);
    assert!(answer(from(1), &[&foreign[..], call.as_bytes()].concat()).starts_with("HTTP/1.1 403"));
    // A request without a header, and one behind half a header.
    for bytes in [&[][..], &header(5)[..10]] {
        assert_eq!(answer(from(1), &[bytes, call.as_bytes()].concat()), "", "{bytes:?}");
    }
    // An untrusted address cannot name a client, with or without a header.
    assert_eq!(answer(from(2), &[&header(5)[..], call.as_bytes()].concat()), "");
    assert_eq!(answer(from(2), call.as_bytes()), "");
    // At the other listening address the header is no valid request.
    let elsewhere = answer(proxied.from(1), &[&header(5)[..], call.as_bytes()].concat());
    assert!(!elsewhere.contains("200 OK"), "{elsewhere}");
}

/// The host ignores the headers of a proxy whose PROXY header names no client.
fn check_protocol_without_a_client(proxied: &mut Proxied) {
    let port = proxy_port(&proxied.host).unwrap();
    for head in [&b"\x21\0\0\0"[..], b"\x21\x31\0\0"] {
        let call = proxied.audited("X-Forwarded-For: 127.0.0.5\r\n");
        let bytes = [b"\r\n\r\n\0\r\nQUIT\n", head, call.as_bytes()].concat();
        assert!(answer(connect_from(1, port).unwrap(), &bytes).starts_with("HTTP/1.1 200"));
        assert_eq!(proxied.last_peer(), "127.0.0.1");
    }
}

#[test]
fn proxies_removed_by_a_reload_lose_their_connections() {
    let text = all_groups().replace("trusted_proxies = []", "trusted_proxies = [\"127.0.0.1\"]");
    let listen = Some("127.0.0.1:0 proxy:127.0.0.1:0".to_owned());
    let host = Host::start_with(HostOptions { listen, ..HostOptions::configured(&text) });
    let port = proxy_port(&host).unwrap();
    let mut kept = std::io::BufReader::new(connect_from(1, port).unwrap());
    kept.get_mut().write_all(&header(5)).unwrap();
    assert_eq!(outrigger_tests::exchange(&mut kept, &request(&host.cookie())).unwrap().status, 200);
    super::reload(&host, &text.replace("[\"127.0.0.1\"]", "[\"127.0.0.9\"]"));
    assert!(super::ends(kept.get_ref()));
}

#[test]
fn proxies_addresses_without_trusted_proxies_refuse_the_start() {
    let error = Host::refused(&HostOptions::with(&["rpc.listen=['proxy:127.0.0.1:0']"]));
    assert!(error.contains("needs rpc.trusted_proxies"), "{error}");
}
