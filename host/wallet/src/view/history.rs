//! The history, read in batches. A stored row is copied into the batch undecoded, with the labels of its outputs. A row
//! that is not settled also gets an [`UnsettledState`] (conflicts, trust, replaceability), computed at read time.

use std::ops::Bound;

use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, Txid, Wtxid};
use heed::RoRange;
use heed::types::Bytes;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{
    HistoryBatch, HistoryQuery, HistoryRange, HistoryWriter, Replaceable, TxState, UnsettledState, WalletTransaction,
};
use outrigger_service::wire::{Blob, Encoded, from_bytes};

use super::{WalletView, check_place};
use crate::error::Result;
use crate::store::{OF_WALLET, WITNESS};
use crate::trust::{TrustResolver, replaceable};
use outrigger_disk::{Pair, StoreError};

/// A batch of at least this many bytes takes no further chunk. It then fits in the CPU caches until it is read, and the
/// allocator reuses its memory for the next batch.
const BATCH_BYTES: usize = 48 << 10;
/// Capacity for the last chunk of a batch, in bytes, beyond [`BATCH_BYTES`]. A larger chunk reallocates the buffer.
const SPARE_BYTES: usize = 15 << 10;
/// How many transactions are looked up together.
const CHUNK_ROWS: usize = 32;
/// The most rows that a cursor steps over before a new search from the B-tree's root.
const MAX_CURSOR_STEPS: u64 = 8;

impl WalletView {
    pub fn transactions(&self, txids: &[Txid]) -> ServiceResult<Encoded<HistoryBatch>> {
        let mut unsettled = UnsettledStates { view: self, trust: None };
        let mut batch = HistoryWriter::with_capacity(SPARE_BYTES);
        for txid in txids {
            if let Some(row) = self.t().stored(&self.txn, txid)? {
                unsettled.push(row, &mut batch)?;
            }
        }
        Ok(batch.finish(None))
    }

    pub fn raw_transactions(&self, txids: &[Txid]) -> Result<Vec<Option<Blob>>> {
        let raw = |txid: &Txid| Ok(self.t().serialised(&self.txn, txid)?.map(|raw| Blob(raw.to_vec())));
        txids.iter().map(raw).collect()
    }

    pub fn alternate_wtxids(&self, txids: &[Txid]) -> Result<Vec<Vec<Wtxid>>> {
        // Nearly every wallet has none. This check spares a long list one search per transaction.
        if self.t().meta.prefix_iter(&self.txn, WITNESS)?.next().transpose()?.is_none() {
            return Ok(vec![Vec::new(); txids.len()]);
        }
        txids.iter().map(|txid| self.t().alternate_wtxids(&self.txn, txid)).collect()
    }

    pub fn spenders(&self, outpoints: &[OutPoint]) -> Result<Vec<Vec<Txid>>> {
        outpoints.iter().map(|outpoint| self.t().spenders(&self.txn, outpoint)).collect()
    }

    /// Whether each transaction can be replaced (BIP 125). Queries the node at most once.
    pub fn replaceable(&self, txids: &[Txid]) -> ServiceResult<Vec<Replaceable>> {
        let (mut known, mut open) = (Vec::with_capacity(txids.len()), Vec::new());
        for (at, txid) in txids.iter().enumerate() {
            let row = self.t().transaction_view(&self.txn, txid)?;
            let answer = row.map_or(Replaceable::Unknown, |row| replaceable(&row.state, row.signals));
            if answer == Replaceable::Unknown && row.is_some_and(|row| row.state == TxState::InMempool) {
                open.push((at, *txid));
            }
            known.push(answer);
        }
        let asked: Vec<Txid> = open.iter().map(|(_, txid)| *txid).collect();
        let entries = if asked.is_empty() { Vec::new() } else { self.wallet.shared.node.mempool_entries(&asked)? };
        for ((at, _), entry) in open.into_iter().zip(entries) {
            let answer = entry.map_or(Replaceable::Unknown, |entry| match entry.replaceable {
                true => Replaceable::Yes,
                false => Replaceable::No,
            });
            known.get_mut(at).into_iter().for_each(|place| *place = answer);
        }
        Ok(known)
    }

    pub fn history(&self, query: &HistoryQuery) -> Result<Encoded<HistoryBatch>> {
        let t = self.t();
        let (table, from) = match query.range {
            HistoryRange::Confirmed { from_height } => (t.confirmed, Some(from_height.to_be_bytes())),
            HistoryRange::Unconfirmed => (t.unconfirmed, None),
            HistoryRange::Conflicted { from_height } => (t.conflicted, Some(from_height.to_be_bytes())),
            HistoryRange::All => (t.transactions, None),
        };
        let after = query.after.as_deref();
        check_place(after)?;
        // LMDB refuses an empty key as a bound.
        let first = from.as_ref().map_or(Bound::Unbounded, |from| Bound::Included(from.as_slice()));
        if query.reverse {
            let end = after.map_or(Bound::Unbounded, Bound::Excluded);
            self.fill(query, table.rev_range(&self.txn, &(first, end))?)
        } else {
            let begin = after.map_or(first, Bound::Excluded);
            self.fill(query, table.range(&self.txn, &(begin, Bound::Unbounded))?)
        }
    }

