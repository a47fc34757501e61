//! The chain's tables in LMDB, and how they are read and written.
//!
//! One environment holds all of them, so that one transaction sees or changes them together. Nothing here knows a
//! rule: what is written has been judged.
//!
//! A commit puts the pages of a change on the disk, and leaves to the system when the page that makes them the newest
//! follows: a kill loses nothing, a loss of power at most the last change, and the tables are whole in any case, since the
//! pages of the state before are not used again until the one after it is on the disk. [`Store::sync`] waits for the rest.

pub mod digests;
mod read;
pub mod rows;
mod write;

use std::path::Path;

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls};

use super::NodeError;
use super::params::Settings;

/// A read transaction, or a write transaction that is read.
pub type Reading<'a> = RoTxn<'a, WithoutTls>;

/// A table whose keys and values are bytes.
pub type Table = Database<Bytes, Bytes>;

/// The version of the tables' layout.
const LAYOUT: u32 = 1;
const TABLES: u32 = 9;

/// Keys of the table `meta`.
mod meta {
    pub const LAYOUT: &[u8] = b"layout";
    pub const GENESIS: &[u8] = b"genesis";
    pub const TIP: &[u8] = b"tip";
    pub const COINS: &[u8] = b"coins";
    pub const HEADERS: &[u8] = b"headers";
}

/// The open database.
#[derive(Clone)]
pub struct Store {
    env: Env<WithoutTls>,
    /// Block hash to [`rows::BlockRow`].
    index: Table,
    /// Height to block hash, of the best chain.
    best: Table,
    /// Block hash to the block's serialisation.
    blocks: Table,
    /// Block hash to the coins it spent, as the message of a list of `SpentOutputs`.
    undo: Table,
    /// Outpoint to coin, of the best chain.
    coins: Table,
    /// Transaction id to [`rows::TxRow`], of the best chain.
    transactions: Table,
    /// Height to digest ([`digests`]), of the best chain.
    digests: Table,
    /// The hashes of the blocks on which no other builds.
    leaves: Table,
    /// The tip and the counters.
    meta: Table,
    /// How often it was made sure that all is on the disk.
    #[cfg(test)]
    pub syncs: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Store {
    /// Opens the database in `dir`, making both where they do not exist.
    ///
    /// # Errors
    /// When the directory or the database cannot be made or opened.
    pub fn open(dir: &Path, settings: &Settings) -> Result<Self, NodeError> {
        std::fs::create_dir_all(dir).map_err(NodeError::Directory)?;
        let env = open_environment(dir, settings)?;
        // A process that died left its readers behind; they would keep old pages from being used again.
        env.clear_stale_readers()?;
        let mut txn = env.write_txn()?;
        let mut table = |name| env.create_database(&mut txn, Some(name));
        let store = Self {
            index: table("index")?,
            best: table("best")?,
            blocks: table("blocks")?,
            undo: table("undo")?,
            coins: table("coins")?,
            transactions: table("transactions")?,
            digests: table("digests")?,
            leaves: table("leaves")?,
            meta: table("meta")?,
            env: env.clone(),
            #[cfg(test)]
            syncs: std::sync::Arc::default(),
        };
        txn.commit()?;
        Ok(store)
    }

    /// A read transaction of its own, which can go to another thread.
    ///
    /// # Errors
    /// [`NodeError::TooManyReaders`], or a failure of the database.
    pub fn read(&self) -> Result<Reading<'static>, NodeError> {
        Ok(self.env.clone().static_read_txn()?)
    }

    /// Waits until all that was committed is on the disk.
    ///
    /// # Errors
    /// When the system cannot say so.
    pub fn sync(&self) -> Result<(), NodeError> {
        #[cfg(test)]
        self.syncs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(self.env.force_sync()?)
    }

    /// The bytes the database takes on disk: its pages, up to the last that was ever written. The file itself is not asked,
    /// since every call that wants the chain's name would pay for that.
    pub fn size_on_disk(&self) -> u64 {
        let pages = self.env.info().last_page_number as u64 + 1;
        pages * u64::from(self.env.stat().page_size)
    }
}

#[expect(unsafe_code, reason = "opening a memory map is unsafe by nature; the library offers nothing else")]
fn open_environment(dir: &Path, settings: &Settings) -> Result<Env<WithoutTls>, NodeError> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(settings.map_size).max_readers(settings.max_readers).max_dbs(TABLES);
    // SAFETY: the file is changed through LMDB only, which maps it read-only and guards it by its own lock file; a
    // second opening within the process is refused by the library. The one flag that is set may cost the last change at a
    // loss of power, and leaves the file whole.
    Ok(unsafe { options.flags(EnvFlags::NO_META_SYNC).open(dir) }?)
}
