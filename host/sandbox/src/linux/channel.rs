//! How a confined process hands the host what the host needs to answer for it: one byte, and descriptors with it.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The byte of a process whose refused calls are told.
const REPORTED: u8 = b'R';
/// The same of one whose files a root of its own or Landlock bounds.
const BOUNDED: u8 = b'B';
/// The byte of a process that tells nothing.
const SILENT: u8 = b'-';

/// What the host answers a confined process with.
#[derive(Debug)]
pub struct Listener {
    /// Tells the refused calls.
    pub(super) notices: OwnedFd,
    /// The process's memory, opened by itself: reading it needs no right over the process, also when it hides its memory.
    pub(super) memory: File,
    /// The process, for copying its sockets.
    pub(super) process: OwnedFd,
    /// Whether a root of its own or Landlock bounds the files that it can open.
    pub(super) bounded: bool,
}

/// Sends what the host needs, or that there is nothing.
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
    /// Waits for what [`confine`](crate::confine) sends; `None` if the process tells of no calls.
    ///
    /// # Errors
    /// The process has gone, or sent something else.
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
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the process sent no listener");
        match (byte[0], <[OwnedFd; 3]>::try_from(descriptors)) {
            (SILENT, Err(none)) if none.is_empty() => Ok(None),
            (bounds @ (REPORTED | BOUNDED), Ok([notices, memory, process])) => {
                Ok(Some(Self { notices, memory: memory.into(), process, bounded: bounds == BOUNDED }))
            }
            _ => Err(wrong()),
        }
    }
}
