//! The queue of the resend thread, which offers unconfirmed transactions to the node again. That thread may wait for
//! the node; the alarm thread never does.

use std::collections::BTreeMap;

use super::worker::Worker;
use crate::live::index::WalletNumber;
use crate::live::outgoing::OfferScope;

pub type Resends = Worker<BTreeMap<WalletNumber, OfferScope>>;

impl Resends {
    pub fn queue(&self, slot: WalletNumber, offered: OfferScope) {
        self.give(|due| {
            let planned = due.entry(slot).or_insert(offered);
            *planned = offered.max(*planned);
        });
    }

    /// Waits for the next wallet. `None` ends the thread.
    pub fn next(&self) -> Option<(WalletNumber, OfferScope)> {
        self.take(|due| due.pop_first().ok_or(None))
    }
}
