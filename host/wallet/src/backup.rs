//! Backups: copying a live wallet to one file, and restoring a wallet from one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::contents::{WalletContents, check_file};
use super::error::{Result, WalletError};
use super::guarding::state_key;
use super::live::Wallet;
use super::store::{DATA_FILE, NAMES, Store};
use outrigger_base::client_files::{ClientFileError, Folders};
use outrigger_disk::StoreError;
use outrigger_disk::pages::{DataFile, Fault};

/// bitcoind's message for every failed backup. The system's reason, or the configuration's, is appended, if any.
const FAILED: &str = "Error: Wallet backup failed!";

impl Wallet {
    /// backupwallet: writes a copy of the wallet to `file`, within the rules for clients' files. The copy replaces
    /// `file` atomically, so neither a failure nor a crash loses a former backup. The wallet stays usable. Only the copy
    /// gets `states`, the states of the wallet's policies.
    ///
    /// Fails with `Refused` if the file may not or cannot be written, or if the wallet's own file is found damaged.
    /// Fails with `Storage` if the damage is already known. The log has the reason for every failure.
    pub fn backup(&self, file: &Path, folders: &Folders, states: &[(String, Blob)]) -> ServiceResult<()> {
        if let Some(damage) = self.store.env.damage() {
            return Err(WalletError::Store(damage.into()).into());
        }
        self.store_place(&self.lock_writes());
        let (txn, t) = (self.store.read()?, self.store.tables);
        let before = t.changes(&txn)?;
        drop(txn);
        let now = self.shared.node.time();
        // The copy is checked before it replaces an earlier backup.
        let copy = |to: &mut File| {
            self.copy_with(states, to)?;
            let to = &*to;
            std::thread::scope(|scope| {
                // The copy goes to the disk while it is checked. The sync of the finished file then finds little to write.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || to.sync_data());
                // LMDB copies pages unchecked.
                check_file(to, &self.store.data_file())
            })
        };
        let written: Result<()> = self.shared.client_files.replace(file, folders, is_backup, copy);
        written.map_err(|error| {
            tracing::error!(wallet = self.name(), file = %file.display(), %error, "the backup failed");
            let detail = match &error {
                WalletError::File(reason) | WalletError::ClientFile(ClientFileError::Io(reason))
                    if reason.raw_os_error().is_some() =>
                {
                    format!("{FAILED} {reason}")
                }
                WalletError::ClientFile(reason @ ClientFileError::NotAllowed) => {
                    format!("{FAILED} The file cannot be written: {reason}")
                }
                _ => FAILED.to_owned(),
            };
            ServiceError::new(ErrorKind::Refused, detail)
        })?;
        // The backup is complete, whether or not the wallet's own disk has room for the note.
        if let Err(error) = self.note_backup(before, now) {
            tracing::warn!(wallet = self.name(), %error, "cannot note that the wallet has a backup");
        }
        Ok(())
    }

    /// Copies the wallet to an empty file, with the states of its policies.
    fn copy_with(&self, states: &[(String, Blob)], to: &mut File) -> Result<()> {
        if states.is_empty() {
            return Ok(self.store.env.copy_to(to)?);
        }
        self.in_making(|folder| {
            self.store.env.copy_to(&mut new_data_file(folder)?)?;
            let copy = Store::open(folder, &self.shared.settings)?;
            let mut txn = copy.write()?;
            for (policy, state) in states {
                copy.tables.meta.put(&mut txn, &state_key(policy), state)?;
            }
            txn.commit()?;
            Ok(copy.env.copy_to(to)?)
        })
    }

    /// Records a backup, made at `time` (Unix seconds), that includes the first `changes` changes that require one.
    pub fn note_backup(&self, changes: u64, time: u64) -> ServiceResult<()> {
        // Works in a read-only wallet, too.
        Ok(self.write_in(&self.lock_writes(), |write| {
            if write.t.changes(write.reads())? == changes {
                write.meta.backup_needed = false;
            }
            write.meta.last_backup = time;
            Ok(())
        })?)
    }

    /// Copies the wallet to an empty file. Returns the contents that the copy must have.
    ///
    /// # Errors
    /// The file cannot be written, or the wallet's own file is damaged.
    pub fn copy_out(&self, to: &mut File) -> ServiceResult<WalletContents> {
        if let Some(damage) = self.store.env.damage() {
            return Err(WalletError::Store(damage.into()).into());
        }
        self.store_place(&self.lock_writes());
        Ok(self.store.env.copy_with(to, |txn| WalletContents::of(&self.store, txn))?)
    }

    /// Whether the last backup lacks keys, or there is none.
    pub fn needs_backup(&self) -> ServiceResult<bool> {
        let txn = self.store.read()?;
        Ok(self.store.tables.meta(&txn)?.backup_needed)
    }

    /// How many changes have required a backup, and the time of the last backup in Unix seconds; 0 if there is none.
    pub fn backed_up(&self) -> ServiceResult<(u64, u64)> {
        let txn = self.store.read()?;
        Ok((self.store.tables.changes(&txn)?, self.store.tables.meta(&txn)?.last_backup))
    }
}

/// Whether a file is an LMDB file, damaged or not.
pub fn is_database(file: &File) -> io::Result<bool> {
    match DataFile::of(file.try_clone()?) {
        Err(Fault::Unreadable(error)) => Err(error),
        Err(Fault::Empty | Fault::Foreign) => Ok(false),
        _ => Ok(true),
    }
}

/// Whether a file is a wallet's backup: an LMDB file with a wallet's tables.
fn is_backup(file: &File) -> io::Result<bool> {
    let has_tables = |data: DataFile| {
        let mut has = NAMES.iter().map(|name| data.has_table(name));
        has.try_fold(true, |all, has| Ok(all && has?))
    };
    match DataFile::of(file.try_clone()?).and_then(has_tables) {
        Err(Fault::Unreadable(error)) => Err(error),
        // A damaged file is not taken for a backup.
        Err(_) => Ok(false),
        Ok(has) => Ok(has),
    }
}

/// Copies the used pages of a backup to a wallet's data file. The folder exists and holds no wallet.
pub fn unpack(backup: File, folder: &Path) -> Result<()> {
    let bad = |fault| StoreError::BadFile { file: folder.join(DATA_FILE), fault };
    let used = DataFile::of(backup.try_clone()?).map_err(bad)?.used();
    outrigger_disk::make_by(folder, |making| {
        let mut to = new_data_file(making)?;
        io::copy(&mut backup.take(used), &mut to)?;
        Ok(to.sync_all()?)
    })
}

/// Readable only by its owner, since it may contain keys.
fn new_data_file(folder: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(DATA_FILE))
}
