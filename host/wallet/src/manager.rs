//! The set of wallets: creating, loading, unloading, and selecting the wallet of a call.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use outrigger_service::chain::{BlockRef, Tip};
use outrigger_service::wallet::RescanProgress;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use parking_lot::Mutex;

use super::attempts::AllAttempts;
use super::error::{Result, WalletError};
use super::follow::thread::Follower;
use super::follow::{THREADS, previous};
use super::guards::Guards;
use super::live::Wallet;
use super::live::feed::{Item, Lag, WaitOutcome};
use super::rescan;
use super::settings::Settings;
use super::store::Closing;
use super::view::WalletView;
use super::{Shared, Sink, files};
use outrigger_base::client_files::ClientFiles;
use outrigger_base::offload::offload_blocking;
use outrigger_node::{Node, NodeEvent, Observer};

/// How long a shutdown may spend on storing positions on the chain.
const STORING_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct WalletStatus {
    pub name: String,
    /// The height of its position on the chain.
    pub height: u32,
    pub rescan: Option<RescanProgress>,
    /// Whether its last attempt to follow the chain failed.
    pub lagging: bool,
    /// How many wrong passphrases clients have tried since the host started.
    pub wrong_passphrases: u64,
    /// How many of its payments are neither confirmed nor in the mempool although they could be.
    pub unsent: u64,
}

pub struct WalletManager {
    pub(super) dir: PathBuf,
    pub(super) shared: Arc<Shared>,
    pub(super) follower: Arc<Follower>,
    pub(super) closing: Mutex<HashMap<String, Closing>>,
    /// Names reserved against concurrent operations.
    pub(super) reserved_names: Mutex<HashSet<String>>,
    /// Held while the file of a wallet that is not loaded is searched for former keys. The search is short.
    pub(super) searching: Mutex<()>,
    /// Locked while the list of the wallets to load at startup changes.
    pub(super) list: Mutex<()>,
    /// Wallets of that list that failed to load and have not been loaded since.
    pub(super) missing: Mutex<BTreeSet<String>>,
    /// Whether the mempool has accepted a transaction from a wallet at load.
    pub(super) resubmitted: AtomicBool,
    pub(super) on_unload: OnceLock<UnloadHook>,
}

type UnloadHook = Box<dyn Fn(&Wallet) + Send + Sync>;

/// A reserved name, released on drop.
pub(super) struct NameReservation<'m> {
    manager: &'m WalletManager,
    name: String,
}

impl Drop for NameReservation<'_> {
    fn drop(&mut self) {
        self.manager.reserved_names.lock().remove(&self.name);
    }
}

impl Observer for WalletManager {
    fn notify(&self, event: NodeEvent) {
        self.follower.push(event);
    }
}

impl WalletManager {
    /// Opens the folder of the wallets and loads the wallets of the load list. A wallet that fails to load is logged
    /// and skipped.
    pub fn open(dir: &Path, settings: Settings, node: Arc<dyn Node>, sink: Sink) -> ServiceResult<Arc<Self>> {
        fs::create_dir_all(dir).map_err(WalletError::from)?;
        let follower = Arc::new(Follower::default());
        files::remove_unfinished(dir)?;
        let data_directory = settings.data_directory.as_deref().unwrap_or(dir);
        let client_files = ClientFiles::open(data_directory, dir.join(files::NOTES_FILE)).map_err(WalletError::from)?;
        let manager = Arc::new(Self {
            dir: dir.to_owned(),
            shared: Arc::new(Shared {
                network: node.network(),
                guards: Guards::open(dir, settings.policies.clone())?,
                settings,
                node,
                sink,
                follower: follower.clone(),
                client_files,
                attempts: AllAttempts::default(),
                backups_due: Mutex::default(),
                stopping: AtomicBool::new(false),
            }),
            follower,
            closing: Mutex::default(),
            reserved_names: Mutex::default(),
            searching: Mutex::default(),
            list: Mutex::default(),
            missing: Mutex::default(),
            resubmitted: AtomicBool::new(false),
            on_unload: OnceLock::new(),
        });
        Follower::start(&manager.shared)?;
        manager.load_all(files::load_list(dir)?);
        Ok(manager)
    }

    /// Called once the node sends its events to the manager. Earlier events are lost: if wallets offered transactions
    /// before, all wallets read the mempool again.
    pub fn is_told(&self) {
        let resubmitted = self.resubmitted.swap(false, Ordering::Relaxed);
        for wallet in self.follower.loaded() {
            if resubmitted {
                self.follower.give(&wallet, Item::Reconcile);
            }
            // If the node came back while the wallet was loading, that event is lost, too.
            if wallet.feed.is_behind() {
                self.follower.give(&wallet, Item::Event(NodeEvent::Reached));
            }
        }
    }

