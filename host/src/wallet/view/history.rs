//! The history, told from the rows as they are stored: a transaction's row is copied into the answer undecoded, and what
//! only the moment says goes beside it, for those few that are not settled.

use std::ops::Bound;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Txid};
use heed::RoRange;
use heed::types::Bytes;
use outrigger_sdk::service::wallet::{
    HistoryBatch, HistoryQuery, HistoryRange, HistoryWriter, Outlook, TxState, WalletTransaction,
};
use outrigger_sdk::service::{Result as ServiceResult, Scope};
use outrigger_sdk::wire::{Blob, Encoded, from_bytes};

use super::{WalletView, check_place};
use crate::wallet::error::{Result, WalletError};
use crate::wallet::trust::{Judge, replaceable};

/// From how many bytes on a batch takes no further transaction. So much stays in the nearer caches between the copy into
/// it and its reader, and the allocator keeps it at hand for the next batch.
const BATCH_BYTES: usize = 64 << 10;
/// Room for the transaction that a batch ends with, in bytes. A larger one makes it grow.
const LAST_ROW_BYTES: usize = 8 << 10;

/// A key and its value, in place.
type Entry<'t> = heed::Result<(&'t [u8], &'t [u8])>;

impl WalletView {
    /// Those of these transactions that the wallet has, in their order.
    ///
    /// # Errors
    /// `Storage`.
    pub fn transactions(&self, txids: &[Txid]) -> ServiceResult<Encoded<HistoryBatch>> {
        Ok(self.read_transactions(txids)?)
    }

    fn read_transactions(&self, txids: &[Txid]) -> Result<Encoded<HistoryBatch>> {
        let mut outlooks = Outlooks { view: self, judge: None };
        let mut batch = HistoryWriter::with_capacity(LAST_ROW_BYTES);
        for txid in txids {
            if let Some(row) = self.t().stored(&self.txn, txid)? {
                batch.push(row, outlooks.of(row)?.as_ref());
            }
        }
        Ok(batch.finish(None))
    }

    /// The serialisations of the wallet's transactions of these ids, in their order.
    ///
    /// # Errors
    /// `Storage`.
    pub fn raw_transactions(&self, txids: &[Txid]) -> ServiceResult<Vec<Option<Blob>>> {
        let raw = |txid: &Txid| Ok(self.t().serialised(&self.txn, txid)?.map(|raw| Blob(raw.to_vec())));
        Ok(txids.iter().map(raw).collect::<Result<_>>()?)
    }

    /// A part of the history.
    ///
    /// # Errors
    /// `Malformed` for a place where no batch ended; `Storage`.
    pub fn history(&self, query: &HistoryQuery) -> ServiceResult<Encoded<HistoryBatch>> {
        Ok(self.read_history(query)?)
    }

    fn read_history(&self, query: &HistoryQuery) -> Result<Encoded<HistoryBatch>> {
        let (t, from) = (self.t(), height_of(query.range));
        let table = match query.range {
            HistoryRange::Confirmed { .. } => t.confirmed,
            HistoryRange::Unconfirmed => t.unconfirmed,
            HistoryRange::Conflicted { .. } => t.conflicted,
            HistoryRange::All => t.transactions,
        };
        let after = query.after.as_deref();
        check_place(after)?;
        // LMDB has no empty keys to begin at.
        let first = from.as_ref().map_or(Bound::Unbounded, |from| Bound::Included(from.as_slice()));
        if query.reverse {
            let end = after.map_or(Bound::Unbounded, Bound::Excluded);
            self.fill(query, table.rev_range(&self.txn, &(first, end))?)
        } else {
            let begin = after.map_or(first, Bound::Excluded);
            self.fill(query, table.range(&self.txn, &(begin, Bound::Unbounded))?)
        }
    }

