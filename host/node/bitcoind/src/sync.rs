//! Following the node's best chain: the mirror is brought to the node's best block, and the observers are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bitcoin::{BlockHash, Transaction};
use outrigger_node::{NodeError, NodeEvent, Observer};
use outrigger_service::chain::Tip;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;

use super::answers::{ChainAnswer, NetworkAnswer};
use super::chain::Entry;
use super::error::{AskError, MirrorError, SyncError};
use super::filters::Filters;
use super::headers::{fetch, header};
use super::mempool::{Mempool, now};
use super::mirror::{Change, Mirror, Moment};
use super::returns::Returns;
use super::rpc::{INVALID_ADDRESS_OR_KEY, Rpc};
use super::source::Source;
use super::standing::{RewindLimit, Standing, is_fetching};
use super::zmq::Event;

/// The longest branch whose headers are fetched for a question about its end.
const MAX_BRANCH: usize = 2000;

/// How long a wallet's answer waits for the node to say what its best block is.
pub(super) const CATCH_UP_PATIENCE: Duration = Duration::from_secs(5);

/// A node that has run for no more seconds may have been started since it was last asked, as it tells whole seconds.
const YOUNG: u64 = 3;

/// The tip was not confirmed yet.
const NEVER: u64 = u64::MAX;

/// The chain as the host follows it.
pub struct Follower {
    pub(crate) rpc: Arc<Rpc>,
    pub(crate) mirror: Mirror,
    pub(crate) mempool: Mempool,
    pub(crate) filters: Filters,
    tip: ArcSwap<Tip>,
    observers: Mutex<Vec<Arc<dyn Observer>>>,
    /// Held while the node is followed, and while events are emitted: they are in order.
    following: Mutex<()>,
    /// How many answers of the node went past the host to clients, and how many of them when the tip was last confirmed.
    passed: AtomicU64,
    confirmed: AtomicU64,
    /// How far the node may go back.
    pub(super) rewind: RewindLimit,
    /// Whether it is where it should be.
    pub(crate) standing: Standing,
    /// Whether the last question was answered.
    reached: AtomicBool,
    /// How often the node was away, or behind, and is there again.
    returns: Returns,
    /// When the node was started, in Unix seconds, and how many connections had been made when it was asked; 0 and none before.
    started: Mutex<(u64, Option<u64>)>,
    /// The first number of its release; 0: it has not told.
    release: AtomicU32,
    /// Whether a passed call was answered since then: the node may be there again.
    seen: AtomicBool,
    /// What says that there is something to read.
    pub(crate) source: Source,
    /// The threads that follow are to end.
    stopping: AtomicBool,
    /// Since when it has not been, and for how long that is borne.
    away_since: Mutex<Option<Instant>>,
    patience: Option<Duration>,
    /// Held while the mempool is read: for how many of the forced readings that were asked for one was made.
    reading: Mutex<u64>,
    forced_readings: AtomicU64,
    /// The node's mock time, in Unix seconds, as far as it was set through the host; 0: the clock.
    mock_time: AtomicU64,
}

impl Follower {
    pub(crate) fn new(
        rpc: Arc<Rpc>,
        mirror: Mirror,
        filters: Filters,
        rewind: RewindLimit,
        patience: Option<Duration>,
    ) -> Result<Self, MirrorError> {
        let tip = mirror.moment()?.tip.tip();
        Ok(Self {
            rpc,
            mirror,
            mempool: Mempool::default(),
            filters,
            tip: ArcSwap::from_pointee(tip),
            observers: Mutex::default(),
            following: Mutex::default(),
            passed: AtomicU64::new(0),
            confirmed: AtomicU64::new(NEVER),
            rewind,
            standing: Standing::default(),
            reached: AtomicBool::new(false),
            returns: Returns::default(),
            started: Mutex::default(),
            release: AtomicU32::new(0),
            seen: AtomicBool::new(false),
            source: Source::default(),
            stopping: AtomicBool::new(false),
            away_since: Mutex::default(),
            patience,
            reading: Mutex::default(),
            forced_readings: AtomicU64::new(0),
            mock_time: AtomicU64::new(0),
        })
    }

    /// The best block, as of the last sync.
    pub fn tip(&self) -> Tip {
        **self.tip.load()
    }

