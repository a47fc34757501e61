//! The set of wallets: making, loading, unloading, and choosing the one a call is about.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bitcoin::Network;
use heed::EnvClosingEvent;
use outrigger_sdk::service::wallet::{CreateOptions, RescanProgress};
use outrigger_sdk::service::{Chain, ErrorKind, Mempool, Result as ServiceResult, Scope, ServiceError};

use super::error::{Result, WalletError};
use super::follow::thread::Follower;
use super::live::Wallet;
use super::rescan;
use super::scrub::Scrubber;
use super::store::{DATA_FILE, Store};
use super::view::WalletView;
use super::{Settings, Shared, Sink, backup, files, lock};
use crate::aside::aside;
use crate::client_files::{ClientFileError, ClientFiles, Folders, UNFINISHED};
use crate::disk::pages::Fault;
use crate::node::find::Finder;
use crate::node::observer::{NodeEvent, Observer};

/// How long loading waits for the snapshots of a wallet that was just unloaded.
const CLOSING_PATIENCE: Duration = Duration::from_secs(10);

/// How a loaded wallet stands.
#[derive(Clone, Debug)]
pub struct WalletStatus {
    /// Its name.
    pub name: String,
    /// The height of the block up to which it has followed the chain; none while its file cannot be read.
    pub height: Option<u32>,
    /// The rescan that runs now.
    pub rescan: Option<RescanProgress>,
    /// Whether it could not follow the chain when it last tried.
    pub lagging: bool,
    /// How many wrong passphrases were tried since it was loaded.
    pub wrong_passphrases: u64,
}

/// All wallets of the host.
pub struct WalletManager {
    dir: PathBuf,
    shared: Arc<Shared>,
    follower: Arc<Follower>,
    /// Held while a wallet is made, loaded or unloaded. Keeps the environments that are being closed.
    closing: Mutex<HashMap<String, EnvClosingEvent>>,
}

impl Observer for WalletManager {
    fn notify(&self, event: NodeEvent) {
        self.follower.push(&event);
    }
}

impl WalletManager {
    /// Opens the wallets' folder, making it where it is missing, and loads the wallets that are to be loaded at start. One of those that cannot be loaded is logged and left out.
    ///
    /// # Errors
    /// `Storage` when the folder cannot be made or read.
    pub fn open(
        dir: &Path,
        network: Network,
        settings: Settings,
        chain: Arc<dyn Chain>,
        mempool: Arc<dyn Mempool>,
        finder: Arc<dyn Finder>,
        sink: Sink,
    ) -> ServiceResult<Arc<Self>> {
        fs::create_dir_all(dir).map_err(WalletError::from)?;
        let follower = Arc::new(Follower::default());
        files::remove_unfinished(dir)?;
        let data_directory = settings.data_directory.as_deref().unwrap_or(dir);
        let client_files = ClientFiles::open(data_directory, dir.join(files::NOTES_FILE)).map_err(WalletError::from)?;
        let scrubber = Scrubber::new(follower.clone());
        let manager = Arc::new(Self {
            dir: dir.to_owned(),
            shared: Arc::new(Shared {
                network,
                settings,
                chain,
                mempool,
                finder,
                sink,
                follower: follower.clone(),
                client_files,
                scrubber,
                stopping: AtomicBool::new(false),
            }),
            follower,
            closing: Mutex::new(HashMap::new()),
        });
        for name in files::load_list(dir)? {
            if let Err(error) = manager.load(name.clone(), None) {
                tracing::error!(wallet = name, %error, "the wallet could not be loaded");
            }
        }
        Ok(manager)
    }

    /// Waits until a wallet has taken over everything that the node told before this call.
    pub(super) fn wait_synced(&self, wallet: &Wallet) -> ServiceResult<()> {
        // A quick call about a wallet that is busy must not hold up those about others, nor the signal to stop.
        match wallet.feed.is_done() || aside(|| wallet.feed.wait()) {
            true => Ok(()),
            false if self.follower.has(wallet) => Err(ErrorKind::ShuttingDown.into()),
            false => Err(ErrorKind::WalletNotLoaded.into()),
        }
    }

