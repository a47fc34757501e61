//! A lane over a stream socket: where the system has no memory to share, and for what is said before there is any.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use zeroize::Zeroize;

use crate::body::{Incoming, Received};
use crate::budget::Budget;
use crate::frame::{FrameError, HEAD_LEN, Head, MESSAGE_TIME, SILENCE};

/// How much is read at once: most messages are shorter.
const BUFFER: usize = 64 << 10;

/// The longest body that is copied behind its head, to be written at once.
const TOGETHER: usize = 64 << 10;

/// A lane.
pub struct SocketLane {
    stream: UnixStream,
    /// For the long messages of all lanes of the runner, in the host, which does not trust it to end each message that it begins, and
    /// to take those of the host.
    budget: Option<Arc<Budget>>,
    /// What was read and not taken yet, between the two places.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl SocketLane {
    /// A lane over this socket, for the runner: its host ends what it says.
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, budget: None, buffer: vec![0; BUFFER].into(), start: 0, end: 0 }
    }

    /// A lane over this socket, for the host.
    ///
    /// # Errors
    /// The system failed.
    pub fn to_runner(stream: UnixStream, budget: Arc<Budget>) -> std::io::Result<Self> {
        stream.set_write_timeout(Some(SILENCE))?;
        Ok(Self { budget: Some(budget), ..Self::new(stream) })
    }

    /// Sends a message whose body is these parts, one behind the other.
    ///
    /// # Errors
    /// The other side is gone, or does not take it; a body is longer than a message can say.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        let (head, len) = head.with_body(parts)?;
        let head = head.encode();
        if len > TOGETHER {
            self.write(&head)?;
            return parts.iter().try_for_each(|part| self.write(part));
        }
        let mut whole = Vec::with_capacity(HEAD_LEN + len);
        whole.extend_from_slice(&head);
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        self.write(&whole)
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), FrameError> {
        let until = self.must_end();
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(within_message(error)),
            }
            if !bytes.is_empty() && until.is_some_and(|until| until <= Instant::now()) {
                return Err(FrameError::Silent);
            }
        }
        Ok(())
    }

    /// By when a message must have ended that begins now.
    fn must_end(&self) -> Option<Instant> {
        self.budget.as_ref().map(|_| Instant::now() + MESSAGE_TIME)
    }

    /// Waits for a message, whose body is kept where it has at most `limit` bytes.
    ///
    /// # Errors
    /// The other side is gone, or has sent what is no message, or a part of one.
    pub fn receive(&mut self, limit: usize) -> Result<Received, FrameError> {
        while self.end == self.start {
            self.fill(None)?;
        }
        self.message(limit, self.must_end())
    }

    /// The same, no longer than until then.
    ///
    /// # Errors
    /// As [`Self::receive`]; the time is over.
    pub fn receive_until(&mut self, limit: usize, until: Instant) -> Result<Received, FrameError> {
        self.message(limit, Some(until))
    }

    /// A message of which some may have come.
    fn message(&mut self, limit: usize, until: Option<Instant>) -> Result<Received, FrameError> {
        let mut hurries = false;
        let head = loop {
            if let Some(head) = self.came().first_chunk::<HEAD_LEN>() {
                break Head::parse(head)?;
            }
            hurries |= self.hurry(until, self.end > self.start)?;
            self.fill(until)?;
        };
        self.pass(HEAD_LEN);
        let mut incoming = Incoming::new(head.len as usize, limit, self.budget.as_ref());
        loop {
            let came = self.came();
            let count = incoming.take(came.len(), |to| to.iter_mut().zip(came).for_each(|(to, from)| *to = *from));
            self.pass(count);
            if incoming.missing() == 0 {
                break;
            }
            hurries |= self.hurry(until, true)?;
            self.fill(until)?;
        }
        if hurries {
            // It fails on some systems where the other side is gone, which the next reading finds.
            let _ = self.stream.set_read_timeout(None);
        }
        Ok((head, incoming.finish()))
    }

    /// Bounds how long the next reading may take, where anything does; whether it does.
    ///
    /// # Errors
    /// The time is over.
    fn hurry(&self, until: Option<Instant>, begun: bool) -> Result<bool, FrameError> {
        let Some(until) = until else { return Ok(false) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(FrameError::Silent);
        }
        // As below: then the reading that follows does not wait.
        let _ = self.stream.set_read_timeout(Some(if begun { left.min(SILENCE) } else { left }));
        Ok(true)
    }

    fn fill(&mut self, until: Option<Instant>) -> Result<(), FrameError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            let end = self.end - self.start;
            if let Some(moved) = self.buffer.get_mut(end.max(self.start)..self.end) {
                moved.zeroize();
            }
            (self.start, self.end) = (0, end);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.stream.read(room) {
            Ok(0) => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
            Ok(count) => {
                self.end += count;
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Err(error) if until.is_some() => Err(within_message(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// What was read and not taken yet.
    fn came(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// So many bytes were taken. The buffer keeps none of them: they may be secret.
    fn pass(&mut self, count: usize) {
        if let Some(taken) = self.buffer.get_mut(self.start..self.start + count) {
            taken.zeroize();
        }
        self.start += count;
    }
}

/// What it means that the system could not read or write more of a message.
fn within_message(error: std::io::Error) -> FrameError {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => FrameError::Silent,
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::body::Left;
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
            assert_eq!((head.token, *body.unwrap() == vec![len as u8; len]), (len as u64, true), "{len}");
        }
        sending.join().unwrap();
        assert!(receiver.buffer.iter().all(|byte| *byte == 0), "nothing is left in the buffer");
        assert!(matches!(receiver.receive(1), Err(FrameError::Io(_))), "the sender is gone");
    }

    #[test]
    fn messages_beyond_the_limit_are_left_and_cut_ones_refused() {
        let (mut sender, mut receiver) = pair();
        for _ in 0..2 {
            sender.send(Head::new(Kind::Reply), &[&[1; 9]]).unwrap();
        }
        assert!(matches!(receiver.receive(8), Ok((_, Err(Left { len: 9 })))));
        assert_eq!(*receiver.receive(9).unwrap().1.unwrap(), [1; 9], "what follows is read as it is");
        let (sender, mut receiver) = pair();
        let head = Head { len: u32::MAX, ..Head::new(Kind::Reply) };
        (&sender.stream).write_all(&head.encode()).unwrap();
        (&sender.stream).write_all(b"short").unwrap();
        drop(sender);
        assert!(matches!(receiver.receive(usize::MAX), Err(FrameError::Io(_))));
    }

    #[test]
    fn a_message_that_does_not_come_to_its_end_is_given_up() {
        let head = Head { len: 9, ..Head::new(Kind::Reply) }.encode();
        for part in [&b""[..], &head[..HEAD_LEN - 1], &[&head[..], b"begun"].concat()] {
            let (one, other) = UnixStream::pair().unwrap();
            let mut receiver = SocketLane::to_runner(one, Budget::new(0)).unwrap();
            (&other).write_all(part).unwrap();
            let until = Instant::now() + Duration::from_millis(5);
            assert!(matches!(receiver.receive_until(9, until), Err(FrameError::Silent)), "{}", part.len());
        }
    }

    #[test]
    fn a_side_that_is_silent_within_a_message_or_takes_none_is_given_up() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut lane = SocketLane::to_runner(one, Budget::new(0)).unwrap();
        (&other).write_all(b"half").unwrap();
        assert!(matches!(lane.receive(9), Err(FrameError::Silent)));
        assert!(matches!(lane.send(Head::new(Kind::Reply), &[&[0; 16 << 20]]), Err(FrameError::Silent)));
    }

    #[test]
    fn a_side_that_is_silent_between_messages_is_waited_for() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut receiver = SocketLane::to_runner(one, Budget::new(0)).unwrap();
        let sender = SocketLane::new(other);
        let head = Head { len: 3, ..Head::new(Kind::Reply) }.encode();
        for end in 1..HEAD_LEN {
            let sending = std::thread::scope(|scope| {
                let rest = scope.spawn(|| {
                    (&sender.stream).write_all(&head[..end]).unwrap();
                    std::thread::yield_now();
                    (&sender.stream).write_all(&[&head[end..], b"end"].concat()).unwrap();
                });
                let (_, body) = receiver.receive(3).unwrap();
                rest.join().unwrap();
                body
            });
            assert_eq!(&*sending.unwrap(), b"end");
            assert_eq!(receiver.stream.read_timeout().unwrap(), None, "the next message may take its time");
        }
    }
}
