//! Descriptors on their way from the host to a runner.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

/// The most descriptors of a parcel.
const MOST: usize = 2;

/// The bytes that a parcel's descriptors come with: what it is, and a number.
const NOTE_LEN: usize = 2;

/// What a lane is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Functions of the plugin, which a thread of the runner waits for.
    Entry,
    /// What threads of the plugin's own ask of the host.
    Own,
}

/// Where a lane is.
#[derive(PartialEq, Eq, Debug)]
pub enum Way<F> {
    /// In this place of the regions.
    Memory(u8),
    /// A socket, of which this is the end.
    Socket(F),
}

/// What is passed.
#[derive(Debug)]
pub enum Parcel<F> {
    /// The memory in which lanes lie: what the host writes, and what the runner writes.
    Regions([F; 2]),
    /// A lane.
    Lane(Purpose, Way<F>),
}

impl<F> Parcel<F> {
    fn note(&self) -> [u8; NOTE_LEN] {
        match self {
            Self::Regions(_) => [b'r', 0],
            Self::Lane(Purpose::Entry, Way::Memory(place)) => [b'e', *place],
            Self::Lane(Purpose::Own, Way::Memory(place)) => [b'o', *place],
            Self::Lane(Purpose::Entry, Way::Socket(_)) => [b'E', 0],
            Self::Lane(Purpose::Own, Way::Socket(_)) => [b'O', 0],
        }
    }

    fn descriptors(&self) -> &[F] {
        match self {
            Self::Regions(regions) => regions,
            Self::Lane(_, Way::Socket(socket)) => std::slice::from_ref(socket),
            Self::Lane(_, Way::Memory(_)) => &[],
        }
    }
}

/// A runner takes its parcels at once: the host never waits for that. Where the system has no such flags as the others, Rust's start
/// of the program has it ignore SIGPIPE, and nothing is started by a runner.
#[cfg(not(target_vendor = "apple"))]
const FLAGS: (SendFlags, RecvFlags) = (SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT), RecvFlags::CMSG_CLOEXEC);
#[cfg(target_vendor = "apple")]
const FLAGS: (SendFlags, RecvFlags) = (SendFlags::DONTWAIT, RecvFlags::empty());

/// Sends a parcel.
///
/// # Errors
/// The runner is gone, or does not take what it was sent.
pub fn send(socket: impl AsFd, parcel: &Parcel<BorrowedFd<'_>>) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !parcel.descriptors().is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(parcel.descriptors()));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&parcel.note())], &mut ancillary, FLAGS.0)?;
    Ok(())
}

/// Waits for a parcel; none once the host has closed its end.
///
/// # Errors
/// What is no parcel.
pub fn receive(socket: &UnixStream) -> std::io::Result<Option<Parcel<OwnedFd>>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut note = [0; NOTE_LEN];
    let mut parts = [IoSliceMut::new(&mut note)];
    let received = loop {
        match rustix::net::recvmsg(socket, &mut parts, &mut ancillary, FLAGS.1) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let messages = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let mut descriptors = messages.flatten();
    let mut next = || descriptors.next().ok_or(std::io::ErrorKind::InvalidData);
    Ok(Some(match note {
        [b'r', _] => Parcel::Regions([next()?, next()?]),
        [b'e', place] => Parcel::Lane(Purpose::Entry, Way::Memory(place)),
        [b'o', place] => Parcel::Lane(Purpose::Own, Way::Memory(place)),
        [b'E', _] => Parcel::Lane(Purpose::Entry, Way::Socket(next()?)),
        [b'O', _] => Parcel::Lane(Purpose::Own, Way::Socket(next()?)),
        _ => return Err(std::io::ErrorKind::InvalidData.into()),
    }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn descriptors_are_the_same_on_the_other_side() {
        let (control, other) = UnixStream::pair().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        send(&control, &Parcel::Lane(Purpose::Own, Way::Socket(theirs.as_fd()))).unwrap();
        send(&control, &Parcel::Regions([theirs.as_fd(), control.as_fd()])).unwrap();
        send(&control, &Parcel::Lane(Purpose::Entry, Way::Memory(7))).unwrap();
        drop((theirs, control));
        let Some(Parcel::Lane(Purpose::Own, Way::Socket(lane))) = receive(&other).unwrap() else { panic!("no lane") };
        UnixStream::from(lane).write_all(b"hello").unwrap();
        assert!(matches!(receive(&other), Ok(Some(Parcel::Regions(_)))));
        assert!(matches!(receive(&other), Ok(Some(Parcel::Lane(Purpose::Entry, Way::Memory(7))))));
        let mut said = String::new();
        ours.read_to_string(&mut said).unwrap();
        assert_eq!(said, "hello");
        assert!(receive(&other).unwrap().is_none(), "the host has closed its end");
    }

    #[test]
    fn what_comes_without_its_descriptors_is_refused() {
        for note in [b"E1", b"O0", b"r0", b"x0"] {
            let (mut control, other) = UnixStream::pair().unwrap();
            control.write_all(note).unwrap();
            assert!(receive(&other).is_err());
        }
    }
}
