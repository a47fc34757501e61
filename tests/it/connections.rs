//! Connections that clients close, leave open, or abandon when their machine vanishes: it sends nothing more, not
//! even a FIN or RST.
//!
//! The two machines are network namespaces joined by a veth pair. A machine without an address drops all packets.

use std::fs::File;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, skip_unprivileged, wait_until};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::json;

#[test]
fn connections_have_keepalive_and_a_reset_ends_their_calls() {
    let host = Host::start_with(HostOptions::with(&["rpc.threads=2"]));
    let mut client = host.client();
    let connection = client.connect();
    wait_until("the host asks for the client's machine", || is_watched(&host, &connection));

    let endless = json!({"method": "generatetoaddress", "params": [10_000_000, ELSEWHERE]}).to_string();
    let connections = [client.post_and_stay(&endless), client.post_and_stay(&endless)];
    wait_until("both calls are being answered", || active(&mut client) == 3);
    drop(connections);
    // Only the reset ends the calls; the remaining call is `getrpcinfo` itself.
    wait_until("the calls end with their clients", || active(&mut client) == 1);
}

/// Whether the keepalive timer of the host's connection runs: 02 in /proc/net/tcp.
fn is_watched(host: &Host, peer: &TcpStream) -> bool {
    let (ours, theirs) = (peer.local_addr().unwrap().port(), host.address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let ports = (format!(":{theirs:04X}"), format!(":{ours:04X}"));
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[1].ends_with(&ports.0) && fields[2].ends_with(&ports.1) && fields[5].starts_with("02:")
    })
}

struct Machine {
    name: String,
}

impl Machine {
    /// `None` if this process may not create a namespace.
    fn new(number: u8) -> Option<Self> {
        let name = format!("outrigger-test-{}-{number}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        made.is_ok_and(|output| output.status.success()).then_some(Self { name })
    }

    fn configure(&self, arguments: &str) {
        let status = Command::new("ip").args(["-n", &self.name]).args(arguments.split(' ')).status().unwrap();
        assert!(status.success(), "ip -n {} {arguments}", self.name);
    }

    /// Runs `work` on the machine. Its sockets and processes stay in that namespace.
    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.name)).unwrap();
        thread::scope(|scope| {
            let there = scope.spawn(|| {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                work()
            });
            there.join().unwrap()
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A leftover namespace is harmless.
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// Two connected machines: ours at 10.0.0.1, theirs at 10.0.0.2.
fn machines() -> Option<(Machine, Machine)> {
    let (ours, theirs) = (Machine::new(1)?, Machine::new(2)?);
    ours.configure(&format!("link add cable type veth peer name cable netns {}", theirs.name));
    for (machine, address) in [(&ours, "10.0.0.1/24"), (&theirs, "10.0.0.2/24")] {
        machine.configure(&format!("address add {address} dev cable"));
        machine.configure("link set cable up");
    }
    ours.configure("link set lo up");
    Some((ours, theirs))
}

/// The number of active calls, including this one.
fn active(client: &mut Client) -> usize {
    client.call("getrpcinfo", json!([]))["active_commands"].as_array().unwrap().len()
}

#[test]
fn connections_of_a_vanished_machine_end_with_their_long_poll() {
    let Some((ours, theirs)) = machines() else {
        return skip_unprivileged("no network namespace can be made here");
    };
    let allowed = HostOptions::with(&["rpc.allow_from=[\"10.0.0.0/24\"]"]);
    let options = HostOptions { listen: Some("10.0.0.1:0".to_owned()), ..allowed };
    let host = ours.run(|| Host::start_with(options));
    let poll = theirs.run(|| {
        let mut client = host.client();
        let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
        let request = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
        client.begin_call("getblocktemplate", request)
    });
    ours.run(|| {
        let mut client = host.client();
        wait_until("the long poll waits", || active(&mut client) == 2);
        // The host's own link stays up, as behind a switch.
        theirs.configure("address delete 10.0.0.2/24 dev cable");
        wait_until("the long poll ends", || active(&mut client) == 1);
    });
    drop(poll);
}
