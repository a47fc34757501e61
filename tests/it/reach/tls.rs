//! TLS, and users identified by certificates.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use outrigger_tests::{Authority, Host, HostOptions, Issued, Reply, built, exchange, wait_until};
use tempfile::TempDir;

use super::{ask, connect, ends, request, request_of, websocket_call};
use crate::users::ALICE;

/// Files of a host with TLS, and its authority.
struct Setup {
    folder: TempDir,
    authority: Authority,
}

impl Setup {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(&folder.path().join("authority.pem"));
        let setup = Self { folder, authority };
        setup.issue("host");
        setup
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Gives the host a new certificate.
    fn issue(&self, common_name: &str) {
        let issued = self.authority.issue(&["127.0.0.1"], common_name);
        issued.write(&self.file("certificate.pem"), &self.file("key.pem"));
    }

    /// The configuration, with further lines in `[rpc.tls]` and after it.
    fn options(&self, more: &str) -> HostOptions {
        let folder = self.folder.path().display();
        HostOptions::with_groups(&format!(
            "[rpc.tls]\ncertificate = \"{folder}/certificate.pem\"\nkey = \"{folder}/key.pem\"\n{more}"
        ))
    }

    fn ca(&self) -> String {
        format!("client_ca = \"{}\"\n", self.file("authority.pem").display())
    }

    /// Calls `uptime` on a new connection. Returns the reply or the connection's error.
    fn ask(&self, host: &Host, own: Option<&Issued>, credentials: &str) -> std::io::Result<Reply> {
        let stream = self.authority.connect(connect(host), own)?;
        ask(stream, &request(credentials))
    }
}

/// The certificate that the host presents.
fn shown(setup: &Setup, host: &Host) -> Vec<u8> {
    let stream = setup.authority.connect(connect(host), None).unwrap();
    stream.conn.peer_certificates().unwrap()[0].to_vec()
}

#[test]
fn tls_serves_calls_and_websockets_but_no_plain_http_and_keeps_the_last_good_certificate() {
    let setup = Setup::new();
    let log = setup.file("log");
    let host = Host::start_with(HostOptions { log: Some(log.clone()), ..setup.options("") });
    check_served(&setup, &host);
    check_authorities(&setup, &host);
    check_changes(&setup, &host, &log);
}

fn check_served(setup: &Setup, host: &Host) {
    let cookie = host.cookie();
    assert_eq!(setup.ask(host, None, &cookie).unwrap().status, 200);
    assert_eq!(setup.ask(host, None, "").unwrap().status, 401);
    let mut kept = BufReader::new(setup.authority.connect(connect(host), None).unwrap());
    for _ in 0..3 {
        assert_eq!(exchange(&mut kept, &request(&cookie)).unwrap().status, 200);
    }
    websocket_call(&mut kept, &cookie);

    // A plain HTTP client with valid credentials gets an explanation, and its call is not made.
    let mut plain = BufReader::new(connect(host));
    let refused = exchange(&mut plain, &request(&cookie)).unwrap();
    assert_eq!((refused.status, refused.body.as_str()), (400, "This port speaks TLS only: use https"));
}

/// Clients refuse a certificate of an untrusted authority.
fn check_authorities(setup: &Setup, host: &Host) {
    let other = Setup::new();
    let refused = other.authority.connect(connect(host), None).unwrap_err();
    assert!(refused.to_string().contains("certificate"), "{refused}");

    let call = |ca: &Setup| {
        let mut command = Command::new(&built().binary);
        command.args(["call", "--datadir"]).arg(host.datadir()).arg("--ca-file").arg(ca.file("authority.pem"));
        command.args(["--rpc-connect", &format!("https://{}", host.address), "getblockcount"]).output().unwrap()
    };
    let output = call(setup);
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"0\n"[..]), "{output:?}");
    let output = call(&other);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && error.contains("invalid peer certificate"), "{error}");
}

