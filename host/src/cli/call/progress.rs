//! A progress bar in the terminal, for calls that scan the chain or report progress.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::connection::Connection;

/// The time before the first query for a call's progress, and between queries.
const LOOK: Duration = Duration::from_millis(700);

const WIDTH: usize = 40;

/// Runs a call, and meanwhile draws the progress of the wallet's scan or of the call, if there is any. The last bar ends with a
/// newline, and is full if the call `succeeded`.
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
                if let Some((what, done)) = scanning(connection).or_else(|| reported(connection, method)) {
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

/// The progress of the wallet's scan, from 0 to 1.
fn scanning(connection: &Connection) -> Option<(&'static str, f64)> {
    let info = connection.call("getwalletinfo", "[]").ok()?;
    Some(("scanning", info["result"]["scanning"]["progress"].as_f64()?))
}

/// The progress that a plugin reports for a call of this method, from 0 to 1. Of several calls, the first counts.
fn reported(connection: &Connection, method: &str) -> Option<(&'static str, f64)> {
    let info = connection.call("getrpcinfo", "[]").ok()?;
    let calls = info["result"]["active_commands"].as_array()?.clone();
    let progress = calls.into_iter().filter(|call| call["method"] == method).map(|call| call["progress"].clone());
    progress.into_iter().find_map(|told| Some(("working", told["done"].as_f64()? / told["total"].as_f64()?)))
}

/// The last bar, with a newline.
fn last_line(what: &str, done: f64, succeeded: bool) -> String {
    bar(what, if succeeded { 1.0 } else { done }) + "\n"
}

/// A bar that is filled to `done`, from 0 to 1.
fn bar(what: &str, done: f64) -> String {
    let done = done.clamp(0.0, 1.0);
    let filled = (done * WIDTH as f64) as usize;
    format!("{what} [{}{}] {:3.0} %", "#".repeat(filled), " ".repeat(WIDTH - filled), done * 100.0)
}

fn draw(text: &str) {
    let mut terminal = std::io::stderr();
    // The terminal may be closed.
    let _ = write!(terminal, "\r{text}").and_then(|()| terminal.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_filled_to_its_progress() {
        assert_eq!(bar("scanning", 0.0), format!("scanning [{}]   0 %", " ".repeat(WIDTH)));
        assert_eq!(bar("scanning", 0.5), format!("scanning [{}{}]  50 %", "#".repeat(20), " ".repeat(20)));
        assert_eq!(bar("scanning", 1.5), format!("scanning [{}] 100 %", "#".repeat(WIDTH)));
    }

    #[test]
    fn the_last_bar_ends_its_line() {
        assert_eq!(last_line("scanning", 0.9, true), bar("scanning", 1.0) + "\n");
        assert_eq!(last_line("scanning", 0.5, false), bar("scanning", 0.5) + "\n");
    }
}
