//! The set of wallets: making, loading, unloading, and choosing the one a call is about.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use outrigger_service::chain::{BlockRef, Tip};
use outrigger_service::wallet::RescanProgress;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use parking_lot::{Condvar, Mutex};

use super::attempts::AllAttempts;
use super::error::{Result, WalletError};
use super::follow::thread::Follower;
use super::follow::{MAX_THREADS, previous};
use super::live::Wallet;
use super::live::feed::{Item, Waited};
use super::live::lag::Lag;
use super::rescan;
use super::scrub::Scrubber;
use super::settings::Settings;
use super::store::Closing;
use super::view::WalletView;
use super::{Shared, Sink, files};
use outrigger_base::client_files::ClientFiles;
use outrigger_base::offload::offload_blocking;
use outrigger_node::{Node, NodeEvent, Observer};

/// How long the end of the host goes on storing how far wallets have followed the chain.
const STORING_PATIENCE: Duration = Duration::from_secs(5);

/// How a loaded wallet stands.
#[derive(Clone, Debug)]
pub struct WalletStatus {
    pub name: String,
    /// The height of the block up to which it has followed the chain.
    pub height: u32,
    /// The rescan that runs now.
    pub rescan: Option<RescanProgress>,
    /// Whether it could not follow the chain when it last tried.
    pub lagging: bool,
    /// How many wrong passphrases were tried since the host started.
    pub wrong_passphrases: u64,
    /// How many of its payments are neither confirmed nor in the mempool, though they could be.
    pub unsent: u64,
}

/// All wallets of the host.
pub struct WalletManager {
    pub(super) dir: PathBuf,
    pub(super) shared: Arc<Shared>,
    pub(super) follower: Arc<Follower>,
    /// The environments that are being closed.
    pub(super) closing: Mutex<HashMap<String, Closing>>,
    /// The names of the wallets that are being made, loaded or unloaded.
    pub(super) reserved_names: Mutex<ReservedNames>,
    /// The search of a file for former keys has ended.
    pub(super) searched: Condvar,
    /// The wallets to load at the start, once they were asked for. Held while the list is changed.
    pub(super) list: Mutex<Option<Vec<String>>>,
    /// The wallets of it that could not be loaded at the start, and have not been loaded since.
    pub(super) missing: Mutex<BTreeSet<String>>,
    /// Whether the mempool has taken something from a wallet that was loaded.
    pub(super) resubmitted: AtomicBool,
}

/// The names that nobody else may take.
#[derive(Default)]
pub(super) struct ReservedNames {
    all: HashSet<String>,
    /// That of the wallet whose file is searched for former keys, which is soon done.
    searched: Option<String>,
}

/// The name of a wallet that is being made, loaded or unloaded, until this is dropped.
pub(super) struct NameReservation<'m> {
    manager: &'m WalletManager,
    name: String,
}

impl Drop for NameReservation<'_> {
    fn drop(&mut self) {
        let mut reserved = self.manager.reserved_names.lock();
        reserved.all.remove(&self.name);
        if reserved.searched.as_ref() == Some(&self.name) {
            reserved.searched = None;
            self.manager.searched.notify_all();
        }
    }
}

impl Observer for WalletManager {
    fn notify(&self, event: NodeEvent) {
        self.follower.push(event);
    }
}

impl WalletManager {
    /// Opens the wallets' folder, making it where it is missing, and loads the wallets that are to be loaded at start. One of those that cannot be loaded is logged and left out.
    ///
    /// # Errors
    /// `Storage` when the folder cannot be made or read.
    pub fn open(dir: &Path, settings: Settings, node: Arc<dyn Node>, sink: Sink) -> ServiceResult<Arc<Self>> {
        fs::create_dir_all(dir).map_err(WalletError::from)?;
        let follower = Arc::new(Follower::default());
        files::remove_unfinished(dir)?;
        let data_directory = settings.data_directory.as_deref().unwrap_or(dir);
        let client_files = ClientFiles::open(data_directory, dir.join(files::NOTES_FILE)).map_err(WalletError::from)?;
        let scrubber = Scrubber::new(follower.clone());
        let manager = Arc::new(Self {
            dir: dir.to_owned(),
            shared: Arc::new(Shared {
                network: node.network(),
                settings,
                node,
                sink,
                follower: follower.clone(),
                client_files: Arc::new(client_files),
                attempts: AllAttempts::default(),
                scrubber,
                stopping: AtomicBool::new(false),
            }),
            follower,
            closing: Mutex::default(),
            reserved_names: Mutex::default(),
            searched: Condvar::new(),
            list: Mutex::default(),
            missing: Mutex::default(),
            resubmitted: AtomicBool::new(false),
        });
        Follower::start(&manager.shared)?;
        manager.load_all(files::load_list(dir)?);
        Ok(manager)
    }

