//! The process of a runner, and how it ends.

#[cfg(target_os = "linux")]
mod pidfd;
// Compiled on all systems for its tests.
#[cfg(any(not(target_os = "linux"), test))]
mod waited;

use std::os::unix::net::UnixStream;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

#[cfg(target_os = "linux")]
use self::pidfd::Hold;
#[cfg(not(target_os = "linux"))]
use self::waited::Hold;
use crate::status::Ending;

/// How long a process may take to end after it reported a fatal signal, and how long if it may write a core file.
const ENDING_PATIENCE: Duration = Duration::from_secs(1);
const CORE_PATIENCE: Duration = Duration::from_secs(60);

/// An event of a watched process.
#[derive(Debug, PartialEq, Eq)]
pub enum Sign {
    None,
    /// Its control socket is readable.
    Word,
    Exited,
}

#[derive(Debug)]
pub struct Process {
    pub pid: u32,
    hold: Hold,
    /// A signal is ending it.
    is_ending: AtomicBool,
    /// Why the host killed it.
    killed: Mutex<Option<&'static str>>,
}

impl Process {
    /// Takes over a child.
    pub fn of(child: &Child) -> std::io::Result<Self> {
        let hold = Hold::of(child)?;
        Ok(Self { pid: child.id(), hold, is_ending: AtomicBool::new(false), killed: Mutex::default() })
    }

    /// Waits for its end, which leaves the exit code for `wait`, or for bytes on the control socket.
    pub fn wait(&self, control: Option<&UnixStream>, time: Duration) -> Sign {
        let limit = time.try_into().ok();
        let process = PollFd::new(&self.hold, PollFlags::IN);
        let mut both = [process.clone(), control.map_or(process, |control| PollFd::new(control, PollFlags::IN))];
        match poll(&mut both, limit.as_ref()) {
            Ok(0) | Err(Errno::INTR) => Sign::None,
            Ok(_) if both.first().is_some_and(|process| process.revents().is_empty()) => Sign::Word,
            // If polling fails, the process cannot be watched.
            Ok(_) | Err(_) => Sign::Exited,
        }
    }

    /// A signal is ending it. The host does not kill it then, since it may write a core file.
    pub fn set_ending(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
    }

    /// Waits for the end of a process with a fatal signal, and kills it if it does not end.
    pub fn let_end(&self, leaves_core: bool) {
        let until = Instant::now() + if leaves_core { CORE_PATIENCE } else { ENDING_PATIENCE };
        while self.wait(None, until.saturating_duration_since(Instant::now())) != Sign::Exited {
            if Instant::now() >= until {
                self.is_ending.store(false, Ordering::SeqCst);
                self.kill("told of its end and went on");
                return;
            }
        }
    }

    /// Kills it for this reason, unless a signal is ending it. Returns whether this is why it ends.
    pub fn kill(&self, why: &'static str) -> bool {
        if self.is_ending.load(Ordering::SeqCst) {
            return false;
        }
        let mut killed = self.killed.lock();
        let is_first = killed.is_none();
        killed.get_or_insert(why);
        drop(killed);
        self.signal();
        is_first
    }

    /// Kills it without a reason, unless a signal is ending it.
    pub fn signal(&self) {
        if !self.is_ending.load(Ordering::SeqCst) {
            self.hold.kill();
        }
    }

    pub fn ending(&self, status: ExitStatus) -> Ending {
        self.killed.lock().map_or_else(|| status.into(), Ending::Killed)
    }
}
