//! The queue of the scrub thread: wallets whose files still contain a former secret.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::worker::Worker;
use crate::live::index::WalletNumber;

/// The first and the longest pause before a retry.
pub const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(600);

/// When a removal is tried again, and the pause before that.
pub type Scrubs = Worker<BTreeMap<WalletNumber, (Instant, Duration)>>;

impl Scrubs {
    /// Schedules a retry, unless the wallet has one.
    pub fn plan(&self, slot: WalletNumber, pause: Duration) {
        self.give(|due| {
            due.entry(slot).or_insert((Instant::now() + pause, pause));
        });
    }

    /// Forgets the wallet's retry.
    pub fn forget(&self, slot: WalletNumber) {
        self.give(|due| {
            due.remove(&slot);
        });
    }

    /// Waits for the next wallet. Returns it with the pause before a further retry. `None` ends the thread.
    pub fn next(&self) -> Option<(WalletNumber, Duration)> {
        self.take(|due| {
            let first = due.iter().min_by_key(|(_, (at, _))| *at);
            let Some((slot, (at, pause))) = first.map(|(slot, retry)| (*slot, *retry)) else { return Err(None) };
            let left = at.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Err(Some(left));
            }
            due.remove(&slot);
            Ok((slot, longer(pause)))
        })
    }
}

fn longer(pause: Duration) -> Duration {
    (2 * pause).min(LAST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wallet_that_cannot_be_freed_of_a_secret_is_tried_less_and_less_often() {
        let scrubs = Scrubs::default();
        scrubs.plan(7, Duration::ZERO);
        // The wallet has a retry already.
        scrubs.plan(7, LAST_PAUSE);
        assert_eq!(scrubs.next(), Some((7, Duration::ZERO)));
        assert_eq!([1, 2, 4].map(|times| longer(FIRST_PAUSE * times)), [2, 4, 8].map(|times| FIRST_PAUSE * times));
        assert_eq!(longer(LAST_PAUSE), LAST_PAUSE);
    }
}
