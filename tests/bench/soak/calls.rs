//! Calls by TLS and by the Unix socket, and the count of those that are lost.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::{Client, exchange};
use serde_json::{Value, json};

use super::Load;
use crate::milliseconds;

/// How long after its return the node may still be missing: the host looks for it every second.
const COMES_BACK: Duration = Duration::from_secs(5);
/// Errors of calls that need the node while it is away: -28 of the node or the host, the loss of an answer to a call with effects,
/// and the node's error for a getblocktemplate that waits when the node stops.
const NODE_IS_AWAY: [&str; 3] = ["\"code\":-28,", "was lost", "Internal bug detected: block_template"];
/// How many unexplained losses are told.
const TOLD: usize = 10;

/// How a connection reaches the host.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Tls,
    Socket,
}

pub(super) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A client over one kept connection.
pub(super) struct Caller<'a> {
    load: &'a Load,
    way: Way,
    login: Client,
    stream: Option<BufReader<Box<dyn Stream>>>,
}

/// The node's absence.
#[derive(Default)]
enum Node {
    #[default]
    There,
    Away,
    Back(Instant),
}

/// What became of the calls.
#[derive(Default)]
pub(super) struct Tally {
    calls: AtomicU64,
    /// Calls whose answers nobody waited for.
    pub left: AtomicU64,
    /// How often the plugin's process was killed, and the calls that it cost.
    pub kills: AtomicU64,
    lost_to_kills: AtomicU64,
    /// How often the node was restarted, and the calls that it cost.
    pub restarts: AtomicU64,
    lost_to_restarts: AtomicU64,
    node: Mutex<Node>,
    unexplained: AtomicU64,
    told: Mutex<Vec<String>>,
    /// The times of answered calls, in microseconds.
    times: Mutex<Vec<u32>>,
}

impl Load {
    /// A client of a wallet, or of none where the name is empty.
    pub(super) fn caller(&self, way: Way, wallet: &str) -> Caller<'_> {
        let client = self.host.client();
        let login = if wallet.is_empty() { client } else { client.wallet(wallet) };
        Caller { load: self, way, login, stream: None }
    }
}

impl Caller<'_> {
    fn connect(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match self.way {
            Way::Tls => Box::new(self.load.authority.connect(self.login.connect(), None)?),
            Way::Socket => Box::new(UnixStream::connect(self.load.folder.path().join("rpc.sock"))?),
        })
    }

    /// The result, or the error's code and text. A call whose connection ends is lost: it is not repeated.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let request = self.login.request(&json!({"id": 1, "method": method, "params": params}).to_string());
        let kept = self.stream.take().map_or_else(|| self.connect().map(BufReader::new), Ok);
        let mut stream = kept.map_err(|error| format!("no connection: {error}"))?;
        let reply = exchange(&mut stream, &request).map_err(|error| format!("no answer: {error}"))?;
        self.stream = Some(stream);
        let mut body: Value = serde_json::from_str(&reply.body).map_err(|_| format!("{reply:?}"))?;
        if body["error"].is_null() { Ok(body["result"].take()) } else { Err(body["error"].to_string()) }
    }

    /// Makes a call. None if it is lost, which is counted.
    pub(super) fn call(&mut self, method: &str, params: Value) -> Option<Value> {
        let (began, tally) = (Instant::now(), &self.load.tally);
        tally.calls.fetch_add(1, Ordering::Relaxed);
        match self.ask(method, &params) {
            Ok(result) => {
                let time = u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX);
                tally.times.lock().unwrap().push(time);
                Some(result)
            }
            Err(error) => {
                tally.lose(method, &error, began);
                None
            }
        }
    }

    /// Makes a call that must be refused with this code.
    pub(super) fn refused(&mut self, method: &str, code: i64) {
        let (began, tally) = (Instant::now(), &self.load.tally);
        tally.calls.fetch_add(1, Ordering::Relaxed);
        match self.ask(method, &json!([])) {
            Err(error) if error.contains(&format!("\"code\":{code},")) => {}
            Err(error) => tally.lose(method, &error, began),
            Ok(result) => tally.lose(method, &format!("answered {result}"), began),
        }
    }

    /// Begins a call on a connection of its own, and leaves before it is answered.
    pub(super) fn leave(&self, body: &str) {
        let stream = self.login.connect();
        // As that of a process that is gone.
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        let mut stream = self.load.authority.connect(stream, None).unwrap();
        stream.write_all(self.login.request(body).as_bytes()).unwrap();
        self.load.tally.left.fetch_add(1, Ordering::Relaxed);
    }
}

impl Tally {
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn lost(&self) -> u64 {
        let counters = [&self.lost_to_kills, &self.lost_to_restarts, &self.unexplained];
        counters.into_iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    pub(super) fn node_goes(&self) {
        *self.node.lock().unwrap() = Node::Away;
    }

    pub(super) fn node_is_back(&self) {
        *self.node.lock().unwrap() = Node::Back(Instant::now());
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the node was away for a part of the time since.
    pub(super) fn was_away(&self, since: Instant) -> bool {
        match *self.node.lock().unwrap() {
            Node::There => false,
            Node::Away => true,
            Node::Back(at) => since < at + COMES_BACK,
        }
    }

    /// Counts a call that got no result, by what explains it.
    pub(super) fn lose(&self, method: &str, error: &str, began: Instant) {
        if method.starts_with("fault") && error.contains("The plugin 'faulty' crashed") {
            self.lost_to_kills.fetch_add(1, Ordering::Relaxed);
        } else if self.was_away(began) && NODE_IS_AWAY.iter().any(|text| error.contains(text)) {
            self.lost_to_restarts.fetch_add(1, Ordering::Relaxed);
        } else {
            self.unexplained.fetch_add(1, Ordering::Relaxed);
            let mut told = self.told.lock().unwrap();
            if told.len() < TOLD {
                told.push(format!("{method}: {error}"));
            }
        }
    }

    /// Prints the sums. Whether every lost call is explained.
    pub(super) fn tell(&self) -> bool {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (kills, lost_to_kills) = (get(&self.kills), get(&self.lost_to_kills));
        let (restarts, lost_to_restarts) = (get(&self.restarts), get(&self.lost_to_restarts));
        println!("calls: {}; left before their answers: {}", self.calls(), get(&self.left));
        println!("lost to {kills} kills of the plugin's process: {lost_to_kills}");
        println!("lost to {restarts} restarts of the node: {lost_to_restarts}");
        println!("lost without such a reason: {}", get(&self.unexplained));
        for loss in &*self.told.lock().unwrap() {
            println!("  {loss}");
        }
        let mut times = self.times.lock().unwrap();
        times.sort_unstable();
        let percentile =
            |percent: usize| milliseconds(Duration::from_micros(times[times.len() * percent / 100].into()));
        println!("answered within: p50 {:.2} ms, p99 {:.2} ms", percentile(50), percentile(99));
        // That which waits in the plugin, and one of each of its two clients.
        get(&self.unexplained) == 0 && (kills..=3 * kills).contains(&lost_to_kills)
    }
}
