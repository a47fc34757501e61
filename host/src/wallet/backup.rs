//! Backups: a copy of a live wallet in one file, and a wallet made from one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use outrigger_sdk::service::{ErrorKind, Result as ServiceResult, Scope, ServiceError};

use super::error::{Result, WalletError};
use super::live::Wallet;
use super::store::DATA_FILE;
use crate::client_files::{Folders, UNFINISHED};

/// What bitcoind says of a backup that cannot be written, whatever the reason.
const FAILED: &str = "Error: Wallet backup failed!";

/// Where LMDB's first page says what it is: a magic number and the format's version, then the length of a page.
const MAGIC_AT: u64 = 16;
const MAGIC: [u8; 8] = [0xde, 0xc0, 0xef, 0xbe, 1, 0, 0, 0];
const PAGE_LEN_AT: u64 = 40;
/// Where each of the first two pages says where the names of the tables stand, and by which transaction.
const ROOT_AT: u64 = 128;
const TRANSACTION_AT: u64 = 144;
/// The longest page of LMDB, in bytes.
const MAX_PAGE: u64 = 64 << 10;
/// Tables that each wallet has had in all versions.
const TABLES: [&[u8]; 4] = [b"imported_pool", b"unconfirmed", b"arrivals", b"identities"];

impl Wallet {
    /// Writes a copy of the wallet as it is now to `file` (backupwallet), as the rule for clients' files has it: the copy
    /// takes its place in one step, so that neither a failure nor a crash costs a former backup. The wallet goes on
    /// meanwhile.
    ///
    /// # Errors
    /// `Refused` when the file may not or cannot be written; the reason is in the log.
    pub fn backup(&self, file: &Path, folders: &Folders) -> ServiceResult<()> {
        let (txn, t) = (self.store.read()?, self.store.tables);
        let before = t.changes(&txn)?;
        drop(txn);
        let now = self.shared.chain.time(Scope::NONE)?;
        let copy = |to: &mut File| self.store.copy_to(to);
        let written: Result<()> = self.shared.client_files.replace(file, folders, is_backup, copy);
        written.map_err(|error| {
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
}

/// Whether a file is a wallet's backup: LMDB's, with tables that only wallets have.
fn is_backup(file: &File) -> io::Result<bool> {
    match read_table_names(file) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
        Ok(names) => {
            Ok(names.is_some_and(|page| TABLES.iter().all(|name| page.windows(name.len()).any(|found| found == *name))))
        }
    }
}

/// The page that the names of the tables stand in; none where the file is not LMDB's.
fn read_table_names(file: &File) -> io::Result<Option<Vec<u8>>> {
    let number = |at: u64| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at).map(|()| u64::from_le_bytes(bytes))
    };
    if number(MAGIC_AT)? != u64::from_le_bytes(MAGIC) {
        return Ok(None);
    }
    let page = number(PAGE_LEN_AT)? & u64::from(u32::MAX);
    if !page.is_power_of_two() || !(ROOT_AT..=MAX_PAGE).contains(&page) {
        return Ok(None);
    }
    let newest = if number(page + TRANSACTION_AT)? > number(TRANSACTION_AT)? { page } else { 0 };
    let Some(at) = number(newest + ROOT_AT)?.checked_mul(page) else { return Ok(None) };
    let mut names = vec![0; usize::try_from(page).unwrap_or_default()];
    file.read_exact_at(&mut names, at)?;
    Ok(Some(names))
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
