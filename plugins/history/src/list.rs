//! listtransactions, and the walk through the history that it shares with listsinceblock.

use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use std::thread;

use outrigger_sdk::params::{int32, text};
use outrigger_sdk::service::wallet::{HistoryBatch, HistoryQuery, HistoryRange};
use outrigger_sdk::wire::{Blob, Encoded};

use crate::entry::{Entry, EntryWriter, Selection, WalletTx, entries};
use crate::error::HistoryError;
use crate::viewpoint::WalletViewpoint;
use outrigger_sdk::CallContext;

/// How many batches are read ahead of the one that is shown.
const BATCHES_AHEAD: usize = 2;

/// The batches of a range of the history.
pub struct Batches<'q> {
    context: &'q CallContext<'q>,
    query: HistoryQuery,
    ended: bool,
}

impl<'q> Batches<'q> {
    /// The batches of `range`, of at most `limit` transactions each.
    pub fn new(context: &'q CallContext<'q>, range: HistoryRange, reverse: bool, limit: u32) -> Self {
        Self { context, query: HistoryQuery { range, reverse, after: None, limit }, ended: false }
    }

    fn read(&mut self) -> Result<Encoded<HistoryBatch>, HistoryError> {
        let batch = self.context.host.wallet.history(self.context.scope, self.query.clone())?;
        self.query.after = batch.view()?.next.map(|next| Blob(next.to_vec()));
        self.ended = self.query.after.is_none();
        Ok(batch)
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<Encoded<HistoryBatch>, HistoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let batch = self.read();
        self.ended |= batch.is_err();
        Some(batch)
    }
}

/// Shows each transaction of some batches to `visit`, until they end or it says that it has enough. Where all are wanted and there
/// are many, another thread reads the next ones meanwhile: reading takes about as long as most visits.
pub fn walk(
    mut batches: Batches<'_>,
    mut visit: impl FnMut(&WalletTx<'_>) -> Result<ControlFlow<()>, HistoryError>,
) -> Result<(), HistoryError> {
    let Some(first) = batches.next() else { return Ok(()) };
    let has_many = !batches.ended && batches.query.limit == u32::MAX;
    let mut all = std::iter::once(first).chain(batches);
    if has_many {
        let walked = thread::scope(|scope| {
            let (sender, receiver) = sync_channel(BATCHES_AHEAD);
            let all = &mut all;
            // Ends when nobody takes its batches any more.
            let reading = move || all.try_for_each(|batch| sender.send(batch)).unwrap_or_default();
            let started = thread::Builder::new().name("history-read".to_owned()).spawn_scoped(scope, reading);
            started.is_ok().then(|| walk_each(receiver, &mut visit))
        });
        // Without another thread, this one reads.
        if let Some(outcome) = walked {
            return outcome;
        }
    }
    walk_each(all, &mut visit)
}

fn walk_each(
    batches: impl IntoIterator<Item = Result<Encoded<HistoryBatch>, HistoryError>>,
    visit: &mut impl FnMut(&WalletTx<'_>) -> Result<ControlFlow<()>, HistoryError>,
) -> Result<(), HistoryError> {
    for batch in batches {
        let batch = batch?;
        let batch = batch.view()?;
        for row in batch.rows {
            if visit(&WalletTx::open(&row, batch)?)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// listtransactions. Walks back from the newest until enough entries are there, and gives them oldest first; so within
/// one transaction their order is reversed.
pub fn list_transactions(context: &CallContext<'_>) -> Result<Vec<u8>, HistoryError> {
    let wallet = context.wallet()?;
    let params = &context.params;
    let label = params.given(0).map(text).transpose()?;
    if label == Some("") {
        return Err(HistoryError::EmptyLabel);
    }
    let selection = Selection { label: label.filter(|label| *label != "*"), ..Selection::default() };
    let count = params.given(1).map_or(Ok(10), int32)?;
    let skip = params.given(2).map_or(Ok(0), int32)?;
    let viewpoint = WalletViewpoint::of(context, &wallet, params.get(3))?;
    let count = usize::try_from(count).map_err(|_| HistoryError::NegativeCount)?;
    let skip = usize::try_from(skip).map_err(|_| HistoryError::NegativeSkip)?;
    let mut list =
        Backwards { writer: EntryWriter::new(context, viewpoint), items: Vec::new(), ends: Vec::new(), skip, count };
    if count > 0 {
        // So many suffice, unless some have no entry.
        let limit = u32::try_from(count.saturating_add(skip)).unwrap_or(u32::MAX);
        walk(Batches::new(context, HistoryRange::All, true, limit), |tx| list.add(tx, selection))?;
    }
    Ok(list.end())
}

/// Entries that are written newest first and given oldest first.
struct Backwards<'q> {
    writer: EntryWriter<'q>,
    /// The entries, each with a comma behind it.
    items: Vec<u8>,
    /// Where each ends, without its comma.
    ends: Vec<usize>,
    /// How many entries are still to be left out.
    skip: usize,
    /// How many are wanted.
    count: usize,
}

impl Backwards<'_> {
    /// Adds the entries of a transaction, as far as they are wanted.
    fn add(&mut self, tx: &WalletTx<'_>, selection: Selection<'_>) -> Result<ControlFlow<()>, HistoryError> {
        self.writer.begin(tx)?;
        for entry in entries(self.writer.viewpoint, &tx.transaction, selection) {
            if self.skip > 0 {
                self.skip -= 1;
            } else if self.ends.len() < self.count {
                self.push(tx, entry)?;
            }
        }
        Ok(if self.ends.len() < self.count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    fn push(&mut self, tx: &WalletTx<'_>, entry: Entry<'_>) -> Result<(), HistoryError> {
        self.writer.write(&mut self.items, tx, entry, true)?;
        self.ends.push(self.items.len());
        self.items.push(b',');
        Ok(())
    }

    /// The array, turned round in place: all bytes at once, and each entry's once more.
    fn end(self) -> Vec<u8> {
        let Self { items: mut reply, ends, .. } = self;
        if reply.is_empty() {
            return b"[]".to_vec();
        }
        // The last comma comes first, where the bracket belongs.
        reply.reverse();
        let total = reply.len();
        for (index, end) in ends.iter().enumerate() {
            let begin = index.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |before| before + 1);
            if let Some(entry) = reply.get_mut(total - end..total - begin) {
                entry.reverse();
            }
        }
        if let Some(first) = reply.first_mut() {
            *first = b'[';
        }
        reply.push(b']');
        reply
    }
}
