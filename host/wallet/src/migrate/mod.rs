//! A wallet of keys and scripts (made with `descriptors=false`) becomes one of descriptors (migratewallet).
//!
//! What it only watches, and what it could only help to spend, becomes two other wallets. These are made first, each whole. Then
//! one write changes the wallet itself: its commit is the moment at which it has been migrated. A note beside the wallets
//! says which wallets are made for which; whoever finds it after a kill removes these, unless that commit was made.

mod apply;
pub mod journal;
mod plan;
mod side;

use std::path::{Path, PathBuf};

use outrigger_service::wallet::{CreateOptions, Migration, Synced, WalletKind};
use outrigger_service::wire::Secret;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::encrypt::EncryptionKey;
use super::error::Result;
use super::files;
use super::live::{Lock, Wallet};
use super::loading::{CLOSING_PATIENCE, recognised};
use super::manager::WalletManager;
use super::store::{DATA_FILE, Store};
use journal::Journal;
use plan::{Plan, Planner};
use side::{Contents, Source, divide};

/// What is added to the name of a wallet for the two others.
const SIDES: [&str; 2] = ["_watchonly", "_solvables"];
/// What stands for the empty name in the names of files and wallets.
const DEFAULT_WALLET: &str = "default_wallet";

/// How many backups of a wallet there can be of one second.
const MAX_BACKUPS_A_SECOND: u32 = 100;

/// bitcoind's words.
const ALREADY: &str = "Error: This wallet is already a descriptor wallet";
const NO_BACKUP: &str = "Error: Unable to make a backup of your wallet";
const IN_USE: &str = "Unable to unload the wallet before migrating";

fn refused(detail: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorKind::Refused, detail.into())
}

impl WalletManager {
    /// Makes a wallet, loaded or not, one of descriptors, and loads it and those that are made beside it.
    ///
    /// # Errors
    /// `NotFound` where there is no such wallet; `PassphraseIncorrect`, also for an encrypted wallet without one; `Refused`
    /// with bitcoind's words; `WalletRescanning`; `Storage`. The wallet is then what it was.
    pub fn migrate(&self, name: &str, passphrase: &Secret) -> ServiceResult<Migration> {
        let folder = files::folder(&self.dir, name)?;
        let sides = SIDES.map(|side| format!("{}{side}", if name.is_empty() { DEFAULT_WALLET } else { name }));
        let _reserved = self.reserve_name(name)?;
        let _one_at_a_time = self.migrating.lock();
        let was_loaded = self.unload_to_migrate(name, &folder)?;
        let migrated = self.migrate_unloaded(name, &folder, &sides, passphrase);
        let (sides, backup) = migrated.inspect_err(|_| {
            if was_loaded && let Err(error) = self.load_reserved(name.to_owned(), None) {
                tracing::error!(wallet = name, %error, "the wallet that was not migrated could not be loaded again");
            }
        })?;
        self.load_reserved(name.to_owned(), None)?;
        for side in sides.iter().flatten() {
            match self.load(side.clone(), None) {
                // Another call was quicker.
                Err(error) if error.kind == ErrorKind::WalletAlreadyLoaded => {}
                loaded => drop(loaded?),
            }
        }
        let [watch_only, solvables] = sides;
        Ok(Migration { wallet: name.to_owned(), watch_only, solvables, backup: backup.display().to_string() })
    }

    /// Unloads a wallet of a reserved name, if it is one to migrate. Whether it was loaded.
    fn unload_to_migrate(&self, name: &str, folder: &Path) -> ServiceResult<bool> {
        let Some(wallet) = self.follower.named(name) else {
            if !folder.exists() {
                return Err(ServiceError::new(ErrorKind::NotFound, "Error: Wallet does not exist"));
            }
            return if folder.join(DATA_FILE).is_file() { Ok(false) } else { Err(refused(ALREADY)) };
        };
        if !is_legacy(&wallet.store)? {
            return Err(refused(ALREADY));
        }
        if let Some(reason) = wallet.read_only() {
            return Err(refused(reason));
        }
        self.unload_reserved(&wallet, None)?;
        drop(wallet);
        self.wait_closed(name, folder).map_err(|_| refused(IN_USE))?;
        Ok(true)
    }

    /// Migrates a wallet that is not loaded. Gives the names of the wallets that were made beside it, and its backup.
    fn migrate_unloaded(
        &self,
        name: &str,
        folder: &Path,
        sides: &[String; 2],
        passphrase: &Secret,
    ) -> ServiceResult<([Option<String>; 2], PathBuf)> {
        self.wait_closed(name, folder)?;
        self.recover_migration()?;
        let store = recognised(Store::open(folder, &self.shared.settings), folder)?;
        if !is_legacy(&store)? {
            return Err(refused(ALREADY));
        }
        let closing = store.closing();
        let wallet = Wallet::of_chain(name.to_owned(), store, self.shared.clone());
        let wallet = wallet.map_err(|error| refused(format!("Wallet loading failed. {error}")))?;
        let key = wallet.key_by(passphrase)?;
        let backup = write_backup(&wallet, folder)?;
        let migrated = self.divide_wallet(&wallet, sides, &key);
        self.follower.remove(&wallet);
        drop(wallet);
        closing.wait_timeout(CLOSING_PATIENCE);
        // Takes away what a failure has left, and enters the new wallets among those that are loaded at start.
        let settled = self.recover_migration();
        let made = migrated?;
        settled?;
        Ok((made, backup))
    }

