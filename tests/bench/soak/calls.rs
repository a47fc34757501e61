//! Calls over TLS and over the Unix socket, and the count of lost ones.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::{Client, exchange};
use serde_json::{Value, json};

use super::Load;
use crate::milliseconds;

/// How long the node may still be missing after its return: the host tries to connect every second.
const COMES_BACK: Duration = Duration::from_secs(5);
/// Errors of calls that need the node during its absence: -28 from node or host, a lost answer of a call with effects, and the node's
/// error for a waiting getblocktemplate when it stops.
const NODE_IS_AWAY: [&str; 3] = ["\"code\":-28,", "was lost", "Internal bug detected: block_template"];
/// How many unexplained losses are printed.
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

/// The absence of the node.
#[derive(Default)]
enum Node {
    #[default]
    There,
    Away,
    Back(Instant),
}

/// The outcome of the calls.
#[derive(Default)]
pub(super) struct Tally {
    calls: AtomicU64,
    /// Calls whose client left before the answer.
    pub left: AtomicU64,
    /// How often the plugin's process was killed, and the calls lost to that.
    pub kills: AtomicU64,
    lost_to_kills: AtomicU64,
    /// How often the node was restarted, and the calls lost to that.
    pub restarts: AtomicU64,
    lost_to_restarts: AtomicU64,
    node: Mutex<Node>,
    unexplained: AtomicU64,
    told: Mutex<Vec<String>>,
    /// The times of answered calls, in microseconds.
    times: Mutex<Vec<u32>>,
}

impl Load {
    /// A client of a wallet, or of no wallet if the name is empty.
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

    /// The result, or the error's code and text. A call whose connection ends is lost, and is not repeated.
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

    /// Begins a call on a new connection, and closes it before the answer.
    pub(super) fn leave(&self, body: &str) {
        let stream = self.login.connect();
        // Reset, as the connection of a killed process.
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

    /// Whether the node was away at any time since.
    pub(super) fn was_away(&self, since: Instant) -> bool {
        match *self.node.lock().unwrap() {
            Node::There => false,
            Node::Away => true,
            Node::Back(at) => since < at + COMES_BACK,
        }
    }

    /// Counts a call without a result, by its explanation.
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

    /// Prints the sums. Returns whether every lost call is explained.
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
        // The call that waits in the plugin, and one of each of the plugin's two clients.
        get(&self.unexplained) == 0 && (kills..=3 * kills).contains(&lost_to_kills)
    }
}
