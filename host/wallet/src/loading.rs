//! Creating, loading, restoring and unloading wallets.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outrigger_base::client_files::{ClientFileError, Folders};
use outrigger_base::paths::quoted;
use outrigger_disk::StoreError;
use outrigger_disk::pages::Fault;
use outrigger_service::wallet::CreateOptions;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use rustix::process::{Resource, getrlimit};

use super::contents::check_file;
use super::error::{Result, WalletError};
use super::follow::together::catch_up_together;
use super::live::Wallet;
use super::live::feed::Item;
use super::live::outgoing::OfferScope;
use super::manager::{WalletManager, check_lag, while_reachable};
use super::rescan::{self, StateAtLoad};
use super::store::{DATA_FILE, Store};
use super::{backup, files};

/// How long the host waits until the snapshots of a wallet's previous LMDB environment are closed.
pub(super) const CLOSING_PATIENCE: Duration = Duration::from_secs(10);
const FILES_PER_WALLET: u64 = 3;
/// Open files reserved for connections and everything else.
const OTHER_FILES: u64 = 256;

/// bitcoind's wallet file in a wallet's folder.
const WALLET_OF_BITCOIND: &str = "wallet.dat";
const SQLITE: &[u8; 16] = b"SQLite format 3\0";
/// The bytes at offset 12 of a Berkeley DB file, in both byte orders.
const BERKELEY: [[u8; 4]; 2] = [[0x62, 0x31, 0x05, 0], [0, 0x05, 0x31, 0x62]];

/// A load is logged if the wallet is at least this many blocks (a day) behind.
const LOG_BEHIND: u32 = 144;

/// The warning for a wallet that scans blocks again for more scripts.
const RANGE_WIDENED: &str = "Payments were found near the end of the keys that were derived ahead. More were derived, and the \
                             blocks since the wallet was last loaded or backed up are being scanned again for them";

impl WalletManager {
    pub fn create(&self, options: CreateOptions) -> ServiceResult<Vec<String>> {
        let refused = |detail: &str| Err(ServiceError::new(ErrorKind::Refused, detail));
        if options.disable_private_keys && !options.passphrase.expose().is_empty() {
            return refused(
                "Passphrase provided but private keys are disabled. A passphrase is only used to encrypt private keys, so cannot be \
                 used for wallets with private keys disabled.",
            );
        }
        if options.external_signer && self.shared.settings.signer.is_none() {
            return refused("An external signer needs the host's setting `signer` in [wallet]");
        }
        if options.external_signer && !options.disable_private_keys {
            return refused("Private keys must be disabled when using an external signer");
        }
        let _reserved = self.reserve_name(&options.name)?;
        let folder = self.folder(&options.name)?;
        if folder.join(DATA_FILE).exists() {
            let detail = format!(
                "Wallet file verification failed. Failed to create database path '{}'. Database already exists.",
                self.dir.join(&options.name).display()
            );
            return Err(ServiceError::new(ErrorKind::WalletExists, detail));
        }
        self.add(&options.name, &folder, options.load_on_startup, || Ok(self.make(&folder, &options)?))
    }

    /// Creates a wallet with its initial keys, atomically.
    fn make(&self, folder: &Path, options: &CreateOptions) -> Result<Wallet> {
        outrigger_disk::make_by(folder, |making| {
            let store = Store::create(making, making, &self.shared.settings)?;
            let closing = store.env.closing();
            Wallet::initialise(options, store, self.shared.clone()).map(|wallet| self.follower.remove(&wallet))?;
            closing.wait_timeout(CLOSING_PATIENCE);
            Ok::<(), WalletError>(())
        })?;
        let store = Store::open(folder, &self.shared.settings)?;
        Wallet::new(options.name.clone(), store, self.shared.clone(), false)
    }

    pub fn load(&self, name: String, load_on_startup: Option<bool>) -> ServiceResult<Vec<String>> {
        let _reserved = self.reserve_name(&name)?;
        let mut warnings = self.start(self.open_file(&name)?)?;
        warnings.extend(self.set_load_on_startup(&name, load_on_startup));
        Ok(warnings)
    }

    /// Adds advice to a load error if `name` is the path of a wallet of bitcoind: how to copy that wallet. Reads only
    /// files inside `folders`.
    pub fn with_advice(&self, name: &str, folders: &Folders, error: ServiceError) -> ServiceError {
        let path = Path::new(name);
        let is_missing = error.kind == ErrorKind::WalletNotLoaded && path.is_absolute();
        if !is_missing || files::folder(&self.dir, name).is_ok_and(|folder| folder.join(DATA_FILE).is_file()) {
            return error;
        }
        let files = [path.join(WALLET_OF_BITCOIND), path.to_owned()];
        let found = files.iter().find(|file| {
            self.shared.client_files.read(file, folders).is_ok_and(|file| is_of_bitcoind(file).unwrap_or(false))
        });
        let Some(file) = found else { return error };
        let advice = format!(
            "A wallet of bitcoind lies there, which can be copied: outrigger wallet import-from-file {} {}",
            quoted(file),
            quoted(name)
        );
        cannot_load(path, &advice)
    }

