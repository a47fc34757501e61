//! A wallet's LMDB environment.
//!
//! Every write transaction is synchronous: when a reply reports success, the change is on disk. Snapshots are not bound
//! to a thread. The map is reserved when the environment is opened and never resized, because resizing it during a
//! snapshot is undefined behaviour. The whole file is checked before it is opened.

mod rows;
mod tables;

use std::path::{Path, PathBuf};

pub use heed::EnvClosingEvent as Closing;
pub use heed::RoTxn as Reading;
pub use heed::RwTxn as Writing;
use heed::WithoutTls;

pub use rows::*;
pub use tables::*;

use super::error::{Result, WalletError};
use super::settings::Settings;
pub use outrigger_disk::{DATA_FILE, LOCK_FILE};
use outrigger_disk::{Environment, Opening};

/// The version of the layout that this code reads and writes.
pub const LAYOUT: u32 = 6;
/// The row whose first field is the layout's version, in every layout.
pub const LAYOUT_KEY: &[u8] = b"meta";

/// The granularity of a map's size, in bytes: the largest page size of a supported system.
const MAP_UNIT: usize = 64 << 10;
/// The minimum ratio of the map's size to the file's size at opening.
const ROOM: u64 = 4;

pub struct Store {
    pub env: Environment,
    pub tables: Tables,
}

pub type Snapshot = Reading<'static, WithoutTls>;

/// The size of the map for a file of this length, in bytes: room to grow fourfold.
fn map_size(least: usize, file: u64) -> usize {
    let wanted = usize::try_from(file.saturating_mul(ROOM)).unwrap_or(usize::MAX);
    least.max(wanted).checked_next_multiple_of(MAP_UNIT).unwrap_or(least)
}

fn opening(folder: &Path, settings: &Settings) -> Opening {
    let file = std::fs::metadata(folder.join(DATA_FILE)).map_or(0, |data| data.len());
    Opening {
        map_size: map_size(settings.least_map, file),
        max_readers: settings.max_readers,
        tables: u32::try_from(NAMES.len()).unwrap_or(u32::MAX),
        lazy: false,
    }
}

impl Store {
    /// Creates the tables in the existing folder `folder`, which must not contain a wallet. Sizes the map for a copy of
    /// the wallet in the folder `like`, if there is one.
    pub fn create(folder: &Path, like: &Path, settings: &Settings) -> Result<Self> {
        let env = Environment::open(folder, &opening(like, settings))?;
        let mut txn = env.write()?;
        let tables = Tables::create(&env, &mut txn)?;
        outrigger_disk::sign(tables.meta, &mut txn)?;
        txn.commit()?;
        Ok(Self { env, tables })
    }

    /// Checks the whole file in `folder` and opens its tables. Fails with [`WalletError::NotAWallet`] if a table is
    /// missing.
    pub fn open(folder: &Path, settings: &Settings) -> Result<Self> {
        outrigger_disk::check(folder, LAYOUT_KEY, &LAYOUT.to_le_bytes())?;
        let env = Environment::open(folder, &opening(folder, settings))?;
        let mut txn = env.write()?;
        for name in LATER {
            env.make_table(&mut txn, name)?;
        }
        let tables = Tables::open(&env, &txn)?.ok_or(WalletError::NotAWallet)?;
        // On commit, the table handles become the environment's.
        txn.commit()?;
        Ok(Self { env, tables })
    }

    pub fn read(&self) -> Result<Reading<'_, WithoutTls>> {
        Ok(self.env.read()?)
    }

    /// Begins a write transaction. Waits for the current one to end. Fails with
    /// [`StoreError::Damage`](outrigger_disk::StoreError) once a read has found damage.
    pub fn write(&self) -> Result<Writing<'_>> {
        Ok(self.env.write()?)
    }

    pub fn data_file(&self) -> PathBuf {
        self.env.folder().join(DATA_FILE)
    }

    /// How many pages of the file are unused.
    pub fn free_pages(&self) -> Result<u64> {
        let used = self.env.used()? / self.env.page_size();
        Ok(self.env.pages().saturating_sub(used))
    }
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
        assert_eq!(map_size(least, u64::MAX), least, "a map of four times the file would be too large");
    }
}
