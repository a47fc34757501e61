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
pub fn beside<T: Send>(
    connection: &Connection,
    method: &str,
    call: impl FnOnce() -> T,
    succeeded: impl Fn(&T) -> bool,
) -> T {
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        let drawing = scope.spawn(move || {
            let mut drawn = None;
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if let Some((what, done)) = scanning(connection).or_else(|| told(connection, method)) {
                    draw(&bar(what, done));
                    drawn = Some((what, done));
                }
            }
            drawn
        });
        let outcome = call();
        drop(ended);
        if let Ok(Some((what, done))) = drawing.join() {
            draw(&last_line(what, done, succeeded(&outcome)));
        }
        outcome
    })
}

/// How far the wallet's scan is.
fn scanning(connection: &Connection) -> Option<(&'static str, f64)> {
    let info = connection.call("getwalletinfo", "[]").ok()?;
    Some(("scanning", info["result"]["scanning"]["progress"].as_f64()?))
}

/// How far a plugin says that its call of this method is. Of several, the first one counts.
fn told(connection: &Connection, method: &str) -> Option<(&'static str, f64)> {
    let info = connection.call("getrpcinfo", "[]").ok()?;
    let calls = info["result"]["active_commands"].as_array()?.clone();
    let progress = calls.into_iter().filter(|call| call["method"] == method).map(|call| call["progress"].clone());
    progress.into_iter().find_map(|told| Some(("working", told["done"].as_f64()? / told["total"].as_f64()?)))
}

/// The bar as it stays, on a line of its own.
fn last_line(what: &str, done: f64, succeeded: bool) -> String {
    bar(what, if succeeded { 1.0 } else { done }) + "\n"
}

/// A bar of which `done` of 1 is filled.
fn bar(what: &str, done: f64) -> String {
    let done = done.clamp(0.0, 1.0);
    let filled = (done * WIDTH as f64) as usize;
    format!("{what} [{}{}] {:3.0} %", "#".repeat(filled), " ".repeat(WIDTH - filled), done * 100.0)
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
        assert_eq!(bar("scanning", 0.0), format!("scanning [{}]   0 %", " ".repeat(WIDTH)));
        assert_eq!(bar("scanning", 0.5), format!("scanning [{}{}]  50 %", "#".repeat(20), " ".repeat(20)));
        assert_eq!(bar("scanning", 1.5), format!("scanning [{}] 100 %", "#".repeat(WIDTH)));
    }

    #[test]
    fn the_last_line_of_a_bar_stands_alone() {
        assert_eq!(last_line("scanning", 0.9, true), bar("scanning", 1.0) + "\n");
        assert_eq!(last_line("scanning", 0.5, false), bar("scanning", 0.5) + "\n");
    }
}