/// The host reloads a changed certificate, and keeps the last good one if the new one is broken.
fn check_changes(setup: &Setup, host: &Host, log: &Path) {
    let first = shown(setup, host);
    assert_eq!(shown(setup, host), first);
    let mut kept = BufReader::new(setup.authority.connect(connect(host), None).unwrap());
    let cookie = host.cookie();
    assert_eq!(exchange(&mut kept, &request(&cookie)).unwrap().status, 200);

    std::fs::write(setup.file("certificate.pem"), "broken").unwrap();
    wait_until("the broken certificate is in the log", || {
        assert_eq!(shown(setup, host), first);
        std::fs::read_to_string(log).unwrap().contains("the former TLS certificate stays in use")
    });
    setup.issue("renewed");
    wait_until("the new certificate is shown", || shown(setup, host) != first);
    // Open connections stay.
    assert_eq!(exchange(&mut kept, &request(&cookie)).unwrap().status, 200);
}

#[test]
fn tls_needs_no_certificate_from_commands_on_the_hosts_machine() {
    let setup = Setup::new();
    setup.authority.issue(&["node.example"], "host").write(&setup.file("certificate.pem"), &setup.file("key.pem"));
    let host = Host::start_with(setup.options(&setup.ca()));
    for arguments in [&["call", "getblockcount"][..], &["reload"], &["top", "--once"]] {
        let mut command = Command::new(&built().binary);
        let output =
            command.arg(arguments[0]).arg("--datadir").arg(host.datadir()).args(&arguments[1..]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

#[test]
fn tls_client_certificates_identify_users_if_configured_but_not_for_pages_of_other_sites() {
    let setup = Setup::new();
    let user =
        format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\n[[rpc.users]]\nname = \"bob\"\nmethods = [\"getblockcount\"]\n");
    let options = setup.options(&format!("{}client_users = true\n{user}", setup.ca()));
    let host = Host::start_with(options.and(&["rpc.websocket_origins=['https://listed.example']"]));
    let issue = |name| setup.authority.issue(&[], name);
    let (alice, bob, eve) = (issue("alice"), issue("bob"), issue("eve"));
    let status = |own: &Issued, credentials: &str| setup.ask(&host, Some(own), credentials).unwrap().status;
    assert_eq!(status(&alice, ""), 200);
    assert_eq!(status(&bob, ""), 403, "bob's list has no uptime");
    assert_eq!(status(&bob, "alice:pass:word"), 200, "credentials count where they are given");
    assert_eq!(status(&alice, "alice:wrong"), 401);
    // A certificate that belongs to no user is refused, even with valid credentials.
    for credentials in ["", "alice:pass:word", &host.cookie()] {
        assert_eq!(status(&eve, credentials), 401, "{credentials}");
    }
    assert_eq!(status(&alice, "bob:"), 401);
    // Without a certificate, or with one of another authority, there is no answer at all.
    assert!(setup.ask(&host, None, "alice:pass:word").is_err());
    let foreign = Setup::new().authority.issue(&[], "alice");
    assert!(setup.ask(&host, Some(&foreign), "alice:pass:word").is_err());

    check_pages(&setup, &host, &alice);
    // Without the setting, a certificate identifies no user.
    let without = setup.options(&format!("{}[[rpc.users]]\nrpcauth = \"{ALICE}\"\n", setup.ca())).config_file();
    super::reload(&host, &std::fs::read_to_string(without.path()).unwrap());
    let is_no_user = || setup.ask(&host, Some(&alice), "").is_ok_and(|reply| reply.status == 401);
    wait_until("the certificate is no user", is_no_user);
    assert_eq!(status(&eve, "alice:pass:word"), 200);
}

/// Certificate users make no calls for pages of other sites.
fn check_pages(setup: &Setup, host: &Host, alice: &Issued) {
    let status = |credentials: &str, headers: &str| {
        let call = request_of(credentials, headers, r#"{"method":"uptime","id":1}"#);
        ask(setup.authority.connect(connect(host), Some(alice)).unwrap(), &call).unwrap().status
    };
    let other = "Origin: https://other.example\r\n";
    let cross = format!("{other}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!((status("", other), status("", "Origin: null\r\n"), status("", &cross)), (403, 403, 403));
    // Pages do not know the password.
    assert_eq!(status("alice:pass:word", &cross), 200);
    assert_eq!(status("", "Origin: https://listed.example\r\n"), 200);
    assert_eq!(status("", &format!("Origin: https://{}\r\nSec-Fetch-Site: same-origin\r\n", host.address)), 200);
}

#[test]
fn tls_reload_that_removes_certificate_users_ends_their_connections() {
    let setup = Setup::new();
    let user = format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\n");
    let host = Host::start_with(setup.options(&format!("{}client_users = true\n{user}", setup.ca())));
    let alice = setup.authority.issue(&[], "alice");
    let text = std::fs::read_to_string(host.config_file().path()).unwrap();
    let other = Setup::new();
    let changes = [text.replace("client_users = true", "client_users = false"), text.replace(&setup.ca(), &other.ca())];
    for change in changes {
        super::reload(&host, &text);
        let is_user = || setup.ask(&host, Some(&alice), "").is_ok_and(|reply| reply.status == 200);
        wait_until("the certificate is a user", is_user);
        let mut kept = BufReader::new(setup.authority.connect(connect(&host), Some(&alice)).unwrap());
        assert_eq!(exchange(&mut kept, &request("")).unwrap().status, 200);
        super::reload(&host, &change);
        assert!(ends(&kept.get_ref().sock), "{change}");
    }
}

#[test]
fn tls_handshake_that_stalls_holds_a_slot_for_a_limited_time() {
    let setup = Setup::new();
    let host = Host::start_with(setup.options("").and(&["rpc.max_connections=2"]));
    // Sends the beginning of a handshake record, and stops.
    let stall = || {
        let mut stream = connect(&host);
        stream.write_all(&[22, 3, 1, 1]).unwrap();
        stream
    };
    let mut stalled = stall();
    stalled.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // Further stalled handshakes make room for a client that completes its handshake.
    let _others: Vec<_> = (0..8).map(|_| stall()).collect();
    assert_eq!(setup.ask(&host, None, &host.cookie()).unwrap().status, 200);
    let ended = stalled.read(&mut [0]);
    assert!(!matches!(&ended, Err(error) if error.kind() == ErrorKind::WouldBlock), "{ended:?}");
    let mut last = stall();
    last.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let ended = last.read(&mut [0]);
    assert!(!matches!(&ended, Err(error) if error.kind() == ErrorKind::WouldBlock), "{ended:?}");
}

#[test]
fn tls_files_that_cannot_be_used_refuse_check_and_start() {
    let setup = Setup::new();
    let other = setup.authority.issue(&["127.0.0.1"], "other");
    other.write(&setup.file("other.pem"), &setup.file("other-key.pem"));
    let folder = setup.folder.path().display().to_string();
    let text = |certificate: &str, key: &str, more: &str| {
        format!("[rpc.tls]\ncertificate = \"{folder}/{certificate}\"\nkey = \"{folder}/{key}\"\n{more}")
    };
    let cases = [
        (text("none.pem", "key.pem", ""), "rpc.tls.certificate: ", "none.pem: No such file"),
        (text("key.pem", "key.pem", ""), "rpc.tls.certificate: ", "there is no certificate in it"),
        (text("certificate.pem", "none.pem", ""), "rpc.tls.key: ", "No such file"),
        (text("certificate.pem", "other-key.pem", ""), "rpc.tls.key: ", "does not fit the certificate"),
        (text("certificate.pem", "key.pem", "client_ca = \"/none\"\n"), "rpc.tls.client_ca: ", "/none: No such file"),
        (
            text("certificate.pem", "key.pem", "client_users = true\n"),
            "rpc.tls.client_users: ",
            "needs rpc.tls.client_ca",
        ),
        ("[[rpc.users]]\nname = \"bob\"\n".to_owned(), "rpc.users.name: ", "nothing identifies a user"),
    ];
    for (text, key, reason) in cases {
        let options = HostOptions::with_groups(&text);
        for output in [Host::fail(&options), Host::check(&options)] {
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{error}");
            assert!(error.contains(key) && error.contains(reason), "{error}");
        }
    }
}
