//! Timed work on wallets: locking, retries after a failure, resends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::worker::Worker;
use crate::live::index::WalletNumber;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    Lock,
    /// The wallet tries again to follow the chain.
    Retry,
    Resend,
}

pub type Alarm = (Instant, Due, WalletNumber);

pub type Alarms = Worker<BinaryHeap<Reverse<Alarm>>>;

/// The next task of the alarm thread.
pub enum Next {
    Due(Vec<Alarm>),
    Maintenance,
    Stop,
}

impl Alarms {
    pub fn set(&self, at: Instant, due: Due, slot: WalletNumber) {
        self.give(|alarms| alarms.push(Reverse((at, due, slot))));
    }

    #[cfg(test)]
    pub fn retries(&self) -> usize {
        self.look(|alarms| alarms.iter().filter(|Reverse((_, due, _))| matches!(due, Due::Retry)).count())
    }

    /// Waits for the next alarm, at most until `maintenance`.
    pub fn next(&self, maintenance: Instant) -> Next {
        let take = |alarms: &mut BinaryHeap<Reverse<Alarm>>| {
            let now = Instant::now();
            let mut due = Vec::new();
            while let Some(Reverse(alarm)) = alarms.peek().copied().filter(|Reverse((at, ..))| *at <= now) {
                alarms.pop();
                due.push(alarm);
            }
            if !due.is_empty() {
                return Ok(Next::Due(due));
            }
            if maintenance <= now {
                return Ok(Next::Maintenance);
            }
            let until = alarms.peek().map_or(maintenance, |Reverse((at, ..))| maintenance.min(*at));
            Err(Some(until - now))
        };
        self.take(take).unwrap_or(Next::Stop)
    }
}
