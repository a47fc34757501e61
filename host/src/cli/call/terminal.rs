//! Secrets typed at a terminal: what is typed is not shown, and the terminal is left as it was, whatever happens.

use std::io::{self, IsTerminal, stdin};
use std::process::exit;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

/// A terminal that does not show what is typed, until this value is dropped.
pub struct HiddenInput {
    before: Termios,
}

impl HiddenInput {
    /// Hides what is typed from now on; none where standard input is no terminal. What was typed before is thrown away, as it
    /// was shown.
    ///
    /// # Errors
    /// When the terminal does not let itself be set, or no signals can be listened for, which would leave it as it is.
    pub fn begin() -> io::Result<Option<Self>> {
        if !stdin().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        let to_restore = before.clone();
        at_signal(move || restore(&to_restore))?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The ends of lines are shown, so that whoever types sees that they are taken.
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
    // A terminal that has gone needs no care.
    let _ = tcsetattr(stdin(), OptionalActions::Now, before);
}

/// Ends the process in order on the signals that would end it at once.
///
/// # Errors
/// No signals can be listened for.
pub fn at_signal(tidy: impl FnOnce() + Send + 'static) -> io::Result<()> {
    on_signal(move |number| {
        tidy();
        // What a shell makes of a program that a signal has ended.
        exit(128 + number);
    })
}

/// Acts on the first signal that would end the process at once, by its number. Later signals change nothing.
///
/// # Errors
/// No signals can be listened for.
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
