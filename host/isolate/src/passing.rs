//! Descriptors on their way from the host to a runner.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// What a lane is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Purpose {
    /// Functions of the plugin, which a thread of the runner waits for.
    Entry = b'e',
    /// What threads of the plugin's own ask of the host.
    Own = b'o',
}

/// Sends one end of a lane to a runner.
///
/// # Errors
/// The runner is gone.
pub fn send(control: &UnixStream, lane: impl AsFd, purpose: Purpose) -> std::io::Result<()> {
    let lanes = [lane.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&lanes));
    let note = [purpose as u8];
    rustix::net::sendmsg(control, &[IoSlice::new(&note)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for a lane; none once the host has closed its end.
///
/// # Errors
/// What is no lane.
pub fn receive(control: &UnixStream) -> std::io::Result<Option<(OwnedFd, Purpose)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut note = [0];
    let mut parts = [IoSliceMut::new(&mut note)];
    let received = loop {
        match rustix::net::recvmsg(control, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut lanes = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(lanes) => Some(lanes),
        _ => None,
    });
    let lane = lanes.next().and_then(|mut lanes| lanes.next());
    let purpose = [Purpose::Entry, Purpose::Own].into_iter().find(|purpose| [*purpose as u8] == note);
    match lane.zip(purpose) {
        Some(lane) => Ok(Some(lane)),
        None => Err(std::io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_lane_is_the_same_socket_on_the_other_side() {
        let (control, other) = UnixStream::pair().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        send(&control, &theirs, Purpose::Own).unwrap();
        drop((theirs, control));
        let (lane, purpose) = receive(&other).unwrap().unwrap();
        UnixStream::from(lane).write_all(b"hello").unwrap();
        let mut said = String::new();
        ours.read_to_string(&mut said).unwrap();
        assert_eq!((said.as_str(), purpose), ("hello", Purpose::Own));
        assert!(receive(&other).unwrap().is_none(), "the host has closed its end");
    }

    #[test]
    fn what_comes_without_a_lane_is_refused() {
        let (mut control, other) = UnixStream::pair().unwrap();
        control.write_all(b"e").unwrap();
        assert!(receive(&other).is_err());
    }
}
