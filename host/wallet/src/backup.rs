//! Backups: a copy of a live wallet in one file, and a wallet made from one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::error::{Result, WalletError};
use super::live::Wallet;
use super::store::{DATA_FILE, LAYOUT_KEY};
use outrigger_base::client_files::{ClientFileError, Folders, UNFINISHED};
use outrigger_disk::pages::{DataFile, Fault};

/// What bitcoind says of a backup that cannot be written, whatever the reason. Where the system gives one, it stands behind.
const FAILED: &str = "Error: Wallet backup failed!";

/// Tables that each wallet has had in all versions.
const TABLES: [&str; 4] = ["imported_pool", "unconfirmed", "arrivals", "identities"];

impl Wallet {
    /// Writes a copy of the wallet as it is now to `file` (backupwallet), as the rule for clients' files has it: the copy
    /// takes its place in one step, so that neither a failure nor a crash costs a former backup. The wallet goes on
    /// meanwhile.
    ///
    /// # Errors
    /// `Refused` when the file may not or cannot be written, and when the wallet's own file is damaged; where the
    /// system failed with its reason, which is in the log in any case.
    /// `Storage` where the damage is known already.
    pub fn backup(&self, file: &Path, folders: &Folders) -> ServiceResult<()> {
        if let Some(damage) = self.store.damage() {
            return Err(WalletError::Damage(damage).into());
        }
        let (txn, t) = (self.store.read()?, self.store.tables);
        let before = t.changes(&txn)?;
        drop(txn);
        let now = self.shared.node.time();
        // A former backup is given up for nothing that is not whole.
        let copy = |to: &mut File| self.store.copy_to(to).and_then(|()| check_copy(to, &self.store.data_file()));
        let written: Result<()> = self.shared.client_files.replace(file, folders, is_backup, copy);
        written.map_err(|error| {
            tracing::error!(wallet = self.name(), file = %file.display(), %error, "the backup failed");
            let detail = match &error {
                WalletError::File(reason) | WalletError::ClientFile(ClientFileError::Io(reason))
                    if reason.raw_os_error().is_some() =>
                {
                    format!("{FAILED} {reason}")
                }
                _ => FAILED.to_owned(),
            };
            ServiceError::new(ErrorKind::Refused, detail)
        })?;
        // Also in a wallet that is read-only.
        Ok(self.write_in(&self.lock_writes(), |write| {
            // What came while the copy was made may not be in it.
            if write.t.changes(write.reads())? == before {
                write.meta.backup_needed = false;
            }
            write.meta.last_backup = now;
            Ok(())
        })?)
    }
}

/// Whether a file is one of LMDB's, damaged or not.
pub fn is_database(file: &File) -> io::Result<bool> {
    match DataFile::of(file.try_clone()?) {
        Err(Fault::Unreadable(error)) => Err(error),
        Err(Fault::Empty | Fault::Foreign) => Ok(false),
        _ => Ok(true),
    }
}

/// Whether a file is a wallet's backup: LMDB's, with tables that only wallets have.
fn is_backup(file: &File) -> io::Result<bool> {
    let has_tables = |data: DataFile| {
        let mut has = TABLES.iter().map(|name| data.has_table(name));
        has.try_fold(true, |all, has| Ok(all && has?))
    };
    match DataFile::of(file.try_clone()?).and_then(has_tables) {
        Err(Fault::Unreadable(error)) => Err(error),
        // What is damaged there is no backup either.
        Err(_) => Ok(false),
        Ok(has) => Ok(has),
    }
}

/// Checks each page and row of a copy: LMDB copies pages as they are.
fn check_copy(copy: &File, of: &Path) -> Result<()> {
    let check = |copy: &File| outrigger_disk::examine(&DataFile::of(copy.try_clone()?)?, LAYOUT_KEY)?.check();
    check(copy).map_err(|fault| WalletError::BadFile { file: of.to_owned(), fault })
}

/// Puts a copy of a backup where a wallet's data stands. The folder exists and holds no wallet. What a kill leaves is no
/// wallet, and is removed at the next start.
pub fn unpack(mut backup: File, folder: &Path) -> Result<()> {
    let unfinished = folder.join(format!("{DATA_FILE}{UNFINISHED}"));
    // Only its owner can read it: keys may be in it.
    let mut to = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    io::copy(&mut backup, &mut to)?;
    to.sync_all()?;
    fs::rename(&unfinished, folder.join(DATA_FILE))?;
    File::open(folder)?.sync_all().map_err(WalletError::from)
}
