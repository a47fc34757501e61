//! Opening LMDB's files, which are used through maps: what cannot be read or written there ends the process, so it is made sure
//! of before.
//!
//! The table of readers beside the data is written through its map, so its blocks are allocated before it is mapped. The data is
//! written as a file and only read through its map: whoever opens it has it checked first ([`super::pages`]).

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

/// The file with the data in a folder of LMDB.
pub const DATA_FILE: &str = "data.mdb";
/// LMDB's table of readers beside it.
pub const LOCK_FILE: &str = "lock.mdb";

/// What a reader takes in the table of readers, in bytes.
const READER: u64 = 64;
/// What stands before the readers, with room to spare, in readers.
const TABLE_HEAD: u64 = 16;
/// Allocated in such pieces, in bytes.
const BLOCK: u64 = 4096;

/// How an environment is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The address space that is reserved, in bytes: the most that the data can ever take.
    pub map_size: usize,
    /// How many snapshots can be open at a time.
    pub max_readers: u32,
    /// How many tables there can be.
    pub tables: u32,
    /// Whether a commit leaves to the system when the page that makes it the newest is on the disk.
    pub lazy: bool,
}

/// An open environment. Its copies are the same one.
#[derive(Clone)]
pub struct Environment {
    env: Env<WithoutTls>,
    file: Arc<OpenFile>,
}

/// Makes sure that the table of readers has its blocks on the disk.
fn allocate_readers(folder: &Path, max_readers: u32) -> io::Result<()> {
    let size = ((u64::from(max_readers) + TABLE_HEAD) * READER).next_multiple_of(BLOCK);
    let path = folder.join(LOCK_FILE);
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, size) {
        Ok(()) => Ok(()),
        // A file system that cannot allocate: what is written has its blocks.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => write_zeros(&mut file, size),
        Err(error) => Err(error.into()),
    }
}

/// Writes a file of zeros; what stood there is told anew when the file is opened.
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
    // directory's lock keeps other processes of it away, LMDB's own lock any others that use LMDB, and the library refuses to
    // open one folder twice in a process. The one flag may cost the last change at a loss of power, and leaves the file whole.
    unsafe { options.flags(flags).open(folder) }
}

impl Environment {
    /// Opens the environment in a folder, making it where there is none. Its file has been checked.
    ///
    /// # Errors
    /// When the disk has no room for it, or the system or LMDB refuses it.
    pub fn open(folder: &Path, opening: &Opening) -> Result<Self> {
        allocate_readers(folder, opening.max_readers).map_err(heed::Error::Io)?;
        let env = map(folder, opening)?;
        // A process that died left its readers behind; they would keep old pages from being used again.
        env.clear_stale_readers()?;
        Ok(Self { env, file: Arc::new(OpenFile::enter(&folder.join(DATA_FILE))) })
    }

    /// A table; none where there is none of that name.
    ///
    /// # Errors
    /// When LMDB fails.
    pub fn table(&self, txn: &RoTxn<'_>, name: &'static str) -> Result<Option<Table>> {
        let rows = self.env.open_database::<Bytes, Bytes>(txn, Some(name))?;
        Ok(rows.map(|rows| Table::new(rows, name, self.file.number())))
    }

    /// A table, made where it is missing.
    ///
    /// # Errors
    /// When LMDB fails, or the disk is full.
    pub fn make_table(&self, txn: &mut RwTxn<'_>, name: &'static str) -> Result<Table> {
        Ok(Table::new(self.env.create_database(txn, Some(name))?, name, self.file.number()))
    }

    /// A reading transaction.
    ///
    /// # Errors
    /// When LMDB fails, or too many are open.
    pub fn read(&self) -> Result<RoTxn<'_, WithoutTls>> {
        Ok(self.env.read_txn()?)
    }

    /// A reading transaction that can go to another thread.
    ///
    /// # Errors
    /// As [`Environment::read`].
    pub fn snapshot(&self) -> Result<RoTxn<'static, WithoutTls>> {
        Ok(self.env.clone().static_read_txn()?)
    }

    /// The writing transaction. There is one at a time; this waits for the other's end.
    ///
    /// # Errors
    /// When the file was found to be damaged; when LMDB fails.
    pub fn write(&self) -> Result<RwTxn<'_>> {
        match self.damage() {
            Some(damage) => Err(damage.into()),
            None => Ok(self.env.write_txn()?),
        }
    }

    /// What was found in the file first that is not what was written; none while nothing was.
    pub fn damage(&self) -> Option<Damage> {
        self.file.damage()
    }

    /// Waits until all that was committed is on the disk.
    ///
    /// # Errors
    /// When the system cannot say so.
    pub fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    /// Writes the tables as they are now to an empty file, without the pages that are not in use.
    ///
    /// # Errors
    /// When LMDB or the disk fails.
    pub fn copy_to(&self, file: &mut File) -> Result<()> {
        Ok(self.env.copy_to_file(file, CompactionOption::Enabled)?)
    }

    /// The folder that it is in.
    pub fn folder(&self) -> &Path {
        self.env.path()
    }

    /// How many pages there are, up to the last that was ever written, in use or not.
    pub fn pages(&self) -> u64 {
        self.env.info().last_page_number as u64 + 1
    }

    /// The bytes of a page.
    pub fn page_size(&self) -> u64 {
        u64::from(self.env.stat().page_size)
    }

    /// The bytes of the pages in use.
    ///
    /// # Errors
    /// When LMDB fails.
    pub fn used(&self) -> Result<u64> {
        Ok(self.env.non_free_pages_size()?)
    }

    /// Signals when the environment has been closed, which is when the last transaction has ended.
    pub fn closing(&self) -> EnvClosingEvent {
        self.env.clone().prepare_for_closing()
    }
}
