//! The mempool as a file has it: savemempool and importmempool.

use std::cmp::Reverse;

use bitcoin::Txid;
use outrigger_node::{SavedMarks, SavedMempool, SavedTransaction};
use outrigger_values::FeeRate;

use super::decode::decode_transaction;
use super::mempool::{Entry, EntryTime, FeeFrac, Offer, Pool, Rejection, Rules, Terms, View};
use super::{EmbeddedError, EmbeddedNode};

impl EmbeddedNode {
    /// All that a file of the mempool holds, as of one moment.
    pub fn saved_mempool(&self) -> SavedMempool {
        self.pool().saved()
    }

    /// Offers a transaction that came at this time to this or another mempool. Whether the mempool has it now.
    ///
    /// # Errors
    /// When the node fails.
    pub fn import_transaction(&self, raw: &[u8], time: i64) -> Result<bool, EmbeddedError> {
        let Some(tx) = decode_transaction(raw) else { return Ok(false) };
        let (offer, now) = (Offer::new(tx, raw), self.time());
        let too_old = now.saturating_sub(self.settings.mempool.expiry);
        let Some(time) = u64::try_from(time).ok().filter(|time| *time > too_old) else { return Ok(false) };
        self.verify_ahead(&offer)?;
        let _chain = self.lock_chain()?;
        let view = View::new(self, self.tip())?;
        let entry_time = EntryTime { time, height: view.tip.height, unbroadcast: false };
        let examined = self.pool().examine(&view, &offer, Rules::Alone(Terms::Kept(entry_time)), FeeRate::ZERO);
        match examined {
            Ok(admissible) => {
                let mut events = Vec::new();
                let stays = self.change_pool(|pool| pool.admit(admissible, now, &mut events));
                self.tell(events);
                Ok(stays)
            }
            Err(Rejection::Known) => Ok(true),
            Err(Rejection::Node(error)) => Err(error),
            Err(rejection) => {
                tracing::debug!(txid = %offer.txid, ?rejection, "not imported");
                Ok(false)
            }
        }
    }

    /// Counts those of these transactions that are here among those that no peer is known to have.
    ///
    /// # Errors
    /// When the node fails.
    pub fn set_unbroadcast(&self, txids: &[Txid]) -> Result<(), EmbeddedError> {
        let _chain = self.lock_chain()?;
        self.change_pool(|pool| txids.iter().for_each(|txid| pool.set_unbroadcast(txid)));
        Ok(())
    }
}

impl Pool {
    /// What a file of this mempool holds, in bitcoind's order: what builds on less first, and the best paid first of those.
    fn saved(&self) -> SavedMempool {
        let mut entries: Vec<&Entry> = self.graph().in_order().collect();
        let paid =
            |entry: &Entry| FeeFrac { fee: entry.fee.to_signed().unwrap_or_default(), size: entry.virtual_size() };
        entries.sort_by_key(|entry| (entry.ancestors.count, Reverse(paid(entry)), entry.txid));
        let save = |entry: &&Entry| SavedTransaction {
            raw: entry.raw.clone(),
            txid: entry.txid,
            time: i64::try_from(entry.time).unwrap_or(i64::MAX),
            fee_delta: entry.delta,
        };
        let absent = self.prioritised().into_iter().filter(|one| one.modified_fee.is_none());
        let mut unbroadcast: Vec<Txid> =
            entries.iter().filter(|entry| entry.unbroadcast).map(|entry| entry.txid).collect();
        unbroadcast.sort_unstable();
        SavedMempool {
            transactions: entries.iter().map(save).collect(),
            marks: SavedMarks { fee_deltas: absent.map(|one| (one.txid, one.fee_delta)).collect(), unbroadcast },
        }
    }
}
