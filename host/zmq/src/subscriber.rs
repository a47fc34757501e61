use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};

use super::endpoint::ZmqEndpoint;
use super::wire::{self, Frame, GREETING_LEN, MORE, ZmqError};

/// The maximum number of parts of a message, and of commands received while reading one.
const MAX_PARTS: usize = 4;
const MAX_COMMANDS: usize = 16;

/// The timeout of connecting, and of each read and write in the handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl ZmqEndpoint {
    /// Subscribes to messages of these topics, with parts of at most `max_part` bytes. `silence` is the timeout of a read.
    pub fn subscribe(
        &self,
        topics: &[&[u8]],
        max_part: u64,
        silence: Duration,
    ) -> Result<Subscription<Box<dyn Stream>>, ZmqError> {
        let stream: Box<dyn Stream> = match self {
            Self::Ipc(path) => Box::new(UnixStream::connect(path)?),
            Self::Tcp(host, port) => Box::new(connect(host, *port)?),
        };
        set_timeout(&*stream, CONNECT_TIMEOUT)?;
        let subscription = Subscription::begin(stream, topics, max_part)?;
        set_timeout(&**subscription.stream.get_ref(), silence)?;
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

pub trait Stream: Read + Write + AsFd + Send {}

impl<T: Read + Write + AsFd + Send> Stream for T {}

/// Sets the timeout of each read and write.
fn set_timeout(stream: &dyn Stream, limit: Duration) -> io::Result<()> {
    set_socket_timeout(stream, Timeout::Recv, Some(limit))?;
    Ok(set_socket_timeout(stream, Timeout::Send, Some(limit))?)
}

pub struct Subscription<S> {
    stream: BufReader<S>,
    max_part: u64,
}

impl<S: Read + Write> Subscription<S> {
    /// Performs the handshake and subscribes.
    pub fn begin(stream: S, topics: &[&[u8]], max_part: u64) -> Result<Self, ZmqError> {
        let mut this = Self { stream: BufReader::new(stream), max_part };
        this.stream.get_mut().write_all(&wire::greeting())?;
        let mut theirs = [0; GREETING_LEN];
        this.stream.read_exact(&mut theirs)?;
        wire::check_greeting(&theirs)?;
        this.stream.get_mut().write_all(&wire::ready(*b"SUB"))?;
        wire::check_ready(&this.frame()?)?;
        for topic in topics {
            // In 3.0 a subscription is a message that begins with 1.
            this.stream.get_mut().write_all(&wire::frame(0, &[&[1], *topic].concat()))?;
        }
        Ok(this)
    }

    /// The parts of the next message.
    pub fn read(&mut self) -> Result<Vec<Vec<u8>>, ZmqError> {
        let mut parts = Vec::new();
        let mut commands = 0;
        while parts.len() < MAX_PARTS && commands < MAX_COMMANDS {
            let frame = self.frame()?;
            if frame.is_command() {
                commands += 1;
                continue;
            }
            parts.push(frame.body);
            if frame.flags & MORE == 0 {
                return Ok(parts);
            }
        }
        Err(ZmqError::Protocol("a message of too many parts"))
    }

    fn frame(&mut self) -> Result<Frame, ZmqError> {
        let mut flags = [0];
        self.stream.read_exact(&mut flags).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ZmqError::Silent,
            _ => error.into(),
        })?;
        let mut bytes = [0; 8];
        let bytes = &mut bytes[..wire::length_bytes(flags[0])?];
        self.stream.read_exact(bytes)?;
        let length = wire::length(bytes, self.max_part)?;
        let mut body = Vec::new();
        // Allocates as data arrives, not by the length that the peer claims.
        self.stream.by_ref().take(length).read_to_end(&mut body)?;
        if (body.len() as u64) < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(Frame { flags: flags[0], body })
    }
}
