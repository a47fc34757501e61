//! The threads that work on wallets. A wallet is worked on by one at a time, for a bounded piece of work, and then goes to
//! the end of the queue; one that somebody else writes to is passed over until that one is done.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use outrigger_node::NodeEvent;
use outrigger_service::events::Event;
use parking_lot::{Condvar, Mutex};

use super::alarms::Due;
use crate::Shared;
use crate::error::{Result, WalletError};
use crate::live::Wallet;
use crate::live::feed::{Item, worth};
use crate::live::lag::Lag;
use crate::reorganisations::Undone;

/// The most threads that work on wallets, for all of them together. More wait for disks at a time than can run.
pub const MAX_THREADS: usize = 8;
/// How many things that were told are taken over in one turn at most.
const MAX_BATCH: usize = 1000;
/// How soon a wallet that could not follow is tried again at first, and at last.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(60);

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Wallet>>,
    /// Wallets to store when there is nothing else to do.
    unstored: VecDeque<Weak<Wallet>>,
    /// Whether a thread stores one of these now: one at a time, for it costs the disk a synchronisation.
    storing: bool,
    waiting: usize,
    threads: Vec<JoinHandle<()>>,
    stopping: bool,
    shared: Weak<Shared>,
}

/// The wallets that wait for a thread, and the threads.
#[derive(Default)]
pub struct WorkQueue {
    state: Mutex<State>,
    arrived: Condvar,
}

enum Work {
    Turn(Arc<Wallet>),
    Store(Weak<Wallet>),
}

impl WorkQueue {
    /// Starts the first thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(&self, shared: &Arc<Shared>) -> Result<()> {
        let mut state = self.state.lock();
        state.shared = Arc::downgrade(shared);
        Ok(add_thread(&mut state)?)
    }

    /// Queues a wallet. It is queued once at a time.
    pub fn queue(&self, wallet: Arc<Wallet>) {
        let mut state = self.state.lock();
        if state.stopping {
            return;
        }
        state.ready.push_back(wallet);
        if state.waiting < state.ready.len()
            && state.threads.len() < MAX_THREADS
            && let Err(error) = add_thread(&mut state)
        {
            // Those that are there do the work, if later.
            tracing::warn!(%error, "the wallets cannot have another thread");
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Has a wallet stored when there is nothing else to do.
    pub fn store_later(&self, wallet: &Arc<Wallet>) {
        // Where the disk is slow, one may still wait when it is looked after again.
        if !wallet.waits_to_be_stored.swap(true, Ordering::AcqRel) {
            self.state.lock().unstored.push_back(Arc::downgrade(wallet));
            self.arrived.notify_one();
        }
    }

    /// Ends the threads after what they are doing.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        state.ready.clear();
        state.unstored.clear();
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.arrived.notify_all();
        for thread in threads {
            // It contains its panics, so this does not fail.
            let _ = thread.join();
        }
    }

    fn next(&self) -> Option<Work> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            if let Some(wallet) = state.ready.pop_front() {
                return Some(Work::Turn(wallet));
            }
            if !state.storing
                && let Some(wallet) = state.unstored.pop_front()
            {
                state.storing = true;
                return Some(Work::Store(wallet));
            }
            state.waiting += 1;
            self.arrived.wait(&mut state);
            state.waiting -= 1;
        }
    }

    fn run(&self, shared: &Shared) {
        while let Some(work) = self.next() {
            match work {
                Work::Turn(wallet) => turn(shared, &wallet),
                Work::Store(wallet) => {
                    if let Some(wallet) = wallet.upgrade()
                        && let Err(panic) = catch_unwind(AssertUnwindSafe(|| wallet.store_if_free()))
                    {
                        fail(shared, &wallet, &*panic);
                    }
                    self.state.lock().storing = false;
                    self.arrived.notify_one();
                }
            }
        }
    }
}

fn add_thread(state: &mut State) -> std::io::Result<()> {
    let Some(shared) = state.shared.upgrade() else { return Ok(()) };
    let run = move || shared.follower.work_queue.run(&shared);
    state.threads.push(thread::Builder::new().name("wallet".into()).spawn(run)?);
    Ok(())
}

