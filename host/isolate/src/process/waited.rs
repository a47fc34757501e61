//! A process handle for systems without process descriptors: a thread waits for the process to end.

use std::io::PipeReader;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Child;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// A handle to a process, which can be polled until the process ends.
#[derive(Debug)]
pub struct Hold {
    pid: Pid,
    /// The waiting thread closes the other end when the process has ended.
    end: PipeReader,
    /// The host collects the exit code only after this is set, so until then the system cannot reuse the pid.
    has_ended: Arc<Mutex<bool>>,
}

impl Hold {
    pub fn of(child: &Child) -> std::io::Result<Self> {
        let pid = Pid::from_child(child);
        let (end, open) = std::io::pipe()?;
        let has_ended = Arc::new(Mutex::new(false));
        let flag = has_ended.clone();
        let wait = move || {
            let leaves_the_code = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(pid), leaves_the_code), Err(Errno::INTR)) {}
            *flag.lock() = true;
            drop(open);
        };
        std::thread::Builder::new().name("end".to_owned()).spawn(wait)?;
        Ok(Self { pid, end, has_ended })
    }

    /// Kills the process, if it has not ended.
    pub fn kill(&self) {
        let has_ended = self.has_ended.lock();
        if !*has_ended {
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

impl AsFd for Hold {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn has_ended(hold: &Hold, within_seconds: i64) -> bool {
        let limit = Timespec { tv_sec: within_seconds, tv_nsec: 0 };
        poll(&mut [PollFd::new(hold, PollFlags::IN)], Some(&limit)).unwrap() == 1
    }

    #[test]
    fn an_end_is_seen_and_the_exit_code_is_left() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let hold = Hold::of(&child).unwrap();
        assert!(!has_ended(&hold, 0));
        hold.kill();
        assert!(has_ended(&hold, 60));
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(*hold.has_ended.lock(), "kill sends no signal: the pid may belong to another process");
        hold.kill();
    }

    #[test]
    fn an_end_before_the_hold_is_seen() {
        let mut child = Command::new("true").spawn().unwrap();
        let waits = waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        waits.unwrap();
        assert!(has_ended(&Hold::of(&child).unwrap(), 60));
        assert!(child.wait().unwrap().success());
    }
}
