//! Many calls at a time: one kept-alive connection and many of them, in this host and in bitcoind.
//!
//! ```text
//! cargo run --release -p outrigger-tests --bin bench load -- --bitcoind PATH
//! ```
//!
//! Each connection is a thread that writes a request, which it has ready, and reads its reply to the last byte; it does
//! nothing else, so that the time is the server's as far as may be. The wallet, the chain and the mempool are the same in both.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, HostOptions, Pending};
use serde_json::{Value, json};

use crate::bitcoind::{Bitcoind, twin};
use crate::payments::Payer;
use crate::{Row, memory, milliseconds};

/// How many connections call at a time.
const CONNECTIONS: [usize; 2] = [1, 32];
/// How long each is measured, in turns of ours and bitcoind's, and how long before that nothing is.
const MEASURED: Duration = Duration::from_secs(2);
const WARM_UP: Duration = Duration::from_millis(300);
const TURNS: usize = 3;
/// The wallet's transactions, and how many different ones are asked for.
const TRANSACTIONS: usize = 5_000;
const LOOKED_UP: usize = 500;
/// The connections that only wait, and those that wait for another template.
const IDLE: usize = 10_000;
const POLLS: usize = 2_000;
/// Threads and queue of bitcoind's server. Its 16 places for waiting calls refuse some of 32 connections' calls.
const ARGUMENTS: [&str; 3] = ["-rpcworkqueue=256", "-checkmempool=0", "-checkblockindex=0"];

/// A connection that is asked for the same things again and again.
struct Wire {
    stream: TcpStream,
    requests: Vec<Vec<u8>>,
    next: usize,
    buffer: Vec<u8>,
}

impl Wire {
    /// A connection of a client with these bodies to post.
    fn new(client: &Client, bodies: &[String], first: usize) -> Self {
        let requests = bodies.iter().map(|body| client.request(body).into_bytes()).collect();
        Self { stream: client.connect(), requests, next: first, buffer: vec![0; 1 << 16] }
    }

    /// Posts the next body and reads its reply.
    fn ask(&mut self) {
        let request = &self.requests[self.next % self.requests.len()];
        self.next += 1;
        self.stream.write_all(request).unwrap();
        let mut read = 0;
        let whole = loop {
            if read == self.buffer.len() {
                self.buffer.resize(2 * read, 0);
            }
            let more = self.stream.read(&mut self.buffer[read..]).unwrap();
            assert!(more > 0, "the connection was closed");
            read += more;
            if let Some(length) = reply_length(&self.buffer[..read]) {
                break length;
            }
        };
        self.buffer.resize(self.buffer.len().max(whole), 0);
        self.stream.read_exact(&mut self.buffer[read.min(whole)..whole]).unwrap();
        let begin = &self.buffer[..read.min(64)];
        assert!(begin.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(begin));
    }
}

/// How long a reply is, once its head is there.
fn reply_length(bytes: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"Content-Length: ";
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let name = bytes[..head].windows(NAME.len()).position(|name| name.eq_ignore_ascii_case(NAME)).unwrap();
    let digits = bytes[name + NAME.len()..head].iter().take_while(|byte| byte.is_ascii_digit());
    Some(head + digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0')))
}

/// How long the calls of many connections took, and how many there were in a second.
#[derive(Default)]
struct Load {
    times: Vec<Duration>,
    measured: Duration,
}

impl Load {
    /// Has connections call for a while.
    fn measure(&mut self, wires: &mut [Wire]) {
        let (measuring, done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let threads: Vec<_> = wires
                .iter_mut()
                .map(|wire| {
                    let (measuring, done) = (&measuring, &done);
                    scope.spawn(move || {
                        let mut times = Vec::new();
                        while !done.load(Ordering::Relaxed) {
                            let counts = measuring.load(Ordering::Relaxed);
                            let began = Instant::now();
                            wire.ask();
                            if counts {
                                times.push(began.elapsed());
                            }
                        }
                        times
                    })
                })
                .collect();
            std::thread::sleep(WARM_UP);
            measuring.store(true, Ordering::Relaxed);
            let began = Instant::now();
            std::thread::sleep(MEASURED);
            done.store(true, Ordering::Relaxed);
            self.measured += began.elapsed();
            self.times.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        });
    }

    fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.measured.as_secs_f64()
    }

    fn percentile(&mut self, percent: usize) -> f64 {
        self.times.sort_unstable();
        milliseconds(self.times[self.times.len() * percent / 100])
    }
}

/// Runs the section.
pub fn run(bitcoind: Option<&str>) {
    let host = Host::start_with(HostOptions::default());
    let mut wallet = host.new_wallet("w");
    let theirs = bitcoind.map(|path| Bitcoind::start_with(path, &ARGUMENTS).0);
    let mut payer = Payer::new(host.client(), &mut wallet, TRANSACTIONS);
    let mut clients = vec![(host.client(), wallet)];
    if let Some(theirs) = &theirs {
        let mut own = twin(theirs.client(), &mut clients[0].1);
        payer.follow_with(theirs.client(), &mut own);
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
        for connections in CONNECTIONS {
            compare(method, connections, &bodies, of_wallet, &clients);
        }
    }
    drop(theirs);
    drop(host);
    waiting();
}

fn compare(method: &str, connections: usize, bodies: &[String], of_wallet: bool, clients: &[(Client, Client)]) {
    let wires = |(client, wallet): &(Client, Client)| -> Vec<Wire> {
        let client = if of_wallet { wallet } else { client };
        (0..connections).map(|first| Wire::new(client, bodies, first)).collect()
    };
    let mut all: Vec<(Vec<Wire>, Load)> = clients.iter().map(|client| (wires(client), Load::default())).collect();
    for _ in 0..TURNS {
        for (wires, load) in &mut all {
            load.measure(wires);
        }
    }
    let what = format!("{method}, {connections} kept-alive connection{}", if connections == 1 { "" } else { "s" });
    let rates: Vec<f64> = all.iter().map(|(_, load)| load.per_second()).collect();
    crate::print_rates(what.clone(), &rates);
    for percent in [50, 99] {
        let times: Vec<f64> = all.iter_mut().map(|(_, load)| load.percentile(percent)).collect();
        let theirs = times.get(1).copied();
        Row { what: format!("{what}, {percent} of 100 within"), unit: "ms", ours: times[0], theirs }.print();
    }
}

/// What connections cost that wait for nothing, or for another template.
fn waiting() {
    crate::raise_file_limit();
    let row = |what: String, ours| Row { what, unit: "MiB", ours, theirs: None }.print();
    let host = Host::start_with(HostOptions::default());
    let mut client = host.client();
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    row("memory, one connection".to_owned(), memory(host.process_id()));
    let idle: Vec<TcpStream> = (0..IDLE).map(|_| client.connect()).collect();
    let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let body = json!({"id": 1, "method": "getblocktemplate", "params": poll}).to_string();
    let polls: Vec<Pending> = (0..POLLS).map(|_| client.begin(&body)).collect();
    // The last one that came was accepted after all others.
    client.call("getblockcount", json!([]));
    row(format!("memory, {IDLE} idle connections and {POLLS} long polls"), memory(host.process_id()));
    drop((idle, polls));
}
