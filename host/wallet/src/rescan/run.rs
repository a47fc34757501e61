//! Running a rescan: threads search the blocks, and one thread writes the results in the order of the chain and logs the progress.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use outrigger_service::chain::BlockRef;

use super::wanted::{Growth, Reach, WatchedScripts};
use crate::error::{Result, WalletError};
use crate::live::Wallet;
use crate::matching::Met;
use crate::store::RescanRow;
use crate::write::Write;
use outrigger_node::SearchReads;
use outrigger_node::search::{Findings, FoundBlock, ScriptSet};

/// How far a block's time may be before the birth time of keys used in it, in seconds.
const TIMESTAMP_WINDOW: u64 = 7200;
/// How many blocks a thread searches at a time.
const UNIT: u32 = 128;
/// How many results of a thread may be queued.
const WAITING: usize = 2;
/// The fewest search threads, one of which may wait for the node, and the most.
const MIN_THREADS: usize = 2;
const MAX_THREADS: usize = 8;
/// About how many transactions are written at once.
const TRANSACTIONS_PER_WRITE: usize = 2_000;
/// The most passes of a rescan that finds payments near the end of the derived scripts each time.
const MAX_PASSES: u32 = 16;
/// How often progress is stored while nothing is found.
const STORE_EVERY: Duration = Duration::from_secs(1);

/// The first and the longest pause after the node was unreachable, and how often a pause checks for an abort.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
const ABORT_LOOK_EVERY: Duration = Duration::from_millis(100);

const LOG_EVERY: Duration = Duration::from_secs(10);
/// When the first report is logged. It includes an estimate of the remaining time.
const FIRST_LOG_AFTER: Duration = Duration::from_secs(2);
/// In millionths.
const WHOLE: u64 = 1_000_000;

pub enum End {
    Complete {
        /// The running-maximum time of the last unreadable block, in seconds; 0 if all were readable.
        unreadable: u32,
        last_height: Option<u32>,
        passes: u32,
    },
    Aborted,
}

struct Chunk {
    findings: Findings,
    /// Whether it is the last of its unit.
    last: bool,
}

impl Wallet {
    pub(crate) fn rescan_all(&self, mut row: RescanRow) -> Result<End> {
        let begin = match row.next_height {
            Some(height) => Some(height),
            None => self.shared.node.snapshot()?.first_at(row.from_time.saturating_sub(TIMESTAMP_WINDOW))?,
        };
        let Some(mut next) = begin else {
            self.rescan_close(u32::MAX, &row)?;
            return Ok(End::Complete { unreadable: row.unreadable, last_height: None, passes: 1 });
        };
        // For a resumed rescan, lower than `next`.
        let first = *row.first_height.get_or_insert(next);
        let reads = self.shared.node.search_reads();
        let mut show = Show::new(self.name(), first, next, self.rescan_last(&row), reads);
        self.rescan.millionths.store(show.progress(next, self.rescan_last(&row)), Ordering::Relaxed);
        let mut wanted = WatchedScripts::read(self)?;
        let (mut reach, mut passes) = (Reach::read(self)?, 1);
        let mut pause = RETRY_AFTER;
        loop {
            if self.rescan.abort.load(Ordering::Relaxed) {
                return Ok(End::Aborted);
            }
            let end = self.rescan_last(&row).saturating_add(1);
            if next >= end {
                if passes < MAX_PASSES
                    && let Some(grown) = reach.widen(self)?
                {
                    tracing::info!(
                        wallet = self.name(),
                        "the rescan has found payments near the end of the derived scripts, and begins again for the scripts \
                         derived since"
                    );
                    (wanted, next, passes) = (WatchedScripts::of(self, &grown)?, first, passes + 1);
                    row.next_height = Some(first);
                    self.write(|write| write.store_row(write.t.meta, b"rescan", &row))?;
                    continue;
                }
                // Blocks connected during the rescan may pay to scripts that it has added.
                if self.rescan_close(next, &row)? {
                    show.end();
                    let last_height = end.checked_sub(1);
                    return Ok(End::Complete { unreadable: row.unreadable, last_height, passes });
                }
                continue;
            }
            row.next_height = Some(next);
            let growth = match self.rescan_part(next..end, &mut row, &mut wanted, &mut show) {
                Err(error) if error.is_unavailable() => {
                    tracing::warn!(wallet = self.name(), %error, "the rescan waits for the node");
                    self.wait_unless_aborted(&mut pause);
                    Some(Growth::Held)
                }
                growth => {
                    pause = RETRY_AFTER;
                    growth?
                }
            };
            next = row.next_height.unwrap_or(end);
            let Some(growth) = growth else { return Ok(End::Aborted) };
            wanted.extend(self, growth)?;
        }
    }

