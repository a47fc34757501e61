//! The process of a runner: how it is ended, and how its end is seen.

#[cfg(target_os = "linux")]
mod pidfd;
// Tested everywhere.
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

/// How long a process may take to end once it has told of a signal that ends it, and how long where it may leave a core.
const ENDING_PATIENCE: Duration = Duration::from_secs(1);
const CORE_PATIENCE: Duration = Duration::from_secs(60);

/// What a process lets its watcher know.
#[derive(Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing so far.
    None,
    /// There is something to read of it.
    Word,
    /// It has ended.
    Exited,
}

/// A process that the host has started.
#[derive(Debug)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    hold: Hold,
    /// A signal is ending it.
    is_ending: AtomicBool,
    /// Why the host ended it.
    killed: Mutex<Option<&'static str>>,
}

impl Process {
    /// The process of a child.
    ///
    /// # Errors
    /// The system gives no hold on it.
    pub fn of(child: &Child) -> std::io::Result<Self> {
        let hold = Hold::of(child)?;
        Ok(Self { pid: child.id(), hold, is_ending: AtomicBool::new(false), killed: Mutex::default() })
    }

    /// Waits for so much time until it ends, its exit code being left for who waits for it, or can be heard of.
    pub fn wait(&self, control: Option<&UnixStream>, time: Duration) -> Sign {
        let limit = time.try_into().ok();
        let process = PollFd::new(&self.hold, PollFlags::IN);
        let mut both = [process.clone(), control.map_or(process, |control| PollFd::new(control, PollFlags::IN))];
        match poll(&mut both, limit.as_ref()) {
            Ok(0) | Err(Errno::INTR) => Sign::None,
            Ok(_) if both.first().is_some_and(|process| process.revents().is_empty()) => Sign::Word,
            // Where the system tells nothing, nothing can be watched.
            Ok(_) | Err(_) => Sign::Exited,
        }
    }

    /// A signal is ending it: nobody else does, since it may leave a core.
    pub fn set_ending(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
    }

    /// Waits for the end of a process that a signal is ending, and brings it about where it goes on all the same.
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

    /// Ends it, for this reason, unless a signal is ending it. Whether this is why it ends.
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

    /// Ends it, unless a signal is ending it; how it ended by itself stays.
    pub fn signal(&self) {
        if !self.is_ending.load(Ordering::SeqCst) {
            self.hold.kill();
        }
    }

    /// How it ended.
    pub fn ending(&self, status: ExitStatus) -> Ending {
        self.killed.lock().map_or_else(|| status.into(), Ending::Killed)
    }
}
