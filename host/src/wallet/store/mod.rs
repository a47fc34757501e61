//! A wallet's LMDB environment.
//!
//! Every change is one write transaction, synchronous: what a reply calls done is on disk. Readers hold snapshots that
//! are not bound to a thread. The map is reserved whole when the environment is opened and never resized, for resizing
//! under a snapshot is undefined behaviour.

pub mod rows;
pub mod tables;

use std::path::Path;

use heed::{CompactionOption, Env, EnvClosingEvent, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};

pub use tables::Tables;

use super::Settings;
use super::error::{Result, WalletError};

/// The file that LMDB keeps in a wallet's folder; a folder that has it is a wallet's.
pub const DATA_FILE: &str = "data.mdb";
/// LMDB's table of readers beside it.
pub const LOCK_FILE: &str = "lock.mdb";
/// The version of the tables' layout that this code reads and writes.
pub const LAYOUT: u32 = 2;

/// LMDB's page, in bytes, on all systems this runs on.
const PAGE: u64 = 4096;

/// An open environment.
pub struct Store {
    env: Env<WithoutTls>,
    /// Its tables.
    pub tables: Tables,
}

/// A snapshot that outlives the borrow it came from.
pub type Snapshot = RoTxn<'static, WithoutTls>;

#[allow(unsafe_code)]
fn open_env(folder: &Path, settings: &Settings) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(settings.map_size).max_readers(settings.max_readers).max_dbs(tables::COUNT);
    // SAFETY: LMDB maps the file, so it is undefined behaviour to change it other than through LMDB. The folder is
    // the wallet's own, LMDB's lock file keeps other processes of this program in step, and heed refuses to open one
    // folder twice in this process.
    unsafe { options.open(folder) }
}

impl Store {
    /// Makes the tables in `folder`, which exists and is empty of a wallet.
    pub fn create(folder: &Path, settings: &Settings) -> Result<Self> {
        let env = open_env(folder, settings)?;
        let mut txn = env.write_txn()?;
        let tables = Tables::create(&env, &mut txn)?;
        txn.commit()?;
        Ok(Self { env, tables })
    }

    /// Opens the tables in `folder`.
    ///
    /// # Errors
    /// [`WalletError::NotAWallet`] when a table is missing, [`WalletError::OtherLayout`] when the layout is of another
    /// version.
    pub fn open(folder: &Path, settings: &Settings) -> Result<Self> {
        Self::with(open_env(folder, settings)?)
    }

    /// Opens the tables in `folder`, into which a copy was put: one that ends too soon is not read, since reading a map
    /// beyond its file ends the process.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_copy(folder: &Path, settings: &Settings) -> Result<Self> {
        let env = open_env(folder, settings)?;
        let pages = env.info().last_page_number as u64 + 1;
        if std::fs::metadata(folder.join(DATA_FILE))?.len() < pages.saturating_mul(PAGE) {
            return Err(WalletError::NotAWallet);
        }
        Self::with(env)
    }

    fn with(env: Env<WithoutTls>) -> Result<Self> {
        let txn = env.read_txn()?;
        match Tables::layout(&env, &txn).map_err(|_| WalletError::NotAWallet)? {
            None => return Err(WalletError::NotAWallet),
            Some(LAYOUT) => {}
            Some(found) => return Err(WalletError::OtherLayout { found }),
        }
        let txn = if Tables::lacks_later_ones(&env, &txn)? {
            txn.commit()?;
            let mut txn = env.write_txn()?;
            Tables::create_later_ones(&env, &mut txn)?;
            txn.commit()?;
            env.read_txn()?
        } else {
            txn
        };
        let tables = Tables::open(&env, &txn)?.ok_or(WalletError::NotAWallet)?;
        // Handles of tables that a read transaction opened become the environment's own when it commits.
        txn.commit()?;
        Ok(Self { env, tables })
    }

    /// A read transaction.
    pub fn read(&self) -> Result<RoTxn<'_, WithoutTls>> {
        Ok(self.env.read_txn()?)
    }

    /// A snapshot.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.env.clone().static_read_txn()?)
    }

    /// The write transaction. There is one at a time; this waits for the other's end.
    pub fn write(&self) -> Result<RwTxn<'_>> {
        Ok(self.env.write_txn()?)
    }

    /// Writes the tables as they are now to an empty file, without the pages that are not in use.
    pub fn copy_to(&self, file: &mut std::fs::File) -> Result<()> {
        Ok(self.env.copy_to_file(file, CompactionOption::Enabled)?)
    }

    /// How many pages of the file are not in use.
    pub fn free_pages(&self) -> Result<u64> {
        let used = self.env.non_free_pages_size()? / PAGE;
        Ok((self.env.info().last_page_number as u64 + 1).saturating_sub(used))
    }

    /// Signals when the environment has been closed, which is when the last snapshot has ended.
    pub fn closing(&self) -> EnvClosingEvent {
        self.env.clone().prepare_for_closing()
    }
}
