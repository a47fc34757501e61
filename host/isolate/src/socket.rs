//! A lane over a stream socket: where the system has no memory to share, and for what is said before there is any.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use zeroize::Zeroize;

use crate::body::Body;
use crate::frame::{FrameError, HEAD_LEN, Head};

/// How much is read at once: most messages are shorter.
const BUFFER: usize = 16 << 10;

/// The longest body that is copied behind its head, to be written at once.
const TOGETHER: usize = 64 << 10;

/// How long a runner may keep silent within a message, or leave one untaken: it writes a message at once, and waits for what it reads.
const SILENCE: Duration = Duration::from_secs(1);

/// How long a message may take as a whole.
const MESSAGE_TIME: Duration = Duration::from_secs(30);

/// The most that is read of a long body at once, where the time is looked at in between.
const CHUNK: usize = 256 << 10;

/// A lane.
pub struct SocketLane {
    stream: UnixStream,
    /// Whether the other side is trusted to end each message that it begins, and to take those of this one.
    trusts: bool,
    /// What was read and not taken yet, between the two places.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl SocketLane {
    /// A lane over this socket, for the runner: its host ends what it says.
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, trusts: true, buffer: vec![0; BUFFER].into(), start: 0, end: 0 }
    }

    /// A lane over this socket, for the host.
    ///
    /// # Errors
    /// The system failed.
    pub fn to_runner(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_write_timeout(Some(SILENCE))?;
        Ok(Self { trusts: false, ..Self::new(stream) })
    }

    /// Sends a message whose body is these parts, one behind the other.
    ///
    /// # Errors
    /// The other side is gone, or does not take it; a body is longer than a message can say.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let too_long = || FrameError::TooLong { len, limit: u32::MAX as usize };
        let head = Head { len: u32::try_from(len).map_err(|_| too_long())?, ..head }.encode();
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
        let until = (!self.trusts).then(|| Instant::now() + MESSAGE_TIME);
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

    /// Waits for a message, whose body may have `limit` bytes.
    ///
    /// # Errors
    /// The other side is gone, or has sent what is no message, or a longer one, or a part of one.
    pub fn receive(&mut self, limit: usize) -> Result<(Head, Body), FrameError> {
        while self.end == self.start {
            self.fill(None)?;
        }
        self.message(limit, (!self.trusts).then(|| Instant::now() + MESSAGE_TIME))
    }

    /// The same, no longer than until then.
    ///
    /// # Errors
    /// As [`Self::receive`]; the time is over.
    pub fn receive_until(&mut self, limit: usize, until: Instant) -> Result<(Head, Body), FrameError> {
        self.message(limit, Some(until))
    }

    /// A message of which some may have come.
    fn message(&mut self, limit: usize, until: Option<Instant>) -> Result<(Head, Body), FrameError> {
        let mut hurries = false;
        while self.end - self.start < HEAD_LEN {
            hurries |= self.hurry(until, self.end > self.start)?;
            self.fill(until)?;
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
        while body.len() < len {
            hurries |= self.hurry(until, true)?;
            let here = body.len();
            body.resize(len.min(here + CHUNK), 0);
            let count = match self.stream.read(body.get_mut(here..).unwrap_or_default()) {
                Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(within_message(error)),
            };
            body.truncate(here + count);
        }
        if hurries {
            // It fails on some systems where the other side is gone, which the next reading finds.
            let _ = self.stream.set_read_timeout(None);
        }
        Ok((head, body.into()))
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
            Err(error) if until.is_some() => Err(within_message(error)),
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

/// What it means that the system could not read or write more of a message.
fn within_message(error: std::io::Error) -> FrameError {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => FrameError::Silent,
        _ => error.into(),
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
            let mut receiver = SocketLane::to_runner(one).unwrap();
            (&other).write_all(part).unwrap();
            let until = Instant::now() + Duration::from_millis(5);
            assert!(matches!(receiver.receive_until(9, until), Err(FrameError::Silent)), "{}", part.len());
        }
    }

    #[test]
    fn a_side_that_is_silent_within_a_message_or_takes_none_is_given_up() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut lane = SocketLane::to_runner(one).unwrap();
        (&other).write_all(b"half").unwrap();
        assert!(matches!(lane.receive(9), Err(FrameError::Silent)));
        assert!(matches!(lane.send(Head::new(Kind::Reply), &[&[0; 16 << 20]]), Err(FrameError::Silent)));
    }

    #[test]
    fn a_side_that_is_silent_between_messages_is_waited_for() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut receiver = SocketLane::to_runner(one).unwrap();
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
            assert_eq!(&*sending, b"end");
            assert_eq!(receiver.stream.read_timeout().unwrap(), None, "the next message may take its time");
        }
    }
}