    fn open_file(&self, name: &str) -> ServiceResult<Arc<Wallet>> {
        if self.follower.named(name).is_some() {
            let detail = format!("Wallet \"{name}\" is already loaded.");
            return Err(ServiceError::new(ErrorKind::WalletAlreadyLoaded, detail));
        }
        let folder = self.folder(name)?;
        let cannot = |why: &str| cannot_load(&self.dir.join(name), why);
        if !folder.exists() {
            return Err(cannot("Path does not exist."));
        }
        if !folder.join(DATA_FILE).is_file() {
            return Err(cannot("Data is not in recognized format."));
        }
        self.check_files(0)?;
        self.wait_closed(name, &folder)?;
        Ok(Arc::new(self.open_store(name, &folder, false)?))
    }

    /// The wallet of a file. Fails with bitcoind's message if it is not recognised.
    fn open_store(&self, name: &str, folder: &Path, on_trial: bool) -> ServiceResult<Wallet> {
        let store = Store::open(folder, &self.shared.settings).map_err(|error| not_opened(folder, error))?;
        Ok(Wallet::of_chain(name.to_owned(), store, self.shared.clone(), on_trial)?)
    }

    /// Loads the wallets of the load list together. A wallet that fails to load is logged and skipped.
    pub(super) fn load_all(&self, names: Vec<String>) {
        let failed = |name: &str, error: &ServiceError| {
            self.missing.lock().insert(name.to_owned());
            let remedy = "the wallet could not be loaded; unloadwallet, with its name and load_on_startup=false, takes it off the list";
            tracing::error!(wallet = name, %error, "{remedy}");
        };
        let mut entered = Vec::new();
        for (at, name) in names.iter().enumerate() {
            if let Err(error) = self.check_files(entered.len()) {
                self.missing.lock().extend(names.iter().skip(at).cloned());
                tracing::error!(wallets = names.len() - at, %error, "no further wallets are loaded");
                break;
            }
            match self.open_file(name).and_then(|wallet| Ok((self.enter(&wallet)?, wallet))) {
                Ok(opened) => entered.push(opened),
                Err(error) => failed(name, &error),
            }
        }
        let wallets: Vec<Arc<Wallet>> = entered.iter().map(|(_, wallet)| wallet.clone()).collect();
        let known = catch_up_together(&self.shared, &wallets);
        for (before, wallet) in entered {
            if let Err(error) = self.start_entered(&wallet, before, known) {
                failed(wallet.name(), &error);
            }
        }
    }

    /// restorewallet: creates a wallet from a backup file, within the rules for clients' files, and loads it unless `guarded` fails.
    pub fn restore(
        &self,
        name: String,
        backup: &Path,
        folders: &Folders,
        load_on_startup: Option<bool>,
        guarded: &dyn Fn(&Wallet) -> ServiceResult<()>,
    ) -> ServiceResult<Vec<String>> {
        let _reserved = self.reserve_name(&name)?;
        let backup = self.shared.client_files.read(backup, folders).map_err(|error| match error {
            ClientFileError::Missing | ClientFileError::NotAFile | ClientFileError::NoName => {
                ServiceError::new(ErrorKind::NotFound, "Backup file does not exist")
            }
            refused => ServiceError::new(ErrorKind::Refused, format!("The backup file cannot be read: {refused}")),
        })?;
        let folder = self.folder(&name)?;
        let data = folder.join(DATA_FILE);
        if data.exists() || self.follower.named(&name).is_some() {
            let detail = format!("Failed to restore wallet. Database file exists in '{}'.", data.display());
            return Err(ServiceError::new(ErrorKind::WalletExists, detail));
        }
        if !backup::is_database(&backup).map_err(WalletError::from)? {
            return Err(cannot_load(&self.dir.join(&name), "Data is not in recognized format."));
        }
        // The file may have any length, and comes from a client: it is checked before it is copied, and the copy when it is opened.
        check_file(&backup, &data).map_err(|error| not_opened(&folder, error))?;
        self.wait_closed(&name, &folder)?;
        self.add(&name, &folder, load_on_startup, || {
            backup::unpack(backup, &folder)?;
            let wallet = self.open_store(&name, &folder, true)?;
            guarded(&wallet)?;
            wallet.end_trial()?;
            Ok(wallet)
        })
    }

