//! A relay between a host and its bitcoind. It can hold the next request of a method and then pass it on, answer it, or cut the
//! connection. It can also hold all requests, and change replies. It counts requests by their methods.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};
use std::thread;

use serde_json::Value;

/// Where a request is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// Before the relay sends it to the node.
    Request,
    /// Once the node has answered it.
    Reply,
}

/// Holds the next request of a method.
struct Trap {
    method: &'static str,
    point: Point,
    caught: Sender<Held>,
}

/// A relay. It lives as long as the process.
pub struct Relay {
    /// The address that the host uses for the node.
    pub address: SocketAddr,
    trap: Arc<Mutex<Option<Trap>>>,
    gate: Arc<RwLock<()>>,
    shared: Arc<Shared>,
}

/// Returns a new body for a reply. Gets the request and the body.
type Change = Box<dyn Fn(&str, &[u8]) -> Option<Vec<u8>> + Send>;

/// State that all connections share.
#[derive(Default)]
struct Shared {
    /// The text of requests whose replies are changed.
    change: Mutex<Option<(&'static str, Change)>>,
    counts: Mutex<HashMap<String, usize>>,
    /// Whether the relay closes the connection after each reply.
    ends: AtomicBool,
    /// Whether it does so without `Connection: close`.
    silent: AtomicBool,
    /// The open connections now, and the most so far.
    open: Mutex<(usize, usize)>,
}

/// Writes a reply in the node's place.
type Answer = Box<dyn FnOnce(&mut TcpStream) -> Result<()> + Send>;

/// A request that is held. Dropping it cuts its connection.
pub struct Held(Sender<Option<Answer>>);

impl Held {
    pub fn pass(self) {
        let _ = self.0.send(None);
    }

    /// Answers the request with the bytes that `write` writes.
    pub fn answer(self, write: impl FnOnce(&mut TcpStream) -> Result<()> + Send + 'static) {
        let _ = self.0.send(Some(Box::new(write)));
    }
}

impl Relay {
    /// A relay to this address.
    pub fn to(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (trap, gate): (Arc<Mutex<Option<Trap>>>, Arc<RwLock<()>>) = Default::default();
        let shared = Arc::new(Shared::default());
        let of_all = (trap.clone(), gate.clone(), shared.clone());
        thread::spawn(move || {
            for host in listener.incoming().map_while(Result::ok) {
                let (trap, gate, shared) = of_all.clone();
                // A connection that fails on one side is closed on the other.
                thread::spawn(move || shared.count_open(|| relay(host, node, &trap, &gate, &shared)));
            }
        });
        Self { address, trap, gate, shared }
    }

    /// Holds each request until the returned guard is dropped.
    pub fn hold_all(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap()
    }

    /// From now on changes the body of each reply to a request that contains this text.
    pub fn change(&self, text: &'static str, change: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) {
        *self.shared.change.lock().unwrap() = Some((text, Box::new(move |_, body| change(body))));
    }

    /// Changes each later answer of the node. `change` gets the method and the response object, with `result` and `error`.
    pub fn change_answers(&self, change: impl Fn(&str, &mut Value) + Send + 'static) {
        let change = move |request: &str, body: &[u8]| {
            let (_, asked) = request.split_once("\r\n\r\n")?;
            let (asked, mut told): (Value, Value) =
                (serde_json::from_str(asked).ok()?, serde_json::from_slice(body).ok()?);
            match (&asked, &mut told) {
                (Value::Array(asked), Value::Array(told)) => {
                    asked.iter().zip(told).for_each(|(one, answer)| change(one["method"].as_str().unwrap(), answer));
                }
                _ => change(asked["method"].as_str()?, &mut told),
            }
            Some(told.to_string().into_bytes())
        };
        *self.shared.change.lock().unwrap() = Some(("", Box::new(change)));
    }

    /// Sets whether the relay closes the connection after each reply, as a proxy without keep-alive does.
    pub fn end_connections(&self, ends: bool) {
        self.shared.ends.store(ends, Ordering::Relaxed);
    }

    /// From now on the relay closes connections without `Connection: close`.
    pub fn end_silently(&self) {
        self.shared.silent.store(true, Ordering::Relaxed);
    }

