//! The threads that work on wallets. Only one thread at a time works on a wallet, for a bounded time. If there is more
//! to do, or another writer held the lock, it then puts the wallet at the end of the queue.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_node::NodeEvent;
use outrigger_service::events::Event;

use super::worker::{Due, Worker};
use crate::Shared;
use crate::error::WalletError;
use crate::live::Wallet;
use crate::live::feed::{Item, Items, Lag};
use crate::reorganisations::RemovedBlocks;

/// The number of threads for all wallets. Most of them wait for disks, so there may be more than CPUs.
pub const THREADS: usize = 8;
/// The most items per turn.
const MAX_BATCH: usize = 1000;
/// The first and the longest pause before a wallet retries to follow the chain.
const RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(60);

pub type WorkQueue = Worker<VecDeque<Arc<Wallet>>>;

impl WorkQueue {
    /// Queues a wallet. The caller makes sure that it is queued only once.
    pub fn queue(&self, wallet: Arc<Wallet>) {
        self.give(|ready| ready.push_back(wallet));
    }

    /// Works on wallets until the queue is stopped.
    pub fn run(&self, shared: &Shared) {
        while let Some(wallet) = self.take(|ready| ready.pop_front().ok_or(None)) {
            turn(shared, &wallet);
        }
    }
}

fn turn(shared: &Shared, wallet: &Arc<Wallet>) {
    let Some(mut items) = wallet.feed.begin(MAX_BATCH) else { return };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| wallet.work_on(&mut items))) {
        return fail(shared, wallet, &*panic);
    }
    let mut busy = shared.follower.busy.lock();
    let more = wallet.feed.end(items);
    // A wallet that is behind has missed events, so the index lacks interests. It stays busy and gets every event.
    if !more && !wallet.feed.is_behind() {
        busy.remove(&wallet.slot);
    }
    drop(busy);
    if more {
        shared.follower.work_queue.queue(wallet.clone());
    }
}

/// Handles a panic in the work on a wallet: the wallet is no longer followed, and waiters get an error.
fn fail(shared: &Shared, wallet: &Wallet, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let reason = text.unwrap_or_else(|| "a panic without a message".to_owned());
    tracing::error!(wallet = wallet.name(), reason, "following the chain for the wallet failed; unload and load it");
    let mut busy = shared.follower.busy.lock();
    wallet.feed.fail(reason);
    busy.remove(&wallet.slot);
}

impl Wallet {
    /// Processes some of the items and leaves the rest in the list: all of them if another writer keeps the lock.
    fn work_on(&self, items: &mut Items) {
        let (behind, last) = (self.feed.is_behind(), items.back().map(|(number, _)| *number));
        if behind && items.iter().all(|(_, item)| item.is_of_mempool()) {
            // The retry reads the whole mempool.
            return items.clear();
        }
        if behind {
            // The missed events are lost: read the chain and the mempool instead.
            items.truncate(1);
            items.iter_mut().for_each(|(_, item)| *item = Item::Reconcile);
        }
        match self.take_items(items) {
            Ok(()) => {
                if items.is_empty() {
                    self.tell_retreat();
                }
                if items.is_empty() && behind {
                    *self.feed.lag.lock() = None;
                    tracing::info!(wallet = self.name(), "the wallet has caught up with the chain again");
                    // Waiting calls wait for it, too.
                    items.extend(last.map(|last| (last, Item::Event(NodeEvent::Reached))));
                }
            }
            Err(WalletError::Occupied) => {}
            Err(error) => {
                items.clear();
                self.fall_behind(error);
            }
        }
    }

    /// Announces the transactions that a deep reorganisation unconfirmed, once the wallet is at the tip again.
    fn tell_retreat(&self) {
        if self.synced().hash != self.shared.node.tip().hash {
            return;
        }
        let RemovedBlocks { blocks, count, transactions } = std::mem::take(&mut *self.retreat.lock());
        let is_deep = self.shared.settings.reorganisation_notice.is_some_and(|notice| blocks >= notice);
        if is_deep && count > 0 {
            let message = "a deep reorganisation took the wallet's transactions out of the chain";
            tracing::warn!(wallet = self.name(), blocks, transactions = count, message);
            let wallet = self.name().to_owned();
            (self.shared.sink)(Event::WalletReorganised { wallet, blocks, transactions });
        }
    }

    /// Records why the wallet cannot follow the chain, and schedules a retry unless one is scheduled.
    fn fall_behind(&self, error: WalletError) {
        let (mut lag, wallet) = (self.feed.lag.lock(), self.name());
        let wait = match &mut *lag {
            Some(Lag { error: last, planned: Some(_), .. }) => {
                *last = error;
                return;
            }
            Some(lag) => {
                tracing::debug!(wallet, %error, "the wallet still cannot follow the chain");
                (2 * lag.wait).min(MAX_RETRY)
            }
            None => {
                // Logged as an error only once: while a node is away for a day, the retries of each wallet would fill the log.
                tracing::error!(wallet, %error, "the wallet cannot follow the chain; the host retries until it can");
                RETRY
            }
        };
        let at = Instant::now() + wait;
        *lag = Some(Lag { error, wait, planned: Some(at) });
        drop(lag);
        self.shared.follower.alarms.set(at, Due::Retry(self.slot));
    }

    /// Handles a retry alarm. Returns whether the wallet should retry: it may have caught up since, and may have
    /// another alarm.
    pub(super) fn try_again(&self, at: Instant) -> bool {
        let mut lag = self.feed.lag.lock();
        let due = lag.as_mut().filter(|lag| lag.planned == Some(at));
        due.is_some_and(|lag| lag.planned.take().is_some())
    }
}