    /// Waits before a retry, and doubles the pause.
    fn wait_unless_aborted(&self, pause: &mut Duration) {
        let begun = Instant::now();
        while begun.elapsed() < *pause && !self.rescan.abort.load(Ordering::Relaxed) {
            thread::sleep(ABORT_LOOK_EVERY);
        }
        *pause = (2 * *pause).min(MAX_RETRY_AFTER);
    }

    /// The last height to read, for the wallet's current position.
    fn rescan_last(&self, row: &RescanRow) -> u32 {
        row.last(self.synced().height)
    }

    /// Ends the rescan, unless the wallet's position has moved to `next` or beyond. Returns whether the rescan has ended.
    fn rescan_close(&self, next: u32, row: &RescanRow) -> Result<bool> {
        self.write(|write| {
            let done = row.last(write.synced.height) < next;
            if done {
                write.delete(write.t.meta, b"rescan")?;
            }
            Ok(done)
        })
    }

    /// Returns whether the wallet has new scripts, for which the rest of the part must be searched, too; `None` if the rescan was
    /// aborted.
    fn rescan_part(
        &self,
        heights: Range<u32>,
        row: &mut RescanRow,
        wanted: &mut WatchedScripts,
        show: &mut Show,
    ) -> Result<Option<Growth>> {
        let units = heights.len().div_ceil(UNIT as usize);
        let threads = thread::available_parallelism()
            .map_or(1, std::num::NonZero::get)
            .clamp(MIN_THREADS, MAX_THREADS)
            .min(units);
        // The threads share the set. A new script outside it ends the part.
        let set = std::mem::take(&mut wanted.set);
        let growth = thread::scope(|scope| {
            let mut receivers = Vec::with_capacity(threads);
            for first in 0..threads {
                let (sender, receiver) = sync_channel(WAITING);
                let (heights, set) = (heights.clone(), &set);
                let units = (first..units).step_by(threads);
                thread::Builder::new()
                    .name("rescan reader".into())
                    .spawn_scoped(scope, move || self.search_units(heights, units, set, &sender))?;
                receivers.push(receiver);
            }
            // Dropping the receivers ends the threads.
            let chunks = Chunks { receivers, unit: 0, units };
            self.write_chunks(chunks, row, wanted, show)
        });
        wanted.set = set;
        growth
    }

    /// Runs in a search thread, until all units are searched or the receiver of the results is dropped.
    fn search_units(
        &self,
        heights: Range<u32>,
        units: impl Iterator<Item = usize>,
        set: &ScriptSet,
        sender: &SyncSender<Result<Chunk>>,
    ) {
        for unit in units {
            let begin = heights.start.saturating_add(u32::try_from(unit).unwrap_or(u32::MAX).saturating_mul(UNIT));
            let end = begin.saturating_add(UNIT).min(heights.end);
            let mut next = begin;
            while next < end {
                let found =
                    self.shared.node.snapshot().and_then(|chain| chain.find(next..end, set)).map_err(WalletError::from);
                next = found.as_ref().map_or(end, |found| found.next);
                if sender.send(found.map(|findings| Chunk { findings, last: next >= end })).is_err() {
                    return;
                }
            }
        }
    }

    /// Writes the results, several chunks at once if available.
    fn write_chunks(
        &self,
        mut chunks: Chunks,
        row: &mut RescanRow,
        wanted: &mut WatchedScripts,
        show: &mut Show,
    ) -> Result<Option<Growth>> {
        let mut stored = Instant::now();
        while let Some(chunk) = chunks.next()? {
            if self.rescan.abort.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let mut size = weight(&chunk);
            let mut batch = vec![chunk];
            while size < TRANSACTIONS_PER_WRITE
                && let Some(chunk) = chunks.next_now()?
            {
                size += weight(&chunk);
                batch.push(chunk);
            }
            if size == 0 && stored.elapsed() < STORE_EVERY {
                row.next_height = batch.last().map(|chunk| chunk.findings.next);
            } else {
                // Events of the node come first: calls wait for them.
                self.shared.follower.wait(self);
                let growth = self.take_chunks(&batch, row, wanted)?;
                stored = Instant::now();
                if growth != Growth::Held {
                    return Ok(Some(growth));
                }
            }
            let millionths = show.progress(row.next_height.unwrap_or(0), self.rescan_last(row));
            self.rescan.millionths.store(millionths, Ordering::Relaxed);
        }
        Ok(Some(Growth::Held))
    }
}

