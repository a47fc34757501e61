//! Logs the progress of a rescan.

use std::time::{Duration, Instant};

use outrigger_node::SearchReads;

const LOG_EVERY: Duration = Duration::from_secs(10);
/// When the first report is logged. It includes an estimate of the remaining time.
const FIRST_LOG_AFTER: Duration = Duration::from_secs(2);
/// In millionths.
const WHOLE: u64 = 1_000_000;

pub struct Show {
    wallet: String,
    first: u32,
    /// The height at which this run started or resumed.
    start: u32,
    begun: Instant,
    logged: Instant,
}

impl Show {
    /// Logs the start of a rescan that began at the height `first`, is at `next` and goes to `last`. `reads` is the data
    /// that the node reads of each block.
    pub fn new(wallet: &str, first: u32, next: u32, last: u32, reads: SearchReads) -> Self {
        let now = Instant::now();
        let said = if first == next { "rescan begins" } else { "rescan goes on" };
        let blocks = last.saturating_add(1).saturating_sub(next);
        tracing::info!(wallet, height = next, blocks, %reads, "{said}");
        // Makes the first report due after `FIRST_LOG_AFTER`.
        let logged = now.checked_sub(LOG_EVERY.saturating_sub(FIRST_LOG_AFTER)).unwrap_or(now);
        Self { wallet: wallet.to_owned(), first, start: next, begun: now, logged }
    }

    /// Logs the progress now and then. Returns the finished part, in millionths.
    pub fn progress(&mut self, next: u32, last: u32) -> u32 {
        let done = u64::from(next.saturating_sub(self.first));
        let all = u64::from(last.saturating_sub(self.first)) + 1;
        let part = (done * WHOLE / all).min(WHOLE);
        if self.logged.elapsed() >= LOG_EVERY {
            self.logged = Instant::now();
            let (percent, seconds_left) = (part / (WHOLE / 100), self.seconds_left(next, last));
            tracing::info!(wallet = self.wallet, height = next, percent, seconds_left, "rescanning");
        }
        u32::try_from(part).unwrap_or(u32::MAX)
    }

    /// An extrapolation; `None` before any progress.
    fn seconds_left(&self, next: u32, last: u32) -> Option<u64> {
        let left = u64::from(last.saturating_add(1).saturating_sub(next));
        (self.begun.elapsed().as_secs() * left).checked_div(u64::from(next.saturating_sub(self.start)))
    }

    pub fn end(&self) {
        let milliseconds = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(wallet = self.wallet, milliseconds, "rescan done");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_is_counted_from_the_first_block_to_the_last() {
        let mut show = Show::new("w", 100, 100, 199, SearchReads::Blocks);
        assert_eq!([100, 150, 200, 300].map(|next| show.progress(next, 199)), [0, 500_000, 1_000_000, 1_000_000]);
        assert_eq!(show.seconds_left(100, 199), None);
        show.begun -= Duration::from_secs(30);
        assert_eq!(show.seconds_left(125, 199), Some(90));
        // A resumed rescan counts its earlier progress.
        assert_eq!(Show::new("w", 100, 150, 199, SearchReads::Blocks).progress(150, 199), 500_000);
    }
}
