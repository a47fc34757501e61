//! The plugin's process reports each step to the tool over a socket.
//!
//! The socket is the process's standard input, so that the plugin's output cannot get between the messages.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use parking_lot::Mutex;

use super::protocol::{Message, Step};

/// The exit code when the tool has gone.
const EXIT_ALONE: i32 = 3;

pub struct Reporter {
    socket: Mutex<UnixStream>,
}

impl Reporter {
    pub fn new() -> std::io::Result<Self> {
        let socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Self { socket: Mutex::new(socket) })
    }

    /// Sends a message. Exits the process if the tool is gone.
    pub fn tell(&self, message: &Message) {
        let line = serde_json::to_string(message).unwrap_or_default() + "\n";
        let mut socket = self.socket.lock();
        if socket.write_all(line.as_bytes()).is_err() {
            // The tool is gone, so nobody reads the messages.
            std::process::exit(EXIT_ALONE);
        }
    }

    /// Runs code that enters the plugin on the current thread, and reports its beginning and its end.
    pub fn step<T>(&self, step: &Step, run: impl FnOnce() -> T) -> T {
        let thread = format!("{:?}", std::thread::current().id());
        self.tell(&Message::Enter { thread: thread.clone(), step: step.clone() });
        let outcome = run();
        self.tell(&Message::Leave { thread });
        outcome
    }
}