impl Wallet {
    /// Writes the results of some blocks. First queries which of them are still in the chain, and starts over if the
    /// wallet has gone back to an earlier block since that query.
    fn take_chunks(&self, batch: &[Chunk], row: &mut RescanRow, wanted: &mut WatchedScripts) -> Result<Growth> {
        loop {
            let seen = self.see_chain(batch)?;
            let written = self.write(|write| {
                let stands = write.wallet.feed.retreats() == seen.retreats;
                stands.then(|| write.rescan_batch(batch, &seen, row, wanted)).transpose()
            })?;
            if let Some(growth) = written {
                return Ok(growth);
            }
        }
    }

    fn see_chain(&self, batch: &[Chunk]) -> Result<ChainState> {
        let retreats = self.feed.retreats();
        // From here on, the wallet cannot skip a disconnected block in memory. It rewinds by a write, either before our
        // write, which then notices, or after it.
        let heights = batch.iter().flat_map(|chunk| &chunk.findings.blocks).map(|block| block.height);
        heights.max().into_iter().for_each(|height| self.feed.note_height(height));
        let chain = self.shared.node.snapshot()?;
        let mut gone = HashSet::new();
        for Chunk { findings, .. } in batch.iter().filter(|chunk| chunk.findings.tip != chain.tip().hash) {
            for block in &findings.blocks {
                let info = chain.block_info(BlockRef::Hash { hash: block.hash })?;
                // Blocks that replaced it are new to the wallet, so the follower reads them.
                if !info.is_some_and(|info| info.in_best_chain) {
                    gone.insert(block.hash);
                }
            }
        }
        Ok(ChainState { retreats, gone })
    }
}

/// The state of the chain before a write.
struct ChainState {
    /// The wallet's count of rewinds.
    retreats: u64,
    /// Blocks that are no longer in the best chain.
    gone: HashSet<BlockHash>,
}

/// The number of transactions to write. An unreadable block counts as one.
fn weight(chunk: &Chunk) -> usize {
    let weight = |block: &FoundBlock| block.found.as_ref().map_or(1, |found| found.transactions.len());
    chunk.findings.blocks.iter().map(weight).sum()
}

/// The chunks of all threads, in the order of the chain.
struct Chunks {
    receivers: Vec<Receiver<Result<Chunk>>>,
    unit: usize,
    units: usize,
}

impl Chunks {
    fn receiver(&self) -> Option<&Receiver<Result<Chunk>>> {
        if self.unit == self.units { None } else { self.receivers.get(self.unit % self.receivers.len().max(1)) }
    }

    fn take(&mut self, chunk: Result<Chunk>) -> Result<Chunk> {
        let chunk = chunk?;
        self.unit += usize::from(chunk.last);
        Ok(chunk)
    }

    /// `None` after the last one.
    fn next(&mut self) -> Result<Option<Chunk>> {
        let Some(receiver) = self.receiver() else { return Ok(None) };
        // A thread that fails without a panic sends its error.
        let chunk = receiver.recv().unwrap_or_else(|_| Err(lost_thread()));
        self.take(chunk).map(Some)
    }

    /// `None` if no chunk is ready. [`Self::next`] reports a lost thread.
    fn next_now(&mut self) -> Result<Option<Chunk>> {
        let ready = self.receiver().and_then(|receiver| receiver.try_recv().ok());
        ready.map(|chunk| self.take(chunk)).transpose()
    }
}

pub(super) fn lost_thread() -> WalletError {
    WalletError::MissingBlock("(unknown), because a rescan thread panicked".into())
}

