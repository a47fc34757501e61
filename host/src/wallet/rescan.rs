//! Rescans: reading blocks again that the wallet has followed before it knew all of its scripts.
//!
//! A wallet has one rescan at a time. It runs on a thread of its own; another reads and decodes the blocks ahead of it. How
//! far it has come is stored with what it found, so that it goes on after a restart.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use bitcoin::Block;
use outrigger_sdk::service::chain::{BlockInfo, BlockRef};
use outrigger_sdk::service::events::{Event, RescanOutcome};
use outrigger_sdk::service::wallet::RescanProgress;
use outrigger_sdk::service::{ErrorKind, Result as ServiceResult, Scope, ServiceError};

use super::error::{Result, WalletError};
use super::follow::header_time;
use super::live::Wallet;
use super::lock;
use super::store::rows::RescanRow;
use super::store::tables::put;
use super::write::Write;

/// How far a block's time may lie before that of the keys in it, in seconds.
const TIMESTAMP_WINDOW: u64 = 7200;
/// How many blocks are written in one transaction.
const BLOCKS_PER_WRITE: usize = 64;
/// How many such batches are read ahead.
const BATCHES_AHEAD: usize = 2;
/// One whole, in the unit of [`RescanProgress::millionths`].
const WHOLE: u64 = 1_000_000;

/// A wallet's place for one rescan.
#[derive(Default)]
pub struct Slot {
    state: Mutex<State>,
    /// Asks the running rescan to end.
    abort: AtomicBool,
    /// The host is stopping: what is not done yet goes on at the next load.
    stopping: AtomicBool,
    millionths: AtomicU32,
}

#[derive(Default)]
struct State {
    last: u64,
    stage: Stage,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Idle,
    Reserved(u64),
    Running(Instant),
}

/// How a rescan comes to its end, besides by an error of the storage.
enum End {
    Complete,
    Aborted,
}

/// A block read ahead; without contents when it could not be read.
struct Ahead {
    info: BlockInfo,
    block: Option<Block>,
    /// The greatest time of it and all before it, in seconds.
    max_time: u32,
}

impl Wallet {
    /// Reserves the wallet's one rescan.
    ///
    /// # Errors
    /// `WalletRescanning`.
    pub fn rescan_reserve(&self) -> ServiceResult<u64> {
        let mut state = lock(&self.rescan.state);
        if !matches!(state.stage, Stage::Idle) {
            return Err(ErrorKind::WalletRescanning.into());
        }
        state.last += 1;
        state.stage = Stage::Reserved(state.last);
        Ok(state.last)
    }

    /// Gives a reservation back unused. Nothing where it is not one.
    ///
    /// # Errors
    /// None.
    pub fn rescan_release(&self, rescan: u64) -> ServiceResult<()> {
        let mut state = lock(&self.rescan.state);
        if matches!(state.stage, Stage::Reserved(reserved) if reserved == rescan) {
            state.stage = Stage::Idle;
        }
        Ok(())
    }

    /// Starts the reserved rescan at the first block whose running-maximum time is at least `from_time` less two hours,
    /// up to the block where the wallet stands. Its end is told by [`Event::RescanFinished`].
    ///
    /// # Errors
    /// `NotFound` when `rescan` is no reservation; `WalletNotLoaded` when the wallet was unloaded; `Storage`.
    pub fn rescan_start(&self, rescan: u64, from_time: u64) -> ServiceResult<()> {
        self.rescan_launch(rescan, RescanRow { from_time, next_height: None, unreadable: 0 })
    }

