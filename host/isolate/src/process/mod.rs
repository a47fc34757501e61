//! The process of a runner, and how it ends.

#[cfg(target_os = "linux")]
mod pidfd;
// Compiled on all systems for its tests.
#[cfg(any(not(target_os = "linux"), test))]
mod waited;

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

#[cfg(target_os = "linux")]
use self::pidfd::Hold;
#[cfg(not(target_os = "linux"))]
use self::waited::Hold;
use crate::status::Ending;

#[derive(Debug)]
pub struct Process {
    pub pid: u32,
    hold: Hold,
    /// Why the host killed it.
    killed: Mutex<Option<&'static str>>,
}

impl Process {
    /// Takes over a child.
    pub fn of(child: &Child) -> std::io::Result<Self> {
        let hold = Hold::of(child)?;
        Ok(Self { pid: child.id(), hold, killed: Mutex::default() })
    }

    /// Waits up to `time` for the process to end. Returns whether it has ended. `wait` can still read its exit code.
    pub fn ends_within(&self, time: Duration) -> bool {
        let limit = time.try_into().ok();
        let mut process = [PollFd::new(&self.hold, PollFlags::IN)];
        // If polling fails, it counts as ended.
        !matches!(poll(&mut process, limit.as_ref()), Ok(0) | Err(Errno::INTR))
    }

    /// Kills the process, and records the reason if it is the first one. Returns whether it is.
    pub fn kill(&self, why: &'static str) -> bool {
        let mut killed = self.killed.lock();
        let is_first = killed.is_none();
        killed.get_or_insert(why);
        drop(killed);
        self.signal();
        is_first
    }

    /// Kills the process without recording a reason.
    pub fn signal(&self) {
        self.hold.kill();
    }

    /// How the process ended, by its exit status and the recorded reason.
    pub fn ending(&self, status: ExitStatus) -> Ending {
        // The reason counts only if SIGKILL ended the process, which may have exited just before the host killed it.
        let killed = self.killed.lock().filter(|_| status.signal() == Some(libc::SIGKILL));
        killed.map_or_else(|| status.into(), Ending::Killed)
    }
}
