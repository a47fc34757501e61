//! Passes descriptors between processes.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// The receiver reads the socket at once, so the sender never blocks. Systems without `MSG_NOSIGNAL` rely on Rust's
/// start-up code, which ignores SIGPIPE. A runner starts no process that could inherit a descriptor.
#[cfg(not(target_vendor = "apple"))]
const FLAGS: (SendFlags, RecvFlags) = (SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT), RecvFlags::CMSG_CLOEXEC);
#[cfg(target_vendor = "apple")]
const FLAGS: (SendFlags, RecvFlags) = (SendFlags::DONTWAIT, RecvFlags::empty());

/// Sends a few bytes and at most three descriptors. Fails if the receiver is gone or does not read.
pub fn send_descriptors(to: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(rustix::io::Errno::NOBUFS.into());
    }
    let bytes = [IoSlice::new(bytes)];
    Ok(rustix::io::retry_on_intr(|| rustix::net::sendmsg(&to, &bytes, &mut control, FLAGS.0)).map(drop)?)
}

/// Waits for one byte and the descriptors that were sent with it. `None` once the sender has closed its end.
pub fn receive_descriptors(from: impl AsFd) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let received = rustix::io::retry_on_intr(|| rustix::net::recvmsg(&from, &mut parts, &mut control, FLAGS.1))?;
    let messages = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptors = messages.flatten().collect();
    Ok((received.bytes != 0).then_some((byte[0], descriptors)))
}
