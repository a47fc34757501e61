//! Connections and listening sockets that the host makes for a plugin, in the host's process and in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use outrigger_tests::{Authority, Client, Host, HostOptions, accept_tls, built};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::has_sandbox;

/// Settings that run `hostile` in the host's process and in a process of its own.
const PLACES: [&str; 2] = ["isolated = false", "isolated = true"];

fn places() -> Vec<&'static str> {
    let has_sandbox = has_sandbox();
    PLACES.into_iter().filter(|place| has_sandbox || *place == PLACES[0]).collect()
}

fn start(place: &str, reach: &[String], rest: &str, options: HostOptions) -> Host {
    let section = format!("{place}\nreach = {}\ngrants = [\"log/1\"]\n{rest}", json!(reach));
    let own = HostOptions::with_plugin("", built().library("outrigger_hostile"), &section);
    Host::start_with(HostOptions { config: own.config, written: own.written, ..options })
}

/// Answers each connection's line with `welcome`.
pub fn greet(stream: impl Read + Write) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    if stream.read_line(&mut line).is_ok() {
        let _ = stream.get_mut().write_all(b"welcome\n");
    }
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[track_caller]
fn fails(client: &mut Client, entry: &str, reason: &str) {
    let (code, told) = client.refused("hostilereach", json!([entry]));
    assert!(code == -90 && told.contains(reason), "{entry}: {told}");
}

/// TLS servers with certificates of the authority in the file: a valid one for `localhost`, an expired one, one for another name, and
/// one of an untrusted authority.
fn tls_servers(folder: &TempDir) -> [u16; 4] {
    let trusted = Authority::new(&folder.path().join("roots.pem"));
    let other = Authority::new(&folder.path().join("others.pem"));
    let configs = [
        trusted.server("localhost", false),
        trusted.server("localhost", true),
        trusted.server("hooks.example.com", false),
        other.server("localhost", false),
    ];
    configs.map(|config| {
        let (listener, port) = listen();
        std::thread::spawn(move || listener.incoming().for_each(|stream| greet(accept_tls(&config, stream.unwrap()))));
        port
    })
}

#[test]
fn connect_tls_checks_the_certificate_and_gives_plain_bytes_and_connect_tcp_takes_a_name() {
    let (listener, port) = listen();
    std::thread::spawn(move || listener.incoming().for_each(|stream| greet(stream.unwrap())));
    let ways = [format!("tcp:localhost:{port}"), format!("tcp:127.0.0.1:{port}")];
    let folder = tempfile::tempdir().unwrap();
    let ports = tls_servers(&folder);
    let roots = folder.path().join("roots.pem").display().to_string();
    for place in places() {
        let tls = ports.map(|port| format!("tls:localhost:{port}"));
        let reach: Vec<_> = tls.iter().chain(&ways).map(|way| format!("connect:{way}")).collect();
        let options =
            HostOptions { environment: vec![("SSL_CERT_FILE".to_owned(), roots.clone())], ..HostOptions::default() };
        let host = start(place, &reach, "", options);
        let mut client = host.client();
        let [right, expired, other_name, untrusted] = tls;
        assert_eq!(client.call("hostilereach", json!([right])), json!("welcome"), "{place}");
        fails(&mut client, &expired, "expired");
        fails(&mut client, &other_name, "not valid for name");
        fails(&mut client, &untrusted, "UnknownIssuer");
        // Case does not matter in a name. Another port or plain TCP needs an entry of its own.
        assert_eq!(client.call("hostilereach", json!([right.replace("localhost", "LocalHost")])), json!("welcome"));
        fails(
            &mut client,
            "tls:localhost:1",
            "PermissionDenied: the plugin's reach has no \"connect:tls:localhost:1\"",
        );
        fails(&mut client, &right.replace("tls", "tcp"), "PermissionDenied");
        fails(&mut client, &right.replace("localhost", "127.0.0.1"), "PermissionDenied");
        if place == PLACES[1] {
            let denied = client.plugin("hostile")["denied"].clone();
            assert_eq!((&denied["count"], &denied["last"]["call"]), (&json!(3), &json!("connect")), "{denied}");
        }
        for way in &ways {
            assert_eq!(client.call("hostilereach", json!([way])), json!("welcome"), "{place} {way}");
        }
    }
}