    /// Writes a batch of what `entries` name, or of the entries themselves where all transactions are asked for.
    fn fill<'t>(
        &'t self,
        query: &HistoryQuery,
        entries: impl Iterator<Item = Entry<'t>>,
    ) -> Result<Encoded<HistoryBatch>> {
        let limit = query.limit.max(1) as usize;
        let mut rows = Rows { view: self, ahead: None, last: None };
        let mut outlooks = Outlooks { view: self, judge: None };
        let mut batch = HistoryWriter::with_capacity(BATCH_BYTES + LAST_ROW_BYTES);
        let mut last: &[u8] = &[];
        for entry in entries {
            let (key, value) = entry?;
            if batch.count() == limit || batch.size() >= BATCH_BYTES {
                return Ok(batch.finish(Some(last)));
            }
            let row = match query.range {
                HistoryRange::All => value,
                _ => rows.at(value)?,
            };
            batch.push(row, outlooks.of(row)?.as_ref());
            last = key;
        }
        Ok(batch.finish(None))
    }

    /// The other transactions of the wallet that spend one of these.
    fn conflicts(&self, txid: Txid, inputs: &[OutPoint]) -> Result<Vec<Txid>> {
        let mut conflicts = Vec::new();
        for input in inputs {
            conflicts.extend(self.t().spenders(&self.txn, input)?);
        }
        Ok(others(txid, conflicts))
    }

    /// The transactions of the mempool that stand in the way of one that is in neither the mempool nor the chain.
    fn mempool_conflicts(&self, row: &WalletTransaction) -> Result<Vec<Txid>> {
        if matches!(row.state, TxState::Confirmed { .. } | TxState::InMempool) {
            return Ok(Vec::new());
        }
        let spenders = self.wallet.shared.mempool.spenders(Scope::NONE, row.inputs.clone())?;
        Ok(others(row.txid, spenders.into_iter().flatten().collect()))
    }
}

/// The beginning of the keys that a range begins with; none where it begins with the table.
fn height_of(range: HistoryRange) -> Option<[u8; 4]> {
    match range {
        HistoryRange::Confirmed { from_height } | HistoryRange::Conflicted { from_height } => {
            Some(from_height.to_be_bytes())
        }
        HistoryRange::Unconfirmed | HistoryRange::All => None,
    }
}

/// Each of these that is not `txid` once, by internal bytes.
fn others(txid: Txid, mut txids: Vec<Txid>) -> Vec<Txid> {
    txids.retain(|other| *other != txid);
    txids.sort_unstable_by_key(|txid| txid.to_byte_array());
    txids.dedup();
    txids
}

/// Reads the rows that an index names one after the other.
struct Rows<'v> {
    view: &'v WalletView,
    /// The rows behind the last one, in the order of the table.
    ahead: Option<RoRange<'v, Bytes, Bytes>>,
    /// The arrival of the last one.
    last: Option<u64>,
}

impl<'v> Rows<'v> {
    /// The row of a transaction, given its arrival (BE).
    fn at(&mut self, key: &[u8]) -> Result<&'v [u8]> {
        let arrival = u64::from_be_bytes(key.try_into().map_err(|_| WalletError::damaged(key.len()))?);
        // A block's transactions mostly arrived one after the other: then the next row of the table is the one, and it
        // is not searched for.
        if self.last.replace(arrival) != arrival.checked_sub(1) {
            self.ahead = None;
            return self.view.t().stored_at(&self.view.txn, key);
        }
        let from = &(Bound::Included(key), Bound::Unbounded);
        let ahead = match &mut self.ahead {
            Some(ahead) => ahead,
            none => none.insert(self.view.t().transactions.range(&self.view.txn, from)?),
        };
        match ahead.next().transpose()? {
            Some((found, row)) if found == key => Ok(row),
            _ => Err(WalletError::damaged(key.len())),
        }
    }
}

/// Says of transactions what only the moment says.
struct Outlooks<'v> {
    view: &'v WalletView,
    /// Called in with the first transaction that needs judging.
    judge: Option<Judge<'v>>,
}

impl Outlooks<'_> {
    /// What the moment says of a transaction, given its row; none where it is settled.
    #[inline]
    fn of(&mut self, row: &[u8]) -> Result<Option<Outlook>> {
        // What a row begins with is enough for almost all.
        match from_bytes(row).map_err(WalletError::Damaged)? {
            (false, TxState::Confirmed { .. }) => Ok(None),
            _ => self.foresee(row).map(Some),
        }
    }

    fn foresee(&mut self, row: &[u8]) -> Result<Outlook> {
        let row: WalletTransaction = from_bytes(row).map_err(WalletError::Damaged)?;
        let view = self.view;
        let judge = match &mut self.judge {
            Some(judge) => judge,
            empty => empty.insert(Judge::new(view.t(), &view.txn, view.synced()?, &view.wallet.shared)?),
        };
        Ok(Outlook {
            conflicts: if row.contested { view.conflicts(row.txid, &row.inputs)? } else { Vec::new() },
            mempool_conflicts: view.mempool_conflicts(&row)?,
            trusted: judge.trusted(&row)?,
            replaceable: replaceable(&view.wallet.shared, &row)?,
        })
    }
}
