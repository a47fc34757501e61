//! Passes the runner's end of a channel to the runner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use outrigger_sandbox::{receive_descriptors, send_descriptors};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Purpose {
    /// A channel for a runner thread that waits for function calls.
    Entry = b'E',
    /// A channel for threads that the plugin started and that call services.
    Own = b'O',
}

/// Sends a descriptor. Fails if the runner is gone or does not read.
pub fn send(socket: impl AsFd, purpose: Purpose, channel: BorrowedFd<'_>) -> io::Result<()> {
    send_descriptors(socket, &[purpose as u8], &[channel])
}

/// Waits for a descriptor. `None` once the host has closed its end.
///
/// # Errors
/// The message has no descriptor or an unknown purpose.
pub fn receive(socket: &UnixStream) -> io::Result<Option<(Purpose, OwnedFd)>> {
    let Some((byte, descriptors)) = receive_descriptors(socket)? else { return Ok(None) };
    let purpose = [Purpose::Entry, Purpose::Own].into_iter().find(|known| *known as u8 == byte);
    let channel = purpose.zip(descriptors.into_iter().next());
    channel.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn descriptors_arrive_with_their_purpose() {
        let (control, other) = UnixStream::pair().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        send(&control, Purpose::Own, theirs.as_fd()).unwrap();
        drop((theirs, control));
        let Some((Purpose::Own, channel)) = receive(&other).unwrap() else { panic!("no channel") };
        UnixStream::from(channel).write_all(b"hello").unwrap();
        let mut received = String::new();
        ours.read_to_string(&mut received).unwrap();
        assert_eq!(received, "hello");
        assert!(receive(&other).unwrap().is_none(), "the host has closed its end");
    }

    #[test]
    fn messages_without_a_descriptor_are_refused() {
        for purpose in [b"E", b"x"] {
            let (mut control, other) = UnixStream::pair().unwrap();
            control.write_all(purpose).unwrap();
            assert!(receive(&other).is_err());
        }
    }
}