#[test]
fn plugin_has_as_many_connections_at_a_time_as_the_host_allows() {
    let (listener, port) = listen();
    std::thread::spawn(move || listener.incoming().for_each(|stream| greet(stream.unwrap())));
    for place in places() {
        let host = start(place, &[format!("connect:tcp:127.0.0.1:{port}")], "", HostOptions::default());
        let all = json!([format!("tcp:127.0.0.1:{port}"), 128]);
        assert_eq!(host.client().call("hostilereach", all), json!("welcome"), "{place}");
    }
}

#[test]
fn host_refuses_connections_and_look_ups_without_reach_and_names_the_missing_entry() {
    for place in places() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let host = start(place, &[], "", HostOptions { log: Some(log.clone()), ..HostOptions::default() });
        let mut client = host.client();
        fails(
            &mut client,
            "tcp:localhost:1",
            "PermissionDenied: the plugin's reach has no \"connect:tcp:localhost:1\"",
        );
        if place == PLACES[1] {
            assert_eq!(client.refused("hostilelookup", json!(["hooks.example.com"])).0, -90);
            let told = fs::read_to_string(log).unwrap();
            let advice =
                "a look-up of a name needs connect:tcp:NAME:PORT or connect:tls:NAME:PORT in the plugin's reach";
            assert_eq!(told.matches(advice).count(), 1, "{told}");
        }
    }
}

/// Sends a line to a listening plugin, without a wait for its answer.
fn say_tcp(to: SocketAddr, line: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(to).unwrap();
    writeln!(stream, "{line}").unwrap();
    BufReader::new(stream)
}

fn heard(mut from: impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    line
}

#[test]
fn listening_socket_is_handed_over_and_a_reload_loses_no_connection() {
    for place in places() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        // The port is free for the host after this.
        let (listener, port) = listen();
        drop(listener);
        let (tcp, unix) = (format!("tcp:127.0.0.1:{port}"), format!("unix:{}", path.display()));
        let reach = [format!("listen:{tcp}"), format!("listen:{unix}")];
        let host = start(place, &reach, "reload = \"beside\"\n", HostOptions::default());
        let mut client = host.client();
        let address: SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
        for reload in ["beside", "after"] {
            assert_eq!(client.call("hostileaccepts", json!([tcp])), json!(address));
            let first = say_tcp(address, "before");
            let mut local = UnixStream::connect(&path).unwrap();
            writeln!(local, "by a path").unwrap();
            client.call("reloadplugin", json!(["hostile"]));
            let second = say_tcp(address, "after");
            for line in ["before", "after"] {
                assert_eq!(client.call("hostileaccept", json!([tcp])), json!(line), "{place} {reload}");
            }
            assert_eq!([heard(first), heard(second)], ["welcome\n"; 2]);
            assert_eq!(client.call("hostileaccept", json!([unix])), json!("by a path"));
            assert_eq!(heard(BufReader::new(local)), "welcome\n");
            let other = client.refused("hostileaccept", json!(["tcp:127.0.0.1:1"])).1;
            assert!(other.starts_with("PermissionDenied"), "{other}");
            client.call("stopplugin", json!(["hostile"]));
            while TcpStream::connect(address).is_ok() || path.exists() {}
            if reload == "beside" {
                host.change("\"beside\"", "\"after\"");
                client.call("startplugin", json!(["hostile"]));
            }
        }
    }
}

#[test]
fn plugin_whose_address_is_in_use_does_not_start() {
    let (_listener, port) = listen();
    let section = format!("reach = [\"listen:tcp:127.0.0.1:{port}\"]\n");
    let options = super::alone(&section);
    let told = String::from_utf8(Host::fail(&options).stderr).unwrap();
    assert!(told.contains(&format!("plugin 'hostile': listen:tcp:127.0.0.1:{port}: Address already in use")), "{told}");
    let port_0: Value = json!("listen:tcp:127.0.0.1:0");
    let options = super::alone(&format!("reach = [{port_0}]\n"));
    let told = String::from_utf8(Host::fail(&options).stderr).unwrap();
    assert!(told.contains("with a port above 0"), "{told}");
}
