//! What the node told, and what is in its mempool.

use std::collections::{BTreeSet, HashSet};

use bitcoin::consensus::deserialize;
use bitcoin::{Transaction, Txid};
use heed::RoTxn;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::wallet::{TxState, WalletTransaction};

use crate::node::observer::{NodeEvent, Removal};
use crate::wallet::error::{Result, WalletError};
use crate::wallet::live::Wallet;
use crate::wallet::lock;
use crate::wallet::matching::{Match, examine};
use crate::wallet::store::tables::{OF_MEMPOOL, txid_from};
use crate::wallet::write::Write;

/// How many events are taken over in one write at most.
const EVENTS_PER_WRITE: usize = 200;
/// How many transactions are asked of the mempool at a time.
const BATCH: usize = 256;

impl Wallet {
    /// Takes over what the node told, in its order: also blocks that have left the chain again since, for the wallet
    /// should know what was in them. Then, if that did not lead to the tip that was told of, reads on from there.
    pub(in crate::wallet) fn follow(&self, events: &[NodeEvent]) -> Result<()> {
        let _following = lock(&self.following);
        for events in events.chunks(EVENTS_PER_WRITE) {
            if self.any_relevant(events)? {
                self.write(|write| events.iter().try_for_each(|event| write.take_event(event)))?;
            }
        }
        let tip = events.iter().rev().find_map(|event| match event {
            NodeEvent::TipChanged { hash, .. } => Some(*hash),
            _ => None,
        });
        match tip {
            Some(tip) if self.synced()?.hash != tip => self.advance(),
            _ => Ok(()),
        }
    }

    /// Follows the chain to its tip, and brings the wallet in step with the whole mempool.
    pub(in crate::wallet) fn reconcile(&self) -> Result<()> {
        let _following = lock(&self.following);
        self.advance()?;
        self.take_mempool()
    }

    /// Takes over what the mempool holds: after a rescan some of it may concern the wallet that did not before.
    pub(in crate::wallet) fn reread_mempool(&self) -> Result<()> {
        let _following = lock(&self.following);
        self.take_mempool()
    }

    /// Brings the wallet in step with the whole mempool. For one who holds `following`.
    fn take_mempool(&self) -> Result<()> {
        let ids = self.shared.mempool.ids(Scope::NONE)?;
        let present = ids.iter().copied().collect();
        let (gone, orphans) = self.gone_from_mempool(&present)?;
        let unknown = self.conflicts_gone_from_mempool(&present)?;
        let mut transactions = Vec::new();
        for ids in ids.chunks(BATCH) {
            for raw in self.shared.mempool.transactions(Scope::NONE, ids.to_vec())?.into_iter().flatten() {
                transactions
                    .push(deserialize::<Transaction>(&raw.raw).map_err(|_| WalletError::damaged(raw.raw.len()))?);
            }
        }
        let relevant = {
            let txn = self.store.read()?;
            let (t, mut any) = (&self.store.tables, false);
            for transaction in &transactions {
                // Also what is known: since it was met, the wallet may have derived the addresses that it pays to.
                any = any || !matches!(examine(t, &txn, transaction, &transaction.compute_txid())?, Match::Foreign);
                any = any || self.conflicts_with(&txn, transaction)?;
            }
            any
        };
        if !relevant && gone.is_empty() && unknown.is_empty() && orphans.is_empty() {
            return Ok(());
        }
        let now = self.shared.chain.time(Scope::NONE)?;
        self.write(|write| {
            for row in orphans {
                write.mark_disconnected(row)?;
            }
            for txid in gone.into_iter().chain(unknown) {
                write.leave_mempool(txid)?;
            }
            transactions.iter().try_for_each(|transaction| write.enter_mempool(transaction, now))
        })
    }

    /// What left the mempool while nobody looked; and coinbases whose blocks are gone, which older versions did not give up.
    fn gone_from_mempool(&self, present: &HashSet<Txid>) -> Result<(Vec<Txid>, Vec<WalletTransaction>)> {
        let (txn, t) = (self.store.read()?, &self.store.tables);
        let (mut gone, mut orphans) = (Vec::new(), Vec::new());
        for entry in t.unconfirmed.iter(&txn)? {
            let row = t.transaction_at(&txn, entry?.1)?;
            if row.state == TxState::InMempool && !present.contains(&row.txid) {
                gone.push(row.txid);
            } else if row.coinbase && row.state == TxState::Inactive {
                orphans.push(row);
            }
        }
        Ok((gone, orphans))
    }

    /// The transactions that the wallet takes to be in the mempool for their conflicts there, and that are not.
    fn conflicts_gone_from_mempool(&self, present: &HashSet<Txid>) -> Result<BTreeSet<Txid>> {
        let (txn, t) = (self.store.read()?, &self.store.tables);
        let mut gone = BTreeSet::new();
        for entry in t.mempool_conflicts.prefix_iter(&txn, &[OF_MEMPOOL])? {
            gone.insert(txid_from(entry?.0.get(1..33).unwrap_or_default())?);
        }
        gone.retain(|txid| !present.contains(txid));
        Ok(gone)
    }

