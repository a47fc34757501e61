//! Opens LMDB's files, which are memory maps: an I/O error there ends the process by a signal, so files are prepared before.
//!
//! The table of readers (`lock.mdb`) is written through its map, so its blocks are allocated before it is mapped. The data is
//! written with file I/O and only read through its map: the caller checks it before it is opened ([`super::pages`]).

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use heed::types::Bytes;
use heed::{CompactionOption, Env, EnvClosingEvent, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};
use rustix::fs::{FallocateFlags, fallocate};

use super::damage::{Damage, OpenFile};
use super::table::{Result, Table};

/// The data file in a folder of LMDB.
pub const DATA_FILE: &str = "data.mdb";
/// The lock file beside it, which holds the table of readers.
pub const LOCK_FILE: &str = "lock.mdb";

/// The size of a slot in the table of readers, in bytes.
const READER: u64 = 64;
/// More than the size of the table's header, in slots.
const TABLE_HEAD: u64 = 16;
/// The unit of allocation, in bytes.
const BLOCK: u64 = 4096;

/// How an environment is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The size of the map, in bytes: the most that the data can ever take.
    pub map_size: usize,
    /// The most read transactions that can be open at a time.
    pub max_readers: u32,
    /// The most tables (LMDB's named databases).
    pub tables: u32,
    /// Whether commits do not wait for the meta page to reach the disk (`MDB_NOMETASYNC`).
    pub lazy: bool,
}

/// An open environment. Clones share it.
#[derive(Clone)]
pub struct Environment {
    env: Env<WithoutTls>,
    file: Arc<OpenFile>,
}

/// Allocates the disk blocks of the table of readers.
fn allocate_readers(folder: &Path, max_readers: u32) -> io::Result<()> {
    let size = ((u64::from(max_readers) + TABLE_HEAD) * READER).next_multiple_of(BLOCK);
    let path = folder.join(LOCK_FILE);
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, size) {
        Ok(()) => Ok(()),
        // The file system cannot preallocate: blocks that are written are allocated.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => write_zeros(&mut file, size),
        Err(error) => Err(error.into()),
    }
}

/// Fills the file with zeros; LMDB initialises it again when it is opened.
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
    // SAFETY: LMDB maps the file, so it must not change other than through LMDB. The folder is the program's own, the data
    // directory's lock keeps other processes of it away, LMDB's own lock others that use LMDB, and the library refuses to
    // open one folder twice in a process. The flag may cost the last commit at a loss of power, and leaves the file whole.
    unsafe { options.flags(flags).open(folder) }
}

impl Environment {
    /// Opens the environment in a folder, or makes it if there is none. The caller has checked the file.
    ///
    /// # Errors
    /// When the disk has no room for it, or the system or LMDB refuses it.
    pub fn open(folder: &Path, opening: &Opening) -> Result<Self> {
        allocate_readers(folder, opening.max_readers).map_err(heed::Error::Io)?;
        let env = map(folder, opening)?;
        // A process that died left its readers behind; they would keep old pages from reuse.
        env.clear_stale_readers()?;
        Ok(Self { env, file: Arc::new(OpenFile::enter(&folder.join(DATA_FILE))) })
    }

    /// The table of this name, if there is one.
    ///
    /// # Errors
    /// When LMDB fails.
    pub fn table(&self, txn: &RoTxn<'_>, name: &'static str) -> Result<Option<Table>> {
        let rows = self.env.open_database::<Bytes, Bytes>(txn, Some(name))?;
        Ok(rows.map(|rows| Table::new(rows, name, self.file.number())))
    }

    /// The table of this name, made if it is missing.
    ///
    /// # Errors
    /// When LMDB fails, or the disk is full.
    pub fn make_table(&self, txn: &mut RwTxn<'_>, name: &'static str) -> Result<Table> {
        Ok(Table::new(self.env.create_database(txn, Some(name))?, name, self.file.number()))
    }

    /// A read transaction.
    ///
    /// # Errors
    /// When LMDB fails, or too many are open.
    pub fn read(&self) -> Result<RoTxn<'_, WithoutTls>> {
        Ok(self.env.read_txn()?)
    }

    /// A read transaction that can move to another thread.
    ///
    /// # Errors
    /// As [`Environment::read`].
    pub fn snapshot(&self) -> Result<RoTxn<'static, WithoutTls>> {
        Ok(self.env.clone().static_read_txn()?)
    }

    /// The write transaction. There is one at a time: this blocks until the other has ended.
    ///
    /// # Errors
    /// When the file was found to be damaged; when LMDB fails.
    pub fn write(&self) -> Result<RwTxn<'_>> {
        match self.damage() {
            Some(damage) => Err(damage.into()),
            None => Ok(self.env.write_txn()?),
        }
    }

    /// The damage that was found in the file first, if any.
    pub fn damage(&self) -> Option<Damage> {
        self.file.damage()
    }

    /// Waits until all commits are on the disk.
    ///
    /// # Errors
    /// When the system reports a failure.
    pub fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    /// Writes the tables as they are now to an empty file, without free pages.
    ///
    /// # Errors
    /// When LMDB or the disk fails.
    pub fn copy_to(&self, file: &mut File) -> Result<()> {
        Ok(self.env.copy_to_file(file, CompactionOption::Enabled)?)
    }

    /// The environment's folder.
    pub fn folder(&self) -> &Path {
        self.env.path()
    }

    /// The number of pages up to the last that was ever written, free ones included.
    pub fn pages(&self) -> u64 {
        self.env.info().last_page_number as u64 + 1
    }

    /// The size of a page, in bytes.
    pub fn page_size(&self) -> u64 {
        u64::from(self.env.stat().page_size)
    }

    /// The size of all pages in use, in bytes.
    ///
    /// # Errors
    /// When LMDB fails.
    pub fn used(&self) -> Result<u64> {
        Ok(self.env.non_free_pages_size()?)
    }

    /// Signals when the environment has been closed, after the last transaction has ended.
    pub fn closing(&self) -> EnvClosingEvent {
        self.env.clone().prepare_for_closing()
    }
}
