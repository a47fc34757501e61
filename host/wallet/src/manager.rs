//! The set of wallets: making, loading, unloading, and choosing the one a call is about.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use heed::EnvClosingEvent;
use outrigger_service::chain::{BlockRef, Tip};
use outrigger_service::wallet::{CreateOptions, RescanProgress};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};

use super::attempts::AllAttempts;
use super::error::{Result, WalletError};
use super::follow::feed::{Item, Waited};
use super::follow::thread::Follower;
use super::follow::{MAX_THREADS, previous};
use super::live::Wallet;
use super::rescan;
use super::scrub::Scrubber;
use super::store::{DATA_FILE, Store};
use super::view::WalletView;
use super::{Settings, Shared, Sink, backup, files};
use outrigger_base::client_files::{ClientFileError, ClientFiles, Folders, UNFINISHED};
use outrigger_base::offload::offload_blocking;
use outrigger_disk::pages::Fault;
use outrigger_node::{Node, NodeEvent, Observer};

/// How long loading waits for the snapshots of a wallet that was just unloaded.
const CLOSING_PATIENCE: Duration = Duration::from_secs(10);

/// The files that LMDB keeps open for a wallet.
const FILES_PER_WALLET: u64 = 3;
/// The files that are left for connections and all else, beside those of wallets.
const OTHER_FILES: u64 = 256;
/// How long the end of the host goes on storing how far wallets have followed the chain.
const STORING_PATIENCE: Duration = Duration::from_secs(5);

/// How a loaded wallet stands.
#[derive(Clone, Debug)]
pub struct WalletStatus {
    /// Its name.
    pub name: String,
    /// The height of the block up to which it has followed the chain.
    pub height: u32,
    /// The rescan that runs now.
    pub rescan: Option<RescanProgress>,
    /// Whether it could not follow the chain when it last tried.
    pub lagging: bool,
    /// How many wrong passphrases were tried since the host started.
    pub wrong_passphrases: u64,
}

/// All wallets of the host.
pub struct WalletManager {
    dir: PathBuf,
    shared: Arc<Shared>,
    follower: Arc<Follower>,
    /// The environments that are being closed.
    closing: Mutex<HashMap<String, EnvClosingEvent>>,
    /// The names of the wallets that are being made, loaded or unloaded.
    taken: Mutex<HashSet<String>>,
    /// Held while the list of wallets to load at start is changed.
    list: Mutex<()>,
    /// Whether the mempool has taken something from a wallet that was loaded.
    resubmitted: AtomicBool,
}