    /// The wallet of a call: the named one, or the only one loaded. Waits until it has followed the node to where it
    /// stood at the call, and opens a snapshot.
    ///
    /// # Errors
    /// `WalletNotLoaded`, `NoWallet`, `WalletNotSpecified`, `ShuttingDown`; `Storage` when it cannot follow the chain.
    pub fn select(&self, name: Option<&str>) -> ServiceResult<WalletView> {
        let loaded = self.follower.loaded();
        let wallet = match (name, loaded.as_slice()) {
            (Some(name), _) => loaded.iter().find(|wallet| wallet.name() == name).ok_or(ErrorKind::WalletNotLoaded)?,
            (None, []) => return Err(ErrorKind::NoWallet.into()),
            (None, [wallet]) => wallet,
            (None, _) => return Err(ErrorKind::WalletNotSpecified.into()),
        };
        let tip = self.shared.chain.tip(Scope::NONE)?;
        // What it was told it has worked in before the snapshot is taken, so that this shows all of it.
        if wallet.feed.is_done() && lock(&wallet.lag).is_none() {
            let view = WalletView::open(wallet.clone())?;
            if view.synced()?.hash == tip.hash {
                return Ok(view);
            }
        }
        if wallet.synced()?.hash != tip.hash {
            // What this call can see the node may not have told yet.
            wallet.feed.push(NodeEvent::TipChanged { hash: tip.hash, height: tip.height });
        }
        self.wait_synced(wallet)?;
        if let Some(lag) = lock(&wallet.lag).as_ref() {
            let detail = format!("The wallet could not follow the chain and will be tried again: {lag}");
            return Err(ServiceError::new(ErrorKind::Storage, detail));
        }
        Ok(WalletView::open(wallet.clone())?)
    }

    /// The loaded wallets, in the order in which they were loaded.
    #[cfg(test)]
    pub(super) fn loaded(&self) -> Vec<Arc<Wallet>> {
        self.follower.loaded()
    }

    /// The names of the loaded wallets, in the order in which they were loaded.
    pub fn list(&self) -> Vec<String> {
        self.follower.loaded().iter().map(|wallet| wallet.name().to_owned()).collect()
    }