    /// Waits until a wallet has processed all events that the node sent before this call.
    pub(super) fn wait_synced(&self, wallet: &Wallet) -> ServiceResult<()> {
        if self.follower.is_done(wallet) {
            return Ok(());
        }
        // Offloaded: an inline call that waits for a busy wallet must not block calls of other wallets, nor the signal
        // to stop.
        match offload_blocking(|| self.follower.wait(wallet)) {
            WaitOutcome::Done => Ok(()),
            WaitOutcome::Failed(reason) => Err(failed(wallet, &reason)),
            WaitOutcome::Stopped if self.follower.get(wallet.slot).is_some() => Err(ErrorKind::ShuttingDown.into()),
            WaitOutcome::Stopped => Err(ErrorKind::WalletNotLoaded.into()),
        }
    }

    /// Waits until the loaded wallets have processed all events that the node sent before this call. Skips
    /// wallets that failed or are unloaded during the wait.
    pub fn wait_for_all(&self) {
        for wallet in self.follower.loaded() {
            // A failure is reported to calls for that wallet.
            let _ = self.wait_synced(&wallet);
        }
    }

    /// Reserves a wallet's name against concurrent create, load and unload. Waits while a file is searched for former
    /// keys.
    pub(super) fn reserve_name(&self, name: &str) -> ServiceResult<NameReservation<'_>> {
        let _searching = self.searching.lock();
        if !self.reserved_names.lock().insert(name.to_owned()) {
            return Err(ServiceError::new(ErrorKind::Refused, "Wallet already loading."));
        }
        Ok(NameReservation { manager: self, name: name.to_owned() })
    }

    /// The wallet of a call: the named one, or the only one loaded. Waits until the wallet has followed the node to its
    /// current tip, then opens a snapshot.
    pub fn select(&self, name: Option<&str>) -> ServiceResult<WalletView> {
        let wallet = &self.find(name)?;
        self.shared.node.catch_up()?;
        let tip = self.shared.node.tip();
        // The wallet has processed its events before the snapshot is opened, so the snapshot shows all of them.
        if self.follower.is_done(wallet) && !wallet.feed.is_behind() {
            let view = WalletView::open(wallet.clone())?;
            if view.synced().hash == tip.hash {
                return Ok(view);
            }
        }
        if let Some(reason) = wallet.feed.failure() {
            return Err(failed(wallet, &reason));
        }
        if wallet.read_only().is_some() {
            return Ok(WalletView::open(wallet.clone())?);
        }
        self.wait_for_tip(wallet, &tip)?;
        check_lag(wallet)?;
        Ok(WalletView::open(wallet.clone())?)
    }

    /// Whether [`Self::select`] would not wait: the node's state is current, and the wallet is at its tip.
    pub fn stands_at_tip(&self, name: Option<&str>) -> bool {
        let stands = |wallet: &Arc<Wallet>| {
            self.follower.is_done(wallet)
                && !wallet.feed.is_behind()
                && wallet.synced().hash == self.shared.node.tip().hash
        };
        self.shared.node.is_caught_up() && self.find(name).is_ok_and(|wallet| stands(&wallet))
    }

    /// Whether the named wallet, or the only one loaded, has a signer plugin or may have policies.
    pub fn asks_plugins(&self, name: Option<&str>) -> bool {
        self.find(name).is_ok_and(|wallet| wallet.signer().is_some() || wallet.may_be_guarded())
    }

    /// As [`Self::select`], without waiting for the tip.
    pub fn select_as_it_stands(&self, name: Option<&str>) -> ServiceResult<WalletView> {
        Ok(WalletView::open(self.find(name)?)?)
    }

    fn find(&self, name: Option<&str>) -> ServiceResult<Arc<Wallet>> {
        let wallet = match name {
            Some(name) => self.follower.named(name).ok_or(ErrorKind::WalletNotLoaded)?,
            None => self.follower.only().ok_or_else(|| match self.follower.count() {
                0 => ErrorKind::NoWallet,
                _ => ErrorKind::WalletNotSpecified,
            })?,
        };
        wallet.asked.store(true, Ordering::Relaxed);
        Ok(wallet)
    }

    /// Waits until a wallet has processed its events. If `tip` is still in the chain, the wallet is then at `tip`.
    fn wait_for_tip(&self, wallet: &Arc<Wallet>, tip: &Tip) -> ServiceResult<()> {
        self.wait_synced(wallet)?;
        let stands_at = wallet.synced().hash;
        if stands_at == tip.hash {
            return Ok(());
        }
        // The node's events may trail the tip that this call sees. A block that extends the chain by one is read once
        // for all wallets.
        let Some(info) = while_reachable(wallet, self.shared.block_info(BlockRef::Hash { hash: tip.hash }))? else {
            return Ok(());
        };
        if info.as_ref().and_then(previous) == Some(stands_at) {
            self.follower.see_tip(tip.hash, tip.height);
            self.wait_synced(wallet)?;
        }
        if wallet.synced().hash != tip.hash {
            let event = NodeEvent::TipChanged { hash: tip.hash, height: tip.height };
            self.follower.give(wallet, Item::Event(event));
            self.wait_synced(wallet)?;
        }
        Ok(())
    }

    pub fn loaded_wallet(&self, name: &str) -> Option<Arc<Wallet>> {
        self.follower.named(name)
    }

    /// Calls `hook` with each wallet that is unloaded, before its file is closed. Only the first call has an effect.
    pub fn on_unload(&self, hook: impl Fn(&Wallet) + Send + Sync + 'static) {
        let _ = self.on_unload.set(Box::new(hook));
    }

    /// A channel with a message whenever a wallet was loaded, was unloaded or needs a backup. It ends when the host stops. Only
    /// the channel of the last call gets messages.
    pub fn backups_due(&self) -> Receiver<()> {
        let (sender, receiver) = sync_channel(1);
        *self.shared.backups_due.lock() = Some(sender);
        receiver
    }

    /// In load order.
    pub fn list(&self) -> Vec<String> {
        self.follower.names()
    }

    pub fn status(&self) -> Vec<WalletStatus> {
        let status = |wallet: &Arc<Wallet>| WalletStatus {
            name: wallet.name().to_owned(),
            height: wallet.synced().height,
            rescan: wallet.rescan_progress(),
            lagging: wallet.feed.is_behind() || wallet.feed.failure().is_some(),
            wrong_passphrases: wallet.attempts.wrong(),
            unsent: wallet.count_unsent(),
        };
        self.follower.loaded().iter().map(status).collect()
    }

    pub fn missing(&self) -> Vec<String> {
        self.missing.lock().iter().cloned().collect()
    }

    /// How many reorganisations were at least as deep as `reorganisation_notice`.
    pub fn deep_reorganisations(&self) -> u64 {
        self.follower.reorganisations.deep()
    }

    pub fn directory(&self) -> ServiceResult<Vec<String>> {
        Ok(files::list(&self.dir)?)
    }

    /// Called when the host stops: aborts long imports, each as a whole.
    pub fn give_up_imports(&self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
    }

    /// Stops rescans, which resume at the next load, and the follower threads.
    pub fn shutdown(&self) {
        self.give_up_imports();
        *self.shared.backups_due.lock() = None;
        let loaded = self.follower.loaded();
        loaded.iter().for_each(|wallet| rescan::stop(wallet));
        self.follower.stop();
        store_places(&loaded);
        loaded.iter().for_each(|wallet| self.follower.remove(wallet));
    }
}

