//! Opens LMDB files. LMDB maps them into memory, where an I/O error kills the process with a signal, so this module
//! prepares a file before LMDB maps it.
//!
//! LMDB writes the reader table (`lock.mdb`) through its map, so its blocks are allocated first. It writes the data
//! with file I/O and only reads it through the map; the caller checks the data before it is opened ([`super::pages`]).

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use heed::types::Bytes;
use heed::{CompactionOption, Env, EnvClosingEvent, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};
use rustix::fs::{FallocateFlags, fallocate};

use super::damage::{Damage, OpenFile};
use super::error::StoreError;
use super::table::{Result, Table};

pub const DATA_FILE: &str = "data.mdb";
/// Holds the reader table.
pub const LOCK_FILE: &str = "lock.mdb";

/// The size of a slot in the reader table, in bytes.
const READER: u64 = 64;
/// An upper bound of the size of the table's header, in slots.
const TABLE_HEAD: u64 = 16;
/// The unit of allocation, in bytes.
const BLOCK: u64 = 4096;
/// How many copies are tried without blocking writes.
const FREE_COPIES: usize = 3;

#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The size of the map, in bytes. The data cannot grow beyond it.
    pub map_size: usize,
    /// The maximum number of open read transactions.
    pub max_readers: u32,
    /// The maximum number of tables (LMDB's named databases).
    pub tables: u32,
    /// Whether commits do not wait for the meta page to reach the disk (`MDB_NOMETASYNC`).
    pub lazy: bool,
}

/// An open LMDB environment. Clones share it.
#[derive(Clone)]
pub struct Environment {
    env: Env<WithoutTls>,
    file: Arc<OpenFile>,
}

/// Allocates the disk blocks of the reader table.
fn allocate_readers(folder: &Path, max_readers: u32) -> io::Result<()> {
    let size = ((u64::from(max_readers) + TABLE_HEAD) * READER).next_multiple_of(BLOCK);
    let path = folder.join(LOCK_FILE);
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, size) {
        Ok(()) => Ok(()),
        // The file system cannot preallocate, so writing zeros allocates the blocks.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => write_zeros(&mut file, size),
        Err(error) => Err(error.into()),
    }
}

/// Fills the file with zeros if it is shorter than `size`. LMDB initialises it when it opens it.
fn write_zeros(file: &mut File, size: u64) -> io::Result<()> {
    if file.metadata()?.len() >= size {
        return Ok(());
    }
    io::copy(&mut io::Read::take(io::repeat(0), size), file)?;
    file.flush()
}

#[expect(unsafe_code, reason = "opening a memory map is unsafe by nature; the library offers nothing else")]
fn map(folder: &Path, opening: &Opening) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(opening.map_size).max_readers(opening.max_readers).max_dbs(opening.tables);
    let flags = if opening.lazy { EnvFlags::NO_META_SYNC } else { EnvFlags::empty() };
    // SAFETY: the mapped file must change only through LMDB. The folder belongs to this program, the data directory's lock
    // excludes its other processes, LMDB's lock excludes other users of LMDB, and heed refuses to open a folder twice in
    // a process. With the flag, a power failure may lose the last commit, but the file stays consistent.
    unsafe { options.flags(flags).open(folder) }
}

impl Environment {
    /// Opens the environment in a folder, or creates it. The caller has checked the file.
    pub fn open(folder: &Path, opening: &Opening) -> Result<Self> {
        allocate_readers(folder, opening.max_readers).map_err(heed::Error::Io)?;
        let env = map(folder, opening).map_err(|error| StoreError::of_map(error, opening.map_size))?;
        // Readers of a dead process would prevent the reuse of old pages.
        env.clear_stale_readers()?;
        Ok(Self { env, file: Arc::new(OpenFile::enter(&folder.join(DATA_FILE))) })
    }

    pub fn table(&self, txn: &RoTxn<'_>, name: &'static str) -> Result<Option<Table>> {
        let rows = self.env.open_database::<Bytes, Bytes>(txn, Some(name))?;
        Ok(rows.map(|rows| Table::new(rows, name, self.file.number())))
    }

    /// Creates the table if it is missing.
    pub fn make_table(&self, txn: &mut RwTxn<'_>, name: &'static str) -> Result<Table> {
        Ok(Table::new(self.env.create_database(txn, Some(name))?, name, self.file.number()))
    }

    pub fn read(&self) -> Result<RoTxn<'_, WithoutTls>> {
        Ok(self.env.read_txn()?)
    }

    /// A read transaction that may move to another thread.
    pub fn snapshot(&self) -> Result<RoTxn<'static, WithoutTls>> {
        Ok(self.env.clone().static_read_txn()?)
    }

    /// Begins a write transaction; waits until the current one ends. Fails once the file is known to be damaged.
    pub fn write(&self) -> Result<RwTxn<'_>> {
        match self.damage() {
            Some(damage) => Err(damage.into()),
            None => Ok(self.env.write_txn()?),
        }
    }

    /// The first damage found in the file.
    pub fn damage(&self) -> Option<Damage> {
        self.file.damage()
    }

    /// Waits until all commits are on disk.
    pub fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    /// Copies the tables to an empty file, without free pages.
    pub fn copy_to(&self, file: &mut File) -> Result<()> {
        Ok(self.env.copy_to_file(file, CompactionOption::Enabled)?)
    }

    /// Copies the tables to an empty file, and returns the result of `read` on the copied state. Blocks writes only if the
    /// tables changed during each of the first copies.
    pub fn copy_with<T, E: From<StoreError>>(
        &self,
        file: &mut File,
        read: impl FnOnce(&RoTxn<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let mut copies = 0;
        loop {
            let waiting = (copies == FREE_COPIES).then(|| self.write()).transpose()?;
            let txn = self.read()?;
            file.set_len(0).and_then(|()| file.rewind()).map_err(StoreError::from)?;
            self.copy_to(file)?;
            // LMDB copies from another snapshot than `txn`; without a commit in between both are the same.
            if self.env.info().last_txn_id == txn.id() || waiting.is_some() {
                return read(&txn);
            }
            copies += 1;
        }
    }

    pub fn folder(&self) -> &Path {
        self.env.path()
    }

    /// The number of pages up to the last one ever written, including free ones.
    pub fn pages(&self) -> u64 {
        self.env.info().last_page_number as u64 + 1
    }

    /// In bytes.
    pub fn page_size(&self) -> u64 {
        u64::from(self.env.stat().page_size)
    }

    /// The size of all used pages, in bytes.
    pub fn used(&self) -> Result<u64> {
        Ok(self.env.non_free_pages_size()?)
    }

    /// An event to wait for the environment's close, which follows the end of its last clone and transaction.
    pub fn closing(&self) -> EnvClosingEvent {
        self.env.clone().prepare_for_closing()
    }
}
