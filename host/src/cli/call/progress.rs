//! A bar for calls that scan the chain, for whoever waits at a terminal.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::connection::Connection;

/// How long a call runs before it is looked at what the wallet does, and how often that is looked at.
const LOOK: Duration = Duration::from_millis(700);

/// The width of the bar.
const WIDTH: usize = 40;

/// Runs a call, and meanwhile draws how far the wallet's scan is, if it scans. What was drawn ends with a line end: full, where
/// the call `succeeded`.
pub fn beside<T: Send>(connection: &Connection, call: impl FnOnce() -> T, succeeded: impl Fn(&T) -> bool) -> T {
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        let drawing = scope.spawn(move || {
            let mut drawn = None;
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let info = connection.call("getwalletinfo", "[]").unwrap_or_default();
                if let Some(done) = info["result"]["scanning"]["progress"].as_f64() {
                    draw(&bar(done));
                    drawn = Some(done);
                }
            }
            drawn
        });
        let outcome = call();
        drop(ended);
        if let Ok(Some(done)) = drawing.join() {
            draw(&last_line(done, succeeded(&outcome)));
        }
        outcome
    })
}

/// The bar as it stays, on a line of its own.
fn last_line(done: f64, succeeded: bool) -> String {
    bar(if succeeded { 1.0 } else { done }) + "\n"
}

/// A bar of which `done` of 1 is filled.
fn bar(done: f64) -> String {
    let done = done.clamp(0.0, 1.0);
    let filled = (done * WIDTH as f64) as usize;
    format!("scanning [{}{}] {:3.0} %", "#".repeat(filled), " ".repeat(WIDTH - filled), done * 100.0)
}

fn draw(text: &str) {
    let mut terminal = std::io::stderr();
    // A terminal that has gone sees nothing.
    let _ = write!(terminal, "\r{text}").and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_what_is_done() {
        assert_eq!(bar(0.0), format!("scanning [{}]   0 %", " ".repeat(WIDTH)));
        assert_eq!(bar(0.5), format!("scanning [{}{}]  50 %", "#".repeat(20), " ".repeat(20)));
        assert_eq!(bar(1.5), format!("scanning [{}] 100 %", "#".repeat(WIDTH)));
    }

    #[test]
    fn the_last_line_of_a_bar_stands_alone() {
        assert_eq!(last_line(0.9, true), bar(1.0) + "\n");
        assert_eq!(last_line(0.5, false), bar(0.5) + "\n");
    }
}
