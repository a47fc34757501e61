//! Passes descriptors from a confined process to its host, with one byte.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The process forwards denied calls.
const REPORTED: u8 = b'R';
/// As [`REPORTED`], and a root or Landlock bounds the process's files.
const BOUNDED: u8 = b'B';
/// The process forwards nothing.
const SILENT: u8 = b'-';

/// The host's descriptors for answering a confined process.
#[derive(Debug)]
pub struct Listener {
    /// The seccomp listener.
    pub(super) notices: OwnedFd,
    /// The process's memory. The process opened it, so the host needs no privilege to read it, even if the process is
    /// not dumpable.
    pub(super) memory: File,
    /// A pidfd, for copying its sockets.
    pub(super) process: OwnedFd,
    /// Whether a root or Landlock bounds the process's files.
    pub(super) bounded: bool,
}

/// Sends the descriptors, or a message without any.
pub(super) fn send(to: BorrowedFd<'_>, listener: Option<&Listener>) -> rustix::io::Result<()> {
    let (byte, descriptors) = match listener {
        None => (SILENT, Vec::new()),
        Some(own) => {
            let byte = if own.bounded { BOUNDED } else { REPORTED };
            (byte, vec![own.notices.as_fd(), own.memory.as_fd(), own.process.as_fd()])
        }
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(rustix::io::Errno::NOBUFS);
    }
    rustix::io::retry_on_intr(|| sendmsg(to, &[IoSlice::new(&[byte])], &mut control, SendFlags::NOSIGNAL)).map(drop)
}

impl Listener {
    /// Waits for the message of [`confine`](crate::confine); `None` if the process forwards no calls.
    pub fn receive(from: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received =
            rustix::io::retry_on_intr(|| recvmsg(from, &mut [IoSliceMut::new(&mut byte)], &mut control, flags))?;
        if received.bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process ended before it was confined"));
        }
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        match (byte[0], <[OwnedFd; 3]>::try_from(descriptors)) {
            (SILENT, Err(none)) if none.is_empty() => Ok(None),
            (bounds @ (REPORTED | BOUNDED), Ok([notices, memory, process])) => {
                Ok(Some(Self { notices, memory: memory.into(), process, bounded: bounds == BOUNDED }))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the process sent no listener")),
        }
    }
}
