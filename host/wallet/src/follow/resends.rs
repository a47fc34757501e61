//! Transactions on their way to the node: those that are being sent, and the thread that offers unconfirmed ones again. It may
//! wait for the node, which the thread of the alarms never does.

use std::collections::BTreeSet;
use std::time::Instant;

use bitcoin::Txid;

use super::index::WalletNumber;
use super::worker::{Wait, Worker};
use crate::error::Result;

/// What of a wallet is on its way.
#[derive(Default)]
pub struct Outgoing {
    /// The transactions that are being sent, and may be taken back. They are not offered beside.
    pub sending: BTreeSet<Txid>,
    /// When the unconfirmed ones are offered again.
    pub planned: Option<Instant>,
}

/// The wallets whose unconfirmed transactions are to be offered again.
#[derive(Default)]
pub struct Resends(Worker<BTreeSet<WalletNumber>>);

impl Resends {
    /// Starts the thread that offers them.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(&self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        self.0.start("wallet resends", run)
    }

    /// Has a wallet's transactions offered soon.
    pub fn queue(&self, slot: WalletNumber) {
        self.0.give(|due| {
            due.insert(slot);
        });
    }

    /// Waits for the next wallet; none when the thread is to end.
    pub fn next(&self) -> Option<WalletNumber> {
        self.0.take(|due| due.pop_first().ok_or(Wait(None)))
    }

    /// Ends the thread after what it is doing.
    pub fn stop(&self) {
        self.0.stop();
    }
}
