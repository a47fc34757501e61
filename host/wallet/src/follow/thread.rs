//! Following the node for all loaded wallets: one thread that takes what the node tells and finds out which wallets it
//! concerns (`passing.rs`), and a few that work on those (`turns.rs`).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bitcoin::BlockHash;
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};

use super::decoded::Blocks;
use super::feed::{Item, Waited};
use super::index::{Index, WalletNumber};
use super::turns::Turns;
use crate::Shared;
use crate::error::Result;
use crate::live::Wallet;
use outrigger_node::NodeEvent;

/// How often wallets that stand beyond what they have stored are stored, and idle ones give memory back.
const STORE_EVERY: Duration = Duration::from_secs(60);

/// The loaded wallets.
#[derive(Default)]
struct Loaded {
    by_name: HashMap<String, Arc<Wallet>>,
    /// In the order in which they were loaded.
    by_slot: BTreeMap<WalletNumber, Arc<Wallet>>,
}

/// What happens to a wallet at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// It is locked.
    Lock,
    /// It is tried again, as it could not follow.
    Retry,
}

/// What is due at a time, and for which wallet.
type Alarm = (Instant, Due, WalletNumber);

#[derive(Default)]
struct Inbox {
    events: VecDeque<NodeEvent>,
    told: u64,
    passed: u64,
    /// The tip that somebody has seen before it was told.
    seen: Option<BlockHash>,
    alarms: BinaryHeap<Reverse<Alarm>>,
    stopping: bool,
    thread: Option<JoinHandle<()>>,
}

/// What follows the node for all loaded wallets.
#[derive(Default)]
pub struct Follower {
    /// What concerns which wallet.
    pub index: Index,
    /// The blocks that were read last.
    pub blocks: Blocks,
    pub(super) turns: Turns,
    /// The wallets that have something to do. Held while something is compared with all wallets, so that none begins
    /// or ends to have so meanwhile. Locked before `loaded`, never within.
    pub(super) busy: Mutex<BTreeSet<WalletNumber>>,
    loaded: RwLock<Loaded>,
    next: AtomicU32,
    inbox: Mutex<Inbox>,
    arrived: Condvar,
    moved: Condvar,
    /// The two counters of the inbox, for who only looks.
    told: AtomicU64,
    passed: AtomicU64,
}

/// What the thread has to do next.
enum Next {
    Event(NodeEvent),
    Alarms(Vec<Alarm>),
    Housekeeping,
    Stop,
}

impl Follower {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(shared: &Arc<Shared>) -> Result<()> {
        shared.follower.turns.start(shared)?;
        let run = shared.clone();
        let thread = thread::Builder::new().name("wallets".into()).spawn(move || run.follower.run(&run))?;
        shared.follower.inbox.lock().thread = Some(thread);
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Loaded> {
        self.loaded.read()
    }

