//! Transactions on their way to the node: those that are being sent, and the thread that offers unconfirmed ones again. It may
//! wait for the node, which the thread of the alarms never does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bitcoin::Txid;
use outrigger_service::mempool::Admission;

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
    /// Those that may be neither confirmed nor in the mempool, and why the node refused them when they were last offered.
    pub idle: BTreeMap<Txid, Option<Refusal>>,
}

/// Why the node refused a transaction.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// In the node's words.
    pub reason: String,
    /// Whether a later block may end it.
    pub awaits_block: bool,
}

impl Refusal {
    /// That of an admission, if it is one.
    pub fn of(admission: &Admission) -> Option<Self> {
        Some(Self { reason: admission.refusal()?, awaits_block: admission.awaits_block() })
    }
}

/// Which of a wallet's unconfirmed transactions are offered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Offered {
    /// Those that were refused for a reason which a block may end.
    AwaitingBlock,
    /// All.
    All,
}

/// The wallets whose unconfirmed transactions are to be offered again.
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
