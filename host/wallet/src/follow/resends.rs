//! Transactions on their way to the node: those that are being sent, and the thread that offers unconfirmed ones again. It may
//! wait for the node, which the thread of the alarms never does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use bitcoin::Txid;
use bitcoin::absolute::LockTime;
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::Synced;

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
    /// How many were ever added to these.
    pub noted: u64,
}

impl Outgoing {
    /// Notes one that may be idle, with the node's refusal where there is one.
    pub fn note_idle(&mut self, txid: Txid, refusal: Option<Refusal>) {
        self.noted += 1;
        self.idle.insert(txid, refusal);
    }
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

/// A payment that is idle, and its locktime.
#[derive(Clone, Debug)]
pub struct Unsent {
    /// Its id.
    pub txid: Txid,
    /// Until when it cannot be in the mempool.
    pub lock_time: LockTime,
}

impl Unsent {
    /// Whether its locktime has passed in the next block after this one.
    pub fn is_final(&self, tip: &Synced) -> bool {
        match self.lock_time {
            LockTime::Blocks(height) => height.to_consensus_u32() <= tip.height,
            LockTime::Seconds(time) => time.to_consensus_u32() < tip.median_time,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::BlockHash;
    use bitcoin::hashes::Hash;

    #[test]
    fn getwalletinfo_warns_of_no_payment_whose_locktime_lies_ahead() {
        let tip = Synced { hash: BlockHash::all_zeros(), height: 100, time: 0, median_time: 600_000_000 };
        let is_final = |lock_time| {
            Unsent { txid: Txid::all_zeros(), lock_time: LockTime::from_consensus(lock_time) }.is_final(&tip)
        };
        assert_eq!([0, 100, 101].map(is_final), [true, true, false]);
        assert_eq!([599_999_999, 600_000_000].map(is_final), [true, false]);
    }
}
