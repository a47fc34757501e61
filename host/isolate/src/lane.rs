//! One lane: messages go back and forth on it between one thread of the host and one of the runner.

use std::time::{Duration, Instant};

use crate::body::Received;
use crate::frame::{FrameError, Head};
use crate::memory::{MemoryLane, SLOTS};
use crate::socket::SocketLane;

/// A place in what a lane has carried.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u32);

/// How far the other side had come when a lane was ended, where that can be seen.
#[derive(Clone, Copy, Debug)]
pub struct Taken(Option<u32>);

impl Taken {
    /// Whether what was sent before this place had certainly not been taken whole.
    pub fn lacks(self, Mark(sent): Mark) -> bool {
        self.0.is_some_and(|taken| (1..=SLOTS).contains(&sent.wrapping_sub(taken)))
    }
}

/// One end of a lane.
pub enum Lane {
    /// Over shared memory.
    Memory(Box<MemoryLane>),
    /// Over a socket alone.
    Socket(SocketLane),
}

impl Lane {
    /// Sends a message whose body is these parts, one behind the other.
    ///
    /// # Errors
    /// The other side is gone or out of step; a body is too long.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        match self {
            Self::Memory(lane) => lane.send(head, parts),
            Self::Socket(lane) => lane.send(head, parts),
        }
    }

    /// The same, where another message will follow that need not be long in coming: that this one is there whole does not wake the
    /// other side, which finds it then, or when it looks the next time.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_without_waking(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        match self {
            Self::Memory(lane) => lane.send_without_waking(head, parts),
            Self::Socket(lane) => lane.send(head, parts),
        }
    }

    /// Whether a message is known to have come.
    pub fn has_message(&self) -> bool {
        match self {
            Self::Memory(lane) => lane.has_message(),
            Self::Socket(_) => false,
        }
    }

    /// The place behind what was sent last.
    pub fn mark(&self) -> Mark {
        match self {
            Self::Memory(lane) => Mark(lane.sent()),
            Self::Socket(_) => Mark(0),
        }
    }

    /// Ends it, by the host: the runner does nothing more of what it takes from here on. How far it has come.
    pub fn close(&self) -> Taken {
        match self {
            Self::Memory(lane) => Taken(Some(lane.close())),
            Self::Socket(_) => Taken(None),
        }
    }

    /// Waits for a message, whose body is kept where it has at most `limit` bytes.
    ///
    /// # Errors
    /// The other side is gone, or has sent what is no message, or a part of one.
    pub fn receive(&mut self, limit: usize) -> Result<Received, FrameError> {
        match self {
            Self::Memory(lane) => lane.receive(limit, None),
            Self::Socket(lane) => lane.receive(limit),
        }
    }

    /// Waits no longer than this.
    ///
    /// # Errors
    /// As [`Self::receive`]; the time is over.
    pub fn receive_within(&mut self, limit: usize, time: Duration) -> Result<Received, FrameError> {
        match self {
            Self::Memory(lane) => lane.receive(limit, Some(Instant::now() + time)),
            Self::Socket(lane) => lane.receive_until(limit, Instant::now() + time),
        }
    }
}