    /// The folder of a wallet that a client names.
    fn folder(&self, name: &str) -> ServiceResult<std::path::PathBuf> {
        if self.shared.rules().refuses_dot_names {
            files::check_normal(name)?;
        }
        Ok(files::folder(&self.dir, name)?)
    }

    /// Makes a wallet in its folder and starts it. A failure leaves nothing there. Returns the wallet's warnings.
    fn add(
        &self,
        name: &str,
        folder: &Path,
        load_on_startup: Option<bool>,
        make: impl FnOnce() -> ServiceResult<Wallet>,
    ) -> ServiceResult<Vec<String>> {
        self.check_files(0)?;
        files::make_folder(&self.dir, name)?;
        let wallet = make().inspect_err(|_| files::discard(folder))?;
        let closing = wallet.store.env.closing();
        let mut warnings = self.start(Arc::new(wallet)).inspect_err(|_| {
            closing.wait_timeout(CLOSING_PATIENCE);
            files::discard(folder);
        })?;
        warnings.extend(self.set_load_on_startup(name, load_on_startup));
        Ok(warnings)
    }

    /// Synchronises a wallet with the node and adds it to the loaded ones. Returns its warnings.
    fn start(&self, wallet: Arc<Wallet>) -> ServiceResult<Vec<String>> {
        let before = self.enter(&wallet)?;
        self.start_entered(&wallet, before, None)
    }

    /// Adds a wallet's interests to the index. Returns the state before loading.
    fn enter(&self, wallet: &Wallet) -> ServiceResult<StateAtLoad> {
        let before = StateAtLoad::read(wallet)?;
        let blocks = self.shared.node.tip().height.saturating_sub(wallet.synced().height);
        if blocks >= LOG_BEHIND {
            tracing::info!(wallet = wallet.name(), blocks, "the wallet reads the blocks since it was last loaded");
        }
        wallet.follow_stored().inspect_err(|_| self.follower.remove(wallet))?;
        Ok(before)
    }

    /// The rest of [`Self::start`]. The wallet has read the mempool up to the sequence `known`, if any.
    fn start_entered(
        &self,
        wallet: &Arc<Wallet>,
        before: StateAtLoad,
        known: Option<u64>,
    ) -> ServiceResult<Vec<String>> {
        // The wallet reads most blocks before it receives events. After `add`, events cover everything that it has not
        // read.
        while_reachable(wallet, wallet.catch_up()).inspect_err(|_| self.follower.remove(wallet))?;
        self.follower.add(wallet);
        let warnings = self.settle_in(wallet, before, known).inspect_err(|_| self.forget(wallet))?;
        self.missing.lock().remove(wallet.name());
        self.shared.wake_backups();
        Ok(warnings)
    }

    /// The last steps of loading, for a wallet that already receives events. Returns its warnings.
    fn settle_in(&self, wallet: &Arc<Wallet>, before: StateAtLoad, known: Option<u64>) -> ServiceResult<Vec<String>> {
        if !self.is_in_step(wallet, known) {
            self.follower.give(wallet, Item::Reconcile);
        }
        self.wait_synced(wallet)?;
        check_lag(wallet)?;
        if let Some(reason) = wallet.read_only() {
            return Ok(vec![reason]);
        }
        if while_reachable(wallet, wallet.resubmit(OfferScope::All, None))?.is_some_and(|offered| offered > 0) {
            self.resubmitted.store(true, Ordering::Relaxed);
        }
        let is_widened = rescan::resume(wallet, before)?;
        wallet.scrub();
        Ok(is_widened.then(|| RANGE_WIDENED.to_owned()).into_iter().collect())
    }

    /// Whether a wallet is at the tip and has read the current mempool.
    fn is_in_step(&self, wallet: &Wallet, known: Option<u64>) -> bool {
        let node = &self.shared.node;
        wallet.synced().hash == node.tip().hash
            && known.is_some_and(|known| {
                wallet.feed.has_read_mempool(known) && node.mempool_sequence().is_ok_and(|now| now == known)
            })
    }

    fn forget(&self, wallet: &Wallet) {
        self.follower.remove(wallet);
        wallet.feed.wait_quiet();
    }

