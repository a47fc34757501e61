//! Connections that the host makes for a confined process, without blocking, from its own copy of the address.
//!
//! The server sees the host as peer (`SO_PEERCRED`). Epoll registrations from before the connect belong to the former
//! socket, which is closed.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::sockopt::{socket_domain, socket_error, socket_type};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, getpeername, socket_with};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use super::memory::Address;
use super::options;
use super::raw::{self, Answer};
use crate::reach::Reach;

const MAX_PENDING: usize = 64;

/// The longest time of a blocking connect.
const MAX_TIME: Duration = Duration::from_secs(120);

/// The interval of retries on a Unix socket with a full queue, and of checks that the process still waits.
pub(super) const RETRY: Duration = Duration::from_millis(20);

struct Pending {
    id: u64,
    /// The descriptor in the process.
    at: u32,
    socket: OwnedFd,
    address: Address,
    /// Whether the connect is in progress; else it is retried.
    begun: bool,
    until: Instant,
}

/// The pending connects of one process.
#[derive(Default)]
pub(super) struct Connects(Vec<Pending>);

pub(super) fn granted(reach: &[Reach], address: &Address) -> bool {
    reach.iter().any(|reach| match (reach, address) {
        (Reach::Unix(granted), Address::Unix(path)) => granted == path,
        (Reach::Tcp(granted), Address::Tcp(address)) => granted == address,
        _ => false,
    })
}

/// Begins to connect a non-blocking socket.
fn begin(socket: BorrowedFd<'_>, address: &Address) -> rustix::io::Result<()> {
    match address {
        Address::Unix(path) => connect(socket, &SocketAddrUnix::new(path.as_path() as &Path)?),
        Address::Tcp(address) => connect(socket, address),
        Address::Abstract(_) | Address::Other(_) => Err(Errno::PERM),
    }
}

impl Connects {
    /// Connects the descriptor `at` of the process. Sends the answer now or later; on an error, the caller answers.
    pub(super) fn add(
        &mut self,
        listener: BorrowedFd<'_>,
        process: BorrowedFd<'_>,
        id: u64,
        at: u32,
        address: Address,
    ) -> rustix::io::Result<()> {
        let number = i32::try_from(at).map_err(|_| Errno::BADF)?;
        let theirs = pidfd_getfd(process, number, PidfdGetfdFlags::empty())?;
        let kind = socket_type(&theirs)?;
        if kind != SocketType::STREAM {
            return Err(Errno::PERM);
        }
        if getpeername(&theirs).is_ok_and(|peer| peer.is_some()) {
            return Err(Errno::ISCONN);
        }
        let domain = socket_domain(&theirs)?;
        let fits = match address {
            Address::Unix(_) => domain == AddressFamily::UNIX,
            _ => domain == AddressFamily::INET || domain == AddressFamily::INET6,
        };
        if !fits {
            return Err(Errno::AFNOSUPPORT);
        }
        // A canonical IPv4 address needs an IPv4 socket.
        let domain = match &address {
            Address::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
            _ => domain,
        };
        let socket = socket_with(domain, kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        options::copy(theirs.as_fd(), socket.as_fd());
        let waits = !fcntl_getfl(&theirs)?.contains(OFlags::NONBLOCK);
        let begun = match begin(socket.as_fd(), &address) {
            Ok(()) => {
                finish(listener, id, at, &socket, waits, Answer::Done);
                return Ok(());
            }
            Err(Errno::INPROGRESS) if !waits => {
                finish(listener, id, at, &socket, waits, Answer::Fail(libc::EINPROGRESS));
                return Ok(());
            }
            Err(Errno::INPROGRESS) => true,
            // The Unix socket's queue is full.
            Err(Errno::AGAIN) if waits => false,
            Err(error) => return Err(error),
        };
        if self.0.len() >= MAX_PENDING {
            return Err(Errno::AGAIN);
        }
        let until = Instant::now() + wait_of(&socket);
        self.0.push(Pending { id, at, socket, address, begun, until });
        Ok(())
    }

    pub(super) fn polled(&self) -> impl Iterator<Item = PollFd<'_>> {
        let begun = self.0.iter().filter(|pending| pending.begun);
        begun.map(|pending| PollFd::new(&pending.socket, PollFlags::OUT))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn advance(&mut self, listener: BorrowedFd<'_>) {
        self.0.retain(|pending| raw::still_waits(listener, pending.id) && !pending.advance(listener));
    }
}

impl Pending {
    /// Returns whether the call was answered.
    fn advance(&self, listener: BorrowedFd<'_>) -> bool {
        let result = if self.begun { self.ended() } else { begin(self.socket.as_fd(), &self.address) };
        let answer = match result {
            Ok(()) => Answer::Done,
            Err(Errno::AGAIN | Errno::INPROGRESS) if Instant::now() < self.until => return false,
            // The kernel's answer when a socket's timeout has passed.
            Err(Errno::AGAIN | Errno::INPROGRESS) if self.begun => Answer::Fail(libc::ETIMEDOUT),
            Err(Errno::AGAIN | Errno::INPROGRESS) => Answer::Fail(libc::EAGAIN),
            Err(error) => Answer::Fail(error.raw_os_error()),
        };
        finish(listener, self.id, self.at, &self.socket, true, answer);
        true
    }

    /// The outcome of the connect; [`Errno::AGAIN`] while it is in progress.
    fn ended(&self) -> rustix::io::Result<()> {
        let none = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        if rustix::event::poll(&mut [PollFd::new(&self.socket, PollFlags::OUT)], Some(&none))? == 0 {
            return Err(Errno::AGAIN);
        }
        socket_error(&self.socket)?
    }
}

/// How long the process waits for the connection: its own send timeout, as without a sandbox.
fn wait_of(socket: &OwnedFd) -> Duration {
    let own = rustix::net::sockopt::socket_timeout(socket, rustix::net::sockopt::Timeout::Send).ok().flatten();
    own.map_or(MAX_TIME, |own| own.min(MAX_TIME))
}

/// Installs the socket in the process unless the connect failed, and answers.
fn finish(listener: BorrowedFd<'_>, id: u64, at: u32, socket: &OwnedFd, waits: bool, mut answer: Answer) {
    if matches!(answer, Answer::Done | Answer::Fail(libc::EINPROGRESS)) {
        let flags = fcntl_getfl(socket).unwrap_or(OFlags::empty());
        let flags = if waits { flags - OFlags::NONBLOCK } else { flags };
        let put = fcntl_setfl(socket, flags).map_err(std::io::Error::from);
        if put.and_then(|()| raw::put(listener, id, socket.as_fd(), Some(at))).is_err() {
            answer = Answer::Fail(libc::EBADF);
        }
    }
    // If the process has gone, no answer is needed.
    let _ = raw::answer(listener, id, answer);
}
