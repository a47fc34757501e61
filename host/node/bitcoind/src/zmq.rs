//! The notifications that bitcoind publishes over ZMQ as `sequence`: as much of ZMTP 3.0 (ZeroMQ RFC 23) as one subscriber needs
//! without authentication (NULL mechanism).
//!
//! A notification has three parts: the topic; a hash in the order in which it is shown, a letter and for transactions the
//! mempool's sequence; and a number that rises by one with each notification, by which a loss shows.

use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, Txid};

/// What is subscribed to, and the type by which getzmqnotifications lists it.
const TOPIC: &[u8] = b"sequence";
const TYPE: &str = "pubsequence";

/// The length of a greeting, and the places of its parts.
const GREETING_LEN: usize = 64;
const MECHANISM: std::ops::Range<usize> = 12..32;

/// The longest part that is taken, in bytes: those of a notification have at most 41, and a READY command some 30.
const MAX_PART: u64 = 1024;

/// The most parts of a message, and the most commands before one.
const MAX_PARTS: usize = 4;
const MAX_COMMANDS: usize = 16;

/// How long making a connection and its handshake may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Bits of a frame's flags: more parts follow; the length has eight bytes; it is a command.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Why there are no notifications.
#[derive(Debug, thiserror::Error)]
pub enum ZmqError {
    /// The connection failed, ended, or nothing came in time.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer breaks the protocol, or speaks another one.
    #[error("not a ZMQ publisher of bitcoind: {0}")]
    Protocol(&'static str),
}

/// What has happened at the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A block was connected or disconnected.
    Block(BlockHash),
    /// A transaction entered the mempool, which gave it this number.
    Added(Txid, u64),
    /// A transaction left the mempool, but not for a block.
    Removed(Txid, u64),
}

/// One notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notification {
    /// What has happened.
    pub event: Event,
    /// Its number among all notifications of this node's start.
    pub number: u32,
}

/// Where a publisher listens: `tcp://host:port` or `ipc://path`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZmqEndpoint {
    /// A host's name or address without brackets, and a port.
    Tcp(String, u16),
    /// A Unix domain socket.
    Ipc(PathBuf),
}

/// Why a text is no endpoint.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is no ZMQ endpoint: write tcp://host:port or ipc://path")]
pub struct BadZmqEndpoint(String);

impl FromStr for ZmqEndpoint {
    type Err = BadZmqEndpoint;

    fn from_str(text: &str) -> Result<Self, BadZmqEndpoint> {
        if let Some(path) = text.strip_prefix("ipc://").filter(|path| !path.is_empty()) {
            return Ok(Self::Ipc(path.into()));
        }
        let authority = text.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':'));
        let (host, port) = authority.ok_or_else(|| BadZmqEndpoint(text.to_owned()))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match port.parse() {
            Ok(port) if port > 0 && !host.is_empty() => Ok(Self::Tcp(host.to_owned(), port)),
            _ => Err(BadZmqEndpoint(text.to_owned())),
        }
    }
}

impl ZmqEndpoint {
    /// The endpoint of `sequence` in an answer of getzmqnotifications, as (type, address). One that listens everywhere is at
    /// `host`, where the node is.
    pub fn listed<'a>(list: impl IntoIterator<Item = (&'a str, &'a str)>, host: &str) -> Option<Self> {
        let (_, address) = list.into_iter().find(|(kind, _)| *kind == TYPE)?;
        match address.parse().ok()? {
            Self::Tcp(any, port) if matches!(&*any, "*" | "0.0.0.0" | "::") => Some(Self::Tcp(host.to_owned(), port)),
            endpoint => Some(endpoint),
        }
    }

    /// Subscribes there. A read fails that waits for longer than `silence`.
    ///
    /// # Errors
    /// When nobody listens there, or none that publishes.
    pub fn subscribe(&self, silence: Duration) -> Result<Subscription<Box<dyn Stream>>, ZmqError> {
        let stream: Box<dyn Stream> = match self {
            Self::Ipc(path) => Box::new(UnixStream::connect(path)?),
            Self::Tcp(host, port) => Box::new(connect(host, *port)?),
        };
        stream.set_timeout(CONNECT_TIMEOUT)?;
        let subscription = Subscription::begin(stream)?;
        subscription.stream.get_ref().set_timeout(silence)?;
        Ok(subscription)
    }
}

fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::ErrorKind::NotFound.into();
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A connection to a publisher.
pub trait Stream: Read + Write + Send {
    /// How long a read or write may wait.
    ///
    /// # Errors
    /// The system's.
    fn set_timeout(&self, limit: Duration) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn set_timeout(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))?;
        self.set_write_timeout(Some(limit))
    }
}

impl Stream for UnixStream {
    fn set_timeout(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))?;
        self.set_write_timeout(Some(limit))
    }
}

/// A subscription to `sequence`.
pub struct Subscription<S> {
    stream: BufReader<S>,
}

/// One frame: a part of a message, or a command.
struct Frame {
    flags: u8,
    body: Vec<u8>,
}

impl<S: Read + Write> Subscription<S> {
    /// Greets the publisher and subscribes.
    ///
    /// # Errors
    /// When the peer is no publisher, or the connection ends.
    pub fn begin(stream: S) -> Result<Self, ZmqError> {
        let mut this = Self { stream: BufReader::new(stream) };
        let mut greeting = [0; GREETING_LEN];
        // Signature, version 3.0, mechanism; the rest is zeros: this side is no server.
        greeting[..12].copy_from_slice(&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0]);
        greeting[MECHANISM][..4].copy_from_slice(b"NULL");
        this.stream.get_mut().write_all(&greeting)?;
        let mut theirs = [0; GREETING_LEN];
        this.stream.read_exact(&mut theirs)?;
        if theirs[0] != 0xff || theirs[9] != 0x7f || theirs[10] < 3 || theirs[MECHANISM] != greeting[MECHANISM] {
            return Err(ZmqError::Protocol("its greeting is not that of ZMTP 3 without authentication"));
        }
        this.send(COMMAND, b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB")?;
        let ready = this.frame()?;
        if ready.flags & COMMAND == 0 || !ready.body.starts_with(b"\x05READY") {
            return Err(ZmqError::Protocol("it is not ready"));
        }
        // In 3.0 a subscription is a message that begins with 1.
        this.send(0, &[&[1], TOPIC].concat())?;
        Ok(this)
    }

    /// The next notification.
    ///
    /// # Errors
    /// As of [`Self::begin`], and when none comes in time.
    pub fn read(&mut self) -> Result<Notification, ZmqError> {
        let mut parts = Vec::new();
        let mut commands = 0;
        while parts.len() < MAX_PARTS && commands < MAX_COMMANDS {
            let frame = self.frame()?;
            if frame.flags & COMMAND != 0 {
                commands += 1;
                continue;
            }
            parts.push(frame.body);
            if frame.flags & MORE == 0 {
                return notification(&parts).ok_or(ZmqError::Protocol("a message that is not one of `sequence`"));
            }
        }
        Err(ZmqError::Protocol("a message of too many parts"))
    }

    fn send(&mut self, flags: u8, body: &[u8]) -> Result<(), ZmqError> {
        let length = u8::try_from(body.len()).map_err(|_| ZmqError::Protocol("a long frame"))?;
        Ok(self.stream.get_mut().write_all(&[&[flags, length], body].concat())?)
    }

