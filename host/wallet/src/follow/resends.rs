//! The thread that offers unconfirmed transactions to the node again. It may wait for the node, which the thread of the alarms
//! never does.

use std::collections::BTreeMap;

use super::worker::{Wait, Worker};
use crate::error::Result;
use crate::live::index::WalletNumber;
use crate::live::outgoing::Offered;

/// The queue of wallets whose unconfirmed transactions are offered again.
#[derive(Default)]
pub struct Resends(Worker<BTreeMap<WalletNumber, Offered>>);

impl Resends {
    /// Starts the thread that offers them.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(&self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.0.start("wallet resends", run)
    }

    /// Has these of a wallet's transactions offered soon.
    pub fn queue(&self, slot: WalletNumber, offered: Offered) {
        self.0.give(|due| {
            let planned = due.entry(slot).or_insert(offered);
            *planned = offered.max(*planned);
        });
    }

    /// Waits for the next wallet, and which are to be offered; none when the thread is to end.
    pub fn next(&self) -> Option<(WalletNumber, Offered)> {
        self.0.take(|due| due.pop_first().ok_or(Wait(None)))
    }

    /// Ends the thread after what it is doing.
    pub fn stop(&self) {
        self.0.stop();
    }
}