    /// How the loaded wallets stand.
    pub fn status(&self) -> Vec<WalletStatus> {
        let status = |wallet: &Arc<Wallet>| WalletStatus {
            name: wallet.name().to_owned(),
            height: wallet.synced().ok().map(|synced| synced.height),
            rescan: wallet.rescan_progress(),
            lagging: lock(&wallet.lag).is_some(),
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
        let closing = lock(&self.closing);
        let folder = files::folder(&self.dir, &options.name)?;
        if folder.join(DATA_FILE).exists() {
            let detail = format!(
                "Wallet file verification failed. Failed to create database path '{}'. Database already exists.",
                folder.display()
            );
            return Err(ServiceError::new(ErrorKind::WalletExists, detail));
        }
        fs::create_dir_all(&folder).map_err(WalletError::from)?;
        let wallet = self.make(&folder, &options).inspect_err(|_| discard(&folder))?;
        self.start(Arc::new(wallet))?;
        if let Some(load) = options.load_on_startup {
            files::set_load_on_startup(&self.dir, &options.name, load)?;
        }
        drop(closing);
        Ok(Vec::new())
    }

    fn make(&self, folder: &Path, options: &CreateOptions) -> Result<Wallet> {
        let store = Store::create(folder, &self.shared.settings)?;
        Wallet::initialise(options, store, self.shared.clone())
    }

    /// Loads a wallet. Gives its warnings.
    ///
    /// # Errors
    /// `WalletAlreadyLoaded`; `WalletNotLoaded` with the reason when there is no such wallet or it is no wallet's folder;
    /// `Refused` for a bad name; `Storage`.
    pub fn load(&self, name: String, load_on_startup: Option<bool>) -> ServiceResult<Vec<String>> {
        let mut closing = lock(&self.closing);
        if self.follower.loaded().iter().any(|wallet| wallet.name() == name) {
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
        if let Some(event) = closing.remove(&name)
            && !event.wait_timeout(CLOSING_PATIENCE)
        {
            closing.insert(name, event);
            return Err(cannot("It is still in use by a running call."));
        }
        let store = recognised(Store::open(&folder, &self.shared.settings), &folder)?;
        self.start(Arc::new(Wallet::new(name.clone(), store, self.shared.clone())?))?;
        if let Some(load) = load_on_startup {
            files::set_load_on_startup(&self.dir, &name, load)?;
        }
        Ok(Vec::new())
    }

    /// Makes a wallet from the file of a backup and loads it (restorewallet), as the rule for clients' files has it. Gives its
    /// warnings.
    ///
    /// # Errors
    /// `NotFound` when there is no such file; `Refused` when it may not be read; `WalletExists`; `WalletNotLoaded` with the reason when the file is no backup;
    /// `Refused` for a bad name; `Storage`.
    pub fn restore(
        &self,
        name: String,
        backup: &Path,
        folders: &Folders,
        load_on_startup: Option<bool>,
    ) -> ServiceResult<Vec<String>> {
        let mut closing = lock(&self.closing);
        let backup = self.shared.client_files.read(backup, folders).map_err(|error| match error {
            ClientFileError::Missing | ClientFileError::NotAFile | ClientFileError::NoName => {
                ServiceError::new(ErrorKind::NotFound, "Backup file does not exist")
            }
            refused => ServiceError::new(ErrorKind::Refused, format!("The backup file cannot be read: {refused}")),
        })?;
        let folder = files::folder(&self.dir, &name)?;
        let data = folder.join(DATA_FILE);
        if data.exists() || self.follower.loaded().iter().any(|wallet| wallet.name() == name) {
            let detail = format!("Failed to restore wallet. Database file exists in '{}'.", data.display());
            return Err(ServiceError::new(ErrorKind::WalletExists, detail));
        }
        if let Some(event) = closing.remove(&name)
            && !event.wait_timeout(CLOSING_PATIENCE)
        {
            closing.insert(name, event);
            return Err(cannot_load(&folder, "It is still in use by a running call."));
        }
        fs::create_dir_all(&folder).map_err(WalletError::from)?;
        let wallet = self.unpack(&name, backup, &folder).inspect_err(|_| discard(&folder))?;
        self.start(Arc::new(wallet))?;
        if let Some(load) = load_on_startup {
            files::set_load_on_startup(&self.dir, &name, load)?;
        }
        Ok(Vec::new())
    }

    fn unpack(&self, name: &str, backup: fs::File, folder: &Path) -> ServiceResult<Wallet> {
        backup::unpack(backup, folder)?;
        let store = recognised(Store::open(folder, &self.shared.settings), folder)?;
        Ok(Wallet::new(name.to_owned(), store, self.shared.clone())?)
    }

    /// Brings a wallet in step with the node and makes it one of the loaded ones.
    fn start(&self, wallet: Arc<Wallet>) -> ServiceResult<()> {
        // Most of the way before events are enqueued; the rest in their order, after which none can have been missed.
        wallet.reconcile()?;
        self.follower.add(&wallet)?;
        self.settle_in(&wallet).inspect_err(|_| self.forget(&wallet))
    }

    /// The last steps of loading, for a wallet that hears of events already.
    fn settle_in(&self, wallet: &Wallet) -> ServiceResult<()> {
        let tip = self.shared.chain.tip(Scope::NONE)?;
        wallet.feed.push(NodeEvent::TipChanged { hash: tip.hash, height: tip.height });
        self.wait_synced(wallet)?;
        wallet.reconcile()?;
        wallet.resubmit()?;
        rescan::resume(wallet)?;
        wallet.scrub();
        Ok(())
    }

    fn forget(&self, wallet: &Wallet) {
        self.follower.remove(wallet);
        wallet.feed.stop();
    }

    /// Unloads a wallet; its file stays. Gives its warnings.
    ///
    /// # Errors
    /// `WalletNotLoaded`, `WalletRescanning`.
    pub fn unload(&self, name: String, load_on_startup: Option<bool>) -> ServiceResult<Vec<String>> {
        let mut closing = lock(&self.closing);
        let wallet = self.follower.loaded().into_iter().find(|wallet| wallet.name() == name);
        let wallet = wallet.ok_or(ErrorKind::WalletNotLoaded)?;
        // Held for good: no rescan can begin in a wallet that is being unloaded.
        wallet.rescan_reserve()?;
        let event = wallet.store.closing();
        self.forget(&wallet);
        closing.insert(name.clone(), event);
        if let Some(load) = load_on_startup {
            files::set_load_on_startup(&self.dir, &name, load)?;
        }
        // What its thread has begun comes to its end, and holds up nobody who makes or loads another.
        drop(closing);
        wallet.feed.join();
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
        for wallet in &loaded {
            rescan::stop(wallet);
            wallet.feed.stop();
        }
        for wallet in &loaded {
            wallet.feed.join();
            self.follower.remove(wallet);
        }
    }
}

impl Drop for WalletManager {
    fn drop(&mut self) {
        self.shutdown();
    }
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
    for file in [DATA_FILE.to_owned(), super::store::LOCK_FILE.to_owned(), format!("{DATA_FILE}{UNFINISHED}")] {
        let _ = fs::remove_file(folder.join(file));
    }
    let _ = fs::remove_dir(folder);
}
