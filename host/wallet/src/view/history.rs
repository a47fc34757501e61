//! The history, told from the rows as they are stored: a transaction's row is copied into the answer undecoded, and what
//! only the moment says goes beside it, for those few that are not settled. Long labels are put in here.

use std::ops::Bound;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Txid};
use heed::RoRange;
use heed::types::Bytes;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{
    HistoryBatch, HistoryQuery, HistoryRange, HistoryWriter, Outlook, TxState, WalletTransaction,
};
use outrigger_service::wire::{Blob, Encoded, from_bytes, to_bytes};

use super::{WalletView, check_place};
use crate::error::{Result, WalletError};
use crate::ownership::{is_long_label, label};
use crate::store::tables::OF_WALLET;
use crate::trust::{TrustResolver, replaceable};
use outrigger_disk::{Pair, TableError};

/// From how many bytes on a batch takes no further transactions. So much stays in the nearer caches between the copy into
/// it and its reader, and the allocator keeps it at hand for the next batch.
const BATCH_BYTES: usize = 64 << 10;
/// Room for the transactions that a batch ends with, in bytes. Larger ones make it grow, to twice its size and one more.
const SPARE_BYTES: usize = 16 << 10;
/// How many transactions are looked up together.
const AT_A_TIME: usize = 32;
/// How many rows a cursor goes on at most to a row that would otherwise be searched for.
const NEAR: u64 = 8;

/// What a cursor gives.
type Entry<'t> = std::result::Result<Pair<'t>, TableError>;
/// Where rows are read one after the other.
type Cursor<'t> = outrigger_disk::Rows<RoRange<'t, Bytes, Bytes>>;

impl WalletView {
    /// Those of these transactions that the wallet has, in their order.
    ///
    /// # Errors
    /// `Storage`.
    pub fn transactions(&self, txids: &[Txid]) -> ServiceResult<Encoded<HistoryBatch>> {
        Ok(self.read_transactions(txids)?)
    }