    fn rescan_launch(&self, rescan: u64, row: RescanRow) -> ServiceResult<()> {
        let mut state = lock(&self.rescan.state);
        if !matches!(state.stage, Stage::Reserved(reserved) if reserved == rescan) {
            return Err(ServiceError::new(ErrorKind::NotFound, format!("rescan {rescan} is not reserved")));
        }
        self.write(|write| put(write.t.meta, &mut write.txn, b"rescan", &row))?;
        self.rescan.abort.store(false, Ordering::Relaxed);
        self.rescan.millionths.store(0, Ordering::Relaxed);
        let this = self.shared.follower.loaded().into_iter().find(|wallet| std::ptr::eq(&**wallet, self));
        let wallet = this.ok_or(ErrorKind::WalletNotLoaded)?;
        let thread = thread::Builder::new().name("rescan".into()).spawn(move || wallet.rescan_run(rescan));
        state.stage = Stage::Running(Instant::now());
        // A former thread has come to its end, or the place would not have been free.
        state.thread = Some(thread.map_err(WalletError::from)?);
        Ok(())
    }

    /// Aborts the running rescan; whether there was one.
    ///
    /// # Errors
    /// None.
    pub fn rescan_abort(&self) -> ServiceResult<bool> {
        let running = matches!(lock(&self.rescan.state).stage, Stage::Running(_));
        if running {
            self.rescan.abort.store(true, Ordering::Relaxed);
        }
        Ok(running)
    }

    /// How far the running rescan has come.
    pub(super) fn rescan_progress(&self) -> Option<RescanProgress> {
        match lock(&self.rescan.state).stage {
            Stage::Running(since) => Some(RescanProgress {
                duration: since.elapsed().as_secs(),
                millionths: self.rescan.millionths.load(Ordering::Relaxed),
            }),
            _ => None,
        }
    }

    fn rescan_run(&self, rescan: u64) {
        let outcome = match self.rescan_all() {
            Ok(End::Complete) => {
                // What waits in the mempool may be the wallet's too, now that it knows more scripts.
                if let Err(error) = self.reread_mempool() {
                    tracing::warn!(wallet = self.name(), %error, "the mempool could not be read after the rescan");
                }
                self.rescan_done()
            }
            Ok(End::Aborted) => {
                if !self.rescan.stopping.load(Ordering::Relaxed) {
                    // One that a client aborted does not come back.
                    self.rescan_forget();
                }
                RescanOutcome::Aborted
            }
            Err(error) => {
                tracing::error!(wallet = self.name(), %error, "the rescan failed and goes on at the next load");
                let row = self.store.read().and_then(|txn| self.store.tables.rescan(&txn)).ok().flatten();
                let at = row.and_then(|row| row.next_height).and_then(|height| self.block_at(height).ok().flatten());
                RescanOutcome::Unreadable { block_time: at.as_ref().map_or(0, header_time) }
            }
        };
        if let Err(error) = self.resubmit() {
            tracing::warn!(wallet = self.name(), %error, "unconfirmed transactions could not be offered again");
        }
        lock(&self.rescan.state).stage = Stage::Idle;
        (self.shared.sink)(Event::RescanFinished { wallet: self.name.clone(), rescan, outcome });
    }

    fn rescan_done(&self) -> RescanOutcome {
        let row = self.store.read().and_then(|txn| self.store.tables.rescan(&txn)).ok().flatten();
        self.rescan_forget();
        match row.map_or(0, |row| row.unreadable) {
            0 => RescanOutcome::Complete,
            block_time => RescanOutcome::Unreadable { block_time },
        }
    }

    fn rescan_forget(&self) {
        let forgotten = self.write(|write| Ok(write.t.meta.delete(&mut write.txn, b"rescan")?));
        if let Err(error) = forgotten {
            tracing::error!(wallet = self.name(), %error, "the rescan's end could not be stored; it will be repeated");
        }
    }

    fn rescan_all(&self) -> Result<End> {
        let row = self.store.tables.rescan(&*self.store.read()?)?.ok_or(WalletError::damaged(0))?;
        let Some((start, max_time)) = self.rescan_begin(&row)? else { return Ok(End::Complete) };
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        thread::scope(|scope| {
            let reader = scope.spawn(move || self.read_ahead(start, max_time, &sender));
            let written = self.write_behind(start, row, &receiver);
            // The reader stops when nobody takes what it reads.
            drop(receiver);
            let read = reader.join().map_err(|_| WalletError::MissingBlock("the reading thread panicked".into()))?;
            match written? {
                End::Complete => read.map(|()| End::Complete),
                End::Aborted => Ok(End::Aborted),
            }
        })
    }

