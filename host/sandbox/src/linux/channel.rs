//! Passes descriptors from a confined process to its host, with one byte.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::descriptors::{receive_descriptors, send_descriptors};

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
pub(super) fn send(to: BorrowedFd<'_>, listener: Option<&Listener>) -> io::Result<()> {
    let Some(own) = listener else { return send_descriptors(to, &[SILENT], &[]) };
    let byte = if own.bounded { BOUNDED } else { REPORTED };
    send_descriptors(to, &[byte], &[own.notices.as_fd(), own.memory.as_fd(), own.process.as_fd()])
}

impl Listener {
    /// Waits for the message of [`confine`](crate::confine); `None` if the process forwards no calls.
    pub fn receive(from: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let Some((byte, descriptors)) = receive_descriptors(from)? else {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process ended before it was confined"));
        };
        match (byte, <[OwnedFd; 3]>::try_from(descriptors)) {
            (SILENT, Err(none)) if none.is_empty() => Ok(None),
            (bounds @ (REPORTED | BOUNDED), Ok([notices, memory, process])) => {
                Ok(Some(Self { notices, memory: memory.into(), process, bounded: bounds == BOUNDED }))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the process sent no listener")),
        }
    }
}
