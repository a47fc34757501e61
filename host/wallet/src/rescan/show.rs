//! Telling how far a rescan has come: in the log, and as a bar where the host runs at a terminal.

use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

/// How often the log says how far it is.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// How often the bar is drawn, and how long a rescan takes before it is drawn at all.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// The bar's width, in characters.
const WIDTH: u64 = 40;
/// One whole, in millionths.
const WHOLE: u64 = 1_000_000;

/// What is told of one rescan.
pub struct Show {
    wallet: String,
    first: u32,
    begun: Instant,
    logged: Instant,
    drawn: Instant,
    terminal: bool,
    visible: bool,
}

impl Show {
    /// A rescan of a wallet that began at the height `first` and stands at `next` now.
    pub fn new(wallet: &str, first: u32, next: u32) -> Self {
        let now = Instant::now();
        let said = if first == next { "rescan begins" } else { "rescan goes on" };
        tracing::info!(wallet, height = next, "{said}");
        let terminal = std::io::stderr().is_terminal();
        Self { wallet: wallet.to_owned(), first, begun: now, logged: now, drawn: now, terminal, visible: false }
    }

    /// It has come to `next`, and goes to `last`. Gives the part that is done, in millionths.
    pub fn progress(&mut self, next: u32, last: u32) -> u32 {
        let done = u64::from(next.saturating_sub(self.first));
        let all = u64::from(last.saturating_sub(self.first)) + 1;
        let part = (done * WHOLE / all).min(WHOLE);
        if self.logged.elapsed() >= LOG_EVERY {
            self.logged = Instant::now();
            tracing::info!(wallet = self.wallet, height = next, percent = part / (WHOLE / 100), "rescanning");
        }
        if self.terminal && self.drawn.elapsed() >= DRAW_EVERY {
            self.drawn = Instant::now();
            self.visible = true;
            self.draw(&bar(&self.wallet, part));
        }
        u32::try_from(part).unwrap_or(u32::MAX)
    }

    /// It has come to its end.
    pub fn end(&mut self) {
        let milliseconds = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(wallet = self.wallet, milliseconds, "rescan done");
    }

    fn draw(&self, text: &str) {
        // A terminal that has gone away takes nothing from the rescan.
        let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        if self.visible {
            self.draw("");
        }
    }
}

fn bar(wallet: &str, part: u64) -> String {
    let filled = usize::try_from(part * WIDTH / WHOLE).unwrap_or(0);
    let empty = usize::try_from(WIDTH).unwrap_or(0).saturating_sub(filled);
    let name = if wallet.is_empty() { String::new() } else { format!(" {wallet}") };
    format!("rescan{name} [{}{}] {:3}%", "#".repeat(filled), "-".repeat(empty), part / (WHOLE / 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_with_the_part_that_is_done() {
        assert_eq!(bar("", 0), format!("rescan [{}]   0%", "-".repeat(40)));
        assert_eq!(bar("w", WHOLE / 2), format!("rescan w [{}{}]  50%", "#".repeat(20), "-".repeat(20)));
        assert_eq!(bar("w", WHOLE), format!("rescan w [{}] 100%", "#".repeat(40)));
    }

    #[test]
    fn the_part_is_counted_from_the_first_block_to_the_last() {
        let mut show = Show::new("w", 100, 100);
        assert_eq!([100, 150, 200, 300].map(|next| show.progress(next, 199)), [0, 500_000, 1_000_000, 1_000_000]);
        // One that goes on counts what it did before.
        assert_eq!(Show::new("w", 100, 150).progress(150, 199), 500_000);
    }
}
