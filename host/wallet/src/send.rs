//! Sending the wallet's transactions. A payment is stored before any byte of it leaves the host, and offered again
//! until it is confirmed or abandoned, even after a refusal by the mempool. So neither a lost answer nor a kill makes a
//! client pay twice.
//!
//! getwalletinfo warns of payments that are neither confirmed nor in the mempool although they could be, because the balance includes
//! neither the coins that they spend nor their change.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bitcoin::absolute::LockTime;
use bitcoin::consensus::deserialize;
use bitcoin::{OutPoint, Transaction, Txid};
use outrigger_node::NodeError;
use outrigger_service::events::Event;
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::{MAX_TEXT_LEN, Synced, TxState, check_length};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use outrigger_values::FeeRate;
use secp256k1::rand::{Rng, thread_rng};

use super::edits::CoinLock;
use super::error::Result;
use super::follow::states::Counting;
use super::follow::worker::Due;
use super::live::Wallet;
use super::live::feed::Item;
use super::live::outgoing::{OfferScope, Unsent};
use super::matching::{Match, Met, examine};
use super::store::Reading;
use super::write::Write;
use outrigger_base::contain::contain;

/// Unconfirmed transactions are offered again after a random number of hours in this range, as Bitcoin Core does.
const RESEND_HOURS: Range<u64> = 12..36;
/// How long calls for a wallet wait while its transactions are offered to a node that came back.
const OFFER_PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a retry if the node did not answer.
const RETRY: Duration = Duration::from_secs(1);
/// Metadata keys: the transaction that replaced this one, and the transaction that this one replaced.
const REPLACED_BY: &str = "replaced_by_txid";
const REPLACES: &str = "replaces_txid";
/// The most payments that the warning names.
const MAX_NAMED: usize = 3;
/// No limit: the sender has checked the feerate.
const NO_LIMIT: FeeRate = FeeRate::ZERO;

/// Marks a transaction as being sent, until this guard is dropped.
struct Sending<'w>(&'w Wallet, Txid);

impl<'w> Sending<'w> {
    fn begin(wallet: &'w Wallet, txid: Txid) -> Self {
        wallet.outgoing.lock().sending.insert(txid);
        Self(wallet, txid)
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.outgoing.lock().sending.remove(&self.1);
    }
}

/// Whether the node may still have received the transaction, or may accept it later.
fn is_undecided(error: &NodeError) -> bool {
    matches!(error, NodeError::Unavailable(_) | NodeError::OutcomeUnknown(_))
}

impl Wallet {
    /// Stores a signed transaction with texts, then offers it to the node unless broadcasting is off. Returns the
    /// node's answer, `None` if there was none. A refused transaction is kept: the reason for the refusal may not last.
    /// A transaction that the wallet already has is only offered. `replaced` is the unconfirmed transaction of the wallet
    /// that this one replaces, if any.
    ///
    /// Refuses, and stores nothing, if the transaction is not the wallet's, if it spends a coin that another
    /// transaction of the wallet spends, if a text is too long, or if the node fails and certainly does not have it.
    pub fn send(
        &self,
        replaced: Option<Txid>,
        raw: &[u8],
        texts: Vec<(String, String)>,
    ) -> ServiceResult<Option<Admission>> {
        let Ok(transaction) = deserialize::<Transaction>(raw) else { return Ok(Some(Admission::Undecodable)) };
        texts.iter().try_for_each(|(key, text)| check_length(key, text, MAX_TEXT_LEN))?;
        let txid = transaction.compute_txid();
        let _sending = Sending::begin(self, txid);
        // A node in this process answers at once and for certain. The transaction is stored as if it were in the
        // mempool already; the node's event then finds nothing to write, which saves an fsync. After a kill, the
        // wallet's next read of the mempool corrects the state.
        let broadcast = self.shared.settings.broadcast;
        let is_taken_at_once = broadcast && self.shared.node.link().is_none() && replaced.is_none();
        let state = if is_taken_at_once { TxState::InMempool } else { TxState::Inactive };
        let unlocked = self.write(|write| write.store_payment(&transaction, txid, state, texts, replaced))?;
        if !broadcast {
            self.tell_sent(txid);
            return Ok(None);
        }
        let error = match self.shared.node.submit(raw, NO_LIMIT) {
            Ok(taken @ (Admission::Accepted { .. } | Admission::Known { .. } | Admission::AlreadyInChain)) => {
                if unlocked.is_some() && state == TxState::InMempool {
                    self.tell_sent(txid);
                }
                return Ok(Some(taken));
            }
            Ok(refused) => {
                let reason = refused.refusal().unwrap_or_default();
                tracing::warn!(wallet = self.name(), %txid, reason, "the mempool refused a payment, which is offered again");
                self.note_idle(txid, Some(refused.clone()));
                self.keep_refused(txid, state);
                self.tell_sent(txid);
                return Ok(Some(refused));
            }
            Err(error) => error,
        };
        if !is_undecided(&error) && unlocked.is_none_or(|unlocked| self.take_back(txid, state, unlocked, replaced)) {
            return Err(error.into());
        }
        tracing::warn!(wallet = self.name(), %txid, %error, "the node did not say whether it accepted a payment; it is offered again");
        self.note_idle(txid, None);
        self.tell_sent(txid);
        if state == TxState::InMempool
            && let Some(wallet) = self.shared.follower.get(self.slot)
        {
            self.shared.follower.give(&wallet, Item::Reconcile);
        }
        self.plan_resend(RETRY);
        Ok(None)
    }

