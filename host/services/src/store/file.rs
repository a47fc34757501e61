//! The file of a store.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use outrigger_disk::pages::{DataFile, Fault};
use outrigger_disk::{DATA_FILE, Environment, META, Opening, StorageError, StoreError, Table};
use outrigger_service::store::{
    Bounds, KeyRange, MAX_ANSWER, RowsWriter, StoreChange, StoreRows, answer_too_large, check_key, check_keys,
};
use outrigger_service::wire::{Blob, Encoded};
use outrigger_service::{ErrorKind, ServiceError};

/// The largest bound of a store (`max_store_mib`), in MiB.
pub const MAX_STORE_MIB: u32 = 32 << 10;

/// The address space reserved for a store: twice the largest bound, since a change writes new pages before it frees the old ones.
const MAP_SIZE: usize = (MAX_STORE_MIB as usize) << 21;

const MAX_READERS: u32 = 512;

const OPENING: Opening = Opening { map_size: MAP_SIZE, max_readers: MAX_READERS, tables: 2, lazy: true };

const ROWS: &str = "rows";
const LAYOUT_KEY: &[u8] = b"layout";
/// The version of the layout that this code reads and writes.
pub const LAYOUT: u32 = 1;
const VERSION_KEY: &[u8] = b"version";

#[derive(Debug, thiserror::Error)]
pub enum StoreFileError {
    #[error(transparent)]
    File(#[from] StoreError),
    #[error("{}", .0.detail)]
    Refused(#[from] ServiceError),
    /// The rows for a new store cannot be read.
    #[error("{0}")]
    Content(String),
}

impl From<StorageError> for StoreFileError {
    fn from(error: StorageError) -> Self {
        Self::File(error.into())
    }
}

impl From<std::io::Error> for StoreFileError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error.into())
    }
}

type Result<T> = std::result::Result<T, StoreFileError>;

pub struct StoreFile {
    env: Environment,
    rows: Table,
    meta: Table,
}

impl StoreFile {
    /// Checks the store in a folder and opens it. Creates both if they do not exist.
    pub fn open(folder: &Path) -> Result<Self> {
        if folder.join(DATA_FILE).exists() {
            outrigger_disk::check(folder, LAYOUT_KEY, &LAYOUT.to_le_bytes())?;
        } else {
            Self::create(folder, 0, |_| Ok(()))?;
        }
        let env = Environment::open(folder, &OPENING)?;
        let txn = env.read()?;
        let missing = |name| StoreError::BadFile {
            file: folder.join(DATA_FILE),
            fault: Fault::Row { table: "the list of tables".to_owned(), key: name },
        };
        let table = |name: &'static str| env.table(&txn, name)?.ok_or_else(|| missing(name.to_owned()));
        let (rows, meta) = (table(ROWS)?, table(META)?);
        // The commit keeps the table handles that this read transaction opened.
        txn.commit()?;
        Ok(Self { env, rows, meta })
    }

