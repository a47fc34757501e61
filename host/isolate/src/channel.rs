//! A channel: a socket pair between one thread of the host and one of the runner.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use zeroize::optimization_barrier;

use crate::body::{Incoming, Message};
use crate::frame::{FrameError, HEAD_LEN, Head, MESSAGE_TIME, SILENCE};

/// The size of the read buffer, in bytes: most messages are shorter.
const BUFFER: usize = 64 << 10;

/// The longest body that is sent in a single write with its head, in bytes.
const SINGLE_WRITE: usize = 64 << 10;

pub struct Channel {
    stream: Arc<UnixStream>,
    /// Whether the peer must send or read each message within [`MESSAGE_TIME`]. The host sets this limit for runners,
    /// since it does not trust them.
    is_bounded: bool,
    /// The bytes in `start..end` were read from the socket and not yet consumed.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Channel {
    pub fn to_host(stream: UnixStream) -> Self {
        Self { stream: Arc::new(stream), is_bounded: false, buffer: vec![0; BUFFER].into(), start: 0, end: 0 }
    }

    pub fn to_runner(stream: UnixStream) -> std::io::Result<Self> {
        stream.set_write_timeout(Some(SILENCE))?;
        Ok(Self { is_bounded: true, ..Self::to_host(stream) })
    }

    /// The socket, so that another thread can shut it down.
    pub fn socket(&self) -> Arc<UnixStream> {
        self.stream.clone()
    }

    /// Sends a message whose body is the concatenation of these parts.
    ///
    /// # Errors
    /// The peer closed the channel or does not read in time, or the length of the body exceeds a `u32`.
    pub fn send(&mut self, head: Head, parts: &[&[u8]]) -> Result<(), FrameError> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let body_len = u32::try_from(len).map_err(|_| FrameError::TooLong { len })?;
        let (head, until) = (Head { len: body_len, ..head }.encode(), self.message_deadline());
        if len > SINGLE_WRITE {
            self.write(&head, until)?;
            return parts.iter().try_for_each(|part| self.write(part, until));
        }
        let mut whole = Vec::with_capacity(HEAD_LEN + len);
        whole.extend_from_slice(&head);
        parts.iter().for_each(|part| whole.extend_from_slice(part));
        self.write(&whole, until)
    }

    fn write(&mut self, mut bytes: &[u8], until: Option<Instant>) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            match (&*self.stream).write(bytes) {
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

    fn message_deadline(&self) -> Option<Instant> {
        self.is_bounded.then(|| Instant::now() + MESSAGE_TIME)
    }

    /// Waits for a message. A body of more than `limit` bytes is read and discarded.
    ///
    /// # Errors
    /// The peer closed the channel, or its message is invalid or truncated.
    pub fn receive(&mut self, limit: usize) -> Result<Message, FrameError> {
        while self.end == self.start {
            self.fill(None)?;
        }
        self.message(limit, self.message_deadline())
    }

    /// Like [`Self::receive`], but fails with [`FrameError::Silent`] if the message is not complete by `until`.
    pub fn receive_until(&mut self, limit: usize, until: Instant) -> Result<Message, FrameError> {
        self.message(limit, Some(until))
    }

    fn message(&mut self, limit: usize, until: Option<Instant>) -> Result<Message, FrameError> {
        let mut has_timeout = false;
        let head = loop {
            if let Some(head) = self.unread().first_chunk::<HEAD_LEN>() {
                break Head::parse(head)?;
            }
            has_timeout |= self.bound_next_read(until, self.end > self.start)?;
            self.fill(until)?;
        };
        self.consume(HEAD_LEN);
        let mut incoming = Incoming::new(head.len as usize, limit);
        let count = incoming.push(self.unread());
        self.consume(count);
        while incoming.missing() > 0 {
            has_timeout |= self.bound_next_read(until, true)?;
            incoming.read(&*self.stream).map_err(|error| read_error(error, until))?;
        }
        if has_timeout {
            // Some systems reject this option after the peer has closed the socket. The next read then reports the close.
            let _ = self.stream.set_read_timeout(None);
        }
        Ok((head, incoming.finish()))
    }

    /// If the message has a deadline, sets the socket's timeout for the next read. Returns whether it set one.
    fn bound_next_read(&self, until: Option<Instant>, has_begun: bool) -> Result<bool, FrameError> {
        let Some(until) = until else { return Ok(false) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(FrameError::Silent);
        }
        // If the system rejects the option, the peer has closed the socket, and the next read does not block.
        let _ = self.stream.set_read_timeout(Some(if has_begun { left.min(SILENCE) } else { left }));
        Ok(true)
    }

    fn fill(&mut self, until: Option<Instant>) -> Result<(), FrameError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            let end = self.end - self.start;
            wipe(self.buffer.get_mut(end.max(self.start)..self.end).unwrap_or_default());
            (self.start, self.end) = (0, end);
        }
        match (&*self.stream).read(self.buffer.get_mut(self.end..).unwrap_or_default()) {
            Ok(0) => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
            Ok(count) => {
                self.end += count;
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(read_error(error, until)),
        }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Consumes and wipes bytes: they may be secret.
    fn consume(&mut self, count: usize) {
        wipe(self.buffer.get_mut(self.start..self.start + count).unwrap_or_default());
        self.start += count;
    }
}

fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    optimization_barrier(bytes);
}

/// Converts the error of a failed read. A read without a deadline cannot time out.
fn read_error(error: std::io::Error, until: Option<Instant>) -> FrameError {
    if until.is_some() { within_message(error) } else { error.into() }
}

/// Converts the error of a failed read or write within a message. A timeout becomes [`FrameError::Silent`].
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
    use crate::body::DiscardedBody;
    use crate::frame::Kind;

    fn pair() -> (Channel, Channel) {
        let (one, other) = UnixStream::pair().unwrap();
        (Channel::to_host(one), Channel::to_host(other))
    }

    #[test]
    fn messages_of_any_length_come_whole_and_in_order() {
        let (mut sender, mut receiver) = pair();
        let lengths = [0, 1, HEAD_LEN, BUFFER - 1, BUFFER, SINGLE_WRITE + 1, 3 << 20, 5];
        let sending = std::thread::spawn(move || {
            for len in lengths {
                let body = vec![len as u8; len];
                let (front, back) = body.split_at(len / 3);
                sender.send(Head { token: len as u64, ..Head::new(Kind::Call) }, &[front, back]).unwrap();
            }
        });
        for len in lengths {
            let (head, body) = receiver.receive(usize::MAX).unwrap();
            assert_eq!((head.token, body.unwrap() == vec![len as u8; len]), (len as u64, true), "{len}");
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
        assert!(matches!(receiver.receive(8), Ok((_, Err(DiscardedBody { len: 9 })))));
        assert_eq!(receiver.receive(9).unwrap().1.unwrap(), [1; 9], "what follows is read as it is");
        let (sender, mut receiver) = pair();
        let head = Head { len: u32::MAX, ..Head::new(Kind::Reply) };
        (&*sender.stream).write_all(&head.encode()).unwrap();
        (&*sender.stream).write_all(b"short").unwrap();
        drop(sender);
        assert!(matches!(receiver.receive(usize::MAX), Err(FrameError::Io(_))));
    }

    #[test]
    fn a_message_that_does_not_come_to_its_end_is_given_up() {
        let head = Head { len: 9, ..Head::new(Kind::Reply) }.encode();
        for part in [&b""[..], &head[..HEAD_LEN - 1], &[&head[..], b"begun"].concat()] {
            let (one, other) = UnixStream::pair().unwrap();
            let mut receiver = Channel::to_runner(one).unwrap();
            (&other).write_all(part).unwrap();
            let until = Instant::now() + Duration::from_millis(5);
            assert!(matches!(receiver.receive_until(9, until), Err(FrameError::Silent)), "{}", part.len());
        }
    }

    #[test]
    fn a_side_that_is_silent_within_a_message_or_takes_none_is_given_up() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut channel = Channel::to_runner(one).unwrap();
        (&other).write_all(b"half").unwrap();
        assert!(matches!(channel.receive(9), Err(FrameError::Silent)));
        assert!(matches!(channel.send(Head::new(Kind::Reply), &[&[0; 16 << 20]]), Err(FrameError::Silent)));
    }

    #[test]
    fn a_side_that_is_silent_between_messages_is_waited_for() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut receiver = Channel::to_runner(one).unwrap();
        let sender = Channel::to_host(other);
        let head = Head { len: 3, ..Head::new(Kind::Reply) }.encode();
        for end in 1..HEAD_LEN {
            let sending = std::thread::scope(|scope| {
                let rest = scope.spawn(|| {
                    (&*sender.stream).write_all(&head[..end]).unwrap();
                    std::thread::yield_now();
                    (&*sender.stream).write_all(&[&head[end..], b"end"].concat()).unwrap();
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
