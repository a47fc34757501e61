//! Events of the node, and its mempool.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bitcoin::transaction::Version;
use bitcoin::{BlockHash, Transaction, Txid};
use outrigger_service::wallet::TxState;

use super::blocks::TIME_PER_TURN;
use super::decoded::{DecodedBlock, synced_at};
use super::states::contended;
use crate::error::{Result, WalletError};
use crate::live::Wallet;
use crate::live::feed::{Item, Items};
use crate::matching::{Match, Met, examine};
use crate::store::{OF_MEMPOOL, Reading, txid_from};
use crate::write::Write;
use outrigger_node::interest::interests;
use outrigger_node::{NodeEvent, Removal};

/// The most events that are processed together, and about the most bytes of their blocks. They share a write transaction.
const EVENTS_PER_STEP: usize = 200;
const BYTES_PER_STEP: usize = 16 << 20;

/// An event with the data that it needs.
enum Step {
    Enter(Arc<Transaction>, u64),
    Leave(Txid),
    Connect(Arc<DecodedBlock>),
    Disconnect(BlockHash),
}

impl Wallet {
    /// Processes items in order, for a bounded time. Unprocessed ones stay in the list, also after
    /// [`WalletError::Occupied`].
    pub(super) fn take_items(&self, items: &mut Items) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < TIME_PER_TURN
            && let Some((_, item)) = items.front()
        {
            if matches!(item, Item::Reconcile) {
                if !self.advance()? {
                    return Ok(());
                }
                self.take_mempool()?;
                items.pop_front();
                continue;
            }
            let events = items.iter().map_while(|(_, item)| item.event()).take(EVENTS_PER_STEP).cloned();
            let events: Vec<NodeEvent> = events.collect();
            let count = events.len();
            let rest = self.follow(events)?;
            let last = items.drain(..count).next_back();
            if let (Some((number, _)), Some(rest)) = (last, rest) {
                items.push_front((number, rest));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Processes events in order, including blocks that have left the chain since: the wallet should know their
    /// transactions. Then reads on to the tip of the last event. Returns that tip if the turn ends before.
    fn follow(&self, events: Vec<NodeEvent>) -> Result<Option<Item>> {
        // Reset by every block event, because its own tip event follows. To read on before that would skip blocks that
        // have left the chain and whose events are still to come.
        let mut tip = None;
        let mut steps = Vec::new();
        let mut size = 0;
        let (mut reached, mut has_new_tip) = (false, false);
        for event in events {
            match event {
                // A full read of the mempool has covered this change and the blocks before it.
                NodeEvent::TransactionAdded { sequence, .. } | NodeEvent::TransactionRemoved { sequence, .. }
                    if self.feed.has_read_mempool(sequence) => {}
                NodeEvent::TransactionAdded { transaction, time, .. } => steps.push(Step::Enter(transaction, time)),
                // The event of the block that confirms it changes its state.
                NodeEvent::TransactionRemoved { reason: Removal::Confirmed, .. } => {}
                NodeEvent::TransactionRemoved { txid, .. } => steps.push(Step::Leave(txid)),
                NodeEvent::BlockConnected { hash, height } => match self.decoded(hash) {
                    Ok(block) => {
                        size += block.size;
                        steps.push(Step::Connect(block));
                        tip = None;
                    }
                    // The block has left the chain and the node no longer has it: read the chain from the wallet's
                    // position.
                    Err(WalletError::MissingBlock(_)) => tip = Some((hash, height)),
                    Err(error) => return Err(error),
                },
                NodeEvent::BlockDisconnected { hash, .. } => {
                    steps.push(Step::Disconnect(hash));
                    tip = None;
                }
                NodeEvent::TipChanged { hash, height } => {
                    tip = Some((hash, height));
                    has_new_tip = true;
                }
                NodeEvent::Reached => reached = true,
            }
            if size > BYTES_PER_STEP {
                self.take_steps(std::mem::take(&mut steps))?;
                size = 0;
            }
        }
        self.take_steps(steps)?;
        if has_new_tip {
            // The steps may have evicted payments that the tip's block makes acceptable again.
            self.offer_to_block();
        }
        if reached {
            // Not on another thread: calls must wait until the wallet knows which of its payments the node has.
            self.offer_again()?;
        }
        match tip {
            Some((hash, height)) if self.synced().hash != hash && !self.advance()? => {
                Ok(Some(Item::Event(NodeEvent::TipChanged { hash, height })))
            }
            _ => Ok(None),
        }
    }

    /// Processes steps in order. Steps that do not touch the wallet move its position in memory. The others share a
    /// write, up to a disconnected block, which needs a query to the node.
    fn take_steps(&self, steps: Vec<Step>) -> Result<()> {
        let received = self.shared.node.time();
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            if let Step::Disconnect(hash) = step {
                self.take_disconnected(hash)?;
                continue;
            }
            let guard = self.lock_for_following()?;
            if !self.is_relevant(&step)? {
                if let Step::Connect(block) = step
                    && block.previous() == Some(self.synced().hash)
                {
                    self.feed.stand_at(synced_at(&block.info));
                }
                continue;
            }
            self.write_in(&guard, |write| {
                write.take_step(&step, received)?;
                while let Some(step) = steps.front().filter(|step| !matches!(step, Step::Disconnect(_))) {
                    write.take_step(step, received)?;
                    steps.pop_front();
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Whether a step changes more than the wallet's position.
    fn is_relevant(&self, step: &Step) -> Result<bool> {
        let index = &self.shared.follower.index;
        match step {
            Step::Enter(transaction, _) => {
                let txid = transaction.compute_txid();
                let concerns = interests(transaction, &txid).any(|interest| index.has(self.slot, interest));
                Ok(concerns && self.is_news(&*self.store.read()?, transaction)?)
            }
            Step::Leave(txid) => {
                let (txn, t) = (self.store.read()?, &self.store.tables);
                let row = t.transaction(&txn, txid)?;
                Ok(row.is_some_and(|row| row.state == TxState::InMempool)
                    || !t.mempool_conflicts_of(&txn, OF_MEMPOOL, txid)?.is_empty())
            }
            Step::Connect(block) => {
                let place = self.feed.position();
                let is_due = block.info.height >= place.due;
                Ok(block.previous() == Some(place.now.hash) && (is_due || block.concerns(index, self.slot)))
            }
            Step::Disconnect(_) => Ok(true),
        }
    }

    /// Reads the whole mempool: after a rescan, more of it may concern the wallet.
    pub(crate) fn reread_mempool(&self) {
        let follower = &self.shared.follower;
        if let Some(wallet) = follower.get(self.slot) {
            follower.give(&wallet, Item::Reconcile);
            follower.wait(self);
        }
    }

    /// Synchronises the wallet with the whole mempool.
    pub(crate) fn take_mempool(&self) -> Result<()> {
        loop {
            // Queried first: a change up to this sequence is part of the following read, or a later change has undone
            // it.
            let sequence = self.shared.node.mempool_sequence()?;
            let present = self.shared.node.mempool_ids()?.into_iter().collect();
            let index = &self.shared.follower.index;
            let found = self.shared.node.mempool_concerning(&|interest| index.has(self.slot, interest))?;
            // A payment may have derived scripts that the query did not cover.
            if !self.enter_all(&present, &found)? {
                self.feed.note_mempool(sequence);
                return Ok(());
            }
        }
    }

    /// Stores the mempool transactions that concern the wallet. Returns whether that derived scripts.
    pub(super) fn enter_all(&self, present: &HashSet<Txid>, found: &[(Txid, Arc<Transaction>)]) -> Result<bool> {
        let guard = self.lock_for_following()?;
        let gone = self.gone_from_mempool(present)?;
        if !self.is_any_relevant(found)? && gone.is_empty() {
            return Ok(false);
        }
        let now = self.shared.node.time();
        self.write_in(&guard, |write| {
            gone.into_iter().try_for_each(|txid| write.leave_mempool(txid))?;
            let known = write.t.scripts.len(write.reads())?;
            found.iter().try_for_each(|(_, transaction)| write.enter_mempool(transaction, now))?;
            Ok(write.t.scripts.len(write.reads())? != known)
        })
    }

    /// Whether any of these transactions concerns the wallet or conflicts with one of its transactions.
    fn is_any_relevant(&self, found: &[(Txid, Arc<Transaction>)]) -> Result<bool> {
        let (txn, t) = (self.store.read()?, &self.store.tables);
        for (txid, transaction) in found {
            // Known ones, too: the wallet may have derived more of their addresses since.
            if !matches!(examine(t, &txn, transaction, txid)?, Match::Foreign)
                || self.conflicts_with(&txn, transaction)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Transactions whose removal from the mempool the wallet has missed: its own, then those in conflict with its own.
    fn gone_from_mempool(&self, present: &HashSet<Txid>) -> Result<Vec<Txid>> {
        let (txn, t) = (self.store.read()?, &self.store.tables);
        let mut gone = Vec::new();
        for entry in t.unconfirmed.iter(&txn)? {
            let row = t.transaction_at(&txn, entry?.1)?;
            if row.state == TxState::InMempool {
                gone.push(row.txid);
            }
        }
        for entry in t.mempool_conflicts.prefix_iter(&txn, &[OF_MEMPOOL])? {
            gone.push(txid_from(entry?.0.get(1..33).unwrap_or_default())?);
        }
        gone.retain(|txid| !present.contains(txid));
        gone.dedup();
        Ok(gone)
    }

    /// Whether a transaction contends for an outpoint that a transaction of the wallet spends.
    fn conflicts_with(&self, txn: &Reading<'_>, transaction: &Transaction) -> Result<bool> {
        let inputs = transaction.input.iter().map(|input| input.previous_output);
        for outpoint in contended(self, txn, transaction.version, inputs)? {
            if !self.store.tables.spenders(txn, &outpoint)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a mempool transaction changes anything for the wallet.
    fn is_news(&self, txn: &Reading<'_>, transaction: &Transaction) -> Result<bool> {
        Ok(match examine(&self.store.tables, txn, transaction, &transaction.compute_txid())? {
            // It may spend a foreign output that a transaction of the wallet spends, too.
            Match::Foreign => self.conflicts_with(txn, transaction)?,
            Match::New(_) => true,
            Match::Known(row) => !matches!(row.state, TxState::InMempool | TxState::Confirmed { .. }),
        })
    }

    /// Marks transactions that a reorganisation unconfirmed, if they are in the mempool.
    pub(super) fn find_in_mempool(&self, undone: BTreeSet<Txid>) -> Result<()> {
        if undone.is_empty() {
            return Ok(());
        }
        // The mempool as announced by events, so that a removal will be announced, too. The node may drop a later
        // addition before it announces it.
        let announced: HashSet<Txid> = self.shared.node.mempool_ids()?.into_iter().collect();
        let present: Vec<Txid> = undone.into_iter().filter(|txid| announced.contains(txid)).collect();
        if present.is_empty() {
            return Ok(());
        }
        // Waits for the write lock: a retry would not find these transactions again.
        self.write(|write| {
            for txid in present {
                let row = write.t.transaction(write.reads(), &txid)?;
                let Some(row) = row.filter(|row| row.state == TxState::Inactive) else { continue };
                let raw = write.t.serialised(write.reads(), &txid)?;
                let version = raw.and_then(<[u8]>::first_chunk).copied().map_or(0, i32::from_le_bytes);
                write.note_mempool_conflicts(txid, Version(version), row.inputs.clone())?;
                write.note_payments(row.outputs.iter().map(|output| output.script.as_script()))?;
                let row = write.t.transaction(write.reads(), &txid)?.unwrap_or(row);
                write.set_state(row, TxState::InMempool)?;
            }
            Ok(())
        })
    }
}

impl Write<'_> {
    fn take_step(&mut self, step: &Step, received: u64) -> Result<()> {
        match step {
            Step::Enter(transaction, time) => self.enter_mempool(transaction, *time),
            Step::Leave(txid) => self.leave_mempool(*txid),
            Step::Connect(block) => self.take_block(block, received),
            // Handled by `take_steps`, since it queries the node.
            Step::Disconnect(_) => Ok(()),
        }
    }

    pub fn enter_mempool(&mut self, transaction: &Transaction, received: u64) -> Result<()> {
        let txid = transaction.compute_txid();
        let row = self.t.transaction(self.reads(), &txid)?;
        if row.is_some_and(|row| matches!(row.state, TxState::Confirmed { .. })) {
            return Ok(());
        }
        self.consider(transaction, txid, TxState::InMempool, Met::Now(received))?;
        let inputs = transaction.input.iter().map(|input| input.previous_output);
        self.note_mempool_conflicts(txid, transaction.version, inputs)
    }

    pub fn leave_mempool(&mut self, txid: Txid) -> Result<()> {
        self.forget_mempool_conflicts(txid)?;
        match self.t.transaction(self.reads(), &txid)? {
            Some(row) if row.state == TxState::InMempool => self.set_state(row, TxState::Inactive),
            _ => Ok(()),
        }
    }
}
