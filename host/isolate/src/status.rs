//! Statistics of a plugin's runners.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_sandbox::{Denial, Denials, SandboxLayers};
use parking_lot::{Mutex, MutexGuard};

/// An unexpected end of a runner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crash {
    pub how: Ending,
    /// A method that the runner was executing, if any.
    pub method: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Signal(i32),
    Exit(i32),
    /// The host killed the process for this reason.
    Killed(&'static str),
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        status.signal().map_or_else(|| Self::Exit(status.code().unwrap_or_default()), Self::Signal)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Killed(why) => return f.write_str(why),
            Self::Exit(code) => return write!(f, "exit code {code}"),
            Self::Signal(libc::SIGILL) => "SIGILL",
            Self::Signal(libc::SIGABRT) => "SIGABRT",
            Self::Signal(libc::SIGBUS) => "SIGBUS",
            Self::Signal(libc::SIGFPE) => "SIGFPE",
            Self::Signal(libc::SIGKILL) => "SIGKILL",
            Self::Signal(libc::SIGSEGV) => "SIGSEGV",
            Self::Signal(libc::SIGSYS) => "SIGSYS",
            Self::Signal(number) => return write!(f, "signal {number}"),
        };
        f.write_str(name)
    }
}

pub(crate) type Kill = Box<dyn Fn(&'static str) + Send>;

/// The statistics of one plugin's runners, over all of its instances.
#[derive(Clone, Default)]
pub struct RunnerStatistics {
    /// The processes that run now, the newest last. During a reload both instances may have one.
    pub pids: Vec<u32>,
    pub crashes: u64,
    pub last_crash: Option<Crash>,
    /// The enforced sandbox of the current runner; `None` if the runner is not confined.
    pub enforced: Option<SandboxLayers>,
    /// The system calls that the sandbox denied to the runners.
    pub denials: Denials,
}

#[derive(Default)]
pub struct RunnerStatus(Mutex<RunnerStatistics>);

/// Access to the current runner of one instance.
#[derive(Default)]
pub struct Runners {
    /// Whether a runner serves calls; read by each call.
    running: AtomicBool,
    given_up: AtomicBool,
    abandoned: AtomicBool,
    kill: Mutex<Option<Kill>>,
}

impl Runners {
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Release);
    }

    /// Whether the last runner ended, and the host starts no other.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// Kills the process for this reason; the host then starts another. Returns whether there was a process.
    pub fn kill(&self, why: &'static str) -> bool {
        self.kill.lock().as_ref().inspect(|kill| kill(why)).is_some()
    }

    /// Kills the process, and lets the host start no other for this instance. The host answers the open calls.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.kill("its calls did not end");
    }

    pub(crate) fn are_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    pub(crate) fn begin(&self, kill: Kill) {
        *self.kill.lock() = Some(kill);
        if self.are_abandoned() {
            self.kill("its calls did not end");
        }
    }
}

impl RunnerStatus {
    pub fn read(&self) -> RunnerStatistics {
        self.0.lock().clone()
    }

    pub(crate) fn write(&self) -> MutexGuard<'_, RunnerStatistics> {
        self.0.lock()
    }

    pub fn denied(&self, denial: &Denial) {
        self.write().denials.add(denial.clone());
    }

    pub(crate) fn end(&self, pid: u32) {
        self.write().pids.retain(|known| *known != pid);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn the_end_of_one_process_leaves_the_others_of_the_plugin() {
        let status = RunnerStatus::default();
        // The process of a retiring instance restarts after its successor's has started.
        status.write().pids.extend([7, 8]);
        status.end(8);
        assert_eq!(status.read().pids, [7]);
        status.end(7);
        assert!(status.read().pids.is_empty());
    }

    #[test]
    fn runners_of_an_abandoned_instance_are_ended_whenever_they_begin() {
        let (runners, ended) = (Runners::default(), Arc::new(Mutex::new(0)));
        let kill = || {
            let ended = ended.clone();
            Box::new(move |_| *ended.lock() += 1)
        };
        assert!(!runners.kill("no reason"), "there is none");
        runners.begin(kill());
        assert!(runners.kill("a reason") && !runners.are_abandoned());
        runners.abandon();
        assert_eq!(*ended.lock(), 2);
        runners.begin(kill());
        assert_eq!(*ended.lock(), 3);
    }
}
