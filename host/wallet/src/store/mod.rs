//! A wallet's LMDB environment.
//!
//! Every change is one write transaction, synchronous: what a reply calls done is on disk. Readers hold snapshots that
//! are not bound to a thread. The map is reserved whole when the environment is opened and never resized, for resizing
//! under a snapshot is undefined behaviour. Before it is opened, all of the file is checked.

pub mod rows;
pub mod tables;

use std::path::{Path, PathBuf};

pub use heed::EnvClosingEvent as Closing;
pub use heed::RoTxn as Reading;
pub use heed::RwTxn as Writing;
use heed::types::Bytes;
use heed::{RoRange, WithoutTls};

pub use tables::Tables;

use super::error::{Result, WalletError};
use super::settings::Settings;
pub use crate::layout::LAYOUT;
use outrigger_disk::pages::DataFile;
pub use outrigger_disk::{DATA_FILE, LOCK_FILE};
use outrigger_disk::{Damage, Environment, Examined, Opening};

/// Where the layout stands: the first field of the wallet's own row, in all layouts.
pub const LAYOUT_KEY: &[u8] = b"meta";

/// What a map's size is a multiple of, in bytes: the longest page of a system.
const MAP_UNIT: usize = 64 << 10;
/// How many times its file's size a wallet's map has at least when it is opened.
const ROOM: u64 = 4;

/// An open environment.
pub struct Store {
    env: Environment,
    pub tables: Tables,
}

/// A snapshot that outlives the borrow it came from.
pub type Snapshot = Reading<'static, WithoutTls>;

/// A part of a table, from its first row on.
pub type RangeRows<'t> = outrigger_disk::Rows<RoRange<'t, Bytes, Bytes>>;

/// The address space for a wallet whose file is this long, in bytes: room to grow to four times the size.
fn map_size(least: usize, file: u64) -> usize {
    let wanted = usize::try_from(file.saturating_mul(ROOM)).unwrap_or(usize::MAX);
    least.max(wanted).checked_next_multiple_of(MAP_UNIT).unwrap_or(least)
}

/// How the environment of a wallet in `folder` is opened.
fn opening(folder: &Path, settings: &Settings) -> Opening {
    let file = std::fs::metadata(folder.join(DATA_FILE)).map_or(0, |data| data.len());
    Opening {
        map_size: map_size(settings.least_map, file),
        max_readers: settings.max_readers,
        tables: u32::try_from(tables::NAMES.len()).unwrap_or(u32::MAX),
        lazy: false,
    }
}

impl Store {
    /// Makes the tables in `folder`, which exists and is empty of a wallet.
    pub fn create(folder: &Path, settings: &Settings) -> Result<Self> {
        let env = Environment::open(folder, &opening(folder, settings))?;
        let mut txn = env.write()?;
        let tables = Tables::create(&env, &mut txn)?;
        outrigger_disk::sign(tables.meta, &mut txn)?;
        txn.commit()?;
        Ok(Self { env, tables })
    }

    /// Checks all of the file in `folder`, and opens its tables.
    ///
    /// # Errors
    /// [`WalletError::BadFile`] when the file is damaged, [`WalletError::NotAWallet`] when a table is missing,
    /// [`WalletError::OtherLayout`] when the layout is of another version.
    pub fn open(folder: &Path, settings: &Settings) -> Result<Self> {
        let file = folder.join(DATA_FILE);
        let bad = |fault| WalletError::BadFile { file: file.clone(), fault };
        outrigger_disk::finish(folder)?;
        let data = DataFile::open(&file).map_err(bad)?;
        // What another version has changed about its files may look like damage to this one.
        let glance = outrigger_disk::glance(&data, LAYOUT_KEY).map_err(bad)?;
        if let Some(found) = glance.sure_layout().and_then(layout).filter(|found| *found != LAYOUT) {
            return Err(WalletError::OtherLayout { found, program: glance.program.unwrap_or_default() });
        }
        outrigger_disk::examine(&data, LAYOUT_KEY).and_then(Examined::check).map_err(bad)?;
        drop(data);
        let env = Environment::open(folder, &opening(folder, settings))?;
        let txn = env.read()?;
        let tables = Tables::open(&env, &txn)?.ok_or(WalletError::NotAWallet)?;
        // Handles of tables that a read transaction opened become the environment's own when it commits.
        txn.commit()?;
        Ok(Self { env, tables })
    }

    /// A read transaction.
    pub fn read(&self) -> Result<Reading<'_, WithoutTls>> {
        Ok(self.env.read()?)
    }

    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.env.snapshot()?)
    }

    /// The write transaction. There is one at a time; this waits for the other's end.
    ///
    /// # Errors
    /// [`WalletError::Damage`] when something was read that is not what was written; a failure of the storage.
    pub fn write(&self) -> Result<Writing<'_>> {
        Ok(self.env.write()?)
    }

    /// What was found in the file first that is not what was written; none while nothing was.
    pub fn damage(&self) -> Option<Damage> {
        self.env.damage()
    }

    /// Writes the tables as they are now to an empty file, without the pages that are not in use.
    pub fn copy_to(&self, file: &mut std::fs::File) -> Result<()> {
        Ok(self.env.copy_to(file)?)
    }

    /// The folder that the file lies in.
    pub fn folder(&self) -> &Path {
        self.env.folder()
    }

    /// The file that the tables stand in.
    pub fn data_file(&self) -> PathBuf {
        self.env.folder().join(DATA_FILE)
    }

    /// How many pages the file has, in use or not.
    pub fn pages(&self) -> u64 {
        self.env.pages()
    }

    /// How many pages of the file are not in use.
    pub fn free_pages(&self) -> Result<u64> {
        let used = self.env.used()? / self.env.page_size();
        Ok(self.env.pages().saturating_sub(used))
    }

    /// Signals when the environment has been closed, which is when the last snapshot has ended.
    pub fn closing(&self) -> Closing {
        self.env.closing()
    }
}

/// The layout that the wallet's own row states.
fn layout(row: &[u8]) -> Option<u32> {
    row.first_chunk().copied().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_the_least_size_or_four_times_that_of_its_file() {
        let least = Settings::default().least_map;
        assert_eq!(least, 4 << 30);
        assert_eq!((map_size(least, 0), map_size(least, 1 << 30)), (least, least));
        assert_eq!((map_size(least, (1 << 30) + 4096), map_size(least, 3 << 30)), (least + MAP_UNIT, 12 << 30));
        assert_eq!(map_size(least, u64::MAX), least, "what cannot be mapped is not asked for");
    }
}
