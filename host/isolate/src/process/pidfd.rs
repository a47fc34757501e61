//! A Linux process file descriptor (pidfd_open(2)), which never refers to another process with a reused pid.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A handle to a process. Its descriptor becomes readable when the process ends.
#[derive(Debug)]
pub struct Hold(OwnedFd);

impl Hold {
    pub fn of(child: &Child) -> std::io::Result<Self> {
        Ok(Self(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?))
    }

    /// Kills the process, if it has not ended.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

impl AsFd for Hold {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
