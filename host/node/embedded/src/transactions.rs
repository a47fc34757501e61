//! Submissions to the mempool.

use outrigger_service::mempool::Admission;

use super::mempool::{Admissible, Entry, Offer, Pool, Rejection, Rules, Terms, View};
use super::validation::verify_transaction;
use super::{EmbeddedError, EmbeddedNode};
use outrigger_script::Flags;
use outrigger_standard::decode::{Form, transaction_in_form};
use outrigger_values::FeeRate;

impl EmbeddedNode {
    /// Changes the mempool, and notifies the observers. The caller holds the chain's lock.
    pub(super) fn change_pool<R>(&self, change: impl FnOnce(&mut Pool) -> R) -> R {
        let mut pool = self.pool.write();
        let outcome = change(&mut pool);
        let events = std::mem::take(&mut pool.events);
        drop(pool);
        self.tell(events);
        outcome
    }

    /// Checks a transaction, and adds it to the mempool if it is acceptable and `keep` is set.
    pub(super) fn offer(&self, raw: &[u8], max_feerate: FeeRate, keep: bool) -> Result<Admission, EmbeddedError> {
        let Some(tx) = transaction_in_form(raw, Form::Extended) else { return Ok(Admission::Undecodable) };
        let offer = Offer::new(tx, raw);
        self.verify_ahead(&offer)?;
        // The lock keeps chain and mempool unchanged.
        let _chain = self.lock_chain()?;
        let view = View::new(self, self.tip())?;
        if keep && view.has_coin_of(&offer.txid)? {
            return Ok(Admission::AlreadyInChain);
        }
        if keep && self.pool.read().has(&offer.txid) {
            return Ok(Admission::Known { txid: offer.txid });
        }
        let examined = self.pool.read().examine(&view, &offer, Rules::Alone(Terms::New), FeeRate::ZERO);
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

    /// Verifies the scripts before the caller takes the chain's lock, if the coins exist and the checks without coins pass.
    /// Stores a failure in the offer: the checks under the lock report it only if no earlier check fails.
    pub(super) fn verify_ahead(&self, offer: &Offer) -> Result<(), EmbeddedError> {
        let view = View::new(self, self.tip())?;
        if self.cache.contains(&offer.wtxid, Flags::STANDARD) || self.pool.read().check_alone(&view, &offer.tx).is_err()
        {
            return Ok(());
        }
        let Some(coins) = self.pool.read().find_coins(&view, &offer.tx, &[])? else { return Ok(()) };
        let spent = coins.into_iter().map(|coin| Some(coin.output)).collect();
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
        if keep && !self.change_pool(|pool| pool.admit(admissible, self.clock.now())) {
            return Admission::Rejected { reason: "mempool full".to_owned(), detail: String::new() };
        }
        Admission::Accepted { txid, wtxid, virtual_size, fee }
    }
}
