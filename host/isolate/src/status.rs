//! How the runners of a plugin fare.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_sandbox::{Denial, Denials, Enforced};
use parking_lot::Mutex;

/// A runner's end that nobody asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crash {
    /// The signal that ended it, or else its exit code.
    pub how: Ending,
    /// The method that it was in, where it was in one.
    pub method: Option<String>,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// By this signal.
    Signal(i32),
    /// With this code.
    Exit(i32),
    /// The host ended it, for this reason.
    Killed(&'static str),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Killed(why) => return f.write_str(why),
            Self::Exit(code) => return write!(f, "exit code {code}"),
            Self::Signal(4) => "SIGILL",
            Self::Signal(6) => "SIGABRT",
            Self::Signal(7) => "SIGBUS",
            Self::Signal(8) => "SIGFPE",
            Self::Signal(9) => "SIGKILL",
            Self::Signal(11) => "SIGSEGV",
            Self::Signal(31) => "SIGSYS",
            Self::Signal(number) => return write!(f, "signal {number}"),
        };
        f.write_str(name)
    }
}

/// Ends a runner, for a reason.
pub(crate) type Kill = Box<dyn Fn(&'static str) + Send>;

#[derive(Default)]
struct State {
    kill: Option<Kill>,
    pid: Option<u32>,
    crashes: u64,
    last: Option<Crash>,
    /// How it ended in each method, the last time: as many as the plugin has methods.
    endings: BTreeMap<String, Ending>,
    given_up: bool,
    enforced: Option<Enforced>,
    denials: Denials,
}

/// What is told of the runners of one plugin, over all of its instances.
#[derive(Default)]
pub struct RunnerStatus {
    state: Mutex<State>,
    /// Whether one serves calls: asked for each call.
    running: AtomicBool,
}

impl RunnerStatus {
    /// The process in which the plugin runs now.
    pub fn pid(&self) -> Option<u32> {
        self.state.lock().pid
    }

    /// How often a runner ended by itself.
    pub fn crashes(&self) -> u64 {
        self.state.lock().crashes
    }

    /// The last time.
    pub fn last_crash(&self) -> Option<Crash> {
        self.state.lock().last.clone()
    }

    /// How it ended the last time that it ended in this method.
    pub fn ending_in(&self, method: &str) -> Option<Ending> {
        self.state.lock().endings.get(method).copied()
    }

    /// Whether it is not started again.
    pub fn is_given_up(&self) -> bool {
        self.state.lock().given_up
    }

    /// What holds the process in which the plugin runs; none where it is not confined.
    pub fn enforced(&self) -> Option<Enforced> {
        self.state.lock().enforced.clone()
    }

    /// What its runners were refused so far.
    pub fn denials(&self) -> Denials {
        self.state.lock().denials.clone()
    }

    pub(crate) fn confined(&self, enforced: Option<Enforced>) {
        self.state.lock().enforced = enforced;
    }

    pub(crate) fn denied(&self, denial: &Denial) {
        self.state.lock().denials.add(denial.clone());
    }

    /// Whether a runner serves calls.
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }

    pub(crate) fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Release);
    }

    /// Ends the plugin's process, for this reason. Whether it has one.
    pub fn kill(&self, why: &'static str) -> bool {
        self.state.lock().kill.as_ref().inspect(|kill| kill(why)).is_some()
    }

    pub(crate) fn begin(&self, pid: u32, kill: Kill) {
        let mut state = self.state.lock();
        (state.kill, state.pid, state.given_up) = (Some(kill), Some(pid), false);
    }

    /// The runner has ended; `pid` may have been followed by another one already.
    pub(crate) fn end(&self, pid: u32) {
        self.state.lock().pid.take_if(|known| *known == pid);
    }

    pub(crate) fn crashed(&self, crash: Crash) {
        let mut state = self.state.lock();
        state.crashes += 1;
        if let Some(method) = &crash.method {
            state.endings.insert(method.clone(), crash.how);
        }
        state.last = Some(crash);
    }

    pub(crate) fn give_up(&self) {
        self.state.lock().given_up = true;
    }
}
