//! A lane over a stream socket: where the system has no memory to share, and for what is said before there is any.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use zeroize::Zeroize;

use crate::body::Body;
use crate::frame::{FrameError, HEAD_LEN, Head};

/// How much is read at once: most messages are shorter.
const BUFFER: usize = 16 << 10;

/// The longest body that is copied behind its head, to be written at once.
const TOGETHER: usize = 64 << 10;

/// A lane.
pub struct SocketLane {
    stream: UnixStream,
    /// What was read and not taken yet, between the two places.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl SocketLane {
    /// A lane over this socket.
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, buffer: vec![0; BUFFER].into(), start: 0, end: 0 }
    }

    /// The socket.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Sends a message whose body is these parts, one behind the other.
    ///
    /// # Errors
    /// The other side is gone; a body is longer than a message can say.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let too_long = || FrameError::TooLong { len, limit: u32::MAX as usize };
        let head = Head { len: u32::try_from(len).map_err(|_| too_long())?, ..head }.encode();
        if len > TOGETHER {
            self.stream.write_all(&head)?;
            return Ok(parts.iter().try_for_each(|part| self.stream.write_all(part))?);
        }
        let mut whole = Vec::with_capacity(HEAD_LEN + len);
        whole.extend_from_slice(&head);
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        Ok(self.stream.write_all(&whole)?)
    }

    /// Waits for a message, whose body may have `limit` bytes.
    ///
    /// # Errors
    /// The other side is gone, or has sent what is no message, or a longer one.
    pub fn receive(&mut self, limit: usize) -> Result<(Head, Body), FrameError> {
        while self.end - self.start < HEAD_LEN {
            self.fill()?;
        }
        let mut head = [0; HEAD_LEN];
        self.take(&mut head);
        let head = Head::parse(&head)?;
        let len = head.len as usize;
        if len > limit {
            return Err(FrameError::TooLong { len, limit });
        }
        let mut body = vec![0; len.min(self.end - self.start)];
        self.take(&mut body);
        // Memory grows with what comes, not with what a head says.
        let rest = (len - body.len()) as u64;
        if rest > 0 && (&mut self.stream).take(rest).read_to_end(&mut body)? as u64 != rest {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        Ok((head, body.into()))
    }

    fn fill(&mut self) -> Result<(), FrameError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.stream.read(room) {
            Ok(0) => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
            Ok(count) => {
                self.end += count;
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves bytes out of the buffer, which keeps none of them: they may be secret.
    fn take(&mut self, to: &mut [u8]) {
        if let Some(from) = self.buffer.get_mut(self.start..self.start + to.len()) {
            to.copy_from_slice(from);
            from.zeroize();
        }
        self.start += to.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Kind;

    fn pair() -> (SocketLane, SocketLane) {
        let (one, other) = UnixStream::pair().unwrap();
        (SocketLane::new(one), SocketLane::new(other))
    }

    #[test]
    fn messages_of_any_length_come_whole_and_in_order() {
        let (mut sender, mut receiver) = pair();
        let lengths = [0, 1, HEAD_LEN, BUFFER - 1, BUFFER, TOGETHER + 1, 3 << 20, 5];
        let sending = std::thread::spawn(move || {
            for len in lengths {
                let body = vec![len as u8; len];
                let (front, back) = body.split_at(len / 3);
                sender.send(Head { token: len as u64, ..Head::new(Kind::Call) }, &[front, back]).unwrap();
            }
        });
        for len in lengths {
            let (head, body) = receiver.receive(usize::MAX).unwrap();
            assert_eq!((head.token, *body == vec![len as u8; len]), (len as u64, true), "{len}");
        }
        sending.join().unwrap();
        assert!(receiver.buffer.iter().all(|byte| *byte == 0), "nothing is left in the buffer");
        assert!(matches!(receiver.receive(1), Err(FrameError::Io(_))), "the sender is gone");
    }

    #[test]
    fn messages_beyond_the_limit_and_cut_ones_are_refused() {
        let (mut sender, mut receiver) = pair();
        sender.send(Head::new(Kind::Reply), &[&[1; 9]]).unwrap();
        assert!(matches!(receiver.receive(8), Err(FrameError::TooLong { len: 9, limit: 8 })));
        let (mut sender, mut receiver) = pair();
        let head = Head { len: u32::MAX, ..Head::new(Kind::Reply) };
        sender.stream.write_all(&head.encode()).unwrap();
        sender.stream.write_all(b"short").unwrap();
        drop(sender);
        assert!(matches!(receiver.receive(usize::MAX), Err(FrameError::Io(_))));
    }
}
