//! Many concurrent calls: on one kept-alive connection and on many, in this host and in bitcoind.
//!
//! One thread prepares the requests, writes the next one of a connection as soon as it has read the last byte of the answer, and
//! does nothing else, so that the time is mostly the server's. Both have the same wallet, chain and mempool.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, Pending};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use serde_json::{Value, json};

use crate::payments::Payer;
use crate::{memory, milliseconds, print_row};
use outrigger_tests::bitcoind::{Bitcoind, twin};

/// The number of concurrent connections, if not one.
const MANY: usize = 32;
/// How long each is measured, in turns of ours and bitcoind's, and the time before it without a measurement.
const MEASURED: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(300);
const TURNS: usize = 3;
/// The wallet's transactions, and the number of different ones that are looked up.
const TRANSACTIONS: usize = 5_000;
const LOOKED_UP: usize = 500;
/// The idle connections, and those that wait for another template.
const IDLE: usize = 10_000;
const POLLS: usize = 2_000;
/// The queue of bitcoind's server: its default of 16 waiting calls refuses some calls of 32 connections.
const ARGUMENTS: [&str; 3] = ["-rpcworkqueue=256", "-checkmempool=0", "-checkblockindex=0"];

/// A connection that posts the same bodies repeatedly.
struct Wire {
    stream: TcpStream,
    requests: Vec<Vec<u8>>,
    next: usize,
    reply: Vec<u8>,
    began: Instant,
}

impl Wire {
    /// A connection of a client that posts these bodies.
    fn new(client: &Client, bodies: &[String], first: usize) -> Self {
        let requests = bodies.iter().map(|body| client.request(body).into_bytes()).collect();
        let stream = client.connect();
        stream.set_nonblocking(true).unwrap();
        Self { stream, requests, next: first, reply: Vec::new(), began: Instant::now() }
    }

    fn ask(&mut self) {
        let request = &self.requests[self.next % self.requests.len()];
        self.next += 1;
        self.began = Instant::now();
        self.stream.write_all(request).unwrap();
    }

    /// Reads the available bytes. Returns whether the reply is complete.
    fn take(&mut self, buffer: &mut [u8]) -> bool {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => panic!("the connection was closed"),
                Ok(count) => self.reply.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("{error}"),
            }
            if reply_length(&self.reply).is_some_and(|length| length <= self.reply.len()) {
                let begin = &self.reply[..self.reply.len().min(64)];
                assert!(begin.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(begin));
                self.reply.clear();
                return true;
            }
        }
    }
}

/// The length of a reply, once its header is there.
fn reply_length(bytes: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"Content-Length: ";
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let name = bytes[..head].windows(NAME.len()).position(|name| name.eq_ignore_ascii_case(NAME)).unwrap();
    let digits = bytes[name + NAME.len()..head].iter().take_while(|byte| byte.is_ascii_digit());
    Some(head + digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0')))
}

/// How the client waits for replies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Blocked, as most clients. The wake-up is part of the time.
    Asleep,
    /// Polling all the time, so that the time is the server's alone.
    Awake,
}

/// The times of the calls of some connections, and the calls a second.
#[derive(Default)]
struct Load {
    times: Vec<Duration>,
    measured: Duration,
}

impl Load {
    /// Lets connections call for a while, each as soon as it has its answer, all from one thread.
    fn measure(&mut self, wires: &mut [Wire], waits: Waits) {
        let mut buffer = vec![0; 1 << 16];
        let mut ready = Ready::new(wires, waits);
        wires.iter_mut().for_each(Wire::ask);
        let (start, mut began) = (Instant::now(), None);
        while began.is_none_or(|began: Instant| began.elapsed() < MEASURED) {
            if began.is_none() && start.elapsed() > WARM_UP {
                began = Some(Instant::now());
            }
            for &at in ready.next() {
                if wires[at].take(&mut buffer) {
                    if began.is_some() {
                        self.times.push(wires[at].began.elapsed());
                    }
                    wires[at].ask();
                }
            }
        }
        self.measured += began.unwrap().elapsed();
        // Reads the outstanding answers before the other server is measured.
        for wire in wires {
            while !wire.take(&mut buffer) {}
        }
    }

    fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.measured.as_secs_f64()
    }

    fn percentile(&mut self, percent: usize) -> f64 {
        self.times.sort_unstable();
        milliseconds(self.times[self.times.len() * percent / 100])
    }
}

struct Ready {
    waits: Waits,
    set: OwnedFd,
    events: Vec<epoll::Event>,
    found: Vec<usize>,
}

impl Ready {
    fn new(wires: &[Wire], waits: Waits) -> Self {
        let set = epoll::create(epoll::CreateFlags::empty()).unwrap();
        for (at, wire) in wires.iter().enumerate() {
            // Each connection is read until it is empty, so only new bytes need an event.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&set, &wire.stream, epoll::EventData::new_u64(at as u64), flags).unwrap();
        }
        Self { waits, set, events: Vec::with_capacity(wires.len()), found: (0..wires.len()).collect() }
    }

