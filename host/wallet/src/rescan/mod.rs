//! Rescans: searching blocks that the wallet followed before it had all of its scripts.
//!
//! A wallet has at most one rescan, on a thread of its own (`run.rs`). Other threads search the blocks ahead of it, for
//! all scripts that the wallet has or will soon have (`wanted.rs`). Each write stores the progress, so the rescan
//! resumes after a restart. An import stores the start of its reserved rescan, so even a kill between the two does not
//! leave an import without its rescan.

mod run;
pub(crate) mod wanted;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use outrigger_service::events::{Event, RescanOutcome};
use outrigger_service::wallet::{RescanProgress, Synced};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::error::{Result, WalletError};
use super::follow::header_time;
use super::live::Wallet;
use super::live::outgoing::OfferScope;
use super::live::rescan_slot::Stage;
use super::store::RescanRow;
use outrigger_base::contain::contain;
use run::End;
use wanted::Reach;

/// A new rescan from this time on, in seconds.
pub fn begin(from_time: u64) -> RescanRow {
    RescanRow { from_time, next_height: None, unreadable: 0, first_height: None, last_height: None }
}

impl Wallet {
    pub fn rescan_reserve(&self) -> ServiceResult<u64> {
        let mut state = self.rescan.state.lock();
        if !matches!(state.stage, Stage::Idle) {
            return Err(ErrorKind::WalletRescanning.into());
        }
        state.last += 1;
        state.stage = Stage::Reserved { rescan: state.last, since: Instant::now(), stored: None };
        self.rescan.millionths.store(0, Ordering::Relaxed);
        Ok(state.last)
    }

    /// Releases an unused reservation. No effect if `rescan` is not reserved.
    pub fn rescan_release(&self, rescan: u64) -> ServiceResult<()> {
        let stored = match self.rescan.state.lock().stage {
            Stage::Reserved { rescan: reserved, stored, .. } if reserved == rescan => stored,
            _ => return Ok(()),
        };
        // Not under the lock, which progress queries take: the write lock may be held for long.
        let forgotten = match stored {
            // The host is stopping. The next load runs the rescan.
            Some(_) if self.shared.stopping.load(Ordering::SeqCst) => Ok(false),
            Some(_) => self.write(|write| write.delete(write.t.meta, b"rescan")),
            None => Ok(false),
        };
        self.rescan.state.lock().stage = Stage::Idle;
        forgotten?;
        Ok(())
    }

    /// Starts the reserved rescan, from the first block whose running-maximum time is at least `from_time` minus two
    /// hours, to the wallet's position. [`Event::RescanFinished`] announces its end.
    pub fn rescan_start(&self, rescan: u64, from_time: u64) -> ServiceResult<()> {
        self.rescan_launch(rescan, begin(from_time))
    }

    /// rescanblockchain: starts the reserved rescan, from the height `first` to `last` or to the wallet's position.
    pub fn rescan_heights(&self, rescan: u64, first: u32, last: Option<u32>) -> ServiceResult<()> {
        self.rescan_launch(rescan, RescanRow { next_height: Some(first), last_height: last, ..begin(0) })
    }

    fn rescan_launch(&self, rescan: u64, row: RescanRow) -> ServiceResult<()> {
        let (stored, since) = match self.rescan.state.lock().stage {
            Stage::Reserved { rescan: reserved, since, stored } if reserved == rescan => (stored, since),
            _ => return Err(ServiceError::new(ErrorKind::NotFound, format!("rescan {rescan} is not reserved"))),
        };
        if stored != Some(row) {
            // Not under the lock, as above.
            self.write(|write| write.store_row(write.t.meta, b"rescan", &row))?;
        }
        let mut state = self.rescan.state.lock();
        self.rescan.abort.store(false, Ordering::SeqCst);
        if self.shared.stopping.load(Ordering::SeqCst) {
            // The stored row resumes at the next load. A thread started now would never be joined.
            return Err(ErrorKind::ShuttingDown.into());
        }
        let this = self.shared.follower.get(self.slot);
        let wallet = this.ok_or(ErrorKind::WalletNotLoaded)?;
        let thread = thread::Builder::new().name("rescan".into()).spawn(move || wallet.rescan_run(rescan, row));
        state.stage = Stage::Running(since);
        // An earlier thread has ended, else the slot would not have been free.
        state.thread = Some(thread.map_err(WalletError::from)?);
        Ok(())
    }

    pub fn rescan_abort(&self) -> ServiceResult<bool> {
        let running = matches!(self.rescan.state.lock().stage, Stage::Running(_));
        if running {
            self.rescan.abort.store(true, Ordering::Relaxed);
        }
        Ok(running)
    }

