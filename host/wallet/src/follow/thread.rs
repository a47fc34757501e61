//! Follows the node for all loaded wallets. One thread takes events and finds the wallets that they concern
//! (`passing.rs`), and a few threads work on these wallets (`work_queue.rs`). All of them may wait for the node. The
//! thread for timed work never does (`run_alarms`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use parking_lot::{Condvar, Mutex, RwLock};

use outrigger_node::interest::{interests, transaction_interest};

use super::decoded::Blocks;
use super::work_queue::{THREADS, WorkQueue};
use super::worker::{Alarm, Alarms, Due, Resends, Scrubs};
use crate::Shared;
use crate::error::Result;
use crate::live::Wallet;
use crate::live::feed::{Item, Items, WaitOutcome};
use crate::live::index::{Index, WalletNumber};
use crate::live::outgoing::OfferScope;
use crate::reorganisations::Reorganisations;
use outrigger_base::contain::contain;
use outrigger_node::NodeEvent;

/// How often maintenance stores positions that are far ahead of the stored ones, and frees the caches of idle wallets.
const STORE_EVERY: Duration = Duration::from_secs(60);
/// The most wallets whose positions one maintenance stores: each costs an fsync, during which alarms wait.
const MAX_STORED: usize = 100;
/// The longest queue of events. Beyond it, the wallets read the chain and the mempool instead.
const MAX_EVENTS: usize = 50_000;

#[derive(Default)]
struct LoadedWallets {
    by_name: HashMap<String, Arc<Wallet>>,
    /// In load order.
    by_slot: BTreeMap<WalletNumber, Arc<Wallet>>,
}

#[derive(Default)]
struct Inbox {
    events: Items,
    /// A tip that a call has seen before its event.
    seen: Option<BlockHash>,
    stopping: bool,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
pub struct Follower {
    pub index: Index,
    pub blocks: Blocks,
    pub(super) work_queue: WorkQueue,
    /// The wallets with queued items. Locked while something is compared with all wallets, so that none becomes busy or
    /// idle during the comparison. Lock order: before `loaded`.
    pub(super) busy: Mutex<BTreeSet<WalletNumber>>,
    loaded: RwLock<LoadedWallets>,
    next: AtomicU32,
    pub alarms: Alarms,
    pub resends: Resends,
    pub scrubs: Scrubs,
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    moved: Condvar,
    /// The number of the last queued event, and of the last one compared with the wallets. Changed under the lock of `inbox`.
    queued: AtomicU64,
    passed: AtomicU64,
    pub(crate) reorganisations: Reorganisations,
}

impl Follower {
    pub fn start(shared: &Arc<Shared>) -> Result<()> {
        for _ in 0..THREADS {
            let work = shared.clone();
            shared.follower.work_queue.start("wallet", move || work.follower.work_queue.run(&work))?;
        }
        let due = shared.clone();
        shared.follower.alarms.start("wallet alarms", move || due.follower.run_alarms())?;
        let resend = shared.clone();
        shared.follower.resends.start("wallet resends", move || resend.follower.run_resends(&resend))?;
        let scrub = shared.clone();
        shared.follower.scrubs.start("scrub", move || scrub.follower.run_scrubs())?;
        let run = shared.clone();
        let thread = thread::Builder::new().name("wallets".into()).spawn(move || run.follower.run(&run))?;
        shared.follower.inbox.lock().thread = Some(thread);
        Ok(())
    }