    fn frame(&mut self) -> Result<Frame, ZmqError> {
        let [flags] = self.array()?;
        let length =
            if flags & LONG == 0 { u64::from(self.array::<1>()?[0]) } else { u64::from_be_bytes(self.array()?) };
        if flags > (MORE | LONG | COMMAND) || length > MAX_PART {
            return Err(ZmqError::Protocol("a frame that is none, or too long"));
        }
        let mut body = Vec::new();
        // The stream ends before: the next read says so.
        self.stream.by_ref().take(length).read_to_end(&mut body)?;
        if (body.len() as u64) < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(Frame { flags, body })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ZmqError> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// Reads a message of the topic.
fn notification(parts: &[Vec<u8>]) -> Option<Notification> {
    let [topic, body, number] = parts else { return None };
    let (hash, rest) = body.split_first_chunk::<32>()?;
    let (letter, sequence) = rest.split_first()?;
    let mut hash = *hash;
    hash.reverse();
    let sequence = sequence.try_into().ok().map(u64::from_le_bytes);
    let event = match (letter, sequence) {
        (b'C' | b'D', None) => Event::Block(BlockHash::from_byte_array(hash)),
        (b'A', Some(sequence)) => Event::Added(Txid::from_byte_array(hash), sequence),
        (b'R', Some(sequence)) => Event::Removed(Txid::from_byte_array(hash), sequence),
        _ => return None,
    };
    let number = u32::from_le_bytes(number.as_slice().try_into().ok()?);
    (topic == TOPIC).then_some(Notification { event, number })
}

/// A publisher that hears nothing.
struct Deaf<'b>(&'b [u8]);

impl Read for Deaf<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Deaf<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what a publisher sends, from its first byte to the first that is wrong: for fuzz tests.
pub fn read_all(bytes: &[u8]) -> Vec<Notification> {
    let Ok(mut subscription) = Subscription::begin(Deaf(bytes)) else { return Vec::new() };
    std::iter::from_fn(|| subscription.read().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a publisher says first.
    fn head() -> Vec<u8> {
        let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
        bytes.extend_from_slice(b"NULL");
        bytes.resize(GREETING_LEN, 0);
        bytes.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB");
        bytes
    }

    fn message(letter: u8, sequence: Option<u64>, number: u32) -> Vec<u8> {
        let body = [&[7; 31][..], &[1, letter], &sequence.map_or(Vec::new(), |at| at.to_le_bytes().to_vec())].concat();
        let length = u8::try_from(body.len()).unwrap();
        [&[1, 8], TOPIC, &[1, length], &body, &[0, 4], &number.to_le_bytes()].concat()
    }

    #[test]
    fn sequence_notifications_are_read_as_bitcoind_sends_them() {
        // A hash is sent as it is shown.
        let mut hash = [7; 32];
        hash[0] = 1;
        let (block, txid) = (BlockHash::from_byte_array(hash), Txid::from_byte_array(hash));
        let bytes = [
            head(),
            message(b'C', None, 0),
            b"\x04\x06\x04PING\0".to_vec(),
            message(b'A', Some(258), 1),
            message(b'R', Some(259), u32::MAX),
            message(b'D', None, 3),
        ];
        let events: Vec<(Event, u32)> =
            read_all(&bytes.concat()).iter().map(|notification| (notification.event, notification.number)).collect();
        let expected = [
            (Event::Block(block), 0),
            (Event::Added(txid, 258), 1),
            (Event::Removed(txid, 259), u32::MAX),
            (Event::Block(block), 3),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn foreign_and_endless_streams_are_refused() {
        let refused = |end: &[u8]| Subscription::begin(Deaf(&[&head(), end].concat())).unwrap().read();
        // A frame of 2^63 bytes, one of unknown flags, too many parts, another topic, a letter without its number.
        let long = [&[2][..], &(1_u64 << 63).to_be_bytes()].concat();
        let parts = [1, 0].repeat(MAX_PARTS + 1);
        let other = [&[1, 8][..], b"rawblock", &[0, 0]].concat();
        for end in [&long[..], &[0xf0, 0], &parts, &other, &message(b'A', None, 1), &message(b'C', Some(1), 1)] {
            assert!(matches!(refused(end), Err(ZmqError::Protocol(_))), "{end:?}");
        }
        assert!(matches!(refused(&message(b'C', None, 1)[..20]), Err(ZmqError::Io(_))));
        let mut curve = head();
        curve[MECHANISM][..5].copy_from_slice(b"CURVE");
        assert!(Subscription::begin(Deaf(&curve)).is_err());
    }

    #[test]
    fn endpoint_is_read_and_found_in_the_list() {
        let tcp = |host: &str| Some(ZmqEndpoint::Tcp(host.to_owned(), 28332));
        assert_eq!("tcp://[::1]:28332".parse().ok(), tcp("::1"));
        assert_eq!("ipc:///run/b.sock".parse(), Ok(ZmqEndpoint::Ipc("/run/b.sock".into())));
        for bad in ["", "tcp://a", "tcp://:1", "tcp://a:0", "http://a:1", "ipc://"] {
            assert!(bad.parse::<ZmqEndpoint>().is_err(), "{bad}");
        }
        let list = |address| ZmqEndpoint::listed([("pubhashtx", "tcp://x:1"), ("pubsequence", address)], "node");
        assert_eq!([list("tcp://*:28332"), list("tcp://10.0.0.1:28332")], [tcp("node"), tcp("10.0.0.1")]);
        assert_eq!((list("inproc://x"), ZmqEndpoint::listed([], "node")), (None, None));
    }
}