    /// The height to begin at, and the running-maximum time of the blocks before it; none when no block qualifies.
    fn rescan_begin(&self, row: &RescanRow) -> Result<Option<(u32, u32)>> {
        let from = row.from_time.saturating_sub(TIMESTAMP_WINDOW);
        let mut max_time = 0;
        for height in 0.. {
            let Some(info) = self.block_at(height)? else { break };
            let reached = max_time.max(header_time(&info));
            let begins = match row.next_height {
                Some(next) => height >= next,
                None => u64::from(reached) >= from,
            };
            if begins {
                return Ok(Some((height, max_time)));
            }
            max_time = reached;
        }
        Ok(None)
    }

    /// Reads blocks from `height` on to where the wallet stands, and sends them on.
    fn read_ahead(&self, mut height: u32, mut max_time: u32, sender: &SyncSender<Vec<Ahead>>) -> Result<()> {
        loop {
            let end = self.synced()?.height;
            let mut batch = Vec::new();
            while batch.len() < BLOCKS_PER_WRITE && height <= end {
                let Some(info) = self.block_at(height)? else { break };
                max_time = max_time.max(header_time(&info));
                let block = self.read_block(info.hash).ok();
                batch.push(Ahead { info, block, max_time });
                height = height.saturating_add(1);
            }
            // A failed send means that the writer has ended: aborted, or by an error that it reports itself.
            if batch.is_empty() || sender.send(batch).is_err() {
                return Ok(());
            }
        }
    }

    fn write_behind(&self, start: u32, mut row: RescanRow, batches: &Receiver<Vec<Ahead>>) -> Result<End> {
        while let Ok(batch) = batches.recv() {
            if self.rescan.abort.load(Ordering::Relaxed) {
                return Ok(End::Aborted);
            }
            let synced = self.write(|write| {
                for ahead in &batch {
                    write.rescan_block(ahead, &mut row)?;
                }
                put(write.t.meta, &mut write.txn, b"rescan", &row)?;
                Ok(write.synced)
            })?;
            let done = u64::from(row.next_height.unwrap_or(0).saturating_sub(start));
            let all = u64::from(synced.height.saturating_sub(start)) + 1;
            let millionths = (done * WHOLE / all).min(WHOLE);
            self.rescan.millionths.store(millionths as u32, Ordering::Relaxed);
        }
        Ok(End::Complete)
    }
}

impl Write<'_> {
    fn rescan_block(&mut self, ahead: &Ahead, row: &mut RescanRow) -> Result<()> {
        row.next_height = Some(ahead.info.height.saturating_add(1));
        let Some(block) = &ahead.block else {
            row.unreadable = ahead.max_time;
            return Ok(());
        };
        // A block that left the best chain since it was read: those that took its place are new to the wallet too, so
        // that following reads them. The question is asked within the write, after which any further
        // reorganisation is followed by a later write.
        let hash = ahead.info.hash;
        let now = self.wallet.shared.chain.block_info(Scope::NONE, BlockRef::Hash { hash })?;
        if now.is_some_and(|info| info.in_best_chain) {
            self.connect(block, &ahead.info)?;
        }
        Ok(())
    }
}

/// Goes on with a rescan that the last run of the host did not end.
pub fn resume(wallet: &Wallet) -> Result<()> {
    let Some(row) = wallet.store.tables.rescan(&*wallet.store.read()?)? else { return Ok(()) };
    let rescan = wallet.rescan_reserve()?;
    Ok(wallet.rescan_launch(rescan, row)?)
}

/// Ends the running rescan so that it goes on at the next load, and waits for its thread.
pub fn stop(wallet: &Wallet) {
    wallet.rescan.stopping.store(true, Ordering::Relaxed);
    wallet.rescan.abort.store(true, Ordering::Relaxed);
    let thread = lock(&wallet.rescan.state).thread.take();
    if let Some(thread) = thread {
        let _ = thread.join();
    }
}