    fn recover_migration(&self) -> Result<()> {
        let mut list = self.list.lock();
        // It is read again after the change.
        *list = None;
        journal::recover(&self.dir)
    }

    /// Makes the other wallets, and changes this one.
    fn divide_wallet(
        &self,
        wallet: &Wallet,
        names: &[String; 2],
        key: &EncryptionKey,
    ) -> ServiceResult<[Option<String>; 2]> {
        let (t, txn) = (wallet.store.tables, wallet.store.snapshot()?);
        let meta = t.meta(&txn)?;
        let planner = Planner {
            t: &t,
            txn: &txn,
            network: self.shared.network,
            encryption_key: key,
            private_keys_enabled: meta.private_keys_enabled,
        };
        let plan: Plan = planner.plan()?;
        let source = Source { t: &t, txn: &txn };
        let (moved, contents) = divide(&source, &plan)?;
        let mut made = [None, None];
        for ((made, name), contents) in made.iter_mut().zip(names).zip(&contents) {
            *made = (!contents.is_empty()).then(|| name.clone());
        }
        let _reserved = made.iter().flatten().map(|name| self.reserve_name(name)).collect::<ServiceResult<Vec<_>>>()?;
        for name in made.iter().flatten() {
            self.check_free(name)?;
        }
        Journal::of(wallet.name(), made.iter().flatten()).begin(&self.dir)?;
        for (name, contents) in made.iter().zip(&contents) {
            if let Some(name) = name {
                self.make_side(name, meta.avoid_reuse, &source, contents)?;
            }
        }
        drop(txn);
        wallet.write(|write| write.become_descriptors(&plan, &moved, key))?;
        tracing::info!(wallet = wallet.name(), "the wallet is one of descriptors now");
        Ok(made)
    }

    /// Whether a wallet can be made.
    fn check_free(&self, name: &str) -> ServiceResult<()> {
        let folder = files::folder(&self.dir, name)?;
        if folder.join(DATA_FILE).exists() || self.follower.named(name).is_some() {
            let what = "Wallet file creation failed: Failed to create database path";
            let path = self.dir.join(name);
            return Err(refused(format!("{what} '{}'. Database already exists.", path.display())));
        }
        self.check_files(0)
    }

    /// Makes a wallet of what is moved to it. It stands where the migrated one does.
    fn make_side(&self, name: &str, avoid_reuse: bool, source: &Source<'_>, contents: &Contents<'_>) -> Result<()> {
        let folder = files::make_folder(&self.dir, name)?;
        let options = CreateOptions {
            name: name.to_owned(),
            disable_private_keys: true,
            blank: true,
            passphrase: Secret::default(),
            avoid_reuse,
            descriptors: Some(true),
            load_on_startup: None,
        };
        let synced: Synced = source.t.synced(source.txn)?;
        self.make_file(&folder, |store| {
            let key = EncryptionKey::random();
            let wallet = Wallet::without_keys(&options, synced, &key, store, self.shared.clone())?;
            wallet.write(|write| {
                for entry in source.t.blocks.iter(source.txn)? {
                    let (height, block) = entry?;
                    write.t.blocks.put(&mut write.txn, height, block)?;
                }
                write.take_over(source, contents, &key)
            })?;
            Ok(wallet)
        })
    }
}

impl Wallet {
    /// What opens its private entries: by the passphrase where it is encrypted.
    fn key_by(&self, passphrase: &Secret) -> ServiceResult<EncryptionKey> {
        match &*self.lock.lock() {
            Lock::Plain(key) => return Ok(key.clone()),
            Lock::Locked | Lock::Unlocked { .. } => {}
        }
        if passphrase.expose().is_empty() {
            return Err(ErrorKind::PassphraseIncorrect.into());
        }
        self.recover(passphrase)
    }
}

fn is_legacy(store: &Store) -> Result<bool> {
    Ok(store.tables.meta(&*store.read()?)?.kind == WalletKind::Legacy as u8)
}

/// Copies the wallet as it is to a new file of its own folder. Gives the file.
fn write_backup(wallet: &Wallet, folder: &Path) -> ServiceResult<PathBuf> {
    let prefix = Path::new(wallet.name()).file_name().map_or(DEFAULT_WALLET.into(), |name| name.to_string_lossy());
    let prefix = format!("{prefix}_{}", wallet.shared.node.time());
    // The node's clock may stand.
    let names = (1..=MAX_BACKUPS_A_SECOND).map(|number| match number {
        1 => format!("{prefix}.legacy.bak"),
        number => format!("{prefix}-{number}.legacy.bak"),
    });
    let file = names.map(|name| folder.join(name)).find(|file| !file.exists());
    let file = file.ok_or_else(|| refused(NO_BACKUP))?;
    wallet.copy_to_own_folder(&file).map_err(|error| {
        tracing::error!(wallet = wallet.name(), file = %file.display(), %error, "the backup before the migration failed");
        refused(NO_BACKUP)
    })?;
    Ok(file)
}
