//! The cost of TLS for a call on a kept-alive connection: the same call with and without it, in turns.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use outrigger_tests::{Authority, Client, Host, HostOptions, exchange};

use crate::median;

const TURNS: usize = 20;
const CALLS: usize = 1_000;

/// Runs the section.
pub fn run() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let authority = Authority::new(&file("authority.pem"));
    authority.issue(&["127.0.0.1"], "host").write(&file("certificate.pem"), &file("key.pem"));
    let path = folder.path().display();
    let tls = format!("[rpc.tls]\ncertificate = \"{path}/certificate.pem\"\nkey = \"{path}/key.pem\"\n");
    let (plain, secure) = (Host::start(), Host::start_with(HostOptions::with_groups(&tls)));
    let request = |client: Client| client.request(r#"{"method":"getblockcount","id":1}"#);
    let (plain_request, secure_request) = (request(plain.client()), request(secure.client()));
    let connect = |host: &Host| {
        let stream = TcpStream::connect(host.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    };
    let mut plain_stream = BufReader::new(connect(&plain));
    let mut secure_stream = BufReader::new(authority.connect(connect(&secure), None).unwrap());
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        let (plain, secure) = (times(&mut plain_stream, &plain_request), times(&mut secure_stream, &secure_request));
        // The first turn warms up.
        if turn > 0 {
            without.extend(plain);
            with.extend(secure);
        }
    }
    let microseconds = |times| median(times).as_secs_f64() * 1e6;
    let (without, with) = (microseconds(without), microseconds(with));
    println!("| what | with TLS | without | unit | more |\n|---|---|---|---|---|");
    println!("| getblockcount, one kept-alive connection | {with:.1} | {without:.1} | us | {:.1} |", with - without);
}

fn times(stream: &mut BufReader<impl Read + Write>, request: &str) -> Vec<Duration> {
    let once = |_| {
        let began = Instant::now();
        assert_eq!(exchange(stream, request).unwrap().status, 200);
        began.elapsed()
    };
    (0..CALLS).map(once).collect()
}
