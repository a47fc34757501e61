//! Connections as clients leave them: half closed, closed, and open.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

/// The calls that are being answered.
fn calls(client: &mut Client) -> usize {
    client.call("getrpcinfo", json!([]))["active_commands"].as_array().unwrap().len()
}

/// Asks until so many calls are being answered, the one that asks with them.
#[track_caller]
fn until_calls(client: &mut Client, count: usize) {
    // Without an end this would go on for ever.
    assert!((0..100_000).any(|_| calls(client) == count), "never {count} calls");
}

#[test]
fn getblocktemplate_long_polls_end_when_their_clients_send_no_more() {
    let host = Host::start();
    let mut client = host.client();
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let poll = json!({"method": "getblocktemplate", "params": poll, "id": 1}).to_string();
    let waiting = client.begin(&poll);
    until_calls(&mut client, 2);
    let mut half_closed = client.connect();
    half_closed.write_all(client.request(&poll).as_bytes()).unwrap();
    half_closed.shutdown(Shutdown::Write).unwrap();
    // An end in order, as of a process that is gone and has read all that it was sent.
    let mut closed = client.connect();
    closed.write_all(client.request(&poll).as_bytes()).unwrap();
    until_calls(&mut client, 4);
    drop(closed);
    let mut answer = String::new();
    half_closed.read_to_string(&mut answer).unwrap();
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["error"]["code"], -9, "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("long poll has ended"), "{body}");
    until_calls(&mut client, 2);
    // One whose client may send more goes on.
    client.call("generatetoaddress", json!([1, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]));
    let reply = waiting.finish();
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[test]
fn a_call_of_a_client_that_sends_no_more_is_answered() {
    let host = Host::start();
    let client = host.client();
    let mut stream = client.connect();
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let request = json!({"method": "generatetoaddress", "params": [20, address], "id": 1}).to_string();
    stream.write_all(client.request(&request).as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["result"].as_array().map(Vec::len), Some(20), "{body}");
}

#[test]
fn a_connections_machine_is_watched() {
    let host = Host::start();
    let client = host.client();
    // Linux tells of each connection which of its timers runs: 02 is that which asks whether the other end is there.
    let watched = |peer: &std::net::TcpStream| {
        let (ours, theirs) = (peer.local_addr().unwrap().port(), host.address.port());
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let ports = (format!(":{theirs:04X}"), format!(":{ours:04X}"));
        table.lines().any(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields[1].ends_with(&ports.0) && fields[2].ends_with(&ports.1) && fields[5].starts_with("02:")
        })
    };
    let connection = client.connect();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !watched(&connection) {
        assert!(Instant::now() < deadline, "nobody asks for the client's machine");
        std::thread::yield_now();
    }
}
