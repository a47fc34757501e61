//! Bringing back the mempool of the last run.
//!
//! What the journal kept comes in by the mempool's own rules, as if it were offered anew in its old order: what a block has
//! confirmed since, what has grown too old, or what new limits do not allow stays out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use bitcoin::{Transaction, TxOut, Txid};

use super::mempool::{EntryTime, Offer, Rejection, Rules, Terms, View};
use super::persistence::{Kept, Stored};
use super::validation::{check_transaction, verify_transaction};
use super::{EmbeddedError, EmbeddedNode};
use outrigger_script::Flags;
use outrigger_values::FeeRate;

/// From how many transactions on it is worth to start threads.
const PARALLEL: usize = 64;

impl EmbeddedNode {
    /// Fills the empty mempool with what a journal kept.
    ///
    /// # Errors
    /// When the node fails.
    pub(super) fn restore(&self, stored: Stored) -> Result<(), EmbeddedError> {
        let count = stored.transactions.len();
        let mut differs = stored.damaged > 0;
        {
            let mut pool = self.pool_mut();
            stored.deltas.iter().for_each(|(txid, delta)| pool.set_delta(*txid, *delta));
        }
        self.verify_kept(&stored.transactions)?;
        let mut waiting = stored.transactions;
        // A reorganisation may have put a parent behind its children, so those without their parents are tried again.
        loop {
            let before = waiting.len();
            waiting = self.admit_kept(waiting)?;
            if waiting.is_empty() || waiting.len() == before {
                break;
            }
        }
        let mut pool = self.pool_mut();
        // The journal says all this already.
        drop(pool.take_records());
        let back = pool.info(self.time()).transactions;
        drop(pool);
        differs |= back != count as u64;
        self.journal.settle(differs, &*self.pool);
        if count > 0 {
            tracing::info!(kept = count, back, "mempool restored");
        }
        Ok(())
    }

    /// Takes in what may come in. Gives what lacks its inputs.
    fn admit_kept(&self, kept: Vec<Kept>) -> Result<Vec<Kept>, EmbeddedError> {
        let view = View::new(self, self.tip())?;
        let (mut pool, now) = (self.pool_mut(), self.time());
        let mut missing = Vec::new();
        for kept in kept {
            // As in bitcoind, it comes at this height, whenever it came first.
            let entry_time = EntryTime { height: view.tip.height, ..kept.entry_time };
            match pool.examine(&view, &kept.offer, Rules::Alone(Terms::Kept(entry_time)), FeeRate::ZERO) {
                // Nobody hears the node yet.
                Ok(admissible) => drop(pool.admit(admissible, now, &mut Vec::new())),
                Err(Rejection::MissingInputs) => missing.push(kept),
                Err(Rejection::Node(error)) => return Err(error),
                Err(rejection) => tracing::debug!(txid = %kept.offer.txid, ?rejection, "not restored"),
            }
        }
        Ok(missing)
    }

    /// Verifies scripts by several threads, where the coins are to be had: what is good need not be verified again. What
    /// is not is found out when it is offered.
    fn verify_kept(&self, kept: &[Kept]) -> Result<(), EmbeddedError> {
        let threads = if kept.len() < PARALLEL { 1 } else { self.settings.script_threads };
        let by_id: HashMap<&Txid, &Transaction> = kept.iter().map(|kept| (&kept.offer.txid, &*kept.offer.tx)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let view = View::new(self, self.tip())?;
            while let Some(kept) = kept.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.verify_one(&view, &kept.offer, &by_id)?;
            }
            Ok(())
        };
        if threads <= 1 {
            return work();
        }
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            running.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })
    }

    fn verify_one(
        &self,
        view: &View,
        offer: &Offer,
        by_id: &HashMap<&Txid, &Transaction>,
    ) -> Result<(), EmbeddedError> {
        if check_transaction(&offer.tx).is_err() {
            return Ok(());
        }
        let mut spent: Vec<TxOut> = Vec::with_capacity(offer.tx.input.len());
        for input in &offer.tx.input {
            let outpoint = &input.previous_output;
            let kept = by_id.get(&outpoint.txid).and_then(|tx| tx.output.get(outpoint.vout as usize)).cloned();
            let output = match kept {
                Some(output) => Some(output),
                None => view.coin(outpoint)?.map(|coin| coin.output),
            };
            let Some(output) = output else { return Ok(()) };
            spent.push(output);
        }
        if verify_transaction(&offer.tx, spent, Flags::STANDARD).is_ok() {
            self.cache.insert(offer.wtxid, Flags::STANDARD);
        }
        Ok(())
    }
}
