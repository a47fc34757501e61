//! Timed work: locking, retries after a failure and resends of wallets, and maintenance.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::worker::Worker;
use crate::live::index::WalletNumber;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    Lock(WalletNumber),
    /// The wallet tries again to follow the chain.
    Retry(WalletNumber),
    Resend(WalletNumber),
    Maintenance,
}

pub type Alarm = (Instant, Due);

pub type Alarms = Worker<BinaryHeap<Reverse<Alarm>>>;

impl Alarms {
    pub fn set(&self, at: Instant, due: Due) {
        self.give(|alarms| alarms.push(Reverse((at, due))));
    }

    #[cfg(test)]
    pub fn retries(&self) -> usize {
        self.give(|alarms| alarms.iter().filter(|Reverse((_, due))| matches!(due, Due::Retry(_))).count())
    }

    /// Waits for the next alarm. `None` ends the thread.
    pub fn next(&self) -> Option<Alarm> {
        self.take(|alarms| {
            let Some(Reverse((at, _))) = alarms.peek() else { return Err(None) };
            if *at > Instant::now() {
                return Err(Some(*at));
            }
            alarms.pop().map(|Reverse(alarm)| alarm).ok_or(None)
        })
    }
}