    pub fn new_slot(&self) -> WalletNumber {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Queues an event of the node, unless it concerns no loaded wallet. Never blocks on a wallet. A wallet that is
    /// loaded later reads the current state.
    pub fn push(&self, event: NodeEvent) {
        if self.count() == 0 {
            return;
        }
        let mut inbox = self.inbox.lock();
        if !self.concerns_nobody(&event) {
            self.enqueue(&mut inbox, event);
        }
    }

    /// Whether a change of the mempool certainly concerns no wallet. The index is complete only while all wallets are
    /// idle.
    fn concerns_nobody(&self, event: &NodeEvent) -> bool {
        // Checked first, to save the hashing: under load, every change is queued.
        if self.passed.load(Ordering::Acquire) != self.queued.load(Ordering::Acquire) {
            return false;
        }
        let concerning: Vec<u64> = match event {
            NodeEvent::TransactionAdded { transaction, .. } => {
                interests(transaction, &transaction.compute_txid()).collect()
            }
            NodeEvent::TransactionRemoved { txid, .. } => vec![transaction_interest(txid)],
            _ => return false,
        };
        let _held = self.index.hold();
        self.busy.lock().is_empty() && !concerning.into_iter().any(|interest| self.index.has_any(interest))
    }

    fn enqueue(&self, inbox: &mut Inbox, event: NodeEvent) {
        if inbox.events.len() >= MAX_EVENTS {
            let first = inbox.events.front().map_or(0, |(first, _)| *first);
            inbox.events.clear();
            inbox.events.push_back((first, Item::Reconcile));
        }
        let number = self.queued.fetch_add(1, Ordering::Release) + 1;
        inbox.events.push_back((number, Item::Event(event)));
        self.arrived.notify_one();
    }

    /// Lets the wallets follow to a tip that a call has seen, even if its event has not come yet.
    pub fn see_tip(&self, hash: BlockHash, height: u32) {
        let mut inbox = self.inbox.lock();
        if inbox.seen != Some(hash) {
            inbox.seen = Some(hash);
            self.enqueue(&mut inbox, NodeEvent::TipChanged { hash, height });
        }
    }

    /// In load order.
    pub fn loaded(&self) -> Vec<Arc<Wallet>> {
        self.loaded.read().by_slot.values().cloned().collect()
    }

    /// In load order.
    pub fn names(&self) -> Vec<String> {
        self.loaded.read().by_slot.values().map(|wallet| wallet.name().to_owned()).collect()
    }

    pub fn count(&self) -> usize {
        self.loaded.read().by_slot.len()
    }

    /// The loaded wallet, if there is exactly one.
    pub fn only(&self) -> Option<Arc<Wallet>> {
        let loaded = self.loaded.read();
        let first = loaded.by_slot.values().next().filter(|_| loaded.by_slot.len() == 1);
        first.cloned()
    }

    pub fn named(&self, name: &str) -> Option<Arc<Wallet>> {
        self.loaded.read().by_name.get(name).cloned()
    }

    pub fn get(&self, slot: WalletNumber) -> Option<Arc<Wallet>> {
        self.loaded.read().by_slot.get(&slot).cloned()
    }

    pub(super) fn for_each(&self, each: impl FnMut(&Arc<Wallet>)) {
        self.loaded.read().by_slot.values().for_each(each);
    }

    /// Adds a wallet whose interests are in the index.
    pub fn add(&self, wallet: &Arc<Wallet>) {
        let mut loaded = self.loaded.write();
        loaded.by_name.insert(wallet.name().to_owned(), wallet.clone());
        loaded.by_slot.insert(wallet.slot, wallet.clone());
    }

    /// Removes a wallet. Its queued items are dropped.
    pub fn remove(&self, wallet: &Wallet) {
        {
            let mut loaded = self.loaded.write();
            if loaded.by_slot.remove(&wallet.slot).is_some() {
                loaded.by_name.remove(wallet.name());
            }
        }
        wallet.feed.stop();
        self.busy.lock().remove(&wallet.slot);
        self.index.forget(wallet.slot);
    }

    pub fn give(&self, wallet: &Arc<Wallet>, item: Item) {
        self.give_to(wallet, item, &mut self.busy.lock());
    }

    pub(super) fn give_all(&self, event: &NodeEvent) {
        self.loaded().iter().for_each(|wallet| self.give(wallet, Item::Event(event.clone())));
    }

    /// Whether a wallet has processed all events so far.
    pub fn is_done(&self, wallet: &Wallet) -> bool {
        let queued = self.queued.load(Ordering::Acquire);
        self.passed.load(Ordering::Acquire) >= queued && wallet.feed.is_idle()
    }

    /// Waits until a wallet has processed all events that came before this call.
    pub fn wait(&self, wallet: &Wallet) -> WaitOutcome {
        let mut inbox = self.inbox.lock();
        let target = self.queued.load(Ordering::Acquire);
        while self.passed.load(Ordering::Acquire) < target {
            if inbox.stopping {
                return WaitOutcome::Stopped;
            }
            self.moved.wait(&mut inbox);
        }
        drop(inbox);
        wallet.feed.wait()
    }

    pub fn stop(&self) {
        // The scrub thread is stopped first. If it began a removal now, the stop would wait until it has searched a whole file.
        self.scrubs.stop();
        self.inbox.lock().stopping = true;
        self.arrived.notify_all();
        self.moved.notify_all();
        let thread = self.inbox.lock().thread.take();
        if let Some(thread) = thread {
            // The thread catches panics.
            let _ = thread.join();
        }
        self.work_queue.stop();
        self.alarms.stop();
        self.resends.stop();
    }

    /// The alarm thread. It never waits for the node, so wallets lock on time.
    fn run_alarms(&self) {
        self.plan_maintenance();
        while let Some(alarm) = self.alarms.next() {
            contain("timed work on wallets", || self.ring(alarm));
        }
    }

    fn plan_maintenance(&self) {
        self.alarms.set(Instant::now() + STORE_EVERY, Due::Maintenance);
    }

    fn ring(&self, (at, due): Alarm) {
        match due {
            Due::Lock(slot) => self.get(slot).iter().for_each(|wallet| wallet.lock_if_due()),
            Due::Retry(slot) => {
                if let Some(wallet) = self.get(slot).filter(|wallet| wallet.try_again(at)) {
                    self.give(&wallet, Item::Reconcile);
                }
            }
            Due::Resend(slot) => {
                if self.get(slot).is_some_and(|wallet| wallet.take_due_resend(at)) {
                    self.resends.queue(slot, OfferScope::All);
                }
            }
            Due::Maintenance => {
                self.plan_maintenance();
                self.run_maintenance();
            }
        }
    }

    /// Stores positions, and frees the caches of idle wallets.
    pub(crate) fn run_maintenance(&self) {
        let wallets = self.loaded();
        wallets.iter().for_each(|wallet| wallet.rest());
        wallets
            .iter()
            .filter(|wallet| wallet.is_far_ahead())
            .take(MAX_STORED)
            .for_each(|wallet| wallet.store_if_free());
        self.index.sweep();
    }

    fn run_resends(&self, shared: &Shared) {
        while let Some((slot, offered)) = self.resends.next() {
            // Once the node is back, all wallets offer their transactions anyway.
            let is_away = shared.node.link().is_some_and(|link| !link.reached);
            let Some(wallet) = self.get(slot).filter(|_| !is_away) else { continue };
            wallet.resend(offered);
        }
    }

    fn run_scrubs(&self) {
        while let Some(slot) = self.scrubs.next() {
            match self.get(slot) {
                Some(wallet) => contain("removing a former key from a wallet's file", || wallet.scrub()),
                None => self.scrubs.forget(slot),
            }
        }
    }

    fn next(&self) -> Option<Item> {
        let mut inbox = self.inbox.lock();
        loop {
            if inbox.stopping {
                return None;
            }
            if let Some((_, item)) = inbox.events.pop_front() {
                return Some(item);
            }
            self.arrived.wait(&mut inbox);
        }
    }

    fn run(&self, shared: &Shared) {
        while let Some(item) = self.next() {
            match &item {
                Item::Event(event) => {
                    if catch_unwind(AssertUnwindSafe(|| self.pass(shared, event))).is_err() {
                        tracing::error!(
                            "matching an event of the node panicked; every wallet processes the event by itself"
                        );
                        self.give_all(event);
                    }
                    // Each wallet reports its own transactions.
                    if self.reorganisations.take(event, shared.settings.reorganisation_notice) {
                        self.give_all(event);
                    }
                }
                Item::Reconcile => {
                    tracing::warn!(
                        "too many events of the node were queued; the wallets read the chain and the mempool again"
                    );
                    self.loaded().iter().for_each(|wallet| self.give(wallet, Item::Reconcile));
                }
            }
            let inbox = self.inbox.lock();
            let queued = self.queued.load(Ordering::Acquire);
            let passed = inbox.events.front().map_or(queued, |(first, _)| *first - 1);
            self.passed.store(passed, Ordering::Release);
            drop(inbox);
            self.moved.notify_all();
        }
    }
}
