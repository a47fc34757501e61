//! Secrets typed at a terminal, which does not echo them. Its mode is restored at the end, also after a signal.

use std::io::{self, IsTerminal, stdin};
use std::process::exit;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

/// Turns off the terminal's echo until it is dropped.
pub struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    /// Turns off echo, and discards earlier input, which the terminal has shown. `None` if standard input is not a terminal.
    pub fn begin() -> io::Result<Option<Self>> {
        if !stdin().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        let to_restore = before.clone();
        at_signal(move || restore(&to_restore))?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // Newlines are echoed, so that the user sees that a line was read.
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Some(Self { before }))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

fn restore(before: &Termios) {
    // The terminal may be closed.
    let _ = tcsetattr(stdin(), OptionalActions::Now, before);
}

/// On SIGINT, SIGTERM or SIGHUP, runs `tidy` and exits.
pub fn at_signal(tidy: impl FnOnce() + Send + 'static) -> io::Result<()> {
    on_signal(move |number| {
        tidy();
        // The exit code by which shells report a signal.
        exit(128 + number);
    })
}

/// Calls `act` with the number of the first SIGINT, SIGTERM or SIGHUP. Ignores later ones.
pub fn on_signal(act: impl FnOnce(i32) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate, mut hangup) = {
        let _within = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?)
    };
    let wait = move || {
        act(runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt().as_raw_value(),
                _ = terminate.recv() => SignalKind::terminate().as_raw_value(),
                _ = hangup.recv() => SignalKind::hangup().as_raw_value(),
            }
        }));
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}
