//! The chain's tables in LMDB, and how they are read and written.
//!
//! One environment holds all of them, so that one transaction sees or changes them together. Nothing here knows a
//! rule: what is written has been validated.
//!
//! A commit puts the pages of a change on the disk, and leaves to the system when the page that makes them the newest
//! follows: a kill loses nothing, a loss of power at most the last change, and the tables are whole in any case, since the
//! pages of the state before are not used again until the one after it is on the disk. [`Store::sync`] waits for the rest.

mod checked;
pub mod digests;
mod read;
pub mod rows;
mod write;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use heed::{RoTxn, WithoutTls};

use super::EmbeddedError;
use super::params::Settings;
use checked::Checked;
pub use outrigger_disk::Table;
use outrigger_disk::pages::DataFile;
use outrigger_disk::{DATA_FILE, Damage, Environment, META, Opening};

/// A read transaction, or a write transaction that is read.
pub type Reading<'a> = RoTxn<'a, WithoutTls>;

/// The version of the tables' layout.
const LAYOUT: u64 = 2;

/// Where the number of the last change stands after a stop in order, beside the data.
const STOPPED_FILE: &str = "stopped";

/// Keys of the table `meta`.
mod meta {
    pub const LAYOUT: &[u8] = b"layout";
    pub const GENESIS: &[u8] = b"genesis";
    pub const TIP: &[u8] = b"tip";
    pub const COINS: &[u8] = b"coins";
    pub const HEADERS: &[u8] = b"headers";
}

#[derive(Clone)]
pub struct Store {
    env: Environment,
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
    /// The blocks that were held against their Merkle roots.
    checked: Arc<Checked>,
    /// How often it was made sure that all is on the disk.
    #[cfg(test)]
    pub syncs: Arc<std::sync::atomic::AtomicUsize>,
}

/// All tables.
const NAMES: &[&str] = &["index", "best", "blocks", "undo", "coins", "transactions", "digests", "leaves", META];

impl Store {
    /// Checks the database in `dir` and opens it, making both where they do not exist.
    ///
    /// # Errors
    /// When the directory or the database cannot be made or opened, is damaged, or of another layout.
    pub fn open(dir: &Path, settings: &Settings) -> Result<Self, EmbeddedError> {
        fs::create_dir_all(dir).map_err(EmbeddedError::Directory)?;
        let opening = Opening {
            map_size: settings.map_size,
            max_readers: settings.max_readers,
            tables: u32::try_from(NAMES.len()).unwrap_or(u32::MAX),
            lazy: true,
        };
        if dir.join(DATA_FILE).exists() {
            check(dir, settings)?;
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
            checked: Arc::default(),
            env: env.clone(),
            #[cfg(test)]
            syncs: Arc::default(),
        };
        // Handles of tables that a read transaction opened become the environment's own when it commits.
        txn.commit()?;
        Ok(store)
    }

    /// A read transaction of its own, which can go to another thread.
    ///
    /// # Errors
    /// [`EmbeddedError::TooManyReaders`], or a failure of the database.
    pub fn read(&self) -> Result<Reading<'static>, EmbeddedError> {
        Ok(self.env.snapshot()?)
    }

    /// Waits until all that was committed is on the disk.
    ///
    /// # Errors
    /// When the system cannot say so.
    pub fn sync(&self) -> Result<(), EmbeddedError> {
        #[cfg(test)]
        self.syncs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(self.env.sync()?)
    }

    /// The bytes the database takes on disk: its pages, up to the last that was ever written. The file itself is not asked,
    /// since every call that wants the chain's name would pay for that.
    pub fn size_on_disk(&self) -> u64 {
        self.env.pages() * self.env.page_size()
    }

    /// What was found in the file first that is not what was written; none while nothing was.
    pub fn damage(&self) -> Option<Damage> {
        self.env.damage()
    }

    /// Notes that the host stops in order: the next start need not check all of a large file.
    ///
    /// # Errors
    /// When the note cannot be written; then all is checked.
    pub fn stopped(&self, dir: &Path) -> Result<(), EmbeddedError> {
        self.sync()?;
        let change = self.read()?.id();
        fs::write(dir.join(STOPPED_FILE), change.to_string()).map_err(EmbeddedError::Directory)
    }
}

/// The last change before the host stopped in order; none where it did not. The note is taken away.
fn stopped_at(dir: &Path) -> Option<u64> {
    let note = dir.join(STOPPED_FILE);
    let change = fs::read_to_string(&note).ok()?.parse().ok()?;
    // What cannot be taken away says nothing: it would be there after a crash, too.
    fs::remove_file(note).ok().map(|()| change)
}

/// Checks the file before it is opened.
fn check(dir: &Path, settings: &Settings) -> Result<(), EmbeddedError> {
    let file = dir.join(DATA_FILE);
    let bad = |fault| EmbeddedError::BadFile { file: file.clone(), fault };
    outrigger_disk::finish(dir).map_err(EmbeddedError::Directory)?;
    let data = DataFile::open(&file).map_err(bad)?;
    let layout = |row: &[u8]| row.first_chunk().copied().map(u64::from_le_bytes);
    // What another version has changed about its files may look like damage to this one.
    let glance = outrigger_disk::glance(&data, meta::LAYOUT).map_err(bad)?;
    if let Some(found) = glance.sure_layout().and_then(layout).filter(|found| *found != LAYOUT) {
        return Err(EmbeddedError::OtherLayout { found, program: glance.program.unwrap_or_default() });
    }
    let in_order = stopped_at(dir) == Some(data.change());
    let whole = settings.verify || !in_order || data.size() <= settings.always_checked;
    let examined = if whole { outrigger_disk::examine(&data, meta::LAYOUT).map_err(bad)? } else { glance };
    if examined.layout.is_none() {
        return Err(EmbeddedError::WrongDatabase("it states no layout"));
    }
    examined.check().map_err(bad)
}