    /// The node tells this from now on what happens. What wallets offered it before, nobody has heard of.
    pub fn is_told(&self) {
        let resubmitted = self.resubmitted.swap(false, Ordering::Relaxed);
        for wallet in self.follower.loaded() {
            if resubmitted {
                self.follower.give(&wallet, Item::Reconcile(1));
            }
            // Nobody has heard either that a node came back which was away while they were loaded.
            if wallet.lag.lock().is_some() {
                self.follower.give(&wallet, Item::Event(NodeEvent::Reached));
            }
        }
    }

    /// Waits until a wallet has taken over everything that the node told before this call.
    pub(super) fn wait_synced(&self, wallet: &Wallet) -> ServiceResult<()> {
        if self.follower.is_done(wallet) {
            return Ok(());
        }
        // An inline call that waits for a busy wallet must not block calls of other wallets, nor the signal to stop.
        match offload_blocking(|| self.follower.wait(wallet)) {
            Waited::Done => Ok(()),
            Waited::Failed(reason) => Err(failed(wallet, &reason)),
            Waited::Stopped if self.follower.get(wallet.slot).is_some() => Err(ErrorKind::ShuttingDown.into()),
            Waited::Stopped => Err(ErrorKind::WalletNotLoaded.into()),
        }
    }

    /// Waits until the loaded wallets have taken over everything that the node told before this call. One that failed, or is
    /// unloaded meanwhile, is not waited for.
    pub fn wait_for_all(&self) {
        for wallet in self.follower.loaded() {
            // How it ended concerns who asks for that wallet.
            let _ = self.wait_synced(&wallet);
        }
    }

