//! listtransactions, and the walk through the history.

use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use std::thread;

use outrigger_sdk::methods::Json;
use outrigger_sdk::params::int32;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{HistoryBatch, HistoryQuery, HistoryRange};
use outrigger_sdk::wire::{Blob, Encoded};
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::Value;

use crate::entry::{EntryWriter, Selection, WalletTx, entries};
use crate::viewpoint::WalletViewpoint;
use crate::{HistoryPlugin, json};

/// The number of batches that the reading thread prefetches.
const BATCHES_AHEAD: usize = 2;

/// The batches of a range of the history.
pub struct Batches<'q> {
    call: &'q Call<'q>,
    /// The query for the next batch; `None` after the last one.
    query: Option<HistoryQuery>,
}

impl<'q> Batches<'q> {
    /// The batches of a range, each of at most `limit` transactions.
    pub fn new(call: &'q Call<'q>, range: HistoryRange, reverse: bool, limit: u32) -> Self {
        Self { call, query: Some(HistoryQuery { range, reverse, after: None, limit }) }
    }

    fn read(&mut self, query: HistoryQuery) -> Result<Encoded<HistoryBatch>, ServiceError> {
        let batch = self.call.host.wallet.history(self.call.scope, query.clone())?;
        let next = batch.view()?.next;
        self.query = next.map(|next| HistoryQuery { after: Some(Blob(next.to_vec())), ..query });
        Ok(batch)
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<Encoded<HistoryBatch>, ServiceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let query = self.query.take()?;
        Some(self.read(query))
    }
}

/// Visits the transactions of batches until `visit` breaks. Without a limit, another thread prefetches the next batches,
/// because reading a batch takes about as long as visiting it.
pub fn walk(
    mut batches: Batches<'_>,
    mut visit: impl FnMut(&WalletTx<'_>) -> Result<ControlFlow<()>, ServiceError>,
) -> Result<(), ServiceError> {
    let Some(first) = batches.next() else { return Ok(()) };
    let prefetch = batches.query.as_ref().is_some_and(|query| query.limit == u32::MAX);
    let mut all = std::iter::once(first).chain(batches);
    if prefetch {
        let walked = thread::scope(|scope| {
            let (sender, receiver) = sync_channel(BATCHES_AHEAD);
            let all = &mut all;
            // The thread ends when the receiver is dropped.
            let reading = move || all.try_for_each(|batch| sender.send(batch)).unwrap_or_default();
            let started = thread::Builder::new().name("history-read".to_owned()).spawn_scoped(scope, reading);
            started.is_ok().then(|| walk_each(receiver, &mut visit))
        });
        // If the thread did not start, the current thread reads the batches.
        if let Some(outcome) = walked {
            return outcome;
        }
    }
    walk_each(all, &mut visit)
}

fn walk_each(
    batches: impl IntoIterator<Item = Result<Encoded<HistoryBatch>, ServiceError>>,
    visit: &mut impl FnMut(&WalletTx<'_>) -> Result<ControlFlow<()>, ServiceError>,
) -> Result<(), ServiceError> {
    for batch in batches {
        let batch = batch?;
        let batch = batch.view()?;
        for row in batch.rows.iter() {
            if visit(&WalletTx::open(&row, batch)?)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[methods(category = "Wallet")]
impl HistoryPlugin {
    /// Lists the latest entries of the wallet's history, oldest first.
    ///
    /// * `label` - List only payments to addresses with this label; * lists everything.
    /// * `count` (default: 10) - The number of entries.
    /// * `skip` (default: 0) - The number of latest entries to skip.
    /// * `include_watchonly` (default: true for watch-only wallets, otherwise false) - Whether to list payments to
    ///   watched scripts.
    ///
    /// # Result
    /// [{...}]    (json array) Entries in the format of listsinceblock.
    ///
    /// # Example
    /// "*" 20
    #[method]
    fn listtransactions(
        call: &Call<'_>,
        #[arg(default = "*", alias = "dummy")] label: &str,
        #[arg(kind = "numeric")] count: Option<&Value>,
        #[arg(kind = "numeric")] skip: Option<&Value>,
        include_watchonly: Option<bool>,
    ) -> Result<Json, RpcError> {
        let wallet = call.wallet()?;
        if label.is_empty() {
            let message = "Label argument must be a valid label name or \"*\".";
            return Err(RpcError::invalid_parameter(message));
        }
        let selection = Selection { label: (label != "*").then_some(label), ..Selection::default() };
        let count = count.map_or(Ok(10), int32)?;
        let skip = skip.map_or(Ok(0), int32)?;
        let viewpoint = WalletViewpoint::of(call, &wallet, include_watchonly)?;
        let count = usize::try_from(count).map_err(|_| RpcError::invalid_parameter("Negative count"))?;
        let skip = usize::try_from(skip).map_err(|_| RpcError::invalid_parameter("Negative from"))?;
        let mut list = Backwards { writer: EntryWriter::new(call, viewpoint), ends: Vec::new(), skip, count };
        if count > 0 {
            // Most transactions have an entry, so one batch of this size usually suffices.
            let limit = u32::try_from(count.saturating_add(skip)).unwrap_or(u32::MAX);
            walk(Batches::new(call, HistoryRange::All, true, limit), |tx| list.add(tx, selection))?;
        }
        Ok(Json(list.end()))
    }
}

/// Collects entries from the newest transaction back, and reverses them at the end. Then the oldest is first, and the
/// entries of one transaction are in reverse order, too.
struct Backwards<'q> {
    /// It has the entries, one after the other.
    writer: EntryWriter<'q>,
    /// The end of each entry.
    ends: Vec<usize>,
    /// The number of entries still to skip.
    skip: usize,
    /// The number of entries to collect.
    count: usize,
}

impl Backwards<'_> {
    fn add(&mut self, tx: &WalletTx<'_>, selection: Selection<'_>) -> Result<ControlFlow<()>, ServiceError> {
        self.writer.begin(tx)?;
        for entry in entries(self.writer.viewpoint, &tx.transaction, selection) {
            if self.skip > 0 {
                self.skip -= 1;
            } else if self.ends.len() < self.count {
                self.writer.write(tx, entry, true)?;
                self.ends.push(self.writer.out.len());
            }
        }
        Ok(if self.ends.len() < self.count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    /// The array.
    fn end(self) -> Vec<u8> {
        let items = self.writer.out;
        let mut reply = Vec::with_capacity(items.len() + self.ends.len() + 2);
        reply.push(b'[');
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        for (begin, end) in begins.zip(&self.ends).collect::<Vec<_>>().into_iter().rev() {
            json::item(&mut reply);
            reply.extend_from_slice(items.get(begin..*end).unwrap_or_default());
        }
        reply.push(b']');
        reply
    }
}