    /// Fills a batch with the transactions of the index `entries`. For [`HistoryRange::All`] the entries are the rows.
    fn fill<'t>(
        &'t self,
        query: &HistoryQuery,
        mut entries: impl Iterator<Item = std::result::Result<Pair<'t>, StoreError>>,
    ) -> Result<Encoded<HistoryBatch>> {
        let limit = query.limit.max(1) as usize;
        let mut rows = Rows { view: self, cursor: None, last: None };
        let mut unsettled = UnsettledStates { view: self, trust: None };
        let mut batch = HistoryWriter::with_capacity(BATCH_BYTES + SPARE_BYTES);
        let mut last: &[u8] = &[];
        let mut chunk: Vec<Pair<'_>> = Vec::with_capacity(CHUNK_ROWS);
        loop {
            let wanted = CHUNK_ROWS.min(limit - batch.count());
            chunk.clear();
            for entry in entries.by_ref().take(wanted) {
                chunk.push(entry?);
            }
            let ended = chunk.len() < wanted;
            if query.range != HistoryRange::All {
                rows.resolve(&mut chunk)?;
            }
            for (key, row) in &chunk {
                if batch.size() >= 2 * BATCH_BYTES {
                    return Ok(batch.finish(Some(last)));
                }
                unsettled.push(row, &mut batch)?;
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

    /// The wallet's other spenders of these outpoints, by internal bytes.
    fn conflicts(&self, txid: Txid, inputs: &[OutPoint]) -> Result<Vec<Txid>> {
        let mut conflicts = Vec::new();
        for input in inputs {
            conflicts.extend(self.t().spenders(&self.txn, input)?);
        }
        conflicts.retain(|other| *other != txid);
        conflicts.sort_unstable_by_key(|txid| txid.to_byte_array());
        conflicts.dedup();
        Ok(conflicts)
    }

    /// The mempool transactions that conflict with an inactive transaction or with an inactive ancestor of it in the
    /// wallet.
    fn mempool_conflicts(&self, row: &WalletTransaction) -> Result<Vec<Txid>> {
        // If a transaction is in the chain or the mempool, so are its ancestors.
        if matches!(row.state, TxState::Confirmed { .. } | TxState::InMempool) {
            return Ok(Vec::new());
        }
        self.t().mempool_conflicts_of(&self.txn, OF_WALLET, &row.txid)
    }
}

/// Reads the rows that index entries refer to.
struct Rows<'v> {
    view: &'v WalletView,
    /// In the table `transactions`, after the last row read. Kept while the next row is near.
    cursor: Option<outrigger_disk::Rows<RoRange<'v, Bytes, Bytes>>>,
    last: Option<u64>,
}

impl<'v> Rows<'v> {
    /// Replaces each order position (BE) with the transaction's row.
    ///
    /// Transactions that are close in the chain usually have close order positions. Sorted by position, most rows are
    /// within reach of the cursor, without a search.
    fn resolve(&mut self, entries: &mut [Pair<'v>]) -> Result<()> {
        let mut sorted: Vec<_> = entries.iter_mut().collect();
        sorted.sort_unstable_by_key(|(_, key)| order_position(key));
        sorted.into_iter().try_for_each(|(_, value)| self.row_at(value).map(|row| *value = row))
    }

    /// The row at an order position (BE).
    fn row_at(&mut self, key: &[u8]) -> Result<&'v [u8]> {
        let (t, txn) = (self.view.t(), &self.view.txn);
        let order_position = order_position(key);
        let steps = self.last.replace(order_position).and_then(|last| order_position.checked_sub(last));
        if let Some(steps @ 1..=MAX_CURSOR_STEPS) = steps {
            let found = match &mut self.cursor {
                Some(cursor) => cursor.nth(steps as usize - 1),
                none => none.insert(t.transactions.range(txn, &(Bound::Included(key), Bound::Unbounded))?).next(),
            };
            if let Some((found, row)) = found.transpose()?
                && found == key
            {
                return Ok(row);
            }
        }
        self.cursor = None;
        t.stored_at(txn, key)
    }
}

/// Decodes an order position (BE). Malformed bytes give `u64::MAX`, which no transaction has.
fn order_position(key: &[u8]) -> u64 {
    key.try_into().map_or(u64::MAX, u64::from_be_bytes)
}

struct UnsettledStates<'v> {
    view: &'v WalletView,
    /// Created for the first transaction that needs it.
    trust: Option<TrustResolver<'v>>,
}

impl UnsettledStates<'_> {
    /// Appends a row, with its state unless it is settled.
    fn push(&mut self, row: &[u8], batch: &mut HistoryWriter) -> Result<()> {
        let unsettled =
            if WalletTransaction::is_settled(row) { None } else { Some(self.unsettled_state_of(&from_bytes(row)?)?) };
        let labels = self.view.all_labels()?;
        Ok(batch.push(row, unsettled.as_ref(), |script| labels.get(script))?)
    }

    fn unsettled_state_of(&mut self, row: &WalletTransaction) -> Result<UnsettledState> {
        let view = self.view;
        let trust = match &mut self.trust {
            Some(trust) => trust,
            empty => empty.insert(view.trust()),
        };
        Ok(UnsettledState {
            conflicts: if row.contested { view.conflicts(row.txid, &row.inputs)? } else { Vec::new() },
            mempool_conflicts: view.mempool_conflicts(row)?,
            trusted: trust.trusted(&row.txid, &row.state, row.is_from_us())?,
            replaceable: replaceable(&row.state, row.signals),
        })
    }
}