/// The name of a wallet that is being made, loaded or unloaded, until this is dropped.
pub(super) struct Taken<'m> {
    manager: &'m WalletManager,
    name: String,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.manager.taken.lock().remove(&self.name);
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
                client_files,
                attempts: AllAttempts::default(),
                scrubber,
                stopping: AtomicBool::new(false),
            }),
            follower,
            closing: Mutex::default(),
            taken: Mutex::default(),
            list: Mutex::default(),
            resubmitted: AtomicBool::new(false),
        });
        Follower::start(&manager.shared)?;
        for name in files::load_list(dir)? {
            if let Err(error) = manager.load(name.clone(), None) {
                tracing::error!(wallet = name, %error, "the wallet could not be loaded");
            }
        }
        Ok(manager)
    }

    /// The node tells this from now on what happens. What wallets offered it before, nobody has heard of.
    pub fn is_told(&self) {
        if self.resubmitted.swap(false, Ordering::Relaxed) {
            self.follower.loaded().iter().for_each(|wallet| self.follower.give(wallet, Item::Reconcile(1)));
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

    /// Takes a wallet's name, so that nobody else makes, loads or unloads one of that name meanwhile.
    pub(super) fn take(&self, name: &str) -> ServiceResult<Taken<'_>> {
        if !self.taken.lock().insert(name.to_owned()) {
            return Err(ServiceError::new(ErrorKind::Refused, "Wallet already loading."));
        }
        Ok(Taken { manager: self, name: name.to_owned() })
    }

    /// Waits for the end of an environment that is being closed.
    fn wait_closed(&self, name: &str, folder: &Path) -> ServiceResult<()> {
        let event = self.closing.lock().remove(name);
        if let Some(event) = event
            && !event.wait_timeout(CLOSING_PATIENCE)
        {
            self.closing.lock().insert(name.to_owned(), event);
            return Err(cannot_load(folder, "It is still in use by a running call."));
        }
        Ok(())
    }

    fn set_load_on_startup(&self, name: &str, load: Option<bool>) -> ServiceResult<()> {
        let Some(load) = load else { return Ok(()) };
        let _list = self.list.lock();
        Ok(files::set_load_on_startup(&self.dir, name, load)?)
    }

    /// Whether the system lets this process open the files of one more wallet, and of clients beside.
    fn check_files(&self) -> ServiceResult<()> {
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let wallets = self.follower.count() as u64;
        if (wallets + 1).saturating_mul(FILES_PER_WALLET).saturating_add(OTHER_FILES) > most {
            let detail = format!(
                "Wallet loading failed. The system lets this process open {most} files, of which {wallets} loaded wallets \
                 take {FILES_PER_WALLET} each. Raise the limit (ulimit -n, LimitNOFILE) or unload wallets."
            );
            return Err(ServiceError::new(ErrorKind::Refused, detail));
        }
        Ok(())
    }

    /// The wallet of a call: the named one, or the only one loaded. Waits until it has followed the node to where it
    /// stood at the call, and opens a snapshot.
    ///
    /// # Errors
    /// `WalletNotLoaded`, `NoWallet`, `WalletNotSpecified`, `ShuttingDown`; `Storage` when it cannot follow the chain.
    pub fn select(&self, name: Option<&str>) -> ServiceResult<WalletView> {
        let wallet = &self.find(name)?;
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
        self.wait_for_tip(wallet, &tip)?;
        check_lag(wallet)?;
        Ok(WalletView::open(wallet.clone())?)
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
    pub(super) fn keep_house(&self) {
        self.follower.keep_house();
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
        };
        self.follower.loaded().iter().map(status).collect()
    }

    /// The names of all wallets on disk.
    ///
    /// # Errors
    /// `Storage`.
    pub fn directory(&self) -> ServiceResult<Vec<String>> {
        Ok(files::list(&self.dir)?)
    }

    /// Makes a wallet and loads it. Gives its warnings.
    ///
    /// # Errors
    /// `WalletExists`; `Refused` for a bad name, or a passphrase without private keys; `Storage`.
    pub fn create(&self, options: CreateOptions) -> ServiceResult<Vec<String>> {
        if options.disable_private_keys && !options.passphrase.expose().is_empty() {
            let detail = "Passphrase provided but private keys are disabled. A passphrase is only used to encrypt \
                          private keys, so cannot be used for wallets with private keys disabled.";
            return Err(ServiceError::new(ErrorKind::Refused, detail));
        }
        let _taken = self.take(&options.name)?;
        let folder = files::folder(&self.dir, &options.name)?;
        if folder.join(DATA_FILE).exists() {
            let detail = format!(
                "Wallet file verification failed. Failed to create database path '{}'. Database already exists.",
                folder.display()
            );
            return Err(ServiceError::new(ErrorKind::WalletExists, detail));
        }
        self.check_files()?;
        fs::create_dir_all(&folder).map_err(WalletError::from)?;
        let wallet = self.make(&folder, &options).inspect_err(|_| discard(&folder))?;
        self.start(Arc::new(wallet))?;
        self.set_load_on_startup(&options.name, options.load_on_startup)?;
        Ok(Vec::new())
    }

    /// Makes a wallet with all that it has from the beginning. A kill leaves all of it or nothing.
    fn make(&self, folder: &Path, options: &CreateOptions) -> Result<Wallet> {
        outrigger_disk::make_by(folder, |making| {
            let store = Store::create(making, &self.shared.settings)?;
            let closing = store.closing();
            let made = Wallet::initialise(options, store, self.shared.clone());
            made.map(|wallet| self.follower.remove(&wallet))?;
            closing.wait_timeout(CLOSING_PATIENCE);
            Ok::<_, WalletError>(())
        })?;
        let store = Store::open(folder, &self.shared.settings)?;
        Wallet::new(options.name.clone(), store, self.shared.clone())
    }

    /// Loads a wallet. Gives its warnings.
    ///
    /// # Errors
    /// `WalletAlreadyLoaded`; `WalletNotLoaded` with the reason when there is no such wallet or it is no wallet's folder;
    /// `Refused` for a bad name; `Storage`.
    pub fn load(&self, name: String, load_on_startup: Option<bool>) -> ServiceResult<Vec<String>> {
        let _taken = self.take(&name)?;
        if self.follower.named(&name).is_some() {
            let detail = format!("Wallet \"{name}\" is already loaded.");
            return Err(ServiceError::new(ErrorKind::WalletAlreadyLoaded, detail));
        }
        let folder = files::folder(&self.dir, &name)?;
        let cannot = |why: &str| cannot_load(&folder, why);
        if !folder.exists() {
            return Err(cannot("Path does not exist."));
        }
        if !folder.join(DATA_FILE).is_file() {
            return Err(cannot("Data is not in recognized format."));
        }
        self.check_files()?;
        self.wait_closed(&name, &folder)?;
        let store = recognised(Store::open(&folder, &self.shared.settings), &folder)?;
        self.start(Arc::new(Wallet::new(name.clone(), store, self.shared.clone())?))?;
        self.set_load_on_startup(&name, load_on_startup)?;
        Ok(Vec::new())
    }

    /// Makes a wallet from the file of a backup and loads it (restorewallet), as the rule for clients' files has it. Gives its
    /// warnings.
    ///
    /// # Errors
    /// `NotFound` when there is no such file; `WalletExists`; `WalletNotLoaded` with the reason when the file is no backup;
    /// `Refused` for a bad name, and when the file may not be read; `Storage`.
    pub fn restore(
        &self,
        name: String,
        backup: &Path,
        folders: &Folders,
        load_on_startup: Option<bool>,
    ) -> ServiceResult<Vec<String>> {
        let _taken = self.take(&name)?;
        let backup = self.shared.client_files.read(backup, folders).map_err(|error| match error {
            ClientFileError::Missing | ClientFileError::NotAFile | ClientFileError::NoName => {
                ServiceError::new(ErrorKind::NotFound, "Backup file does not exist")
            }
            refused => ServiceError::new(ErrorKind::Refused, format!("The backup file cannot be read: {refused}")),
        })?;
        let folder = files::folder(&self.dir, &name)?;
        let data = folder.join(DATA_FILE);
        if data.exists() || self.follower.named(&name).is_some() {
            let detail = format!("Failed to restore wallet. Database file exists in '{}'.", data.display());
            return Err(ServiceError::new(ErrorKind::WalletExists, detail));
        }
        if !backup::is_database(&backup).map_err(WalletError::from)? {
            return Err(cannot_load(&folder, "Data is not in recognized format."));
        }
        self.check_files()?;
        self.wait_closed(&name, &folder)?;
        fs::create_dir_all(&folder).map_err(WalletError::from)?;
        let wallet = self.unpack(&name, backup, &folder).inspect_err(|_| discard(&folder))?;
        self.start(Arc::new(wallet))?;
        self.set_load_on_startup(&name, load_on_startup)?;
        Ok(Vec::new())
    }

    fn unpack(&self, name: &str, backup: fs::File, folder: &Path) -> ServiceResult<Wallet> {
        backup::unpack(backup, folder)?;
        let store = recognised(Store::open(folder, &self.shared.settings), folder)?;
        Ok(Wallet::new(name.to_owned(), store, self.shared.clone())?)
    }

    /// Brings a wallet in step with the node and makes it one of the loaded ones.
    fn start(&self, wallet: Arc<Wallet>) -> ServiceResult<()> {
        // Most of the way before it is told anything; the rest in order, after which nothing can have been missed.
        let entered = wallet.follow_stored().and_then(|()| while_reachable(&wallet, wallet.catch_up()).map(drop));
        entered.inspect_err(|_| self.follower.remove(&wallet))?;
        self.follower.add(&wallet);
        self.settle_in(&wallet).inspect_err(|_| self.forget(&wallet))
    }

    /// The last steps of loading, for a wallet that hears of events already.
    fn settle_in(&self, wallet: &Arc<Wallet>) -> ServiceResult<()> {
        self.follower.give(wallet, Item::Reconcile(1));
        self.wait_synced(wallet)?;
        check_lag(wallet)?;
        if while_reachable(wallet, wallet.resubmit())?.is_some_and(|offered| offered > 0) {
            self.resubmitted.store(true, Ordering::Relaxed);
        }
        rescan::resume(wallet)?;
        wallet.scrub();
        Ok(())
    }

    fn forget(&self, wallet: &Wallet) {
        self.follower.remove(wallet);
        wallet.feed.wait_quiet();
    }

    /// Unloads a wallet; its file stays. Gives its warnings.
    ///
    /// # Errors
    /// `WalletNotLoaded`, `WalletRescanning`.
    pub fn unload(&self, name: String, load_on_startup: Option<bool>) -> ServiceResult<Vec<String>> {
        let wallet = self.follower.named(&name).ok_or(ErrorKind::WalletNotLoaded)?;
        let _taken = self.take(&name)?;
        // Held for good: no rescan can begin in a wallet that is being unloaded.
        wallet.rescan_reserve()?;
        let event = wallet.store.closing();
        self.follower.remove(&wallet);
        self.closing.lock().insert(name.clone(), event);
        self.set_load_on_startup(&name, load_on_startup)?;
        // What was begun for it comes to its end, and holds up nobody who makes or loads another.
        wallet.feed.wait_quiet();
        wallet.store_place(&wallet.lock_writes());
        Ok(Vec::new())
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
fn check_lag(wallet: &Wallet) -> ServiceResult<()> {
    let lag = wallet.lag.lock();
    // What it knows is told while the node cannot be reached.
    let Some(text) = lag.as_ref().filter(|lag| !lag.unavailable).map(|lag| lag.text.clone()) else { return Ok(()) };
    let detail = format!("The wallet could not follow the chain and will be tried again: {text}");
    Err(ServiceError::new(ErrorKind::Storage, detail))
}

/// What the node was needed for; none where it cannot be reached, which is tried again.
fn while_reachable<T>(wallet: &Wallet, outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(error) if error.is_unavailable() => {
            tracing::warn!(wallet = wallet.name(), %error, "the wallet stands where it is until the node can be reached");
            Ok(None)
        }
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

/// The error of a wallet that is not there, or is none.
fn cannot_load(folder: &Path, why: &str) -> ServiceError {
    let path = folder.display();
    let detail = format!("Wallet file verification failed. Failed to load database path '{path}'. {why}");
    ServiceError::new(ErrorKind::WalletNotLoaded, detail)
}

/// The store that was opened in a folder; an error in the words of bitcoind where there is none.
fn recognised(opened: Result<Store>, folder: &Path) -> ServiceResult<Store> {
    match opened {
        // bitcoind's words for what is none of its files.
        Err(WalletError::BadFile { fault: Fault::Foreign, .. }) => {
            Err(cannot_load(folder, &WalletError::NotAWallet.to_string()))
        }
        Err(error @ (WalletError::NotAWallet | WalletError::OtherLayout { .. } | WalletError::BadFile { .. })) => {
            Err(cannot_load(folder, &error.to_string()))
        }
        other => Ok(other?),
    }
}

/// Removes what a wallet that could not be made has left behind.
fn discard(folder: &Path) {
    let _ = outrigger_disk::finish(folder);
    for file in [DATA_FILE.to_owned(), super::store::LOCK_FILE.to_owned(), format!("{DATA_FILE}{UNFINISHED}")] {
        let _ = fs::remove_file(folder.join(file));
    }
    let _ = fs::remove_dir(folder);
}