impl Drop for WalletManager {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Stores positions on the chain until [`STORING_PATIENCE`] has passed. The other wallets read some blocks again at
/// their next load.
fn store_places(wallets: &[Arc<Wallet>]) {
    let deadline = Instant::now() + STORING_PATIENCE;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS.min(wallets.len()) {
            scope.spawn(|| {
                while Instant::now() < deadline
                    && let Some(wallet) = wallets.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    wallet.store_if_free();
                }
            });
        }
    });
}

/// Fails with `Storage` if the wallet's last attempt to follow the chain failed.
pub(super) fn check_lag(wallet: &Wallet) -> ServiceResult<()> {
    let lag = wallet.feed.lag.lock();
    // While the node is unreachable or on another chain, the wallet still answers reads.
    let is_error = |lag: &&Lag| !lag.error.is_unavailable() && !lag.is_read_only();
    let Some(error) = lag.as_ref().filter(is_error).map(|lag| &lag.error) else { return Ok(()) };
    let detail = format!("The wallet could not follow the chain and will be tried again: {error}");
    Err(ServiceError::new(ErrorKind::Storage, detail))
}

/// The outcome; `None` if the node is unreachable, which is retried, or if the wallet is read-only.
pub(super) fn while_reachable<T>(wallet: &Wallet, outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.is_unavailable() => {
            tracing::warn!(wallet = wallet.name(), %error, "the wallet keeps its position until the node can be reached");
            Ok(None)
        }
        // The read-only wallet still answers reads.
        Err(WalletError::Rewind { .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The error of a wallet whose follower panicked.
fn failed(wallet: &Wallet, reason: &str) -> ServiceError {
    let name = wallet.name();
    let detail = format!(
        "The wallet \"{name}\" has failed and does not follow the chain until it is unloaded and loaded again: {reason}"
    );
    ServiceError::new(ErrorKind::Storage, detail)
}
