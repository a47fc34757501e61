//! Sending the wallet's own transactions, so that a lost answer or a kill never has one paid twice: each is stored before a byte
//! of it leaves the host, and offered again until it is confirmed or given up, also where the mempool refused it.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bitcoin::consensus::deserialize;
use bitcoin::{OutPoint, Transaction, Txid};
use outrigger_node::NodeError;
use outrigger_service::events::Event;
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::{TxState, check_text};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use outrigger_values::FeeRate;
use secp256k1::rand::{Rng, thread_rng};

use super::error::Result;
use super::follow::alarms::Due;
use super::follow::states::Counting;
use super::live::Wallet;
use super::live::feed::Item;
use super::live::outgoing::{Offered, Refusal};
use super::locks::CoinLock;
use super::matching::{Match, Met, examine};
use super::write::Write;

/// The hours after which unconfirmed transactions are offered again, at random between these (Bitcoin Core's resend).
const RESEND_HOURS: Range<u64> = 12..36;
/// How long a wallet's calls wait until they are offered to a node that is back.
const OFFER_PATIENCE: Duration = Duration::from_secs(5);
/// How soon they are where the node did not answer.
const RETRY: Duration = Duration::from_secs(1);
/// The text that names the transaction which replaced another, and that which names the other.
pub(super) const REPLACED_BY: &str = "replaced_by_txid";
const REPLACES: &str = "replaces_txid";
/// What is sent was checked by whoever made it.
const NO_LIMIT: FeeRate = FeeRate::ZERO;

/// A transaction that is being sent, until this is dropped.
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

/// Whether a node that failed may still have the transaction, or take it later.
fn is_undecided(error: &NodeError) -> bool {
    matches!(error, NodeError::Unavailable(_) | NodeError::OutcomeUnknown(_))
}

impl Wallet {
    /// Stores a signed transaction of the wallet with texts, then offers it to the node, unless nothing is broadcast. Gives what the
    /// node says; none where it did not. One that it refused is kept, too: what keeps it out of the mempool today may be over
    /// tomorrow. One that the wallet has already is only offered.
    ///
    /// # Errors
    /// `Refused` where it is not the wallet's, spends what another one of the wallet does, or a text is too long; the node's own
    /// failure. Then nothing of it is stored.
    pub fn send(&self, raw: &[u8], texts: Vec<(String, String)>) -> ServiceResult<Option<Admission>> {
        self.send_instead(None, raw, texts)
    }

    /// Sends a transaction in the place of one of the wallet that is not confirmed.
    ///
    /// # Errors
    /// As of [`Self::send`]; `NotFound` where the wallet does not have that one.
    pub fn replace(
        &self,
        replaced: Txid,
        raw: &[u8],
        texts: Vec<(String, String)>,
    ) -> ServiceResult<Option<Admission>> {
        self.send_instead(Some(replaced), raw, texts)
    }

    fn send_instead(
        &self,
        replaced: Option<Txid>,
        raw: &[u8],
        texts: Vec<(String, String)>,
    ) -> ServiceResult<Option<Admission>> {
        let Ok(transaction) = deserialize::<Transaction>(raw) else { return Ok(Some(Admission::Undecodable)) };
        texts.iter().try_for_each(|(key, text)| check_text(key, text))?;
        let txid = transaction.compute_txid();
        let _sending = Sending::begin(self, txid);
        // A node in this process answers at once and for certain. What it is offered is stored as if it had taken it: its event then
        // finds nothing to write, which saves a synchronisation of the disk. After a kill the wallet sees what the mempool lacks.
        let broadcast = self.shared.settings.broadcast;
        let is_taken_at_once = broadcast && self.shared.node.link().is_none() && replaced.is_none();
        let state = if is_taken_at_once { TxState::InMempool } else { TxState::Inactive };
        let unlocked = self.write(|write| write.store_payment(&transaction, txid, state, texts, replaced))?;
        if !broadcast {
            self.tell_sent(txid);
            return Ok(None);
        }
        let failed = match self.shared.node.submit(raw, NO_LIMIT) {
            Ok(taken @ (Admission::Accepted { .. } | Admission::Known { .. } | Admission::AlreadyInChain)) => {
                if unlocked.is_some() && state == TxState::InMempool {
                    self.tell_sent(txid);
                }
                return Ok(Some(taken));
            }
            Ok(refused) => {
                let refusal = Refusal::of(&refused);
                let reason = refusal.as_ref().map_or("", |refusal| &refusal.reason);
                tracing::warn!(wallet = self.name(), %txid, reason, "a payment is kept that the mempool refuses");
                self.note_idle(txid, refusal);
                self.keep_refused(txid, state);
                self.tell_sent(txid);
                return Ok(Some(refused));
            }
            Err(error) if is_undecided(&error) => None,
            Err(error) => {
                Some(error).filter(|_| unlocked.is_none_or(|unlocked| self.take_back(txid, state, unlocked, replaced)))
            }
        };
        if let Some(error) = failed {
            return Err(error.into());
        }
        tracing::warn!(wallet = self.name(), "the node did not say whether it took a payment, which is offered again");
        self.note_idle(txid, None);
        self.tell_sent(txid);
        if state == TxState::InMempool
            && let Some(wallet) = self.shared.follower.get(self.slot)
        {
            self.shared.follower.give(&wallet, Item::Reconcile(1));
        }
        self.plan_resend(RETRY);
        Ok(None)
    }