    fn read_transactions(&self, txids: &[Txid]) -> Result<Encoded<HistoryBatch>> {
        let mut outlooks = Outlooks { view: self, trust: None };
        let mut batch = HistoryWriter::with_capacity(SPARE_BYTES);
        for txid in txids {
            if let Some(row) = self.t().stored(&self.txn, txid)? {
                outlooks.push(row, &mut batch)?;
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
        mut entries: impl Iterator<Item = Entry<'t>>,
    ) -> Result<Encoded<HistoryBatch>> {
        let limit = query.limit.max(1) as usize;
        let mut rows = Rows { view: self, ahead: None, last: None };
        let mut outlooks = Outlooks { view: self, trust: None };
        let mut batch = HistoryWriter::with_capacity(BATCH_BYTES + SPARE_BYTES);
        let mut last: &[u8] = &[];
        let mut some: Vec<Pair<'_>> = Vec::with_capacity(AT_A_TIME);
        loop {
            let wanted = AT_A_TIME.min(limit - batch.count());
            some.clear();
            for entry in entries.by_ref().take(wanted) {
                some.push(entry?);
            }
            let ended = some.len() < wanted;
            if query.range != HistoryRange::All {
                rows.find(&mut some)?;
            }
            for (key, row) in &some {
                if batch.size() >= 2 * BATCH_BYTES {
                    return Ok(batch.finish(Some(last)));
                }
                outlooks.push(row, &mut batch)?;
                last = key;
            }
            if ended {
                return Ok(batch.finish(None));
            }
            if batch.count() == limit || batch.size() >= BATCH_BYTES {
                let more = entries.next().transpose()?.is_some();
                return Ok(batch.finish(more.then_some(last)));
            }
        }
    }

    /// The other transactions of the wallet that spend one of these.
    fn conflicts(&self, txid: Txid, inputs: &[OutPoint]) -> Result<Vec<Txid>> {
        let mut conflicts = Vec::new();
        for input in inputs {
            conflicts.extend(self.t().spenders(&self.txn, input)?);
        }
        Ok(others(txid, conflicts))
    }

    /// The transactions of the mempool that stand in the way of one that is in neither the mempool nor the chain: those that
    /// spend what it spends, or what one of the wallet does that it builds on and that waits as well.
    fn mempool_conflicts(&self, row: &WalletTransaction) -> Result<Vec<Txid>> {
        if is_placed(row) {
            return Ok(Vec::new());
        }
        self.t().mempool_conflicts_of(&self.txn, OF_WALLET, &row.txid)
    }
}

/// Whether a transaction is in the chain or the mempool. What it builds on is, too, then.
fn is_placed(row: &WalletTransaction) -> bool {
    matches!(row.state, TxState::Confirmed { .. } | TxState::InMempool)
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

/// Reads the rows that an index names.
struct Rows<'v> {
    view: &'v WalletView,
    /// The rows of the table behind the last one, while each is near the one before.
    ahead: Option<Cursor<'v>>,
    /// The order position of the last one.
    last: Option<u64>,
}

impl<'v> Rows<'v> {
    /// Puts in the place of each order position (BE) the transaction's row.
    ///
    /// What stands together in the chain has arrived at about the same time, if not in the same order: by their order positions
    /// most rows are near one another in the table, and such a row is not searched for.
    fn find(&mut self, entries: &mut [Pair<'v>]) -> Result<()> {
        if entries.is_sorted_by_key(|(_, key)| order_position(key)) {
            return entries.iter_mut().try_for_each(|(_, value)| self.at(value).map(|row| *value = row));
        }
        let mut sorted: Vec<_> = entries.iter_mut().collect();
        sorted.sort_unstable_by_key(|(_, key)| order_position(key));
        sorted.into_iter().try_for_each(|(_, value)| self.at(value).map(|row| *value = row))
    }

    /// The row of a transaction, given its order position (BE).
    fn at(&mut self, key: &[u8]) -> Result<&'v [u8]> {
        let (t, txn) = (self.view.t(), &self.view.txn);
        let order_position = order_position(key);
        let steps = self.last.replace(order_position).and_then(|last| order_position.checked_sub(last));
        if let Some(steps @ 1..=NEAR) = steps {
            let found = match &mut self.ahead {
                Some(ahead) => ahead.nth(steps as usize - 1),
                none => none.insert(t.transactions.range(txn, &(Bound::Included(key), Bound::Unbounded))?).next(),
            };
            if let Some((found, row)) = found.transpose()?
                && found == key
            {
                return Ok(row);
            }
        }
        self.ahead = None;
        t.stored_at(txn, key)
    }
}

/// A transaction's order position as a number. What is no order position stands for one that no transaction has, and is not found.
fn order_position(key: &[u8]) -> u64 {
    key.try_into().map_or(u64::MAX, u64::from_be_bytes)
}

/// Says of transactions what only the moment says.
struct Outlooks<'v> {
    view: &'v WalletView,
    /// Called in with the first transaction that needs judging.
    trust: Option<TrustResolver<'v>>,
}

impl Outlooks<'_> {
    /// Appends a transaction, given its row, to a batch, with what the moment says of it.
    fn push(&mut self, row: &[u8], batch: &mut HistoryWriter) -> Result<()> {
        if WalletTransaction::is_settled(row) {
            batch.push(row, None);
            return Ok(());
        }
        let mut decoded: WalletTransaction = from_bytes(row).map_err(WalletError::Damaged)?;
        if decoded.outputs.iter().any(|output| is_long_label(output.label.as_deref())) {
            self.complete(&mut decoded)?;
            let row = to_bytes(&decoded);
            let outlook = if WalletTransaction::is_settled(&row) { None } else { Some(self.foresee(&decoded)?) };
            batch.push(&row, outlook.as_ref());
        } else {
            batch.push(row, Some(&self.foresee(&decoded)?));
        }
        Ok(())
    }

    /// Puts long labels into a row, which is marked as contested for their sake.
    fn complete(&self, row: &mut WalletTransaction) -> Result<()> {
        let (t, txn) = (self.view.t(), &*self.view.txn);
        for output in row.outputs.iter_mut().filter(|output| is_long_label(output.label.as_deref())) {
            output.label = label(t, txn, &output.script)?;
        }
        row.contested = !self.view.conflicts(row.txid, &row.inputs)?.is_empty();
        Ok(())
    }

    fn foresee(&mut self, row: &WalletTransaction) -> Result<Outlook> {
        let view = self.view;
        let trust = match &mut self.trust {
            Some(trust) => trust,
            empty => empty.insert(TrustResolver::new(view.t(), &view.txn, view.synced(), &view.wallet.shared)?),
        };
        Ok(Outlook {
            conflicts: if row.contested { view.conflicts(row.txid, &row.inputs)? } else { Vec::new() },
            mempool_conflicts: view.mempool_conflicts(row)?,
            trusted: trust.trusted(row)?,
            replaceable: replaceable(&view.wallet.shared, row)?,
        })
    }
}