    /// The progress of the rescan. A reserved one counts as started.
    pub(super) fn rescan_progress(&self) -> Option<RescanProgress> {
        let since = match self.rescan.state.lock().stage {
            Stage::Idle => return None,
            Stage::Reserved { since, .. } | Stage::Running(since) => since,
        };
        let millionths = self.rescan.millionths.load(Ordering::Relaxed);
        Some(RescanProgress { duration: since.elapsed().as_secs(), millionths })
    }

    fn rescan_run(&self, rescan: u64, row: RescanRow) {
        // Even after a panic, the import that waits for the rescan gets its event.
        let mut outcome = RescanOutcome::Unreadable { block_time: 0 };
        let (mut last_height, mut widened) = (None, false);
        contain("a rescan", || outcome = self.rescan_outcome(row, &mut last_height, &mut widened));
        self.resend(OfferScope::All);
        self.rescan.state.lock().stage = Stage::Idle;
        let wallet = self.name.clone();
        (self.shared.sink)(Event::RescanFinished { wallet, rescan, outcome, last_height, widened });
    }

    fn rescan_outcome(&self, row: RescanRow, last: &mut Option<u32>, widened: &mut bool) -> RescanOutcome {
        let ended = catch_unwind(AssertUnwindSafe(|| self.rescan_all(row))).unwrap_or_else(|_| Err(run::lost_thread()));
        match ended {
            Ok(End::Complete { unreadable, last_height, passes }) => {
                (*last, *widened) = (last_height, passes > 1);
                // With the new scripts, more of the mempool may concern the wallet.
                if row.last_height.is_none() {
                    self.reread_mempool();
                }
                match unreadable {
                    0 => RescanOutcome::Complete,
                    block_time => RescanOutcome::Unreadable { block_time },
                }
            }
            Ok(End::Aborted) => {
                // A rescan aborted by a client does not resume, unless the host stops meanwhile.
                if !self.shared.stopping.load(Ordering::SeqCst)
                    && let Err(error) = self.write(|write| write.delete(write.t.meta, b"rescan"))
                {
                    let wallet = self.name();
                    tracing::error!(wallet, %error, "the rescan's end could not be stored; it will be repeated");
                }
                RescanOutcome::Aborted
            }
            Err(error) => {
                tracing::error!(wallet = self.name(), %error, "the rescan failed and goes on at the next load");
                let row = self.store.read().and_then(|txn| self.store.tables.rescan(&txn)).ok().flatten();
                let at = row.and_then(|row| row.next_height).and_then(|height| self.block_at(height).ok().flatten());
                RescanOutcome::Unreadable { block_time: at.as_ref().map_or(0, header_time) }
            }
        }
    }
}

/// A wallet's state at load, before it followed the chain.
pub struct StateAtLoad {
    synced: Synced,
    reach: Reach,
}

impl StateAtLoad {
    pub fn read(wallet: &Wallet) -> Result<Self> {
        Ok(Self { synced: wallet.synced(), reach: Reach::read(wallet)? })
    }

    /// A rescan of all blocks since the load, merged with an unfinished one.
    fn again(&self, stored: Option<RescanRow>) -> RescanRow {
        let next = self.synced.height.saturating_add(1);
        let Some(row) = stored else { return RescanRow { next_height: Some(next), ..begin(0) } };
        let earlier = |height: Option<u32>| height.map(|height| height.min(next));
        RescanRow {
            from_time: row.from_time.min(self.synced.time.into()),
            next_height: earlier(row.next_height),
            first_height: earlier(row.first_height),
            last_height: None,
            ..row
        }
    }
}

/// Resumes an unfinished rescan. If payments since the load came near the end of the derived scripts, scans the blocks
/// since the load again for the scripts derived then, and returns true.
pub fn resume(wallet: &Wallet, mut loaded: StateAtLoad) -> Result<bool> {
    let stored = wallet.store.tables.rescan(&*wallet.store.read()?)?;
    let is_widened = loaded.reach.widen(wallet)?.is_some();
    let row = if is_widened { Some(loaded.again(stored)) } else { stored };
    let Some(row) = row else { return Ok(false) };
    if is_widened {
        tracing::info!(
            wallet = wallet.name(),
            from = loaded.synced.height,
            "payments were found near the end of the derived scripts; the blocks are scanned again for more scripts"
        );
    }
    let rescan = wallet.rescan_reserve()?;
    if let Some(stored) = stored {
        wallet.rescan.note_stored(stored);
    }
    wallet.rescan_launch(rescan, row)?;
    Ok(is_widened)
}

/// Stops the running rescan of a host that is stopping, and waits for its thread. It resumes at the next load.
pub fn stop(wallet: &Wallet) {
    wallet.rescan.abort.store(true, Ordering::SeqCst);
    let thread = wallet.rescan.state.lock().thread.take();
    if let Some(thread) = thread {
        let _ = thread.join();
    }
}