    pub fn unload(&self, name: String, load_on_startup: Option<bool>) -> ServiceResult<Vec<String>> {
        let Some(wallet) = self.follower.named(&name) else { return self.take_off_list(&name, load_on_startup) };
        let _reserved = self.reserve_name(&name)?;
        // Never released, so that no rescan can start during the unload.
        wallet.rescan_reserve()?;
        let event = wallet.store.env.closing();
        self.follower.remove(&wallet);
        self.closing.lock().insert(name.clone(), event);
        // Waits for running work on the wallet without blocking loads of other wallets.
        wallet.feed.wait_quiet();
        wallet.store_place(&wallet.lock_writes());
        if let Some(hook) = self.on_unload.get() {
            hook(&wallet);
            self.shared.wake_backups();
        }
        Ok(self.set_load_on_startup(&name, load_on_startup).into_iter().collect())
    }

    /// Takes a wallet that could not be loaded at the start off the load list, if the call asks for that. Returns a warning.
    fn take_off_list(&self, name: &str, load_on_startup: Option<bool>) -> ServiceResult<Vec<String>> {
        let is_missing = || self.missing.lock().contains(name);
        if load_on_startup != Some(false) || !is_missing() {
            return Err(ErrorKind::WalletNotLoaded.into());
        }
        let _reserved = self.reserve_name(name)?;
        if !is_missing() {
            return Err(ErrorKind::WalletNotLoaded.into());
        }
        if let Some(failure) = self.set_load_on_startup(name, load_on_startup) {
            return Err(ServiceError::new(ErrorKind::Storage, failure));
        }
        self.missing.lock().remove(name);
        Ok(vec!["The wallet was not loaded. It is no longer on the list of wallets to load at the start.".to_owned()])
    }

    /// Waits until the wallet's previous LMDB environment is closed.
    pub(super) fn wait_closed(&self, name: &str, folder: &Path) -> ServiceResult<()> {
        let event = self.closing.lock().remove(name);
        if let Some(event) = event
            && !event.wait_timeout(CLOSING_PATIENCE)
        {
            self.closing.lock().insert(name.to_owned(), event);
            return Err(cannot_load(folder, "It is still in use by a running call."));
        }
        Ok(())
    }

    /// Changes the load list. If that fails, returns bitcoind's warning: the call succeeds, since the wallet is loaded or unloaded by now.
    fn set_load_on_startup(&self, name: &str, load: Option<bool>) -> Option<String> {
        let load = load?;
        let _list = self.list.lock();
        let error = files::set_load_on_startup(&self.dir, name, load).err()?;
        tracing::warn!(wallet = name, %error, "the list of wallets to load at start could not be changed");
        let outcome = if load { "may not be loaded" } else { "may still be loaded" };
        Some(format!("Wallet load on startup setting could not be updated, so wallet {outcome} next node startup."))
    }

    /// Fails if the process may not open the files of one more wallet, besides [`OTHER_FILES`]. `opened` wallets have open
    /// files but are not loaded yet.
    pub(super) fn check_files(&self, opened: usize) -> ServiceResult<()> {
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let wallets = (self.follower.count() + opened) as u64;
        let needed = open_files(wallets + 1);
        if needed > most {
            let detail = format!(
                "Wallet loading failed. The system lets this process open {most} files, of which {wallets} loaded wallets \
                 take {FILES_PER_WALLET} each. Raise the limit (ulimit -n, LimitNOFILE) to {needed} or more, or unload wallets."
            );
            return Err(ServiceError::new(ErrorKind::Refused, detail));
        }
        Ok(())
    }
}

/// How many open files a host with this many wallets may need.
pub fn open_files(wallets: u64) -> u64 {
    wallets.saturating_mul(FILES_PER_WALLET).saturating_add(OTHER_FILES)
}

fn is_of_bitcoind(mut file: fs::File) -> io::Result<bool> {
    let mut head = [0; SQLITE.len()];
    file.read_exact(&mut head)?;
    Ok(head == *SQLITE || BERKELEY.iter().any(|magic| head[12..] == *magic))
}

/// The error for a file that does not open. Bitcoind's message, if the file is not recognised.
fn not_opened(folder: &Path, error: WalletError) -> ServiceError {
    match error {
        WalletError::Store(StoreError::BadFile { fault: Fault::Foreign, .. }) => {
            cannot_load(folder, &WalletError::NotAWallet.to_string())
        }
        WalletError::NotAWallet | WalletError::Store(StoreError::OtherLayout { .. } | StoreError::BadFile { .. }) => {
            cannot_load(folder, &error.to_string())
        }
        other => other.into(),
    }
}

/// The error for a missing or unrecognised wallet.
fn cannot_load(folder: &Path, why: &str) -> ServiceError {
    let path = folder.display();
    let detail = format!("Wallet file verification failed. Failed to load database path '{path}'. {why}");
    ServiceError::new(ErrorKind::WalletNotLoaded, detail)
}
