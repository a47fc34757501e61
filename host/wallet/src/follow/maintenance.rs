//! The alarm thread. It never waits for the node, so wallets lock on time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::alarms::{Alarm, Due, Next};
use super::thread::Follower;
use crate::live::feed::Item;
use crate::live::outgoing::OfferScope;

/// How often maintenance stores positions that are far ahead of the stored ones, and frees the caches of idle wallets.
const STORE_EVERY: Duration = Duration::from_secs(60);
/// The most wallets whose positions one maintenance stores: each costs an fsync, during which alarms wait.
const MAX_STORED: usize = 100;

impl Follower {
    pub(super) fn run_alarms(&self) {
        let mut maintenance = Instant::now() + STORE_EVERY;
        loop {
            match self.alarms.next(maintenance) {
                Next::Stop => return,
                Next::Due(alarms) => alarms.into_iter().for_each(|alarm| {
                    if catch_unwind(AssertUnwindSafe(|| self.ring(alarm))).is_err() {
                        tracing::error!("timed work on a wallet panicked");
                    }
                }),
                Next::Maintenance => {
                    maintenance = Instant::now() + STORE_EVERY;
                    if catch_unwind(AssertUnwindSafe(|| self.run_maintenance())).is_err() {
                        tracing::error!("maintenance of idle wallets failed");
                    }
                }
            }
        }
    }

    fn ring(&self, (at, due, slot): Alarm) {
        let Some(wallet) = self.get(slot) else { return };
        match due {
            Due::Lock => wallet.lock_if_due(),
            Due::Retry => {
                if wallet.try_again(at) {
                    self.give(&wallet, Item::Reconcile(1));
                }
            }
            Due::Resend => {
                if wallet.take_due_resend(at) {
                    self.resends.queue(slot, OfferScope::All);
                }
            }
        }
    }

    /// Stores positions, and frees the caches of idle wallets.
    pub(crate) fn run_maintenance(&self) {
        let wallets = self.loaded();
        wallets.iter().for_each(|wallet| wallet.rest());
        wallets
            .iter()
            .filter(|wallet| wallet.is_far_ahead())
            .take(MAX_STORED)
            .for_each(|wallet| wallet.store_if_free());
        self.index.sweep();
    }
}
