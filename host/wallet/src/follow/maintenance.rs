//! The alarm thread. It never waits for the node, so wallets lock on time.

use std::time::{Duration, Instant};

use super::thread::Follower;
use super::worker::{Alarm, Due};
use crate::live::feed::Item;
use crate::live::outgoing::OfferScope;
use outrigger_base::contain::contain;

/// How often maintenance stores positions that are far ahead of the stored ones, and frees the caches of idle wallets.
const STORE_EVERY: Duration = Duration::from_secs(60);
/// The most wallets whose positions one maintenance stores: each costs an fsync, during which alarms wait.
const MAX_STORED: usize = 100;

impl Follower {
    pub(super) fn run_alarms(&self) {
        self.plan_maintenance();
        while let Some(alarm) = self.alarms.next() {
            contain("timed work on wallets", || self.ring(alarm));
        }
    }

    fn plan_maintenance(&self) {
        self.alarms.set(Instant::now() + STORE_EVERY, Due::Maintenance);
    }

    fn ring(&self, (at, due): Alarm) {
        match due {
            Due::Lock(slot) => self.get(slot).iter().for_each(|wallet| wallet.lock_if_due()),
            Due::Retry(slot) => {
                if let Some(wallet) = self.get(slot).filter(|wallet| wallet.try_again(at)) {
                    self.give(&wallet, Item::Reconcile);
                }
            }
            Due::Resend(slot) => {
                if self.get(slot).is_some_and(|wallet| wallet.take_due_resend(at)) {
                    self.resends.queue(slot, OfferScope::All);
                }
            }
            Due::Maintenance => {
                self.plan_maintenance();
                self.run_maintenance();
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