    fn next(&mut self) -> &[usize] {
        if self.waits == Waits::Asleep {
            self.events.clear();
            epoll::wait(&self.set, spare_capacity(&mut self.events), None).unwrap();
            self.found.clear();
            self.found.extend(self.events.iter().map(|event| usize::try_from(event.data.u64()).unwrap()));
        }
        &self.found
    }
}

pub fn run(bitcoind: Option<&str>) {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let theirs = bitcoind.map(|path| Bitcoind::start_with(path, &ARGUMENTS).0);
    let mut payer = Payer::new(host.client(), &mut wallet);
    let mut clients = vec![(host.client(), wallet)];
    if let Some(theirs) = &theirs {
        let mut own = twin(theirs.client(), &mut clients[0].1);
        payer.check_addresses(&mut own);
        payer.follow_with(theirs.client());
        clients.push((theirs.client(), own));
    }
    payer.pay(TRANSACTIONS);
    let listed = clients[0].1.call("listsinceblock", json!([]));
    let listed = listed["transactions"].as_array().unwrap();
    let look_ups = listed.iter().step_by((listed.len() / LOOKED_UP).max(1));
    let sections: [(&str, bool, Vec<Value>); 3] = [
        ("getblockcount", false, vec![json!([])]),
        ("gettransaction", true, look_ups.map(|entry| json!([entry["txid"]])).collect()),
        ("getblocktemplate", false, vec![json!([{"rules": ["segwit"]}])]),
    ];
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    for (method, of_wallet, params) in sections {
        let body = |params| json!({"id": 1, "method": method, "params": params}).to_string();
        let bodies: Vec<String> = params.into_iter().map(body).collect();
        compare(method, 1, Waits::Asleep, &bodies, of_wallet, &clients);
        compare(method, 1, Waits::Awake, &bodies, of_wallet, &clients);
        compare(method, MANY, Waits::Asleep, &bodies, of_wallet, &clients);
    }
    drop(theirs);
    drop(host);
    waiting();
}

pub(crate) fn compare(
    method: &str,
    connections: usize,
    waits: Waits,
    bodies: &[String],
    of_wallet: bool,
    clients: &[(Client, Client)],
) {
    let clients: Vec<&Client> =
        clients.iter().map(|(client, wallet)| if of_wallet { wallet } else { client }).collect();
    let mut all = loads(connections, waits, bodies, &clients);
    let plural = if connections == 1 { "" } else { "s" };
    let awake = if waits == Waits::Awake { " of a client that never sleeps" } else { "" };
    let what = format!("{method}, {connections} kept-alive connection{plural}{awake}");
    let rates: Vec<f64> = all.iter().map(Load::per_second).collect();
    crate::print_rates(what.clone(), &rates);
    for percent in [50, 99] {
        let times: Vec<f64> = all.iter_mut().map(|load| load.percentile(percent)).collect();
        print_row(&format!("{what}, {percent} of 100 within"), "ms", times[0], times.get(1).copied());
    }
}

/// The calls a second that each client's server answers.
pub(crate) fn rates(connections: usize, waits: Waits, bodies: &[String], clients: &[(Client, Client)]) -> Vec<f64> {
    let clients: Vec<&Client> = clients.iter().map(|(client, _)| client).collect();
    loads(connections, waits, bodies, &clients).iter().map(Load::per_second).collect()
}

/// Measures each client's server in turns.
fn loads(connections: usize, waits: Waits, bodies: &[String], clients: &[&Client]) -> Vec<Load> {
    let wires = |client: &&Client| (0..connections).map(|first| Wire::new(client, bodies, first)).collect();
    let mut all: Vec<(Vec<Wire>, Load)> = clients.iter().map(|client| (wires(client), Load::default())).collect();
    for _ in 0..TURNS {
        for (wires, load) in &mut all {
            load.measure(wires, waits);
        }
    }
    all.into_iter().map(|(_, load)| load).collect()
}

/// The cost of connections that are idle or wait for another template.
fn waiting() {
    crate::raise_file_limit();
    let host = Host::start();
    let mut client = host.client();
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let idle: Vec<TcpStream> = (0..IDLE).map(|_| client.connect()).collect();
    let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let body = json!({"id": 1, "method": "getblocktemplate", "params": poll}).to_string();
    let polls: Vec<Pending> = (0..POLLS).map(|_| client.begin(&body)).collect();
    // The host accepted this connection after all others.
    client.call("getblockcount", json!([]));
    let what = format!("memory, {IDLE} idle connections and {POLLS} long polls");
    print_row(&what, "MiB", memory(host.process_id()), None);
    drop((idle, polls));
}
