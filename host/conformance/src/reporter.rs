//! The end of the socket on which the process that runs the plugin tells what it does.
//!
//! The socket is the process's standard input, so that nothing a plugin prints can get in between.

use std::collections::HashSet;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use parking_lot::Mutex;

use super::protocol::{Finding, Message, Step};

/// The exit code when the tool has gone.
const EXIT_ALONE: i32 = 3;

pub struct Reporter {
    socket: Mutex<UnixStream>,
    told: Mutex<HashSet<(Option<String>, String)>>,
}

impl Reporter {
    /// # Errors
    /// Standard input cannot be taken over.
    pub fn new() -> std::io::Result<Self> {
        let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self { socket: Mutex::new(socket), told: Mutex::default() })
    }

    pub fn tell(&self, message: &Message) {
        let line = serde_json::to_string(message).unwrap_or_default() + "\n";
        let mut socket = self.socket.lock();
        if socket.write_all(line.as_bytes()).is_err() {
            // Nobody would hear of anything any more.
            std::process::exit(EXIT_ALONE);
        }
    }

    /// Tells that something is wrong with the plugin, once for each method.
    pub fn found(&self, finding: Finding) {
        let key = (finding.method.clone(), finding.what.clone());
        if self.told.lock().insert(key) {
            self.tell(&Message::Found(finding));
        }
    }

    /// Runs something that enters the plugin's code, on this thread or on another one of the host.
    pub fn step<T>(&self, step: &Step, run: impl FnOnce() -> T) -> T {
        let thread = format!("{:?}", std::thread::current().id());
        self.tell(&Message::Enter { thread: thread.clone(), step: step.clone() });
        let outcome = run();
        self.tell(&Message::Leave { thread });
        outcome
    }
}
