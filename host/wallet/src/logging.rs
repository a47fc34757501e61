//! Writes of a wallet's log.

use bitcoin::Txid;
use outrigger_service::wallet::{LOG_DEPTH, LogKind, TxState, WalletTransaction};

use super::error::Result;
use super::log::{Note, Standing, UNCONFIRMED, UNKNOWN, due_height, due_key, log_number, microseconds, standing};
use super::store::{LOG_STATE, LogRow, LogStateRow, get};
use super::write::Write;

const MAX_ENTRIES: u64 = 100_000;
/// The greatest age of an entry, in microseconds: 90 days.
const MAX_AGE: u64 = 90 * 24 * 3600 * 1_000_000;
/// The most entries that one write drops because of their age.
const MAX_AGED_PER_WRITE: usize = 1_000;

impl Write<'_> {
    fn note(&mut self, row: &WalletTransaction, before: Standing) {
        let note = Note { order_position: row.order_position, before, again: false, place: self.log.len() };
        self.log.entry(row.txid).or_insert(note);
    }

    /// Notes a transaction's standing. Called before its first change.
    pub fn note_standing(&mut self, row: &WalletTransaction) -> Result<()> {
        if !self.log.contains_key(&row.txid) {
            self.note(row, standing(&self.t, self.reads(), &row.txid, &row.state)?);
        }
        Ok(())
    }

    pub fn note_new(&mut self, row: &WalletTransaction) {
        self.note(row, UNKNOWN);
    }

    /// Notes that a different part of a known transaction's payments is the wallet's now.
    pub fn note_payments_changed(&mut self, row: &WalletTransaction) -> Result<()> {
        self.note_standing(row)?;
        self.log.entry(row.txid).and_modify(|note| note.again = true);
        Ok(())
    }

    /// Writes the entries of this write. Returns the number of the last one, if any.
    pub fn write_log(&mut self) -> Result<Option<u64>> {
        let mut entries = Vec::new();
        let mut notes: Vec<(Txid, Note)> = std::mem::take(&mut self.log).into_iter().collect();
        notes.sort_unstable_by_key(|(_, note)| note.place);
        for (txid, note) in notes {
            self.log_change(txid, &note, &mut entries)?;
        }
        self.log_deep(&mut entries)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let now = microseconds();
        let mut state: LogStateRow = get(self.t.meta, self.reads(), LOG_STATE)?.unwrap_or_default();
        for entry in &entries {
            state.last = state.last.saturating_add(1).max(now);
            self.store_row(self.t.log, &state.last.to_be_bytes(), entry)?;
        }
        self.drop_old(&mut state, now.saturating_sub(MAX_AGE), MAX_ENTRIES)?;
        self.store_row(self.t.meta, LOG_STATE, &state)?;
        Ok(Some(state.last))
    }

    fn log_entry(&self, txid: Txid, (kind, place): Standing) -> LogRow {
        let (block, height) = place.unzip();
        LogRow { kind, txid, block, height, time: self.wallet.shared.node.time() }
    }

    fn log_change(&mut self, txid: Txid, note: &Note, entries: &mut Vec<LogRow>) -> Result<()> {
        let row = self.t.transaction_view(self.reads(), &txid)?;
        let (now, order_position) = match row {
            Some(row) => (standing(&self.t, self.reads(), &txid, &row.state)?, row.order_position),
            None => (UNKNOWN, note.order_position),
        };
        if now == note.before && (!note.again || now == UNKNOWN) {
            return Ok(());
        }
        let mut reorganised = false;
        if let (LogKind::Confirmed, Some((block, height))) = note.before
            && now != note.before
        {
            self.delete(self.t.log_due, &due_key(height, note.order_position))?;
            reorganised = now != UNKNOWN;
            if reorganised {
                entries.push(self.log_entry(txid, (LogKind::Reorganised, Some((block, height)))));
            }
        }
        if !reorganised || now != UNCONFIRMED {
            entries.push(self.log_entry(txid, now));
        }
        if let (LogKind::Confirmed, Some((_, height))) = now {
            self.put(self.t.log_due, &due_key(height, order_position), &[])?;
        }
        Ok(())
    }

    /// Moves the transactions that are deep now to the log.
    fn log_deep(&mut self, entries: &mut Vec<LogRow>) -> Result<()> {
        let Some(deepest) = self.synced.height.saturating_add(1).checked_sub(LOG_DEPTH) else { return Ok(()) };
        let mut due = Vec::new();
        for entry in self.t.log_due.iter(self.reads())? {
            let (key, _) = entry?;
            if due_height(key)? > deepest {
                break;
            }
            due.push(key.to_vec());
        }
        for key in due {
            let row = self.t.transaction_at(self.reads(), key.get(4..).unwrap_or_default())?;
            if let TxState::Confirmed { block, height, .. } = row.state {
                entries.push(self.log_entry(row.txid, (LogKind::Deep, Some((block, height)))));
            }
            self.delete(self.t.log_due, &key)?;
        }
        Ok(())
    }

    /// Drops entries with a number below `oldest`, and the oldest entries if there are more than `most`.
    pub fn drop_old(&mut self, state: &mut LogStateRow, oldest: u64, most: u64) -> Result<()> {
        let excess = self.t.log.len(self.reads())?.saturating_sub(most);
        let excess = usize::try_from(excess).unwrap_or(usize::MAX);
        for (dropped, entry) in self.t.log.iter(self.reads())?.enumerate() {
            let number = log_number(entry?.0)?;
            let is_old = number < oldest && dropped < MAX_AGED_PER_WRITE;
            if !is_old && dropped >= excess {
                break;
            }
            state.dropped = number;
        }
        self.delete_range(self.t.log, &(..=state.dropped.to_be_bytes().as_slice()))
    }
}