    /// Whether a transaction spends what another one of the wallet spends.
    fn conflicts_with(&self, txn: &RoTxn<'_>, transaction: &Transaction) -> Result<bool> {
        for input in &transaction.input {
            if !self.store.tables.spenders(txn, &input.previous_output)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a transaction of the mempool changes anything for the wallet.
    fn is_news(&self, txn: &RoTxn<'_>, transaction: &Transaction) -> Result<bool> {
        Ok(match examine(&self.store.tables, txn, transaction, &transaction.compute_txid())? {
            // It may spend what is not the wallet's, and what one of the wallet spends too.
            Match::Foreign => self.conflicts_with(txn, transaction)?,
            Match::New(_) => true,
            Match::Known(row) => !matches!(row.state, TxState::InMempool | TxState::Confirmed { .. }),
        })
    }

    fn any_relevant(&self, events: &[NodeEvent]) -> Result<bool> {
        let txn = self.store.read()?;
        for event in events {
            let relevant = match event {
                NodeEvent::TransactionAdded { transaction, .. } => self.is_news(&txn, transaction)?,
                NodeEvent::TransactionRemoved { txid, .. } => {
                    let t = &self.store.tables;
                    let row = t.transaction(&txn, txid)?;
                    row.is_some_and(|row| row.state == TxState::InMempool)
                        || !t.mempool_conflicts_of(&txn, OF_MEMPOOL, txid)?.is_empty()
                }
                NodeEvent::BlockConnected { .. } | NodeEvent::BlockDisconnected { .. } => true,
                NodeEvent::TipChanged { .. } => false,
            };
            if relevant {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Write<'_> {
    fn take_event(&mut self, event: &NodeEvent) -> Result<()> {
        match event {
            NodeEvent::TransactionAdded { transaction, time, .. } => self.enter_mempool(transaction, *time),
            // The block that confirms it says so too, sooner or later.
            NodeEvent::TransactionRemoved { txid, reason: Removal::Confirmed, .. } => {
                self.forget_mempool_conflicts(*txid)
            }
            NodeEvent::TransactionRemoved { txid, .. } => self.leave_mempool(*txid),
            NodeEvent::BlockConnected { hash, .. } => self.take_connected(*hash),
            NodeEvent::BlockDisconnected { hash, .. } => self.take_disconnected(*hash),
            NodeEvent::TipChanged { .. } => Ok(()),
        }
    }

    fn enter_mempool(&mut self, transaction: &Transaction, received: u64) -> Result<()> {
        let txid = transaction.compute_txid();
        let row = self.t.transaction(&self.txn, &txid)?;
        if row.is_some_and(|row| matches!(row.state, TxState::Confirmed { .. })) {
            return Ok(());
        }
        self.consider(transaction, txid, TxState::InMempool, received)?;
        self.note_mempool_conflicts(txid, transaction.input.iter().map(|input| input.previous_output))
    }

    fn leave_mempool(&mut self, txid: Txid) -> Result<()> {
        self.forget_mempool_conflicts(txid)?;
        match self.t.transaction(&self.txn, &txid)? {
            Some(row) if row.state == TxState::InMempool => self.set_state(row, TxState::Inactive),
            _ => Ok(()),
        }
    }

    /// Of transactions that a reorganisation made unconfirmed, marks those that are in the mempool.
    pub(super) fn find_in_mempool(&mut self, undone: BTreeSet<Txid>) -> Result<()> {
        let inactive = undone.into_iter().collect::<Vec<_>>();
        for txids in inactive.chunks(BATCH) {
            let entries = self.wallet.shared.mempool.entries(Scope::NONE, txids.to_vec())?;
            for txid in txids.iter().zip(entries).filter_map(|(txid, entry)| entry.map(|_| *txid)) {
                match self.t.transaction(&self.txn, &txid)? {
                    Some(row) if row.state == TxState::Inactive => {
                        self.note_mempool_conflicts(txid, row.inputs.clone())?;
                        self.note_payments(row.outputs.iter().map(|output| output.script.as_script()))?;
                        let row = self.t.transaction(&self.txn, &txid)?.unwrap_or(row);
                        self.set_state(row, TxState::InMempool)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// The raw serialisations of the wallet's transactions that are neither confirmed nor in the mempool nor given up.
pub(super) fn idle_transactions(wallet: &Wallet) -> Result<Vec<Vec<u8>>> {
    let (txn, t) = (wallet.store.read()?, &wallet.store.tables);
    let mut raw = Vec::new();
    for entry in t.unconfirmed.iter(&txn)? {
        let row = t.transaction_at(&txn, entry?.1)?;
        let idle = row.state == TxState::Inactive && !row.coinbase;
        if idle && let Some(bytes) = t.serialised(&txn, &row.txid)? {
            raw.push(bytes.to_vec());
        }
    }
    Ok(raw)
}

impl Wallet {
    /// Offers the wallet's unconfirmed transactions to the mempool again, as bitcoind does after loading a wallet and
    /// after a rescan. What the mempool makes of them comes back as its events.
    pub(in crate::wallet) fn resubmit(&self) -> Result<()> {
        for raw in idle_transactions(self)? {
            let _ = self.shared.mempool.submit(Scope::NONE, raw.into(), 0)?;
        }
        Ok(())
    }
}
