//! The end of the socket on which the process that runs the plugin tells what it does.
//!
//! The socket is the process's standard input, so that nothing a plugin prints can get in between.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::protocol::{Finding, Message, Step};
use crate::probe::{Entry, Watch};

/// The exit code when the tool has gone.
const EXIT_ALONE: i32 = 3;

thread_local! {
    /// The number of this thread; 0 until it has one.
    static THREAD: Cell<u64> = const { Cell::new(0) };
    /// When this thread entered the plugin's code, and how long it had waited for a processor until then.
    static ENTERED: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    /// How long it was in there the last time.
    static TOOK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// How long this thread was in the plugin's code the last time, without the time for which it waited for a processor: what a
/// crowded machine does to a plugin is not its fault.
pub fn took() -> Duration {
    TOOK.get()
}

/// How long this thread has waited for a processor so far; nothing where the system does not tell.
fn waited() -> Duration {
    let read = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
    };
    read().unwrap_or_default()
}

/// Tells the tool.
pub struct Reporter {
    socket: Mutex<UnixStream>,
    threads: AtomicU64,
    told: Mutex<HashSet<(Option<String>, String)>>,
    setting: Mutex<Option<String>>,
}

impl Reporter {
    /// Takes the socket over.
    ///
    /// # Errors
    /// When standard input cannot be taken over.
    pub fn new() -> std::io::Result<Self> {
        let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self {
            socket: Mutex::new(socket),
            threads: AtomicU64::new(1),
            told: Mutex::default(),
            setting: Mutex::default(),
        })
    }

    /// Tells something.
    pub fn tell(&self, message: &Message) {
        let line = serde_json::to_string(message).unwrap_or_default() + "\n";
        let mut socket = self.socket.lock();
        if socket.write_all(line.as_bytes()).is_err() {
            // Nobody would hear of anything any more.
            std::process::exit(EXIT_ALONE);
        }
    }

    /// Runs something in a setting, which everything that is found there names.
    pub fn in_setting<T>(&self, setting: &str, run: impl FnOnce() -> T) -> T {
        self.set(Some(setting.to_owned()));
        let outcome = run();
        self.set(None);
        outcome
    }

    fn set(&self, setting: Option<String>) {
        self.tell(&Message::Setting(setting.clone()));
        *self.setting.lock() = setting;
    }

    /// Tells that something is wrong with the plugin, once for each method and setting.
    pub fn found(&self, finding: Finding) {
        let finding = finding.in_setting(self.setting.lock().as_deref());
        let key = (finding.method.clone(), finding.what.clone());
        if self.told.lock().insert(key) {
            self.tell(&Message::Found(finding));
        }
    }

    /// Runs something of the plugin's that is none of its functions.
    pub fn step<T>(&self, step: Step, run: impl FnOnce() -> T) -> T {
        self.tell(&Message::Enter { thread: self.thread(), step });
        let outcome = run();
        self.leave();
        outcome
    }

    fn thread(&self) -> u64 {
        if THREAD.get() == 0 {
            THREAD.set(self.threads.fetch_add(1, Ordering::Relaxed));
        }
        THREAD.get()
    }
}

impl Watch for Reporter {
    fn enter(&self, entry: Entry<'_>) {
        self.tell(&Message::Enter { thread: self.thread(), step: entry.into() });
        ENTERED.set(Some((Instant::now(), waited())));
    }

    fn leave(&self) {
        if let Some((entered, before)) = ENTERED.take() {
            TOOK.set(entered.elapsed().saturating_sub(waited().saturating_sub(before)));
        }
        self.tell(&Message::Leave { thread: self.thread() });
    }
}
