//! The queue of the scrub thread: wallets whose files still contain a former secret.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::worker::Worker;
use crate::live::index::WalletNumber;

/// The first and the longest pause before a retry.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(600);

/// When a removal is tried again, and the pause before that.
pub type Scrubs = Worker<BTreeMap<WalletNumber, (Instant, Duration)>>;

impl Scrubs {
    /// Schedules a retry. Returns false if the wallet has one already.
    pub fn plan(&self, slot: WalletNumber) -> bool {
        self.give(|due| {
            let is_new = !due.contains_key(&slot);
            due.entry(slot).or_insert((Instant::now() + FIRST_PAUSE, FIRST_PAUSE));
            is_new
        })
    }

    pub fn forget(&self, slot: WalletNumber) {
        self.give(|due| due.remove(&slot));
    }

    /// Waits for the next wallet, and schedules a further retry after a longer pause. So the thread tries again even if
    /// the attempt panics. `None` ends the thread.
    pub fn next(&self) -> Option<WalletNumber> {
        self.take(|due| {
            let Some((slot, (at, pause))) = due.iter_mut().min_by_key(|(_, retry)| retry.0) else { return Err(None) };
            if *at > Instant::now() {
                return Err(Some(*at));
            }
            *pause = LAST_PAUSE.min(2 * *pause);
            *at = Instant::now() + *pause;
            Ok(*slot)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wallet_that_cannot_be_freed_of_a_secret_is_tried_less_and_less_often() {
        let scrubs = Scrubs::default();
        assert!(scrubs.plan(7) && !scrubs.plan(7));
        let pauses = [(); 15].map(|()| {
            // The pause is over.
            scrubs.give(|due| due.values_mut().for_each(|(at, _)| *at = Instant::now()));
            assert_eq!(scrubs.next(), Some(7));
            scrubs.give(|due| due[&7].1)
        });
        assert_eq!(pauses[..3], [2, 4, 8].map(|times| FIRST_PAUSE * times));
        assert_eq!(pauses[14], LAST_PAUSE);
    }
}
