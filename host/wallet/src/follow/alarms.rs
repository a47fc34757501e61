//! What is due for wallets at a time: they are locked, follow the node again after a failure, or offer transactions again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::worker::{Wait, Worker};
use crate::error::Result;
use crate::live::index::WalletNumber;

/// What happens to a wallet at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    Lock,
    /// It is tried again, as it could not follow.
    Retry,
    /// Its unconfirmed transactions are offered to the node again.
    Resend,
}

/// What is due at a time, and for which wallet.
pub type Alarm = (Instant, Due, WalletNumber);

/// The alarms that are set.
#[derive(Default)]
pub struct Alarms(Worker<BinaryHeap<Reverse<Alarm>>>);

/// What the thread has to do next.
pub enum Next {
    Due(Vec<Alarm>),
    Maintenance,
    /// Nothing more.
    Stop,
}

impl Alarms {
    /// Starts the thread that does what is due.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(&self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.0.start("wallet alarms", run)
    }

    /// Makes something happen to a wallet at a time.
    pub fn set(&self, at: Instant, due: Due, slot: WalletNumber) {
        self.0.give(|alarms| alarms.push(Reverse((at, due, slot))));
    }

    /// How many alarms are set that have wallets tried again.
    #[cfg(test)]
    pub fn retries(&self) -> usize {
        self.0.look(|alarms| alarms.iter().filter(|Reverse((_, due, _))| matches!(due, Due::Retry)).count())
    }

    pub fn stop(&self) {
        self.0.stop();
    }

    /// Waits for what has to be done next, which is maintenance from that time on.
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
            Err(Wait(Some(until - now)))
        };
        self.0.take(take).unwrap_or(Next::Stop)
    }
}
