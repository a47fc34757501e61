//! A reader of LMDB's files that uses no map: it says whether a file is whole before it is mapped, and reads the rows of files of
//! former layouts.
//!
//! LMDB trusts its file: a page number, an offset or a length that is wrong leads it out of the map, which ends the process, or
//! to rows that are not there. So each is checked here, by what LMDB itself writes (`mdb.c`): both meta pages; each page of each
//! tree once, its number, kind and bounds, the packing and the order of its nodes; the counts that each tree states of itself;
//! the overflow pages; and the list of free pages, of which none may be in use. What is not checked is what nothing reads.
//!
//! The file must not change meanwhile: it is read before it is opened.

mod meta;
mod page;
mod tree;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use meta::Meta;
use tree::{Rows, Tree};

/// Why a file is not what LMDB wrote.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It holds nothing.
    #[error("it is empty")]
    Empty,
    /// It is no file of LMDB.
    #[error("it is no database")]
    Foreign,
    /// A meta page is not what it must be.
    #[error("meta page {page}: {what}")]
    Meta { page: u64, what: &'static str },
    /// A page is not what it must be.
    #[error("page {page} of table {table:?}: {what}")]
    Page {
        page: u64,
        /// The table whose tree leads to it.
        table: String,
        what: &'static str,
    },
    /// A tree is not what is stated of it.
    #[error("table {table:?}: {what}")]
    Tree { table: String, what: &'static str },
    /// A row's checksum is of other bytes.
    #[error("table {table:?}: the row at {key} is not what was written")]
    Row {
        table: String,
        /// The row's key, in hexadecimal.
        key: String,
    },
}

/// What sees each row of a walk: the table's name, the key, the value.
pub type Visitor<'v> = &'v mut dyn FnMut(&str, &[u8], &[u8]) -> Result<(), Fault>;

/// A file of LMDB, of which the length and the meta pages have been checked.
pub struct DataFile {
    file: File,
    meta: Meta,
    /// The size of its pages, in bytes.
    page_size: usize,
    /// How many whole pages the file has.
    pages: u64,
}

impl DataFile {
    /// Opens a file and checks its meta pages.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        Self::of(File::open(path)?)
    }

    /// Checks the meta pages of an open file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(file: File) -> Result<Self, Fault> {
        let length = file.metadata()?.len();
        if length == 0 {
            return Err(Fault::Empty);
        }
        let (meta, former) = meta::read(&file)?;
        let page_size = meta.page_size;
        let opened = Self { file, meta, page_size, pages: length / page_size as u64 };
        opened.check_changes(&former)?;
        Ok(opened)
    }

    /// The number of the last change that was committed to it.
    pub fn change(&self) -> u64 {
        self.meta.change
    }

    /// How many bytes its pages take.
    pub fn size(&self) -> u64 {
        self.meta.last_page.saturating_add(1).saturating_mul(self.page_size as u64)
    }

    /// Walks over every page of every tree, and shows each row to `visitor`, each table's in the order of its keys.
    ///
    /// # Errors
    /// The first thing that is wrong with the file; what the visitor says.
    pub fn walk(&self, visitor: Visitor<'_>) -> Result<(), Fault> {
        let mut walk = Walk { file: self, seen: Seen::new(self.meta.last_page, self.pages), tables: Vec::new() };
        Tree::new("free pages", Rows::Free, self.meta.free).walk(&mut walk, visitor)?;
        Tree::new("tables", Rows::Tables, self.meta.main).walk(&mut walk, visitor)?;
        for (name, table) in std::mem::take(&mut walk.tables) {
            Tree::new(&name, Rows::Values, table).walk(&mut walk, visitor)?;
        }
        // Pages behind the end of the file were never written, so they are free: unless the last one's number is wrong.
        if !walk.seen.has_all_behind_the_end() {
            return Err(Fault::Meta { page: self.meta.page, what: "it states a last page that is not the last one" });
        }
        Ok(())
    }

    /// Whether there is a table.
    ///
    /// # Errors
    /// What is wrong with the pages that lead there.
    pub fn has_table(&self, name: &str) -> Result<bool, Fault> {
        let tables = Tree::new("tables", Rows::Tables, self.meta.main);
        Ok(tables.find(self, name.as_bytes())?.is_some())
    }

    /// The value of a key of a table, by the pages that lead there alone.
    ///
    /// # Errors
    /// What is wrong with one of these pages.
    pub fn get(&self, table: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let tables = Tree::new("tables", Rows::Tables, self.meta.main);
        let Some(row) = tables.find(self, table.as_bytes())? else { return Ok(None) };
        let stated = page::Stated::read(&row).ok_or_else(|| tables.fault("a row that is no table's"))?;
        Tree::new(table, Rows::Values, stated).find(self, key)
    }

    /// Whether each meta page is of the change it states: if a bit of these numbers were lost, the older one would stand as the
    /// newer one, and the last change would be gone. But each change frees pages, if only the one that its tables stand in, and
    /// lists them under its number.
    fn check_changes(&self, former: &Meta) -> Result<(), Fault> {
        let fault = |page| Fault::Meta { page, what: "it states another change than its tables" };
        let last = Tree::new("free pages", Rows::Free, self.meta.free).last_key(self)?;
        // The first change finds nothing that it could free.
        if self.meta.change > 1 && self.meta.main.root.is_some() && last != Some(self.meta.change) {
            return Err(fault(self.meta.page));
        }
        // The older one's tree may be gone already, which is no fault: it is not read again.
        match Tree::new("free pages", Rows::Free, former.free).last_key(self) {
            Ok(Some(last)) if last > former.change => Err(fault(former.page)),
            _ => Ok(()),
        }
    }

    /// Reads a page, or the beginning of several that belong together.
    fn read(&self, page: u64, into: &mut [u8], table: &str) -> Result<(), Fault> {
        let offset = page.checked_mul(self.page_size as u64);
        let fault = |what| Fault::Page { page, table: table.to_owned(), what };
        let offset = offset.ok_or_else(|| fault("there is no such page"))?;
        match self.file.read_exact_at(into, offset) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(fault("the file ends before it")),
            read => Ok(read?),
        }
    }
}

