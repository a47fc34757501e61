//! A relay between a host and its bitcoind that holds a request of some method, and then passes it on, or cuts the connection.

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Where a request is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// Before the node has it.
    Request,
    /// Once the node has answered it.
    Reply,
}

/// What the next request of a method meets.
struct Trap {
    method: &'static str,
    point: Point,
    caught: Sender<Held>,
}

/// A relay. It lives as long as the process.
pub struct Relay {
    /// Where the host finds the node.
    pub address: SocketAddr,
    trap: Arc<Mutex<Option<Trap>>>,
}

/// A request that is held. Dropping it cuts its connection.
pub struct Held(Sender<()>);

impl Held {
    /// Lets it go on.
    pub fn pass(self) {
        let _ = self.0.send(());
    }
}

impl Relay {
    /// A relay to this address.
    pub fn to(node: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let trap: Arc<Mutex<Option<Trap>>> = Arc::default();
        let shared = trap.clone();
        thread::spawn(move || {
            for host in listener.incoming().map_while(Result::ok) {
                let trap = shared.clone();
                // A connection that fails on one side is closed on the other.
                thread::spawn(move || relay(host, node, &trap));
            }
        });
        Self { address, trap }
    }

    /// Holds the next request of a method at a point. Gives where it will be found.
    pub fn hold(&self, method: &'static str, point: Point) -> Receiver<Held> {
        let (caught, found) = channel();
        *self.trap.lock().unwrap() = Some(Trap { method, point, caught });
        found
    }
}

/// Relays one connection.
fn relay(host: TcpStream, node: SocketAddr, trap: &Mutex<Option<Trap>>) -> Result<()> {
    let mut node = BufReader::new(TcpStream::connect(node)?);
    let mut host = BufReader::new(host);
    loop {
        let request = read_message(&mut host)?;
        let text = String::from_utf8_lossy(&request);
        let is_of = |trap: &mut Trap| text.contains(&format!("\"method\":\"{}\"", trap.method));
        let trap = trap.lock().unwrap().take_if(is_of);
        if let Some(trap) = trap.as_ref().filter(|trap| trap.point == Point::Request) {
            hold(trap)?;
        }
        node.get_mut().write_all(&request)?;
        let reply = read_message(&mut node)?;
        if let Some(trap) = trap.as_ref().filter(|trap| trap.point == Point::Reply) {
            hold(trap)?;
        }
        host.get_mut().write_all(&reply)?;
    }
}

/// Waits until the test lets a request go on.
///
/// # Errors
/// Where it cuts the connection.
fn hold(trap: &Trap) -> Result<()> {
    let (pass, passed) = channel();
    let _ = trap.caught.send(Held(pass));
    passed.recv().map_err(std::io::Error::other)
}

/// A message of HTTP, with its body.
fn read_message(stream: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
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