impl Write<'_> {
    /// Writes the results of some blocks, up to a block that adds scripts outside the search.
    fn rescan_batch(
        &mut self,
        batch: &[Chunk],
        seen: &ChainState,
        row: &mut RescanRow,
        wanted: &mut WatchedScripts,
    ) -> Result<Growth> {
        if wanted.is_stale(self)? {
            return Ok(Growth::Unknown);
        }
        let mut growth = Growth::Held;
        let met = Met::Rescan(self.wallet.shared.node.time());
        'batch: for Chunk { findings, .. } in batch {
            for block in &findings.blocks {
                if !seen.gone.contains(&block.hash) {
                    self.rescan_block(block, row, met)?;
                }
                growth = wanted.look(self)?;
                if growth != Growth::Held {
                    // Other transactions of the block may pay to the new scripts.
                    row.next_height = Some(block.height);
                    break 'batch;
                }
            }
            row.next_height = Some(findings.next);
        }
        self.store_row(self.t.meta, b"rescan", row)?;
        Ok(growth)
    }

    /// Writes the results of a block, repeatedly while that adds scripts: transactions before a payment may pay to
    /// scripts that the payment derives.
    fn rescan_block(&mut self, block: &FoundBlock, row: &mut RescanRow, met: Met) -> Result<()> {
        let Some(found) = &block.found else {
            row.unreadable = block.max_time;
            return Ok(());
        };
        loop {
            let known = self.t.scripts.len(self.reads())?;
            for (index, txid, transaction) in &found.transactions {
                let place = (block.hash, block.height, *index, found.time);
                self.connect_transaction(transaction, *txid, place, met)?;
            }
            if self.t.scripts.len(self.reads())? == known {
                return Ok(());
            }
        }
    }
}

/// The progress of a rescan, in the log.
struct Show {
    wallet: String,
    first: u32,
    /// The height at which this run started or resumed.
    start: u32,
    begun: Instant,
    logged: Instant,
}

impl Show {
    /// Logs the start of a rescan that began at the height `first`, is at `next` and goes to `last`. `reads` is the data
    /// that the node reads of each block.
    fn new(wallet: &str, first: u32, next: u32, last: u32, reads: SearchReads) -> Self {
        let now = Instant::now();
        let said = if first == next { "rescan begins" } else { "rescan goes on" };
        let blocks = last.saturating_add(1).saturating_sub(next);
        tracing::info!(wallet, height = next, blocks, %reads, "{said}");
        // Makes the first report due after `FIRST_LOG_AFTER`.
        let logged = now.checked_sub(LOG_EVERY.saturating_sub(FIRST_LOG_AFTER)).unwrap_or(now);
        Self { wallet: wallet.to_owned(), first, start: next, begun: now, logged }
    }

    /// Logs the progress now and then. Returns the finished part, in millionths.
    fn progress(&mut self, next: u32, last: u32) -> u32 {
        let done = u64::from(next.saturating_sub(self.first));
        let all = u64::from(last.saturating_sub(self.first)) + 1;
        let part = (done * WHOLE / all).min(WHOLE);
        if self.logged.elapsed() >= LOG_EVERY {
            self.logged = Instant::now();
            let (percent, seconds_left) = (part / (WHOLE / 100), self.seconds_left(next, last));
            tracing::info!(wallet = self.wallet, height = next, percent, seconds_left, "rescanning");
        }
        u32::try_from(part).unwrap_or(u32::MAX)
    }

    /// An extrapolation; `None` before any progress.
    fn seconds_left(&self, next: u32, last: u32) -> Option<u64> {
        let left = u64::from(last.saturating_add(1).saturating_sub(next));
        (self.begun.elapsed().as_secs() * left).checked_div(u64::from(next.saturating_sub(self.start)))
    }

    fn end(&self) {
        let milliseconds = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(wallet = self.wallet, milliseconds, "rescan done");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_is_counted_from_the_first_block_to_the_last() {
        let mut show = Show::new("w", 100, 100, 199, SearchReads::Blocks);
        assert_eq!([100, 150, 200, 300].map(|next| show.progress(next, 199)), [0, 500_000, 1_000_000, 1_000_000]);
        assert_eq!(show.seconds_left(100, 199), None);
        show.begun -= Duration::from_secs(30);
        assert_eq!(show.seconds_left(125, 199), Some(90));
        // A resumed rescan counts its earlier progress.
        assert_eq!(Show::new("w", 100, 150, 199, SearchReads::Blocks).progress(150, 199), 500_000);
    }
}
