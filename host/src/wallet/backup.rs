//! Backups: a copy of a live wallet in one file, and a wallet made from one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use outrigger_sdk::service::{ErrorKind, Result as ServiceResult, Scope, ServiceError};

use super::error::{Result, WalletError};
use super::live::Wallet;
use super::store::{DATA_FILE, LOCK_FILE};

/// What bitcoind says of a backup that cannot be written, whatever the reason.
const FAILED: &str = "Error: Wallet backup failed!";

/// Tells the unfinished files of backups apart that are written at the same time.
static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Wallet {
    /// Writes a copy of the wallet as it is now to `file` (backupwallet). The copy is made beside it and takes its place in
    /// one step, so that neither a failure nor a crash costs a former backup. The wallet goes on meanwhile.
    ///
    /// # Errors
    /// `Refused` when the file cannot be written, or is one that a wallet lives in; the reason is in the log.
    pub fn backup(&self, file: &Path) -> ServiceResult<()> {
        let (txn, t) = (self.store.read()?, self.store.tables);
        let before = t.changes(&txn)?;
        drop(txn);
        let now = self.shared.chain.time(Scope::NONE)?;
        self.write_copy(file).map_err(|error| {
            tracing::error!(wallet = self.name(), file = %file.display(), %error, "the backup failed");
            ServiceError::new(ErrorKind::Refused, FAILED)
        })?;
        Ok(self.write(|write| {
            // What came while the copy was made may not be in it.
            if write.t.changes(&write.txn)? == before {
                write.meta.backup_needed = false;
            }
            write.meta.last_backup = now;
            Ok(())
        })?)
    }

    fn write_copy(&self, file: &Path) -> Result<()> {
        let folder = match file.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => return Err(refused("it names no file")),
        };
        let name = file.file_name().ok_or_else(|| refused("it names no file"))?;
        if (name == DATA_FILE || name == LOCK_FILE) && folder.join(LOCK_FILE).exists() {
            return Err(refused("a wallet lives there"));
        }
        let unfinished = unfinished(folder, name);
        let written = self.write_unfinished(&unfinished).and_then(|()| Ok(fs::rename(&unfinished, file)?));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written?;
        Ok(File::open(folder)?.sync_all()?)
    }

    fn write_unfinished(&self, path: &Path) -> Result<()> {
        let mut file = create(path)?;
        self.store.copy_to(&mut file)?;
        Ok(file.sync_all()?)
    }
}

fn refused(why: &str) -> WalletError {
    io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()).into()
}

fn unfinished(folder: &Path, name: &std::ffi::OsStr) -> PathBuf {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut unfinished = name.to_owned();
    unfinished.push(format!(".{}-{number}.unfinished", std::process::id()));
    folder.join(unfinished)
}

/// Makes a file that only its owner can read: keys may be in it.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Puts a copy of a backup where a wallet's data stands. The folder exists and holds no wallet.
pub fn unpack(backup: &Path, folder: &Path) -> io::Result<()> {
    let mut to = create(&folder.join(DATA_FILE))?;
    io::copy(&mut File::open(backup)?, &mut to)?;
    to.sync_all()?;
    File::open(folder)?.sync_all()
}