    /// A block that the node has as its tip, once the chain is followed up to it.
    ///
    /// # Errors
    /// The node's absence; when it has gone on meanwhile.
    pub(crate) fn tip_at(&self, hash: BlockHash) -> Result<Tip, NodeError> {
        if self.tip().hash != hash {
            self.sync_chain()?;
        }
        let entry = self.mirror.moment()?.entry(&hash)?;
        entry.map(|entry| entry.tip()).ok_or_else(|| SyncError::Moved.into())
    }

    /// The node's time, in Unix seconds: the clock's, or its mock time.
    pub fn time(&self) -> u64 {
        match self.mock_time.load(Ordering::Relaxed) {
            0 => now(),
            set => set,
        }
    }

    /// The node's time was set; 0: it is the clock's.
    pub fn set_time(&self, seconds: u64) {
        self.mock_time.store(seconds, Ordering::Relaxed);
    }

    /// Whether the node answered when it was last asked.
    pub fn is_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// Whether the threads that follow are to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Ends the threads that follow.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Notes that the node may have changed: a connection broke, so that it may have been started anew since the last question, with
    /// another mempool, or it has the blocks again that it lacked.
    pub(crate) fn note_return(&self) {
        self.returns.note();
    }

    /// Sends all events from now on to `observer`.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.observers.lock().push(observer);
    }

    /// An answer of the node went to a client: it may have shown a block that is not mirrored yet.
    pub fn note_passed(&self) {
        self.seen.store(true, Ordering::Relaxed);
        self.passed.fetch_add(1, Ordering::SeqCst);
    }

    /// How many answers have gone to clients, where the tip was not confirmed after the last of them.
    pub fn unconfirmed(&self) -> Option<u64> {
        let passed = self.passed.load(Ordering::SeqCst);
        (!self.is_confirmed(passed)).then_some(passed)
    }

    /// Makes the mirror no older than what any client was shown. While the node is away, or takes long, it stays as it is.
    pub fn catch_up(&self) {
        let passed = self.passed.load(Ordering::SeqCst);
        if self.is_confirmed(passed) || !(self.is_reached() || self.seen.swap(false, Ordering::Relaxed)) {
            return;
        }
        let Some(following) = self.following.try_lock_for(CATCH_UP_PATIENCE) else { return };
        // Another thread may have confirmed it while this one waited.
        if !self.is_confirmed(passed)
            && let Err(error) = self.confirm(&following)
        {
            tracing::debug!(%error, "answered by what is known of the chain");
        }
    }

    /// Whether the mirror was confirmed after the last answer that a client was shown.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.is_confirmed(self.passed.load(Ordering::SeqCst)) && !self.has_returned()
    }

    /// Whether the node is there again, and the observers have not been told.
    pub(crate) fn has_returned(&self) -> bool {
        self.is_reached() && self.returns.is_due() && !self.is_stopping()
    }

    /// Waits for a while until the observers have been told that the node is there again.
    pub(crate) fn wait_until_told(&self) {
        self.returns.wait(Instant::now() + CATCH_UP_PATIENCE);
    }

    /// Reads the mempool of a node that is there again, and tells the observers.
    fn tell_return(&self) -> Result<(), SyncError> {
        self.returns.tell(|| {
            // What a node that was started anew has lost may not show in the figures of its mempool.
            self.sync_mempool(true)?;
            let _following = self.following.lock();
            self.emit(&NodeEvent::Reached);
            Ok(())
        })
    }

    /// Whether what is known is still told.
    ///
    /// # Errors
    /// `Unavailable` where the node has been away for longer than that is borne (`backend.patience_seconds`).
    pub(crate) fn check_patience(&self) -> Result<(), NodeError> {
        let since = *self.away_since.lock();
        match since.zip(self.patience) {
            Some((since, patience)) if since.elapsed() > patience => {
                Err(NodeError::Unavailable(format!("Waiting for bitcoind at {}...", self.rpc.upstream().endpoint())))
            }
            _ => Ok(()),
        }
    }

    /// A moment of the mirror that is not older than what any client was shown.
    pub(crate) fn moment(&self) -> Result<Moment, NodeError> {
        self.catch_up();
        Ok(self.mirror.moment()?)
    }

    /// Whether the tip was confirmed after so many answers had gone to clients.
    fn is_confirmed(&self, passed: u64) -> bool {
        let confirmed = self.confirmed.load(Ordering::SeqCst);
        confirmed != NEVER && confirmed >= passed
    }

    /// Brings the mirror to the node's best block. Whether anything changed.
    ///
    /// # Errors
    /// The node's absence; what it shows cannot be followed.
    pub fn sync_chain(&self) -> Result<bool, SyncError> {
        self.confirm(&self.following.lock())
    }

    fn confirm(&self, _: &MutexGuard<'_, ()>) -> Result<bool, SyncError> {
        let passed = self.passed.load(Ordering::SeqCst);
        let synced = self.sync_to_best();
        let away = matches!(&synced, Err(SyncError::Ask(AskError::Upstream(_))));
        if !self.reached.swap(!away, Ordering::Relaxed) && !away {
            self.note_return();
        }
        let mut since = self.away_since.lock();
        *since = away.then(|| since.unwrap_or_else(Instant::now));
        drop(since);
        if !away {
            if self.standing.note(synced.as_ref().err()) {
                // What it refused for want of blocks is offered again.
                self.note_return();
            }
            self.look_for_restart();
        }
        if synced.is_ok() {
            self.confirmed.store(passed, Ordering::SeqCst);
        }
        synced
    }

    /// Asks a node to which a new connection was made since when it runs: it may have been started anew, and have lost its mempool.
    fn look_for_restart(&self) {
        let connections = self.rpc.upstream().figures().connections.load(Ordering::Relaxed);
        let mut started = self.started.lock();
        if started.1 == Some(connections) {
            return;
        }
        self.learn_release();
        let uptime = match self.rpc.ask_within::<u64>(CATCH_UP_PATIENCE, "uptime", &json!([])) {
            Ok(uptime) => uptime,
            Err(error) => return tracing::debug!(%error, "the node does not say since when it runs"),
        };
        let (before, since) = (started.0, now().saturating_sub(uptime));
        *started = (since, Some(connections));
        if before > 0 && (since.abs_diff(before) > 1 || uptime <= YOUNG) {
            self.note_return();
        }
    }

    /// Asks the node for its release, because it may have been upgraded and restarted. If it does not answer, the last release stands.
    fn learn_release(&self) {
        match self.rpc.ask_within::<NetworkAnswer>(CATCH_UP_PATIENCE, "getnetworkinfo", &json!([])) {
            Ok(answer) => self.release.store(answer.release(), Ordering::Relaxed),
            Err(error) => tracing::debug!(%error, "the node does not say which release it is"),
        }
    }

    /// The first number of the node's release; `None` until the node has answered getnetworkinfo.
    pub fn release(&self) -> Option<u32> {
        Some(self.release.load(Ordering::Relaxed)).filter(|release| *release > 0)
    }

    fn sync_to_best(&self) -> Result<bool, SyncError> {
        let (mut whole, mut parts) = (Change::default(), 0);
        // A long chain comes in parts, and more may come meanwhile. Only its end is told: what is on the way is no tip.
        let synced = loop {
            let best: BlockHash = match self.rpc.ask_within(CATCH_UP_PATIENCE, "getbestblockhash", &json!([])) {
                Ok(best) => best,
                Err(error) => break Err(error.into()),
            };
            if best == self.mirror.moment()?.tip.hash() {
                break Ok(());
            }
            match self.sync_part(best) {
                // The parts of a way back are one, too.
                Ok(Change { disconnected, connected }) if connected.is_empty() && whole.connected.is_empty() => {
                    whole.disconnected.extend(disconnected);
                }
                Ok(change) if parts == 0 => whole = change,
                Ok(_) => whole = Change::default(),
                Err(error) => break Err(error),
            }
            parts += 1;
        };
        // Half of a long chain is told of as well where the node went away in between, but never as a way back.
        let moved = self.mirror.moment()?.tip.tip();
        let is_further = moved.height >= self.tip().height;
        if parts > 0 && (synced.is_ok() || is_further) {
            self.emit_change(&whole)?;
        }
        synced.map(|()| parts > 0)
    }

    fn sync_part(&self, best: BlockHash) -> Result<Change, SyncError> {
        let moment = self.mirror.moment()?;
        let (base, headers) = fetch(&self.rpc, &moment, best)?;
        self.check_rewind(&moment, base, best)?;
        drop(moment);
        Ok(self.mirror.extend(base, &headers)?)
    }

    /// The header of a block beside the best chain that the mirror has not seen yet; `None` where the node does not know it.
    ///
    /// # Errors
    /// The node's absence; `Moved` for a long branch, and `Behind` while node or mirror may not have come to it yet.
    pub(crate) fn learn(&self, hash: BlockHash) -> Result<Option<Entry>, SyncError> {
        let moment = self.mirror.moment()?;
        let (mut headers, mut next) = (Vec::new(), hash);
        while moment.entry(&next)?.is_none() {
            let header = match header(&self.rpc, next) {
                Err(error) if error.code() == Some(INVALID_ADDRESS_OR_KEY) => {
                    return self.check_not_behind(&moment).map(|()| None);
                }
                header => header?,
            };
            if headers.len() >= MAX_BRANCH {
                // Neither known nor unknown: whoever asks must not take it for lost.
                return Err(SyncError::Moved);
            }
            next = header.prev_blockhash;
            headers.push(header);
        }
        headers.reverse();
        self.mirror.keep(next, &headers)?;
        Ok(self.mirror.moment()?.entry(&hash)?)
    }

    /// Fails while the mirror or the node may simply not have come to a block yet.
    fn check_not_behind(&self, moment: &Moment) -> Result<(), SyncError> {
        if self.confirmed.load(Ordering::SeqCst) == NEVER {
            return Err(SyncError::Behind { depth: 0 });
        }
        let info: ChainAnswer = self.rpc.ask("getblockchaininfo", &json!([]))?;
        if is_fetching(&info) {
            Err(SyncError::Behind { depth: info.headers.saturating_sub(moment.tip.height) })
        } else {
            Ok(())
        }
    }

    /// Tells of a change of the best chain.
    fn emit_change(&self, change: &Change) -> Result<(), MirrorError> {
        let tip = self.mirror.moment()?.tip.tip();
        self.tip.store(Arc::new(tip));
        self.mempool.count_change();
        let disconnected =
            change.disconnected.iter().map(|&(hash, height)| NodeEvent::BlockDisconnected { hash, height });
        let connected = change.connected.iter().map(|&(hash, height)| NodeEvent::BlockConnected { hash, height });
        let moved = NodeEvent::TipChanged { hash: tip.hash, height: tip.height };
        disconnected.chain(connected).chain([moved]).for_each(|event| self.emit(&event));
        Ok(())
    }

    fn emit(&self, event: &NodeEvent) {
        let observers = self.observers.lock().clone();
        observers.iter().for_each(|observer| observer.notify(event.clone()));
    }

    /// Brings the digest of the mempool to what the node's mempool is from now on. `forced`: also where its figures have not
    /// changed; threads that force a reading while one is made share the next.
    ///
    /// # Errors
    /// The node's absence.
    pub fn sync_mempool(&self, forced: bool) -> Result<(), SyncError> {
        let number = if forced { self.forced_readings.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        let mut made = self.reading.lock();
        if forced && *made >= number {
            return Ok(());
        }
        let covers = self.forced_readings.load(Ordering::SeqCst);
        let catch_up = |best: BlockHash| {
            if best != self.tip().hash
                && let Err(error) = self.sync_chain()
            {
                tracing::debug!(%error, "the mempool is read before its blocks");
            }
        };
        self.mempool.sync(&self.rpc, forced, &|| self.time(), &catch_up, &|event| self.emit(&event))?;
        if forced {
            *made = covers;
        }
        Ok(())
    }

    /// Brings the digest of the mempool to a transaction that the node has just taken: the rest of the mempool is as it was, unless
    /// this one took the place of others.
    ///
    /// # Errors
    /// The node's absence.
    pub fn take_submitted(&self, transaction: &Transaction) -> Result<(), SyncError> {
        let reading = self.reading.lock();
        let emit = |event| self.emit(&event);
        let is_enough = self.mempool.add_submitted(&self.rpc, transaction, self.time(), &emit)?;
        drop(reading);
        if is_enough { Ok(()) } else { self.sync_mempool(true) }
    }

    /// Chain and mempool, as far as the node answers. `forced`: the mempool also where its figures have not changed.
    ///
    /// # Errors
    /// As of both.
    pub fn sync(&self, forced: bool) -> Result<(), SyncError> {
        // Payments are seen also while the chain is held.
        let chain = self.sync_chain();
        if chain.is_ok() || self.is_reached() {
            if self.has_returned() {
                self.tell_return()?;
            } else {
                self.sync_mempool(forced)?;
            }
        } else {
            self.returns.fail();
        }
        chain.map(drop)
    }

    /// Takes over what the node has told of its mempool.
    ///
    /// # Errors
    /// The node's absence.
    pub(crate) fn apply(&self, events: &[Event]) -> Result<(), SyncError> {
        let _reading = self.reading.lock();
        Ok(self.mempool.apply(&self.rpc, events, self.time(), &|event| self.emit(&event))?)
    }
}