    /// Keeps a payment that the mempool refused. One that was stored as if it were there is so no more.
    fn keep_refused(&self, txid: Txid, stored_as: TxState) {
        if stored_as != TxState::InMempool {
            return;
        }
        let leave = |write: &mut Write<'_>| {
            write.leave_mempool(txid)?;
            // It is told of as sent.
            write.changed.remove(&txid);
            Ok(())
        };
        // An error for the client would have it paid again.
        if let Err(error) = self.write(leave) {
            tracing::error!(wallet = self.name(), %error, "a payment that the mempool refuses counts as there until it is read anew");
        }
    }

    /// Tells of a payment that stays: storing it told nobody, since it might have been taken back.
    fn tell_sent(&self, txid: Txid) {
        (self.shared.sink)(Event::WalletTransaction { wallet: self.name.clone(), txid });
    }

    /// Takes back a payment that the node could not look at, and locks its coins again. Whether it is gone: one that could not be stored as
    /// gone would be offered again.
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
            tracing::error!(wallet = self.name(), %error, "a payment that the node could not look at cannot be taken back");
            false
        })
    }

    /// Offers the wallet's unconfirmed transactions that are not in the mempool to the node again. What the mempool makes of them
    /// comes back as its events. Gives how many it may have taken.
    ///
    /// No lock is held while the node is asked, and one that is confirmed or given up meanwhile is not offered any more. Those that are
    /// left at `until` are offered later, by a thread of their own.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn resubmit(&self, offered: Offered, until: Option<Instant>) -> Result<usize> {
        let txids = match offered {
            Offered::All => self.find_idle()?,
            Offered::AwaitingBlock => self.awaiting_block(),
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
                Ok(None) => continue,
                Err(error) => {
                    tracing::warn!(wallet = self.name(), %txid, %error, "a payment cannot be read, and is not offered again");
                    continue;
                }
            };
            count += 1;
            match self.shared.node.submit(&raw, NO_LIMIT) {
                Ok(admission) => self.note_idle(txid, Refusal::of(&admission)),
                Err(error) if is_undecided(&error) => {
                    wait = RETRY;
                    break;
                }
                Err(error) => {
                    tracing::debug!(wallet = self.name(), %txid, %error, "the node could not look at a payment")
                }
            }
        }
        self.plan_resend(wait);
        Ok(count)
    }

    /// The same, after which the wallet knows which of them the mempool has.
    ///
    /// # Errors
    /// As of following the node.
    pub(crate) fn offer_again(&self) -> Result<()> {
        let until = Instant::now() + OFFER_PATIENCE;
        if self.resubmit(Offered::All, Some(until))? > 0 { self.take_mempool() } else { Ok(()) }
    }

    /// The transactions that were refused for a reason which a block may end.
    pub(crate) fn awaiting_block(&self) -> Vec<Txid> {
        let awaits = |refusal: &Option<Refusal>| refusal.as_ref().is_some_and(|refusal| refusal.awaits_block);
        let outgoing = self.outgoing.lock();
        outgoing.idle.iter().filter(|(_, refusal)| awaits(refusal)).map(|(txid, _)| *txid).collect()
    }

    fn note_idle(&self, txid: Txid, refusal: Option<Refusal>) {
        self.outgoing.lock().note_idle(txid, refusal);
        *self.told.lock() = None;
    }

    /// Learns which transactions are idle. What the node said of them stays known.
    fn find_idle(&self) -> Result<Vec<Txid>> {
        let noted = self.outgoing.lock().noted;
        let idle = self.idle_transactions()?;
        let mut outgoing = self.outgoing.lock();
        let mut known = std::mem::take(&mut outgoing.idle);
        outgoing.idle = idle.iter().map(|txid| (*txid, known.remove(txid).flatten())).collect();
        if outgoing.noted != noted {
            // Some came meanwhile.
            outgoing.idle.append(&mut known);
        }
        drop(outgoing);
        *self.told.lock() = None;
        Ok(idle)
    }

    /// The wallet's transactions that are neither confirmed nor in the mempool nor given up, parents mostly before children.
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

    /// The serialisation of a transaction that is idle still, and that nobody is sending.
    fn raw_if_idle(&self, txid: &Txid) -> Result<Option<Vec<u8>>> {
        // Held while it is looked up: one that is taken back is gone before it counts as not being sent.
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

    /// Plans when unconfirmed transactions are offered again, unless that is to be sooner.
    fn plan_resend(&self, wait: Duration) {
        let (now, at) = (Instant::now(), Instant::now() + wait);
        let mut outgoing = self.outgoing.lock();
        if outgoing.planned.is_none_or(|planned| planned <= now || planned > at) {
            outgoing.planned = Some(at);
            self.shared.follower.alarms.set(at, Due::Resend, self.slot);
        }
    }

    /// An alarm that was set for a time has rung. Whether it is the one that counts.
    pub(crate) fn resend_is_due(&self, at: Instant) -> bool {
        self.outgoing.lock().planned.take_if(|planned| *planned == at).is_some()
    }
}

impl Write<'_> {
    /// Stores a transaction of the wallet that is about to be sent, inactive or as if it were in the mempool. Gives the coins that
    /// were locked; none where the wallet has it already.
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
            if self.is_spent_by_any(input, &mut counting)? {
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
            // The scripts that it pays to count as used once it is met, so that all of this can be taken back.
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

    /// Removes a payment that the node could not look at. Whether it is gone: it stays where it was met meanwhile, or something builds on it.
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
