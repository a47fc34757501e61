//! Passes the runner's end of a channel to the runner.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Purpose {
    /// A channel for a runner thread that waits for function calls.
    Entry = b'E',
    /// A channel for threads that the plugin started and that call services.
    Own = b'O',
}

/// The runner reads the socket at once, so the host never blocks. Systems without `MSG_NOSIGNAL` rely on Rust's
/// start-up code, which ignores SIGPIPE. A runner starts no process that could inherit a descriptor.
#[cfg(not(target_vendor = "apple"))]
const FLAGS: (SendFlags, RecvFlags) = (SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT), RecvFlags::CMSG_CLOEXEC);
#[cfg(target_vendor = "apple")]
const FLAGS: (SendFlags, RecvFlags) = (SendFlags::DONTWAIT, RecvFlags::empty());

/// Sends a descriptor. Fails if the runner is gone or does not read.
pub fn send(socket: impl AsFd, purpose: Purpose, channel: BorrowedFd<'_>) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let channel = [channel];
    ancillary.push(SendAncillaryMessage::ScmRights(&channel));
    rustix::net::sendmsg(socket, &[IoSlice::new(&[purpose as u8])], &mut ancillary, FLAGS.0)?;
    Ok(())
}

/// Waits for a descriptor. `None` once the host has closed its end.
///
/// # Errors
/// The message has no descriptor or an unknown purpose.
pub fn receive(socket: &UnixStream) -> std::io::Result<Option<(Purpose, OwnedFd)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut purpose = [0];
    let mut parts = [IoSliceMut::new(&mut purpose)];
    let received = rustix::io::retry_on_intr(|| rustix::net::recvmsg(socket, &mut parts, &mut ancillary, FLAGS.1))?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let messages = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let purpose = [Purpose::Entry, Purpose::Own].into_iter().find(|known| [*known as u8] == purpose);
    let channel = purpose.zip(messages.flatten().next());
    channel.map(Some).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
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