/// A walk over a file.
struct Walk<'f> {
    file: &'f DataFile,
    seen: Seen,
    /// The tables that were found on the way.
    tables: Vec<(String, page::Stated)>,
}

/// Which pages were met: each belongs to one tree, or is free.
struct Seen {
    /// The last page that the file states, and how many it has.
    last: u64,
    pages: u64,
    bits: Vec<u64>,
    /// Those behind the end of the file.
    behind: HashSet<u64>,
}

impl Seen {
    fn new(last: u64, pages: u64) -> Self {
        Self { last, pages, bits: Vec::new(), behind: HashSet::new() }
    }

    /// Notes a page that is free. False where there is none of that number, or where it was met before.
    fn note_free(&mut self, page: u64) -> bool {
        if page < self.pages || page > self.last { self.note(page) } else { self.behind.insert(page) }
    }

    /// Notes a page that is in use. False where the file has none of that number, or where it was met before.
    fn note(&mut self, page: u64) -> bool {
        if page < meta::META_PAGES || page > self.last || page >= self.pages {
            return false;
        }
        let (Ok(word), bit) = (usize::try_from(page / 64), 1_u64 << (page % 64)) else { return false };
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        self.bits.get_mut(word).is_some_and(|word| {
            let new = *word & bit == 0;
            *word |= bit;
            new
        })
    }

    /// Whether each page between the end of the file and the last stated one was met.
    fn has_all_behind_the_end(&self) -> bool {
        self.behind.len() as u64 == (self.last + 1).saturating_sub(self.pages)
    }
}

#[cfg(test)]
mod tests;