fn turn(shared: &Shared, wallet: &Arc<Wallet>) {
    let Some(items) = wallet.feed.begin(MAX_BATCH) else { return };
    let taken = worth(&items);
    let mut items = VecDeque::from(items);
    let Ok(occupied) =
        catch_unwind(AssertUnwindSafe(|| wallet.work_on(&mut items))).map_err(|panic| fail(shared, wallet, &*panic))
    else {
        return;
    };
    let mut busy = shared.follower.busy.lock();
    let more = wallet.feed.end(taken, items.into());
    // The index lacks what one that is behind has missed: it is told of everything.
    if !more && !wallet.feed.is_behind() {
        busy.remove(&wallet.slot);
    }
    drop(busy);
    // Where another writes, that one gives the wallet its next turn, unless it ended before this did.
    if more && !(occupied && wallet.write_lock.awaits_requeue()) {
        shared.follower.work_queue.queue(wallet.clone());
    }
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

/// A wallet's work panicked: it is not worked on any more, and who waits for it hears that.
fn fail(shared: &Shared, wallet: &Wallet, panic: &(dyn Any + Send)) {
    let reason = said(panic);
    tracing::error!(wallet = wallet.name(), reason, "following the chain for the wallet failed; unload and load it");
    let mut busy = shared.follower.busy.lock();
    wallet.feed.fail(reason);
    busy.remove(&wallet.slot);
}

impl Wallet {
    /// Works on some of what is to be done for it, and leaves the rest in the list. Whether another's write keeps it from that.
    fn work_on(&self, items: &mut VecDeque<Item>) -> bool {
        let behind = self.feed.is_behind();
        if behind && items.iter().all(Item::is_of_mempool) {
            // All of the mempool is read when it is tried again.
            items.clear();
            return false;
        }
        if behind {
            // The events that it missed are gone: it is brought in step as a whole.
            let worth = worth(items.make_contiguous());
            *items = VecDeque::from([Item::Reconcile(worth)]);
        }
        match self.take_items(items) {
            Ok(()) => {
                if items.is_empty() {
                    self.tell_retreat();
                }
                if items.is_empty() && behind {
                    *self.lag.lock() = None;
                    self.feed.set_behind(false);
                    tracing::info!(wallet = self.name(), "the wallet has caught up with the chain again");
                    items.push_back(Item::Event(NodeEvent::Reached));
                }
                false
            }
            Err(WalletError::Occupied) => true,
            Err(error) => {
                items.clear();
                self.feed.set_behind(true);
                self.fall_behind(&error);
                false
            }
        }
    }

    /// Says how many transactions a deep reorganisation took out of the chain, once the wallet stands at the tip again.
    fn tell_retreat(&self) {
        if self.synced().hash != self.shared.node.tip().hash {
            return;
        }
        let Undone { blocks, count, transactions } = self.retreat.take();
        let is_deep = self.shared.settings.reorganisation_notice.is_some_and(|notice| blocks >= notice);
        if is_deep && count > 0 {
            let message = "a deep reorganisation took the wallet's transactions out of the chain";
            tracing::warn!(wallet = self.name(), blocks, transactions = count, message);
            let wallet = self.name().to_owned();
            (self.shared.sink)(Event::WalletReorganised { wallet, blocks, transactions });
        }
    }

    /// Notes why the wallet could not follow, and has it tried again, unless that is going to happen.
    fn fall_behind(&self, error: &WalletError) {
        let (text, unavailable) = (error.to_string(), error.is_unavailable());
        let read_only = matches!(error, WalletError::Rewind { .. });
        let mut lag = self.lag.lock();
        let (wait, planned) = lag.as_ref().map_or((RETRY, None), |lag| ((2 * lag.wait).min(MAX_RETRY), lag.planned));
        if planned.is_some() {
            lag.iter_mut().for_each(|lag| *lag = Lag { text: text.clone(), unavailable, read_only, ..*lag });
            return;
        }
        // Said once: a node that is away for a day would fill the log with the retries of each wallet.
        match &*lag {
            None => tracing::error!(
                wallet = self.name(),
                error = text,
                "the wallet cannot follow the chain; it will be tried again until it can"
            ),
            Some(_) => tracing::debug!(wallet = self.name(), error = text, "the wallet still cannot follow the chain"),
        }
        let at = Instant::now() + wait;
        *lag = Some(Lag { text, unavailable, read_only, wait, planned: Some(at) });
        drop(lag);
        self.shared.follower.alarms.set(at, Due::Retry, self.slot);
    }

    /// An alarm that was set for a time has rung. Whether the wallet is to be tried again: it may have caught up since, and
    /// have another alarm.
    pub(super) fn try_again(&self, at: Instant) -> bool {
        let mut lag = self.lag.lock();
        let due = lag.as_mut().filter(|lag| lag.planned == Some(at));
        due.is_some_and(|lag| lag.planned.take().is_some())
    }
}