    /// Takes a wallet's name, so that nobody else makes, loads or unloads one of that name meanwhile. Waits where its file is being
    /// searched for former keys.
    pub(super) fn reserve_name(&self, name: &str) -> ServiceResult<NameReservation<'_>> {
        let mut reserved = self.reserved_names.lock();
        while reserved.searched.as_deref() == Some(name) {
            self.searched.wait(&mut reserved);
        }
        if !reserved.all.insert(name.to_owned()) {
            return Err(ServiceError::new(ErrorKind::Refused, "Wallet already loading."));
        }
        Ok(NameReservation { manager: self, name: name.to_owned() })
    }

    /// Takes a wallet's name for the search of its file; none where somebody else has it.
    pub(super) fn reserve_for_search(&self, name: &str) -> Option<NameReservation<'_>> {
        let mut reserved = self.reserved_names.lock();
        if !reserved.all.insert(name.to_owned()) {
            return None;
        }
        reserved.searched = Some(name.to_owned());
        Some(NameReservation { manager: self, name: name.to_owned() })
    }

    /// The wallet of a call: the named one, or the only one loaded. Waits until it has followed the node to where it
    /// stood at the call, and opens a snapshot.
    ///
    /// # Errors
    /// `WalletNotLoaded`, `NoWallet`, `WalletNotSpecified`, `ShuttingDown`; `Storage` when it cannot follow the chain.
    pub fn select(&self, name: Option<&str>) -> ServiceResult<WalletView> {
        let wallet = &self.find(name)?;
        self.shared.node.catch_up()?;
        let tip = self.shared.node.tip();
        // What it was told it has worked in before the snapshot is taken, so that this shows all of it.
        if self.follower.is_done(wallet) && wallet.lag.lock().is_none() {
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

    /// Whether [`Self::select`] would wait for nothing: the node need not be asked, and the wallet stands at its tip.
    pub fn stands_at_tip(&self, name: Option<&str>) -> bool {
        let stands = |wallet: &Arc<Wallet>| {
            self.follower.is_done(wallet)
                && wallet.lag.lock().is_none()
                && wallet.synced().hash == self.shared.node.tip().hash
        };
        self.shared.node.is_caught_up() && self.find(name).is_ok_and(|wallet| stands(&wallet))
    }

    /// The wallet of a call that need not have followed the node to the tip: nothing is waited for.
    ///
    /// # Errors
    /// `WalletNotLoaded`, `NoWallet`, `WalletNotSpecified`; `Storage`.
    pub fn select_as_it_stands(&self, name: Option<&str>) -> ServiceResult<WalletView> {
        Ok(WalletView::open(self.find(name)?)?)
    }

    /// The named wallet, or the only one loaded.
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

    /// Waits until a wallet has taken over what the node told, and stands at this tip if the chain still does.
    fn wait_for_tip(&self, wallet: &Arc<Wallet>, tip: &Tip) -> ServiceResult<()> {
        self.wait_synced(wallet)?;
        let stands_at = wallet.synced().hash;
        if stands_at == tip.hash {
            return Ok(());
        }
        // What this call can see the node may not have told yet. A block that only continues the chain is read for all.
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

    /// What is done from time to time: storing how far wallets have followed, and giving memory back.
    #[cfg(test)]
    pub(super) fn run_maintenance(&self) {
        self.follower.run_maintenance();
    }

    /// The loaded wallets, in the order in which they were loaded.
    #[cfg(test)]
    pub(super) fn loaded(&self) -> Vec<Arc<Wallet>> {
        self.follower.loaded()
    }

    /// The names of the loaded wallets, in the order in which they were loaded.
    pub fn list(&self) -> Vec<String> {
        self.follower.names()
    }

    /// How the loaded wallets stand.
    pub fn status(&self) -> Vec<WalletStatus> {
        let status = |wallet: &Arc<Wallet>| WalletStatus {
            name: wallet.name().to_owned(),
            height: wallet.synced().height,
            rescan: wallet.rescan_progress(),
            lagging: wallet.lag.lock().is_some() || wallet.feed.failure().is_some(),
            wrong_passphrases: wallet.attempts.wrong(),
            unsent: wallet.count_unsent(),
        };
        self.follower.loaded().iter().map(status).collect()
    }

    /// The wallets that were to be loaded at the start, and have not been loaded since.
    pub fn missing(&self) -> Vec<String> {
        self.missing.lock().iter().cloned().collect()
    }

    /// How many reorganisations were as deep as is told (`reorganisation_notice`).
    pub fn deep_reorganisations(&self) -> u64 {
        self.follower.reorganisations.deep()
    }

    /// The names of all wallets on disk.
    ///
    /// # Errors
    /// `Storage`.
    pub fn directory(&self) -> ServiceResult<Vec<String>> {
        Ok(files::list(&self.dir)?)
    }

    /// The host is about to stop: imports that take long are given up, each as a whole.
    pub fn give_up_imports(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
    }

    /// Stops rescans, which go on at the next load, and the threads that follow the node.
    pub fn shutdown(&self) {
        self.give_up_imports();
        self.shared.scrubber.stop();
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

/// Stores where wallets stand, as many as the patience allows: the others read some blocks again at their next load.
fn store_places(wallets: &[Arc<Wallet>]) {
    let deadline = Instant::now() + STORING_PATIENCE;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..MAX_THREADS.min(wallets.len()) {
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

/// # Errors
/// `Storage` where a wallet could not follow the chain when it last tried.
pub(super) fn check_lag(wallet: &Wallet) -> ServiceResult<()> {
    let lag = wallet.lag.lock();
    // What it knows is told while the node cannot be reached, and while the node's chain is another.
    let told = |lag: &&Lag| !lag.unavailable && !lag.read_only;
    let Some(text) = lag.as_ref().filter(told).map(|lag| lag.text.clone()) else { return Ok(()) };
    let detail = format!("The wallet could not follow the chain and will be tried again: {text}");
    Err(ServiceError::new(ErrorKind::Storage, detail))
}

/// What the node was needed for; none where it cannot be reached, which is tried again.
pub(super) fn while_reachable<T>(wallet: &Wallet, outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.is_unavailable() => {
            tracing::warn!(wallet = wallet.name(), %error, "the wallet stands where it is until the node can be reached");
            Ok(None)
        }
        // It is told, and nothing is written to it.
        Err(WalletError::Rewind { .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The error of a wallet on which work has panicked.
fn failed(wallet: &Wallet, reason: &str) -> ServiceError {
    let name = wallet.name();
    let detail = format!(
        "The wallet \"{name}\" has failed and does not follow the chain until it is unloaded and loaded again: {reason}"
    );
    ServiceError::new(ErrorKind::Storage, detail)
}