    /// Keeps a payment that the mempool refused, and corrects its state if it was stored as in the mempool.
    fn keep_refused(&self, txid: Txid, stored_as: TxState) {
        if stored_as != TxState::InMempool {
            return;
        }
        let leave = |write: &mut Write<'_>| {
            write.leave_mempool(txid)?;
            // `tell_sent` announces it.
            write.changed.remove(&txid);
            Ok(())
        };
        // Only logged: after an error, the client would pay again.
        if let Err(error) = self.write(leave) {
            tracing::error!(wallet = self.name(), %txid, %error, "cannot record that the mempool refused a payment");
        }
    }

    /// Announces a payment that stays. Storing it announced nothing, since it might have been removed again.
    fn tell_sent(&self, txid: Txid) {
        (self.shared.sink)(Event::WalletTransaction { wallet: self.name.clone(), txid });
    }

    /// Removes a payment after a failure of the node, and locks its coins again. Returns whether it is gone; otherwise
    /// it will be offered again.
    fn take_back(&self, txid: Txid, stored_as: TxState, unlocked: Vec<CoinLock>, replaced: Option<Txid>) -> bool {
        let take_back = |write: &mut Write<'_>| {
            let is_gone = write.remove_payment(txid, stored_as)?;
            if let Some(replaced) = replaced.filter(|_| is_gone) {
                write.set_text(replaced, REPLACED_BY.to_owned(), String::new())?;
            }
            unlocked.into_iter().try_for_each(|coin| write.lock_coin(coin))?;
            Ok(is_gone)
        };
        self.write(take_back).unwrap_or_else(|error| {
            tracing::error!(wallet = self.name(), %txid, %error, "cannot remove a payment that the node failed to check");
            false
        })
    }

    /// Offers the wallet's unconfirmed transactions outside the mempool to the node again. Returns how many the mempool
    /// may have accepted; its events report the outcome.
    ///
    /// Holds no lock while the node works, and skips transactions that are confirmed or abandoned in the meantime. After
    /// `until`, queues the rest for the resend thread.
    pub(crate) fn resubmit(&self, offered: OfferScope, until: Option<Instant>) -> Result<usize> {
        let txids = match offered {
            OfferScope::All => self.find_idle()?,
            OfferScope::AwaitingBlock => {
                let awaiting = self.awaiting_block();
                self.idle_transactions()?.into_iter().filter(|txid| awaiting.contains(txid)).collect()
            }
        };
        if !self.shared.settings.broadcast {
            return Ok(0);
        }
        let mut count = 0;
        let mut wait =
            Duration::from_secs(3600 * thread_rng().gen_range(RESEND_HOURS) + thread_rng().gen_range(0..3600));
        for txid in txids {
            if self.shared.stopping.load(Ordering::Relaxed) {
                break;
            }
            if until.is_some_and(|until| Instant::now() > until) {
                self.shared.follower.resends.queue(self.slot, offered);
                break;
            }
            let raw = match self.raw_if_idle(&txid) {
                Ok(Some(raw)) => raw,
                // A write in progress may have evicted it, so the list of evicted payments keeps it.
                Ok(None) => continue,
                Err(error) => {
                    tracing::warn!(wallet = self.name(), %txid, %error, "cannot read a payment; it is not offered again");
                    continue;
                }
            };
            count += 1;
            match self.shared.node.submit(&raw, NO_LIMIT) {
                Ok(admission) => self.note_idle(txid, Some(admission)),
                // A proxy that ends connections may be mended without an outage of the node.
                Err(error) if is_undecided(&error) || matches!(error, NodeError::Withheld(_)) => {
                    wait = RETRY;
                    break;
                }
                Err(error) => {
                    tracing::debug!(wallet = self.name(), %txid, %error, "the node could not check a payment")
                }
            }
        }
        self.plan_resend(wait);
        Ok(count)
    }

    /// [`Self::resubmit`]. Only logs a failure.
    pub(crate) fn resend(&self, offered: OfferScope) {
        contain("offering unconfirmed transactions again", || {
            if let Err(error) = self.resubmit(offered, None) {
                tracing::warn!(wallet = self.name(), %error, "unconfirmed transactions could not be offered again");
            }
        });
    }

    /// [`Self::resubmit`], then reads the mempool to learn which of them it accepted.
    pub(crate) fn offer_again(&self) -> Result<()> {
        let until = Instant::now() + OFFER_PATIENCE;
        if self.resubmit(OfferScope::All, Some(until))? > 0 { self.take_mempool() } else { Ok(()) }
    }

    /// The node refused these transactions until a later block, or they left its mempool, for example in a reorganisation, and the node
    /// has not judged them since.
    fn awaiting_block(&self) -> BTreeSet<Txid> {
        if !self.shared.settings.broadcast {
            return BTreeSet::new();
        }
        let awaits = |answer: &Option<Admission>| answer.as_ref().is_some_and(Admission::awaits_block);
        let outgoing = self.outgoing.lock();
        let refused = outgoing.idle.iter().filter(|(_, answer)| awaits(answer)).map(|(txid, _)| *txid);
        refused.chain(outgoing.evicted.iter().copied()).collect()
    }

    /// Queues a resend of the payments that a new block may let into the mempool.
    pub(crate) fn offer_to_block(&self) {
        if !self.awaiting_block().is_empty() {
            self.shared.follower.resends.queue(self.slot, OfferScope::AwaitingBlock);
        }
    }

    fn note_idle(&self, txid: Txid, answer: Option<Admission>) {
        self.outgoing.lock().note_idle(txid, answer);
        *self.told.lock() = None;
    }

    /// Updates the list of idle transactions. Known answers stay.
    fn find_idle(&self) -> Result<Vec<Txid>> {
        let noted = self.outgoing.lock().noted;
        let idle = self.idle_transactions()?;
        let mut outgoing = self.outgoing.lock();
        let mut known = std::mem::take(&mut outgoing.idle);
        outgoing.idle = idle.iter().map(|txid| (*txid, known.remove(txid).flatten())).collect();
        if outgoing.noted != noted {
            // Sends have added transactions since the read.
            outgoing.idle.append(&mut known);
        }
        drop(outgoing);
        *self.told.lock() = None;
        Ok(idle)
    }

    /// The inactive transactions, parents mostly before children.
    fn idle_transactions(&self) -> Result<Vec<Txid>> {
        let (txn, t) = (self.store.read()?, &self.store.tables);
        let mut idle = Vec::new();
        for entry in t.unconfirmed.iter(&txn)? {
            let row = t.transaction_at(&txn, entry?.1)?;
            if row.state == TxState::Inactive && !row.coinbase {
                idle.push(row.txid);
            }
        }
        Ok(idle)
    }

    /// The serialised transaction, if it is still idle and no call is sending it.
    fn raw_if_idle(&self, txid: &Txid) -> Result<Option<Vec<u8>>> {
        // Held during the lookup: a payment that is taken back is removed from the store before it leaves `sending`.
        let outgoing = self.outgoing.lock();
        if outgoing.sending.contains(txid) {
            return Ok(None);
        }
        let (txn, t) = (self.store.read()?, &self.store.tables);
        let is_idle = t.transaction(&txn, txid)?.is_some_and(|row| row.state == TxState::Inactive);
        let raw = if is_idle { t.serialised(&txn, txid)?.map(<[u8]>::to_vec) } else { None };
        drop(outgoing);
        Ok(raw)
    }

    /// Schedules the next resend, unless an earlier one is scheduled.
    fn plan_resend(&self, wait: Duration) {
        let (now, at) = (Instant::now(), Instant::now() + wait);
        let mut outgoing = self.outgoing.lock();
        if outgoing.planned.is_none_or(|planned| planned <= now || planned > at) {
            outgoing.planned = Some(at);
            self.shared.follower.alarms.set(at, Due::Resend(self.slot));
        }
    }

    /// The wallet's own transactions that are idle in a snapshot and were not replaced.
    pub(super) fn unsent(&self, txn: &Reading<'_>) -> Result<Vec<Unsent>> {
        if !self.shared.settings.broadcast {
            return Ok(Vec::new());
        }
        let idle: Vec<Txid> = self.outgoing.lock().idle.keys().copied().collect();
        let t = &self.store.tables;
        let mut unsent = Vec::new();
        for txid in idle {
            let Some(row) = t.transaction(txn, &txid)? else { continue };
            let is_replaced = row.metadata.iter().any(|(key, _)| key == REPLACED_BY);
            if row.state != TxState::Inactive
                || row.coinbase
                || !row.is_from_us()
                || is_replaced
                || t.is_mempool_conflicted(txn, &txid)?
            {
                continue;
            }
            let raw = t.serialised(txn, &txid)?.unwrap_or_default();
            let lock_time = deserialize::<Transaction>(raw).map_or(LockTime::ZERO, |raw| raw.lock_time);
            unsent.push(Unsent { txid, lock_time });
        }
        Ok(unsent)
    }

    /// How many payments should be in the mempool but are not; 0 if the wallet cannot be read.
    pub(super) fn count_unsent(&self) -> u64 {
        if self.outgoing.lock().idle.is_empty() {
            return 0;
        }
        let synced = self.synced();
        let unsent = self.store.read().and_then(|txn| self.unsent(&txn)).unwrap_or_default();
        unsent.iter().filter(|payment| payment.is_final(&synced)).count() as u64
    }

    pub(super) fn unsent_warning(&self, unsent: &[Unsent], tip: &Synced) -> Option<String> {
        let outgoing = self.outgoing.lock();
        let is_missing = |payment: &&Unsent| payment.is_final(tip) && !outgoing.sending.contains(&payment.txid);
        let missing: Vec<Txid> = unsent.iter().filter(is_missing).map(|payment| payment.txid).collect();
        if missing.is_empty() {
            return None;
        }
        let reason = |txid: &Txid| outgoing.idle.get(txid)?.as_ref()?.refusal();
        let named = missing.iter().take(MAX_NAMED).map(|txid| match reason(txid) {
            Some(reason) => format!("{txid} ({reason})"),
            None => txid.to_string(),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let more = if missing.len() > MAX_NAMED { ", ..." } else { "" };
        let count = missing.len();
        Some(format!("Payments that are not in the mempool, and are offered to the node again: {count}: {named}{more}"))
    }

    /// Clears the scheduled resend if it is due `at`. Returns whether it was.
    pub(crate) fn take_due_resend(&self, at: Instant) -> bool {
        self.outgoing.lock().planned.take_if(|planned| *planned == at).is_some()
    }
}

impl Write<'_> {
    /// Stores a new payment, inactive or as if it were in the mempool. Returns the coins that it unlocked; `None` if
    /// the wallet already has it.
    fn store_payment(
        &mut self,
        transaction: &Transaction,
        txid: Txid,
        state: TxState,
        mut texts: Vec<(String, String)>,
        replaced: Option<Txid>,
    ) -> Result<Option<Vec<CoinLock>>> {
        let refused = |detail: &str| Err(ServiceError::new(ErrorKind::Refused, detail).into());
        let scripts = match examine(&self.t, self.reads(), transaction, &txid)? {
            Match::Known(_) => return Ok(None),
            Match::Foreign => return refused("The transaction is not the wallet's"),
            Match::New(scripts) => scripts,
        };
        let inputs: Vec<OutPoint> = transaction.input.iter().map(|input| input.previous_output).collect();
        let mut counting = Counting::default();
        replaced.into_iter().for_each(|replaced| counting.leave_out(replaced));
        for input in &inputs {
            if self.is_spent(input, &mut counting)? {
                return refused("Another transaction of the wallet spends the same coin");
            }
        }
        let unlocked = self.unlock_coins(&inputs)?;
        if let Some(replaced) = replaced {
            self.set_text(replaced, REPLACED_BY.to_owned(), txid.to_string())?;
            texts.retain(|(key, _)| key != REPLACES);
            texts.push((REPLACES.to_owned(), replaced.to_string()));
        }
        let now = self.wallet.shared.node.time();
        if state == TxState::InMempool {
            self.enter_mempool(transaction, now)?;
        } else {
            // Its scripts count as used only once the node has announced it: until then, all of this can be undone.
            self.insert(transaction, txid, state, &scripts, Met::Now(now))?;
        }
        if !texts.is_empty()
            && let Some(mut row) = self.t.transaction(self.reads(), &txid)?
        {
            row.metadata = texts.into_iter().filter(|(_, text)| !text.is_empty()).collect();
            row.metadata.sort_unstable();
            self.put_row(&row)?;
        }
        self.changed.remove(&txid);
        Ok(Some(unlocked))
    }

    /// Removes a payment after a failure of the node. Returns whether it is gone: it stays if the node has announced it,
    /// or if it has children.
    fn remove_payment(&mut self, txid: Txid, stored_as: TxState) -> Result<bool> {
        let Some(row) = self.t.transaction(self.reads(), &txid)? else { return Ok(true) };
        let is_idle = row.state == stored_as || matches!(row.state, TxState::Inactive | TxState::Abandoned);
        if !is_idle || !self.children(&row)?.is_empty() {
            return Ok(false);
        }
        self.forget_mempool_conflicts(txid)?;
        self.remove(row)?;
        Ok(true)
    }
}