    /// Creates a store, or replaces an existing one. `fill` passes each row to its argument. A failure leaves the existing store.
    pub fn create(
        folder: &Path,
        version: u32,
        fill: impl FnOnce(&mut dyn FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        outrigger_disk::make(folder, &OPENING, |env, txn| {
            let rows = env.make_table(txn, ROWS)?;
            let meta = env.make_table(txn, META)?;
            outrigger_disk::sign(meta, txn)?;
            meta.put(txn, LAYOUT_KEY, &LAYOUT.to_le_bytes())?;
            meta.put(txn, VERSION_KEY, &version.to_le_bytes())?;
            fill(&mut |key, value| {
                check_key(key)?;
                Ok(rows.put(txn, key, value)?)
            })
        })
    }

    pub fn get(&self, keys: &[Blob]) -> Result<Vec<Option<Blob>>> {
        check_keys(keys)?;
        let txn = self.env.read()?;
        let mut values = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in keys {
            let value = self.rows.get(&txn, key)?;
            bytes += value.map_or(0, <[u8]>::len);
            if bytes > MAX_ANSWER {
                return Err(answer_too_large().into());
            }
            values.push(value.map(|value| Blob(value.to_vec())));
        }
        Ok(values)
    }

    pub fn range(&self, range: &KeyRange, limit: u32, reverse: bool) -> Result<Encoded<StoreRows>> {
        let mut answer = RowsWriter::new(limit);
        let Some(bounds) = range.bounds()? else { return Ok(answer.finish(false)) };
        let more = self.walk(bounds, reverse, |key, value| Ok(answer.push(key, value)))?;
        Ok(answer.finish(more))
    }

    /// Passes rows to `take` until it returns false. Returns whether it returned false.
    pub fn walk(
        &self,
        bounds: Bounds<'_>,
        reverse: bool,
        mut take: impl FnMut(&[u8], &[u8]) -> std::io::Result<bool>,
    ) -> Result<bool> {
        let txn = self.env.read()?;
        let mut until_false = |rows: &mut dyn Iterator<Item = _>| {
            for row in rows {
                let (key, value) = row?;
                if !take(key, value)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        match reverse {
            false => until_false(&mut self.rows.range(&txn, &bounds)?),
            true => until_false(&mut self.rows.rev_range(&txn, &bounds)?),
        }
    }

    /// Changes the store. `judge` gets its size in bytes before and after, and can refuse the change. No other change runs meanwhile.
    pub fn commit(
        &self,
        change: &StoreChange,
        judge: impl FnOnce(u64, u64) -> std::result::Result<(), ServiceError>,
    ) -> Result<()> {
        change.check()?;
        let mut txn = self.env.write()?;
        let before = self.bytes(&txn)?;
        for range in &change.deleted_ranges {
            if let Some(bounds) = range.bounds()? {
                self.rows.delete_range(&mut txn, &bounds)?;
            }
        }
        for key in &change.deletes {
            self.rows.delete(&mut txn, key)?;
        }
        for row in &change.puts {
            self.rows.put(&mut txn, &row.key, &row.value)?;
        }
        if let Some(version) = change.version {
            self.meta.put(&mut txn, VERSION_KEY, &version.to_le_bytes())?;
        }
        judge(before, self.bytes(&txn)?)?;
        txn.commit()?;
        if change.durable {
            self.env.sync()?;
        }
        Ok(())
    }

    /// The size of the rows' pages, in bytes.
    fn bytes(&self, txn: &outrigger_disk::Reading<'_>) -> Result<u64> {
        Ok(self.rows.pages(txn)? * self.env.page_size())
    }

    /// Copies the store to an empty file. Returns the number of rows of each table of the copy.
    pub fn copy_out(&self, to: &mut File) -> Result<StoreContents> {
        self.env.copy_with(to, |txn| {
            let rows = [(ROWS, self.rows.len(txn)?), (META, self.meta.len(txn)?)];
            Ok(rows.map(|(name, rows)| (name.to_owned(), rows)).into())
        })
    }

    pub fn usage(&self) -> Result<u64> {
        self.bytes(&*self.env.read()?)
    }

    pub fn version(&self) -> Result<u32> {
        let txn = self.env.read()?;
        let version = self.meta.get(&txn, VERSION_KEY)?.and_then(|bytes| bytes.try_into().ok());
        Ok(version.map_or(0, u32::from_le_bytes))
    }
}

/// The number of rows of each table.
pub type StoreContents = BTreeMap<String, u64>;

/// Checks each page and row of a store's file. Returns the number of rows of each table.
pub fn check_file(file: &File, path: &Path) -> Result<StoreContents> {
    let bad = |fault| StoreError::BadFile { file: path.to_owned(), fault };
    let data = DataFile::of(file.try_clone()?).map_err(bad)?;
    outrigger_disk::check_file(&data, path, LAYOUT_KEY, &LAYOUT.to_le_bytes())?;
    Ok(data.rows().map_err(bad)?)
}

impl From<StoreFileError> for ServiceError {
    fn from(error: StoreFileError) -> Self {
        match error {
            StoreFileError::Refused(error) => error,
            error => Self::new(ErrorKind::Storage, error.to_string()),
        }
    }
}
