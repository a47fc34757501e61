//! The queue of the resend thread, which offers unconfirmed transactions to the node again. It may wait for the node;
//! the alarm thread never does.

use std::collections::BTreeMap;

use super::worker::{Wait, Worker};
use crate::error::Result;
use crate::live::index::WalletNumber;
use crate::live::outgoing::OfferScope;

#[derive(Default)]
pub struct Resends(Worker<BTreeMap<WalletNumber, OfferScope>>);

impl Resends {
    pub fn start(&self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.0.start("wallet resends", run)
    }

    pub fn queue(&self, slot: WalletNumber, offered: OfferScope) {
        self.0.give(|due| {
            let planned = due.entry(slot).or_insert(offered);
            *planned = offered.max(*planned);
        });
    }

    /// Waits for the next wallet. `None` ends the thread.
    pub fn next(&self) -> Option<(WalletNumber, OfferScope)> {
        self.0.take(|due| due.pop_first().ok_or(Wait(None)))
    }

    pub fn stop(&self) {
        self.0.stop();
    }
}
