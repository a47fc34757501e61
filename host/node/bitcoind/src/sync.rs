//! Synchronises the mirror with the node's best chain, and notifies the observers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bitcoin::{BlockHash, Transaction};
use outrigger_node::{Clock, HintSource, NodeError, NodeEvent, Observer};
use outrigger_service::chain::Tip;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;

use super::answers::{ChainAnswer, EntryAnswer, NetworkAnswer};
use super::chain::Entry;
use super::error::{AskError, MirrorError, SyncError, known};
use super::filters::Filters;
use super::headers::{fetch, header};
use super::mempool::Mempool;
use super::mirror::{Change, Mirror, Moment};
use super::returns::Returns;
use super::rpc::{self, Rpc};
use super::standing::{RewindLimit, Standing, is_fetching};
use super::zmq::Event;

/// The longest branch whose headers are fetched to classify its tip.
const MAX_BRANCH: usize = 2000;

/// How long a wallet's answer waits for the node's best block.
pub(super) const CATCH_UP_PATIENCE: Duration = Duration::from_secs(5);

/// An uptime of up to this many whole seconds may hide a restart since the last request.
const YOUNG: u64 = 3;

const NEVER: u64 = u64::MAX;

/// Follows the node's chain and mempool.
pub struct Follower {
    pub(crate) rpc: Arc<Rpc>,
    pub(crate) mirror: Mirror,
    pub(crate) mempool: Mempool,
    pub(crate) filters: Filters,
    tip: ArcSwap<Tip>,
    observers: Mutex<Vec<Arc<dyn Observer>>>,
    /// Held during a sync and while events are emitted, which keeps events in order.
    following: Mutex<()>,
    /// The number of answers forwarded to clients, now and before the tip was last confirmed.
    passed: AtomicU64,
    confirmed: AtomicU64,
    pub(super) rewind: RewindLimit,
    pub(crate) standing: Standing,
    reached: AtomicBool,
    /// The node's returns after it was away or behind.
    pub(crate) returns: Returns,
    /// The node's start, in Unix seconds, and the number of connections at that reading; 0 and `None` before the first.
    started: Mutex<(u64, Option<u64>)>,
    /// 0 if unknown.
    release: AtomicU32,
    /// Whether a forwarded call was answered while the node counted as away: it may have returned.
    seen: AtomicBool,
    pub(crate) source: Mutex<HintSource>,
    stopping: AtomicBool,
    /// When the node went away, and how long the host serves cached data after that.
    away_since: Mutex<Option<Instant>>,
    patience: Option<Duration>,
    /// Held while the mempool is read: the number of the last forced reading that is done.
    reading: Mutex<u64>,
    forced_readings: AtomicU64,
    /// `setmocktime` sets it.
    pub clock: Clock,
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
        let release = AtomicU32::new(mirror.release()?.unwrap_or(0));
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
            release,
            seen: AtomicBool::new(false),
            source: Mutex::default(),
            stopping: AtomicBool::new(false),
            away_since: Mutex::default(),
            patience,
            reading: Mutex::default(),
            forced_readings: AtomicU64::new(0),
            clock: Clock::default(),
        })
    }

    pub fn tip(&self) -> Tip {
        **self.tip.load()
    }

    /// The tip with this hash, after a sync if needed. Fails with `Moved` if the node has advanced meanwhile.
    pub(crate) fn tip_at(&self, hash: BlockHash) -> Result<Tip, NodeError> {
        if self.tip().hash != hash {
            self.sync_chain()?;
        }
        let entry = self.mirror.moment()?.entry(&hash)?;
        entry.map(|entry| entry.tip()).ok_or_else(|| SyncError::Moved.into())
    }

    pub fn is_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.observers.lock().push(observer);
    }

    /// Counts a forwarded answer: it may have shown a block that is not mirrored yet.
    pub fn note_passed(&self) {
        self.seen.store(true, Ordering::Relaxed);
        self.passed.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of forwarded answers, unless the tip was confirmed after the last of them.
    pub fn unconfirmed(&self) -> Option<u64> {
        let passed = self.passed.load(Ordering::SeqCst);
        (!self.is_confirmed(passed)).then_some(passed)
    }

    /// Makes the mirror no older than any forwarded answer, unless the node is away or slow.
    pub fn catch_up(&self) {
        let passed = self.passed.load(Ordering::SeqCst);
        if self.is_confirmed(passed) || !(self.is_reached() || self.seen.swap(false, Ordering::Relaxed)) {
            return;
        }
        let Some(following) = self.following.try_lock_for(CATCH_UP_PATIENCE) else { return };
        // Another thread may have confirmed the tip meanwhile.
        if !self.is_confirmed(passed)
            && let Err(error) = self.confirm(&following)
        {
            tracing::debug!(%error, "answered from the mirrored chain");
        }
    }

    pub(crate) fn is_caught_up(&self) -> bool {
        self.is_confirmed(self.passed.load(Ordering::SeqCst)) && !self.has_returned()
    }

    /// Whether the node has returned, and the observers were not notified yet.
    pub(crate) fn has_returned(&self) -> bool {
        self.is_reached() && self.returns.is_due() && !self.is_stopping()
    }

    /// Waits until the observers are notified of a return, or for [`CATCH_UP_PATIENCE`].
    pub(crate) fn wait_until_told(&self) {
        self.returns.wait(Instant::now() + CATCH_UP_PATIENCE);
    }

    /// Reads the mempool of a node that has returned, and notifies the observers.
    fn tell_return(&self) -> Result<(), SyncError> {
        self.returns.tell(|| {
            // A restarted node may have lost transactions although its figures match, so everything is read.
            self.sync_mempool(true)?;
            let _following = self.following.lock();
            self.emit(&NodeEvent::Reached);
            Ok(())
        })
    }

    /// Fails with `Unavailable` if the node has been away for longer than `backend.patience_seconds`.
    pub(crate) fn check_patience(&self) -> Result<(), NodeError> {
        let since = *self.away_since.lock();
        match since.zip(self.patience) {
            Some((since, patience)) if since.elapsed() > patience => {
                Err(NodeError::Unavailable(format!("Waiting for bitcoind at {}...", self.rpc.upstream().endpoint())))
            }
            _ => Ok(()),
        }
    }

    /// A view of the mirror that is no older than any forwarded answer.
    pub(crate) fn moment(&self) -> Result<Moment, NodeError> {
        self.catch_up();
        Ok(self.mirror.moment()?)
    }

    /// Whether the tip was confirmed after this many forwarded answers.
    fn is_confirmed(&self, passed: u64) -> bool {
        let confirmed = self.confirmed.load(Ordering::SeqCst);
        confirmed != NEVER && confirmed >= passed
    }

    /// Synchronises the mirror with the node. Returns whether anything changed.
    pub fn sync_chain(&self) -> Result<bool, SyncError> {
        self.confirm(&self.following.lock())
    }

    fn confirm(&self, _: &MutexGuard<'_, ()>) -> Result<bool, SyncError> {
        let passed = self.passed.load(Ordering::SeqCst);
        let synced = self.sync_to_best();
        let away = matches!(&synced, Err(SyncError::Ask(AskError::Upstream(_) | AskError::Forbidden(_))));
        if !self.reached.swap(!away, Ordering::Relaxed) && !away {
            self.returns.note();
        }
        let mut since = self.away_since.lock();
        *since = away.then(|| since.unwrap_or_else(Instant::now));
        drop(since);
        if !away {
            if self.standing.note(synced.as_ref().err()) {
                // Transactions that the node refused without these blocks are offered again.
                self.returns.note();
            }
            self.look_for_restart();
        }
        if synced.is_ok() {
            self.confirmed.store(passed, Ordering::SeqCst);
        }
        synced
    }

    /// Checks the uptime of a node after a new connection: it may have restarted and lost its mempool.
    fn look_for_restart(&self) {
        let connections = self.rpc.upstream().figures().connections.load(Ordering::Relaxed);
        let mut started = self.started.lock();
        if started.1 == Some(connections) {
            return;
        }
        self.learn_release();
        let uptime = match self.rpc.ask_within::<u64>(CATCH_UP_PATIENCE, "uptime", &json!([])) {
            Ok(uptime) => uptime,
            Err(error) => return tracing::debug!(%error, "the node does not report its uptime"),
        };
        let (before, since) = (started.0, Clock::system().saturating_sub(uptime));
        *started = (since, Some(connections));
        if before > 0 && (since.abs_diff(before) > 1 || uptime <= YOUNG) {
            self.returns.note();
        }
    }

    /// When the node started, in Unix seconds, give or take one; 0 if it has not reported its uptime.
    pub fn node_started(&self) -> u64 {
        self.started.lock().0
    }

    /// Requests the node's version, since it may have been upgraded. Without an answer, the last known version stays.
    fn learn_release(&self) {
        match self.rpc.ask_within::<NetworkAnswer>(CATCH_UP_PATIENCE, "getnetworkinfo", &json!([])) {
            Ok(answer) => {
                if let Err(error) = answer.check() {
                    tracing::error!("{error}");
                }
                // Stored, so that a host that starts before its node answers clients as that release does.
                if self.release.swap(answer.release(), Ordering::Relaxed) != answer.release()
                    && let Err(error) = self.mirror.set_release(answer.release())
                {
                    tracing::warn!(%error, "the release of the node is not stored");
                }
            }
            Err(error) => tracing::debug!(%error, "the node does not report its version"),
        }
    }

    /// The node's last known major release; `None` until the node first answers getnetworkinfo.
    pub fn release(&self) -> Option<u32> {
        Some(self.release.load(Ordering::Relaxed)).filter(|release| *release > 0)
    }

    fn sync_to_best(&self) -> Result<bool, SyncError> {
        let (mut whole, mut parts) = (Change::default(), 0);
        // A long chain is fetched in parts, and may grow meanwhile. Only the new tip is emitted, not the blocks
        // before it.
        let synced = loop {
            let best: BlockHash = match self.rpc.ask_within(CATCH_UP_PATIENCE, "getbestblockhash", &json!([])) {
                Ok(best) => best,
                Err(error) => break Err(error.into()),
            };
            if best == self.mirror.moment()?.tip.hash() {
                break Ok(());
            }
            match self.sync_part(best) {
                // Parts that only disconnect blocks are merged into one change.
                Ok(Change { disconnected, connected }) if connected.is_empty() && whole.connected.is_empty() => {
                    whole.disconnected.extend(disconnected);
                }
                Ok(change) if parts == 0 => whole = change,
                Ok(_) => whole = Change::default(),
                Err(error) => break Err(error),
            }
            parts += 1;
        };
        // If the node goes away meanwhile, the parts so far are emitted, unless they end below the old tip.
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

    /// The header of a stale block, fetched if the mirror lacks it; `None` if the node does not know it. Fails with `Moved`
    /// for a long branch, and with `Behind` while the node or the mirror may not have the block yet.
    pub(crate) fn learn(&self, hash: BlockHash) -> Result<Option<Entry>, SyncError> {
        let moment = self.mirror.moment()?;
        let (mut headers, mut next) = (Vec::new(), hash);
        while moment.entry(&next)?.is_none() {
            let Some(header) = known(header(&self.rpc, next))? else {
                return self.check_not_behind(&moment).map(|()| None);
            };
            if headers.len() >= MAX_BRANCH {
                // Not `None`: the block exists.
                return Err(SyncError::Moved);
            }
            next = header.prev_blockhash;
            headers.push(header);
        }
        headers.reverse();
        self.mirror.keep(next, &headers)?;
        Ok(self.mirror.moment()?.entry(&hash)?)
    }

    /// Fails while the mirror or the node may not have a block yet.
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

    /// Synchronises the digest of the mempool. `forced`: even if the node's figures have not changed. Threads that force a
    /// reading while another runs share the next reading.
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
        self.mempool.sync(&self.rpc, forced, &|| self.clock.now(), &catch_up, &|event| self.emit(&event))?;
        if forced {
            *made = covers;
        }
        Ok(())
    }

    /// Adds a transaction that the node has just accepted. Reads everything if it replaced others.
    pub fn take_submitted(&self, transaction: &Transaction) -> Result<(), SyncError> {
        let params = json!([transaction.compute_txid()]);
        self.add_submitted(transaction, || known(self.rpc.ask("getmempoolentry", &params)))
    }

    /// As [`Self::take_submitted`], with the JSON results of `getbestblockhash` and `getmempoolentry` right after the acceptance.
    pub fn take_accepted(&self, transaction: &Transaction, best: &[u8], entry: &[u8]) -> Result<(), SyncError> {
        let best: BlockHash = rpc::read("getbestblockhash", best)?;
        let entry = rpc::read("getmempoolentry", entry)?;
        if best != self.tip().hash || !self.is_reached() {
            self.sync_chain()?;
        }
        // A block since then may have the transaction. An eviction since then shows when the node's figures are next compared.
        self.add_submitted(transaction, || Ok(Some(entry).filter(|_| best == self.tip().hash)))
    }

    /// `entry` returns `None` if the transaction may have left the node's mempool. It runs while nobody else reads the mempool.
    fn add_submitted(
        &self,
        transaction: &Transaction,
        entry: impl FnOnce() -> Result<Option<EntryAnswer>, AskError>,
    ) -> Result<(), SyncError> {
        let reading = self.reading.lock();
        let (time, emit) = (self.clock.now(), |event| self.emit(&event));
        let is_added = entry()?.is_some_and(|entry| self.mempool.add_submitted(transaction, &entry, time, &emit));
        drop(reading);
        if is_added { Ok(()) } else { self.sync_mempool(true) }
    }

    /// Synchronises chain and mempool. `forced`: reads the mempool even if its figures have not changed.
    pub fn sync(&self, forced: bool) -> Result<(), SyncError> {
        // The mempool is read even if the chain sync fails, so that wallets still see payments.
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

    pub(crate) fn apply(&self, events: &[Event]) -> Result<(), SyncError> {
        let _reading = self.reading.lock();
        Ok(self.mempool.apply(&self.rpc, events, self.clock.now(), &|event| self.emit(&event))?)
    }
}