    /// A number for a wallet that is about to be loaded.
    pub fn new_slot(&self) -> WalletNumber {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes an event from the node for all loaded wallets. Only enqueues. One that is loaded later reads what there is.
    pub fn push(&self, event: NodeEvent) {
        if self.count() > 0 {
            self.enqueue(&mut self.inbox.lock(), event);
        }
    }

    fn enqueue(&self, inbox: &mut Inbox, event: NodeEvent) {
        inbox.events.push_back(event);
        inbox.told += 1;
        self.told.store(inbox.told, Ordering::Release);
        self.arrived.notify_one();
    }

    /// Somebody has seen a tip that the node may not have told yet: the wallets are to stand there all the same.
    pub fn see_tip(&self, hash: BlockHash, height: u32) {
        let mut inbox = self.inbox.lock();
        if inbox.seen != Some(hash) {
            inbox.seen = Some(hash);
            self.enqueue(&mut inbox, NodeEvent::TipChanged { hash, height });
        }
    }

    /// Makes something happen to a wallet at a time.
    pub fn alarm(&self, at: Instant, due: Due, slot: WalletNumber) {
        self.inbox.lock().alarms.push(Reverse((at, due, slot)));
        self.arrived.notify_one();
    }

    /// How many alarms are set that have wallets tried again.
    #[cfg(test)]
    pub fn retries(&self) -> usize {
        self.inbox.lock().alarms.iter().filter(|Reverse((_, due, _))| matches!(due, Due::Retry)).count()
    }

    /// The loaded wallets, in the order in which they were loaded.
    pub fn loaded(&self) -> Vec<Arc<Wallet>> {
        self.read().by_slot.values().cloned().collect()
    }

    /// The names of the loaded wallets, in the order in which they were loaded.
    pub fn names(&self) -> Vec<String> {
        self.read().by_slot.values().map(|wallet| wallet.name().to_owned()).collect()
    }

    /// How many wallets are loaded.
    pub fn count(&self) -> usize {
        self.read().by_slot.len()
    }

    /// The only wallet that is loaded, if that is so.
    pub fn only(&self) -> Option<Arc<Wallet>> {
        let loaded = self.read();
        let first = loaded.by_slot.values().next().filter(|_| loaded.by_slot.len() == 1);
        first.cloned()
    }

    /// The loaded wallet of this name.
    pub fn named(&self, name: &str) -> Option<Arc<Wallet>> {
        self.read().by_name.get(name).cloned()
    }

    /// The loaded wallet with this number.
    pub fn get(&self, slot: WalletNumber) -> Option<Arc<Wallet>> {
        self.read().by_slot.get(&slot).cloned()
    }

    /// Runs `each` for all loaded wallets.
    pub(super) fn for_each(&self, each: impl FnMut(&Arc<Wallet>)) {
        self.read().by_slot.values().for_each(each);
    }

    /// Makes a wallet one of the loaded ones. The index has its interests.
    pub fn add(&self, wallet: &Arc<Wallet>) {
        let mut loaded = self.loaded.write();
        loaded.by_name.insert(wallet.name().to_owned(), wallet.clone());
        loaded.by_slot.insert(wallet.slot, wallet.clone());
    }

    /// Takes a wallet off the loaded ones: nothing more is done for it.
    pub fn remove(&self, wallet: &Wallet) {
        {
            let mut loaded = self.loaded.write();
            if loaded.by_slot.remove(&wallet.slot).is_some() {
                loaded.by_name.remove(wallet.name());
            }
        }
        wallet.feed.stop();
        wallet.give_up_turn();
        self.busy.lock().remove(&wallet.slot);
        self.index.forget(wallet.slot, wallet.entries());
    }

    /// Gives a wallet something to do.
    pub fn give(&self, wallet: &Arc<Wallet>, item: Item) {
        let mut busy = self.busy.lock();
        if wallet.feed.push(item) {
            busy.insert(wallet.slot);
            drop(busy);
            self.turns.queue(wallet.clone());
        }
    }

    /// Gives an event to every wallet.
    pub(super) fn give_all(&self, event: &NodeEvent) {
        self.loaded().iter().for_each(|wallet| self.give(wallet, Item::Event(event.clone())));
    }

    /// Queues a wallet again whose turn came while another wrote to it.
    pub(super) fn requeue(&self, wallet: &Wallet) {
        match self.get(wallet.slot) {
            Some(wallet) => self.turns.queue(wallet),
            None => wallet.give_up_turn(),
        }
    }

    /// Whether a wallet has taken over everything that the node has told.
    pub fn is_done(&self, wallet: &Wallet) -> bool {
        let told = self.told.load(Ordering::Acquire);
        self.passed.load(Ordering::Acquire) >= told && wallet.feed.is_idle()
    }

    /// Waits until a wallet has taken over everything that the node told before this call.
    pub fn wait(&self, wallet: &Wallet) -> Waited {
        let mut inbox = self.inbox.lock();
        let target = inbox.told;
        while inbox.passed < target {
            if inbox.stopping {
                return Waited::Stopped;
            }
            self.moved.wait(&mut inbox);
        }
        drop(inbox);
        wallet.feed.wait()
    }

    /// Ends the threads.
    pub fn stop(&self) {
        self.inbox.lock().stopping = true;
        self.arrived.notify_all();
        self.moved.notify_all();
        let thread = self.inbox.lock().thread.take();
        if let Some(thread) = thread {
            // It contains its panics, so this does not fail.
            let _ = thread.join();
        }
        self.turns.stop();
    }

    fn next(&self, housekeeping: Instant) -> Next {
        let mut inbox = self.inbox.lock();
        loop {
            if inbox.stopping {
                return Next::Stop;
            }
            let now = Instant::now();
            let mut due = Vec::new();
            while let Some(Reverse(alarm)) = inbox.alarms.peek().copied().filter(|Reverse((at, ..))| *at <= now) {
                inbox.alarms.pop();
                due.push(alarm);
            }
            if !due.is_empty() {
                return Next::Alarms(due);
            }
            if let Some(event) = inbox.events.pop_front() {
                return Next::Event(event);
            }
            if housekeeping <= now {
                return Next::Housekeeping;
            }
            let until = inbox.alarms.peek().map_or(housekeeping, |Reverse((at, ..))| housekeeping.min(*at));
            self.arrived.wait_for(&mut inbox, until - now);
        }
    }

    /// The thread that takes what the node tells.
    fn run(&self, shared: &Shared) {
        let mut housekeeping = Instant::now() + STORE_EVERY;
        loop {
            match self.next(housekeeping) {
                Next::Stop => return,
                Next::Event(event) => {
                    if catch_unwind(AssertUnwindSafe(|| self.pass(shared, &event))).is_err() {
                        tracing::error!(
                            "what the node told is given to every wallet, as finding out which it concerns failed"
                        );
                        self.give_all(&event);
                    }
                    let mut inbox = self.inbox.lock();
                    inbox.passed += 1;
                    self.passed.store(inbox.passed, Ordering::Release);
                    drop(inbox);
                    self.moved.notify_all();
                }
                Next::Alarms(due) => due.into_iter().for_each(|(at, due, slot)| {
                    if catch_unwind(AssertUnwindSafe(|| self.ring(at, due, slot))).is_err() {
                        tracing::error!("what was due for a wallet failed");
                    }
                }),
                Next::Housekeeping => {
                    housekeeping = Instant::now() + STORE_EVERY;
                    if catch_unwind(AssertUnwindSafe(|| self.keep_house())).is_err() {
                        tracing::error!("looking after idle wallets failed");
                    }
                }
            }
        }
    }

    fn ring(&self, at: Instant, due: Due, slot: WalletNumber) {
        let Some(wallet) = self.get(slot) else { return };
        match due {
            Due::Lock => wallet.lock_if_due(),
            Due::Retry => {
                if wallet.try_again(at) {
                    self.give(&wallet, Item::Reconcile(1));
                }
            }
        }
    }

    /// Has wallets stored that stand beyond what they have stored, and lets idle ones give memory back.
    pub(crate) fn keep_house(&self) {
        self.for_each(|wallet| {
            wallet.rest();
            if wallet.is_ahead() {
                self.turns.store_later(wallet);
            }
        });
        self.index.sweep();
    }
}

/// A wallet that may be gone.
pub(super) type Loose = Weak<Wallet>;
