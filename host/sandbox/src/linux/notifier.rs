//! The host's side of a confined process: a thread denies and reports forbidden calls, and executes permitted ones.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};
use rustix::time::Timespec;

use super::channel::Listener;
use super::connects::{self, Connects};
use super::files::{Files, Verdict, is_random};
use super::raw::{self, Answer, Notice};
use super::{calls, memory, rules};
use crate::denial::{Denial, Event, FLOOD, Kind};
use crate::plan::Plan;
use crate::reach::Reach;

/// The most remembered names of denied libraries. A search for any other is reported each time.
const MAX_SEARCHED: usize = 64;

/// Receives reports on the notifier's thread. It must not block.
pub type Watch = Box<dyn FnMut(Event<'_>) + Send>;

/// The thread that answers a confined process. It ends with the process, or when this is dropped.
#[derive(Debug)]
pub struct Notifier {
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Notifier {
    /// Answers the process that sent `listener`, by the grants of `plan`.
    pub fn start(listener: Listener, plan: &Plan, watch: Watch) -> std::io::Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let stopped = stop.try_clone()?;
        raw::wake_together(listener.notices.as_fd());
        let mut answering = Answering {
            files: Files::new(plan),
            reach: plan.reach.clone(),
            file_size: plan.file_size,
            listener,
            connects: Connects::default(),
            watch,
            second: Second { began: Instant::now(), weight: 0 },
            searched: HashSet::new(),
        };
        let thread = std::thread::Builder::new().name("sandbox".to_owned()).spawn(move || answering.run(&stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Notifier {
    /// If the process lives on, each forwarded call fails with ENOSYS.
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A denied call counts as much as this many permitted ones.
const REFUSAL: u32 = 5;

/// The weight of the forwarded calls in the current second.
struct Second {
    began: Instant,
    weight: u32,
}

impl Second {
    /// Counts a call. Returns whether it starts a flood.
    fn add(&mut self, is_refused: bool) -> bool {
        if self.began.elapsed() >= Duration::from_secs(1) {
            (self.began, self.weight) = (Instant::now(), 0);
        }
        let before = self.weight;
        self.weight = before.saturating_add(if is_refused { REFUSAL } else { 1 });
        before <= FLOOD * REFUSAL && self.weight > FLOOD * REFUSAL
    }
}

enum Decision {
    Answer(Answer),
    /// The answer follows later, or was sent.
    Later,
    Refuse {
        argument: String,
        error: i32,
    },
}

impl Decision {
    fn refuse(argument: impl Into<String>) -> Self {
        Self::Refuse { argument: argument.into(), error: libc::EPERM }
    }
}

struct Answering {
    listener: Listener,
    files: Files,
    reach: Vec<Reach>,
    /// In bytes.
    file_size: u64,
    connects: Connects,
    watch: Watch,
    second: Second,
    searched: HashSet<OsString>,
}

impl Answering {
    fn run(&mut self, stopped: &OwnedFd) {
        loop {
            let (notices, stop) = match self.wait(stopped) {
                Ok(ready) => ready,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
            };
            // The process's last thread has ended when the listener's other end closes.
            if !stop.is_empty()
                || (notices.intersects(PollFlags::HUP | PollFlags::ERR) && !notices.contains(PollFlags::IN))
            {
                return;
            }
            if notices.contains(PollFlags::IN)
                && let Ok(notice) = raw::next_notice(self.listener.notices.as_fd())
            {
                self.answer(notice);
            }
            self.connects.advance(self.listener.notices.as_fd());
        }
    }

    /// Waits for a notification, the stop or a connection. Returns the events of the first two.
    fn wait(&self, stopped: &OwnedFd) -> rustix::io::Result<(PollFlags, PollFlags)> {
        let mut polled = vec![PollFd::new(&self.listener.notices, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        polled.extend(self.connects.polled());
        let retry = Timespec { tv_sec: 0, tv_nsec: i64::from(connects::RETRY.subsec_nanos()) };
        poll(&mut polled, (!self.connects.is_empty()).then_some(&retry))?;
        Ok((polled[0].revents(), polled[1].revents()))
    }

    fn answer(&mut self, notice: Notice) {
        let decision = self.decide(&notice);
        let is_flood = self.second.add(matches!(decision, Decision::Refuse { .. }));
        let answer = match decision {
            Decision::Later => None,
            Decision::Answer(answer) => Some(answer),
            Decision::Refuse { argument, error } => {
                // Reported before the answer, so that the process finds it counted.
                let (kind, name) = calls::named(notice.call);
                (self.watch)(Event::Denied(&Denial::new(kind, name, &argument)));
                Some(Answer::Fail(error))
            }
        };
        if is_flood {
            (self.watch)(Event::Flood);
        }
        let Some(answer) = answer else { return };
        // If the process has gone, no answer is needed.
        let _ = raw::answer(self.listener.notices.as_fd(), notice.id, answer);
    }

    fn decide(&mut self, notice: &Notice) -> Decision {
        let call = notice.call;
        if rules::OPENING.contains(&call) {
            return self.open(notice);
        }
        if rules::ASKING.contains(&call) || rules::OLDER_ASKING.contains(&call) {
            return self.ask(notice);
        }
        if call == libc::SYS_connect {
            return self.connect(notice);
        }
        // SQLite as root sets the owner of each file that it makes, and goes on if it may not.
        if call == libc::SYS_fchown {
            return Decision::Answer(Answer::Fail(libc::EPERM));
        }
        if call == libc::SYS_ftruncate && self.reach.iter().filter_map(Reach::files).any(|(_, writes)| writes) {
            return self.truncate(notice);
        }
        Decision::refuse(self.argument(notice))
    }

    /// The path at an argument; `None` if the call no longer waits, since the memory may then hold something else.
    fn path(&self, notice: &Notice, argument: usize) -> Option<PathBuf> {
        let path = memory::path(&self.listener.memory, notice.args[argument])?;
        raw::still_waits(self.listener.notices.as_fd(), notice.id).then_some(path)
    }

    /// The argument with the folder's descriptor, if any, and the argument with the path.
    fn names(call: i64) -> (Option<usize>, usize) {
        let by_folder =
            [libc::SYS_openat, libc::SYS_newfstatat, libc::SYS_statx, libc::SYS_faccessat, libc::SYS_readlinkat];
        if by_folder.contains(&call) { (Some(0), 1) } else { (None, 0) }
    }

    /// Whether a path is relative to an open folder. The process's working folder is `/`.
    fn is_below_folder(notice: &Notice, folder: Option<usize>, path: &Path) -> bool {
        // A descriptor is the lower 32 bits of an argument.
        let at = folder.map(|folder| notice.args[folder] as u32 as i32);
        path.is_relative() && at.is_some_and(|at| at != libc::AT_FDCWD)
    }

    fn open(&mut self, notice: &Notice) -> Decision {
        let (folder, at) = Self::names(notice.call);
        let Some(path) = self.path(notice, at) else { return Decision::Answer(Answer::Fail(libc::EFAULT)) };
        let flags = OFlags::from_bits_retain(notice.args[at + 1] as u32);
        let mode = notice.args[at + 2] as u32;
        // No grant covers making a set-user-id program of the host's user.
        if (flags.contains(OFlags::CREATE) || flags.contains(OFlags::TMPFILE))
            && mode & rules::SET_ID.unsigned_abs() != 0
        {
            return Decision::refuse(path.display().to_string());
        }
        if Self::is_below_folder(notice, folder, &path) {
            // The folder was opened within the grants, and the other layers bound paths below it.
            let plain = path
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
            return if plain && self.listener.bounded {
                Decision::Answer(Answer::Continue)
            } else {
                Decision::refuse(path.display().to_string())
            };
        }
        let path = super::files::plain(&path);
        match self.files.open(&path, flags) {
            Verdict::Granted if self.listener.bounded && !is_random(&path) => Decision::Answer(Answer::Continue),
            Verdict::Granted => self.open_for(notice, &path, flags, Mode::from_raw_mode(mode)),
            verdict => self.not_granted(verdict, &path),
        }
    }

    fn open_for(&self, notice: &Notice, path: &Path, flags: OFlags, mode: Mode) -> Decision {
        let opened = self.files.open_for(path, flags, mode & Mode::from_raw_mode(0o777));
        match opened.map(|file| raw::put(self.listener.notices.as_fd(), notice.id, file.as_fd(), None)) {
            Ok(Ok(())) => Decision::Later,
            Ok(Err(_)) => Decision::Answer(Answer::Fail(libc::EMFILE)),
            Err(error) => Decision::Answer(Answer::Fail(error.raw_os_error())),
        }
    }

    /// Queries are forwarded only without a root. Landlock does not bound them, so a process that swaps the path learns whether
    /// any file exists, and its size.
    fn ask(&mut self, notice: &Notice) -> Decision {
        if notice.call == libc::SYS_fstatfs {
            return Decision::Answer(Answer::Continue);
        }
        let (folder, at) = Self::names(notice.call);
        let Some(path) = self.path(notice, at) else { return Decision::Answer(Answer::Fail(libc::EFAULT)) };
        if Self::is_below_folder(notice, folder, &path) {
            let above = path.components().any(|part| part == std::path::Component::ParentDir);
            return if above {
                Decision::refuse(path.display().to_string())
            } else {
                Decision::Answer(Answer::Continue)
            };
        }
        let path = super::files::plain(&path);
        match self.files.ask(&path) {
            Verdict::Granted => Decision::Answer(Answer::Continue),
            verdict => self.not_granted(verdict, &path),
        }
    }

    fn not_granted(&mut self, verdict: Verdict, path: &Path) -> Decision {
        let argument = path.display().to_string();
        match verdict {
            Verdict::Granted | Verdict::Absent => Decision::Answer(Answer::Fail(libc::ENOENT)),
            Verdict::Refused { library: false } => Decision::refuse(argument),
            Verdict::Refused { library: true } => {
                // The loader searches for a library in dozens of folders; the search counts once.
                let name = path.file_name().unwrap_or_default();
                if self.searched.contains(name) {
                    return Decision::Answer(Answer::Fail(libc::ENOENT));
                }
                if self.searched.len() < MAX_SEARCHED {
                    self.searched.insert(name.to_owned());
                }
                Decision::Refuse { argument, error: libc::ENOENT }
            }
        }
    }

    /// Truncates a file in a writable folder by the host's own copy of the descriptor. Memory shared with the host is a
    /// file without a name, and keeps its length.
    fn truncate(&self, notice: &Notice) -> Decision {
        let [descriptor, len, ..] = notice.args;
        // A descriptor is the lower 32 bits of an argument.
        let copy = pidfd_getfd(&self.listener.process, descriptor as u32 as i32, PidfdGetfdFlags::empty());
        let named = |file: &OwnedFd| {
            let about = rustix::fs::fstat(file)?;
            let regular = rustix::fs::FileType::from_raw_mode(about.st_mode) == rustix::fs::FileType::RegularFile;
            rustix::io::Result::Ok(regular && about.st_nlink > 0)
        };
        let file = match copy.and_then(|file| Ok((named(&file)?, file))) {
            Ok((true, file)) => file,
            Ok((false, _)) => return Decision::refuse(""),
            Err(error) => return Decision::Answer(Answer::Fail(error.raw_os_error())),
        };
        if len > self.file_size && i64::try_from(len).is_ok() {
            return Decision::Answer(Answer::Fail(libc::EFBIG));
        }
        Decision::Answer(match rustix::fs::ftruncate(&file, len) {
            Ok(()) => Answer::Done,
            Err(error) => Answer::Fail(error.raw_os_error()),
        })
    }

    fn connect(&mut self, notice: &Notice) -> Decision {
        let [descriptor, address, len, ..] = notice.args;
        let Some(address) = memory::address(&self.listener.memory, address, len & 0xffff_ffff) else {
            return Decision::Answer(Answer::Fail(libc::EFAULT));
        };
        let notices = self.listener.notices.as_fd();
        if !raw::still_waits(notices, notice.id) {
            return Decision::Later;
        }
        if !connects::granted(&self.reach, &address) {
            return Decision::refuse(address.to_string());
        }
        let process = self.listener.process.as_fd();
        match self.connects.add(notices, process, notice.id, descriptor as u32, address) {
            Ok(()) => Decision::Later,
            Err(error) => Decision::Answer(Answer::Fail(error.raw_os_error())),
        }
    }

    fn argument(&self, notice: &Notice) -> String {
        let [first, second, ..] = notice.args;
        // Descriptors, processes and commands are the lower 32 bits of an argument.
        let number = |value: u64| (value as u32 as i32).to_string();
        let path = |argument| self.path(notice, argument).map(|path| path.display().to_string()).unwrap_or_default();
        match (calls::named(notice.call), notice.call) {
            (_, libc::SYS_execve | libc::SYS_memfd_create) => path(0),
            (_, libc::SYS_execveat) => path(1),
            (_, libc::SYS_ptrace) => format!("process {}", number(second)),
            (_, libc::SYS_mount) => path(1),
            (_, libc::SYS_socket) => format!("family {}", number(first)),
            (_, libc::SYS_prctl | libc::SYS_bpf | libc::SYS_keyctl) => format!("command {}", number(first)),
            (_, libc::SYS_ioctl | libc::SYS_fcntl) => format!("command {}", number(second)),
            ((Kind::Kill | Kind::Ptrace, _), _) => format!("process {}", number(first)),
            ((Kind::Open, name), _) if name.ends_with("at") || name.ends_with("at2") => path(1),
            ((Kind::Open, name), _) if !name.starts_with('f') => path(0),
            (_, libc::SYS_clone) => format!("flags {first:#x}"),
            _ => String::new(),
        }
    }
}