    /// From now on passes all replies on as they are.
    pub fn change_nothing(&self) {
        *self.shared.change.lock().unwrap() = None;
    }

    /// The most connections so far that were open at the same time.
    pub fn most_open(&self) -> usize {
        self.shared.open.lock().unwrap().1
    }

    /// The number of requests with calls of a method so far. A batch counts once.
    pub fn count(&self, method: &str) -> usize {
        self.shared.counts.lock().unwrap().get(method).copied().unwrap_or(0)
    }

    /// Holds the next request of a method, or of GET for a path, at a point. Returns the receiver for it.
    pub fn hold(&self, method: &'static str, point: Point) -> Receiver<Held> {
        let (caught, found) = channel();
        *self.trap.lock().unwrap() = Some(Trap { method, point, caught });
        found
    }
}

impl Shared {
    fn count_open(&self, serve: impl FnOnce() -> Result<()>) -> Result<()> {
        let count = |change: fn(usize) -> usize| {
            let mut open = self.open.lock().unwrap();
            open.0 = change(open.0);
            open.1 = open.1.max(open.0);
        };
        count(|open| open + 1);
        let served = serve();
        count(|open| open - 1);
        served
    }

    fn changed(&self, request: &str, reply: Vec<u8>) -> Vec<u8> {
        let change = self.change.lock().unwrap();
        let Some((_, change)) = change.as_ref().filter(|(text, _)| request.contains(text)) else { return reply };
        let Some(end) = reply.windows(4).position(|end| end == b"\r\n\r\n") else { return reply };
        let Some(body) = change(request, &reply[end + 4..]) else { return reply };
        let head = String::from_utf8_lossy(&reply[..end]);
        let lines = head.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("content-length:"));
        let head: String = lines.map(|line| format!("{line}\r\n")).collect();
        [format!("{head}Content-Length: {}\r\n\r\n", body.len()).into_bytes(), body].concat()
    }
}

/// Relays one connection.
fn relay(
    host: TcpStream,
    node: SocketAddr,
    trap: &Mutex<Option<Trap>>,
    gate: &RwLock<()>,
    shared: &Shared,
) -> Result<()> {
    let mut node = BufReader::new(TcpStream::connect(node)?);
    let mut host = BufReader::new(host);
    loop {
        let request = read_message(&mut host)?;
        drop(gate.read());
        let text = String::from_utf8_lossy(&request);
        let methods: HashSet<&str> =
            text.split("\"method\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        for method in methods {
            *shared.counts.lock().unwrap().entry(method.to_owned()).or_default() += 1;
        }
        let is_of = |trap: &mut Trap| {
            text.contains(&format!("\"method\":\"{}\"", trap.method))
                || text.starts_with(&format!("GET {} ", trap.method))
        };
        let trap = trap.lock().unwrap().take_if(is_of);
        let hold = |point| trap.as_ref().filter(|trap| trap.point == point).map_or(Ok(None), hold);
        if let Some(answer) = hold(Point::Request)? {
            answer(host.get_mut())?;
            continue;
        }
        node.get_mut().write_all(&request)?;
        let mut reply = shared.changed(&text, read_message(&mut node)?);
        let ends = shared.ends.load(Ordering::Relaxed);
        let announces = ends && !shared.silent.load(Ordering::Relaxed);
        if let Some(line) = reply.windows(2).position(|end| end == b"\r\n").filter(|_| announces) {
            reply.splice(line..line, *b"\r\nConnection: close");
        }
        match hold(Point::Reply)? {
            Some(answer) => answer(host.get_mut())?,
            None => host.get_mut().write_all(&reply)?,
        }
        if ends {
            return Ok(());
        }
    }
}

/// Waits until the test passes a request on (none) or answers it.
fn hold(trap: &Trap) -> Result<Option<Answer>> {
    let (go, gone_on) = channel();
    let _ = trap.caught.send(Held(go));
    gone_on.recv().map_err(std::io::Error::other)
}

/// Reads an HTTP message with its body.
pub fn read_message(stream: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let (mut message, mut length) = (Vec::new(), 0);
    loop {
        let begin = message.len();
        if stream.read_until(b'\n', &mut message)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&message[begin..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
        if line.trim().is_empty() {
            stream.take(length).read_to_end(&mut message)?;
            return Ok(message);
        }
    }
}
