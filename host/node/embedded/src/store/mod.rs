//! The chain's tables in LMDB.
//!
//! One environment holds all tables, so that one transaction reads or changes them together. Callers validate before
//! they write; this module checks no consensus rule.
//!
//! A commit writes the changed pages to disk. The operating system writes the meta page, which makes them current, later.
//! So a kill loses nothing, and a power loss at most the last commit. The tables stay consistent, since LMDB reuses the
//! pages of one state only after the next state is on disk. [`Store::sync`] waits for the meta page.

pub mod digests;
mod read;
pub mod rows;
mod write;

use std::fs;
use std::path::Path;

use heed::{RoTxn, WithoutTls};

use super::EmbeddedError;
use super::params::Settings;
pub use outrigger_disk::Table;
use outrigger_disk::pages::DataFile;
use outrigger_disk::{DATA_FILE, Damage, Environment, META, Opening, StoreError};

/// A read transaction, or a write transaction used for reading.
pub type Reading<'a> = RoTxn<'a, WithoutTls>;

pub const LAYOUT: u64 = 2;

/// Keys of the table `meta`.
mod meta {
    pub const LAYOUT: &[u8] = b"layout";
    pub const TIP: &[u8] = b"tip";
    pub const HEADERS: &[u8] = b"headers";
}

#[derive(Clone)]
pub struct Store {
    env: Environment,
    /// Block hash to [`rows::BlockEntry`].
    index: Table,
    /// Height to block hash, of the best chain.
    best: Table,
    /// Block hash to the block's serialisation.
    blocks: Table,
    /// Block hash to the coins that the block spent, as an encoded list of `SpentOutputs`.
    undo: Table,
    /// Outpoint to coin, of the best chain.
    coins: Table,
    /// Transaction id to [`rows::TxRow`], of the best chain.
    transactions: Table,
    /// Height to digest ([`digests`]), of the best chain.
    digests: Table,
    /// The hashes of the blocks without children.
    leaves: Table,
    /// The tip, and the height of the best header.
    meta: Table,
    #[cfg(test)]
    pub syncs: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

const NAMES: &[&str] = &["index", "best", "blocks", "undo", "coins", "transactions", "digests", "leaves", META];

impl Store {
    /// Checks the database in `dir`, if it exists, and changes nothing.
    pub fn check(dir: &Path) -> Result<(), EmbeddedError> {
        let file = dir.join(DATA_FILE);
        if !file.exists() {
            return Ok(());
        }
        let data = DataFile::open(&file).map_err(|fault| StoreError::BadFile { file: file.clone(), fault })?;
        Ok(outrigger_disk::check_file(&data, &file, meta::LAYOUT, &LAYOUT.to_le_bytes())?)
    }

    /// Checks the database in `dir` and opens it. Creates both if they do not exist.
    pub fn open(dir: &Path, settings: &Settings) -> Result<Self, EmbeddedError> {
        fs::create_dir_all(dir).map_err(EmbeddedError::Directory)?;
        let opening = Opening {
            map_size: settings.map_size,
            max_readers: settings.max_readers,
            tables: u32::try_from(NAMES.len()).unwrap_or(u32::MAX),
            lazy: true,
        };
        if dir.join(DATA_FILE).exists() {
            outrigger_disk::check(dir, meta::LAYOUT, &LAYOUT.to_le_bytes())?;
        } else {
            outrigger_disk::make(dir, &opening, |env, txn| {
                for name in NAMES {
                    env.make_table(txn, name)?;
                }
                let meta = env.make_table(txn, META)?;
                outrigger_disk::sign(meta, txn)?;
                meta.put(txn, meta::LAYOUT, &LAYOUT.to_le_bytes())?;
                Ok::<_, EmbeddedError>(())
            })?;
        }
        let env = Environment::open(dir, &opening)?;
        let txn = env.read()?;
        let table = |name| env.table(&txn, name)?.ok_or_else(|| EmbeddedError::corrupt("the list of tables", name));
        let store = Self {
            index: table("index")?,
            best: table("best")?,
            blocks: table("blocks")?,
            undo: table("undo")?,
            coins: table("coins")?,
            transactions: table("transactions")?,
            digests: table("digests")?,
            leaves: table("leaves")?,
            meta: table(META)?,
            env: env.clone(),
            #[cfg(test)]
            syncs: std::sync::Arc::default(),
        };
        // The commit keeps the table handles that this read transaction opened.
        txn.commit()?;
        Ok(store)
    }

    /// A read transaction that can move to another thread.
    pub fn read(&self) -> Result<Reading<'static>, EmbeddedError> {
        Ok(self.env.snapshot()?)
    }

    /// Waits until every commit is on disk.
    pub fn sync(&self) -> Result<(), EmbeddedError> {
        #[cfg(test)]
        self.syncs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(self.env.sync()?)
    }

    /// The size of the database on disk, in bytes, up to the last page ever written. Does not query the file system,
    /// since each getblockchaininfo calls this.
    pub fn size_on_disk(&self) -> u64 {
        self.env.pages() * self.env.page_size()
    }

    /// The first damage found in the file.
    pub fn damage(&self) -> Option<Damage> {
        self.env.damage()
    }
}
