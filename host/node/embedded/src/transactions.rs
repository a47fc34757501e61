//! What the node answers about the mempool, and what comes to it.

use std::sync::Arc;

use bitcoin::{OutPoint, SignedAmount, Transaction, Txid};
use outrigger_service::mempool::{Admission, Candidate, MempoolEntry, MempoolInfo, Prioritised, RawTransaction};

use super::decode::decode_transaction;
use super::mempool::{Admissible, Entry, Offer, Pool, Rejection, Rules, Terms, View};
use super::validation::verify_transaction;
use super::{EmbeddedError, EmbeddedNode};
use outrigger_script::Flags;
use outrigger_values::FeeRate;

impl EmbeddedNode {
    /// The mempool as a whole.
    pub fn mempool_info(&self) -> MempoolInfo {
        self.pool().info(self.time())
    }

    /// All ids of the mempool, in the order they came.
    pub fn mempool_ids(&self) -> Vec<Txid> {
        self.pool().ids()
    }

    /// The mempool's entries of these ids, in their order.
    pub fn mempool_entries(&self, txids: &[Txid]) -> Vec<Option<MempoolEntry>> {
        self.pool().entries(txids)
    }

    /// Which of these transactions were offered to this node, and by no block, in their order.
    pub fn mempool_unbroadcast(&self, txids: &[Txid]) -> Vec<bool> {
        self.pool().unbroadcast(txids)
    }

    /// The mempool's transactions of these ids, in their order.
    pub fn mempool_transactions(&self, txids: &[Txid]) -> Vec<Option<RawTransaction>> {
        self.pool().transactions(txids)
    }

    /// All transactions of the mempool, in the order they came.
    pub(crate) fn mempool_all(&self) -> Vec<(Txid, Arc<Transaction>)> {
        self.pool().all()
    }

    /// The transactions of the mempool that spend these outpoints, in their order.
    pub fn mempool_spenders(&self, outpoints: &[OutPoint]) -> Vec<Option<Txid>> {
        self.pool().spenders(outpoints)
    }

    /// The selection for a block on the tip, of the mempool as it stands; none when its version is `known`. Costs next to
    /// nothing while neither tip nor mempool change.
    ///
    /// # Errors
    /// When the tree of headers cannot be loaded anew after a write that failed.
    pub fn candidate(&self, known: Option<u64>) -> Result<Option<Candidate>, EmbeddedError> {
        let chosen = self.selector.current();
        if known == Some(chosen.version) {
            return Ok(None);
        }
        Ok(Some(Candidate {
            version: chosen.version,
            next: self.next_block_on(chosen.tip)?,
            transactions: chosen.transactions.clone(),
            fees: chosen.fees,
            sequence: chosen.sequence,
        }))
    }

    /// Adds to (or takes from) the fee that a transaction is selected by.
    ///
    /// # Errors
    /// When the node fails.
    pub fn prioritise(&self, txid: Txid, fee_delta: SignedAmount) -> Result<(), EmbeddedError> {
        let _chain = self.lock_chain()?;
        self.change_pool(|pool| pool.prioritise(txid, fee_delta));
        Ok(())
    }

    /// All that was added to fees and stands, by txid.
    pub fn prioritised(&self) -> Vec<Prioritised> {
        self.pool().prioritised()
    }

    /// Changes the mempool. The caller holds the write lock.
    pub(super) fn change_pool<R>(&self, change: impl FnOnce(&mut Pool) -> R) -> R {
        let outcome = change(&mut self.pool_mut());
        self.selector.changed();
        outcome
    }

    /// Offers a transaction to the mempool. `max_feerate` bounds its feerate; [`FeeRate::ZERO`] is no bound.
    ///
    /// # Errors
    /// When the node fails; a transaction that is refused is an [`Admission`].
    pub fn submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission, EmbeddedError> {
        self.offer(raw, max_feerate, true)
    }

    /// As [`EmbeddedNode::submit`], keeping nothing.
    ///
    /// # Errors
    /// As [`EmbeddedNode::submit`].
    pub fn try_submit(&self, raw: &[u8], max_feerate: FeeRate) -> Result<Admission, EmbeddedError> {
        self.offer(raw, max_feerate, false)
    }

    fn offer(&self, raw: &[u8], max_feerate: FeeRate, keep: bool) -> Result<Admission, EmbeddedError> {
        let Some(tx) = decode_transaction(raw) else { return Ok(Admission::Undecodable) };
        let offer = Offer::new(tx, raw);
        self.verify_ahead(&offer)?;
        // The chain cannot change while the lock is held, and neither can the mempool.
        let _chain = self.lock_chain()?;
        let view = View::new(self, self.tip())?;
        if keep && view.has_coin_of(&offer.txid)? {
            return Ok(Admission::AlreadyInChain);
        }
        if keep && self.pool().has(&offer.txid) {
            return Ok(Admission::Known { txid: offer.txid });
        }
        let examined = self.pool().examine(&view, &offer, Rules::Alone(Terms::New), FeeRate::ZERO);
        Ok(match examined {
            Ok(admissible) => self.admit(admissible, max_feerate, keep),
            Err(Rejection::Node(error)) => return Err(error),
            Err(Rejection::Refused(error)) => {
                Admission::Rejected { reason: error.reason.into_owned(), detail: error.detail }
            }
            Err(Rejection::Known) => Admission::Known { txid: offer.txid },
            Err(Rejection::InChain) => Admission::AlreadyInChain,
            Err(Rejection::MissingInputs) => Admission::MissingInputs,
        })
    }

    /// Verifies scripts before the lock is taken, where the coins are to be had and the transaction may come in by itself. A failure
    /// is noted in the offer, and told in its place among the other reasons by the holder of the lock.
    pub(super) fn verify_ahead(&self, offer: &Offer) -> Result<(), EmbeddedError> {
        let view = View::new(self, self.tip())?;
        if self.cache.contains(&offer.wtxid, Flags::STANDARD) || self.pool().check_alone(&view, &offer.tx).is_err() {
            return Ok(());
        }
        let Some(coins) = self.pool().find_coins(&view, &offer.tx, &[])? else { return Ok(()) };
        let spent = coins.into_iter().map(|coin| coin.output).collect();
        match verify_transaction(&offer.tx, spent, Flags::STANDARD) {
            Ok(()) => self.cache.insert(offer.wtxid, Flags::STANDARD),
            Err(failed) => drop(offer.failed_script.set(failed)),
        }
        Ok(())
    }

    fn admit(&self, admissible: Admissible, max_feerate: FeeRate, keep: bool) -> Admission {
        let Entry { txid, wtxid, fee, .. } = admissible.entry;
        let virtual_size = admissible.entry.virtual_size();
        if max_feerate > FeeRate::ZERO && fee > max_feerate.fee(virtual_size) {
            return Admission::FeeTooHigh { fee };
        }
        if keep {
            let mut events = Vec::new();
            let stays = self.change_pool(|pool| pool.admit(admissible, self.time(), &mut events));
            self.tell(events);
            if !stays {
                return Admission::Rejected { reason: "mempool full".to_owned(), detail: String::new() };
            }
        }
        Admission::Accepted { txid, wtxid, virtual_size, fee }
    }
}
