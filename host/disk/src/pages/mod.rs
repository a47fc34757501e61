//! Reads LMDB files without mapping them. The program checks a file before LMDB maps it, and reads rows of files of other
//! layouts.
//!
//! LMDB trusts its file: a wrong page number, offset or length makes it read outside the map, which kills the process,
//! or return wrong rows. So this reader checks everything that LMDB relies on (`mdb.c`): both meta pages; each page of
//! each tree once, with its number, kind and bounds and the packing and order of its nodes; the counts in each tree's
//! record; the overflow pages; and the free list, whose pages must not be in use. Bytes that LMDB does not read
//! are not checked.
//!
//! The file must not change during the check, so the check runs before LMDB opens the file.

mod meta;
mod page;
mod tree;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use meta::Meta;
use tree::{Rows, Tree};

/// Why a file is not intact.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is empty")]
    Empty,
    #[error("it is not an LMDB file")]
    Foreign,
    #[error("meta page {page}: {what}")]
    Meta { page: u64, what: &'static str },
    #[error("page {page} of table {table:?}: {what}")]
    Page {
        page: u64,
        /// The table of the page's tree.
        table: String,
        what: &'static str,
    },
    /// A tree does not match its record.
    #[error("table {table:?}: {what}")]
    Tree { table: String, what: &'static str },
    #[error("table {table:?}: the row at {key} has a wrong checksum")]
    Row {
        table: String,
        /// In hexadecimal.
        key: String,
    },
}

/// Receives each row of a walk: table name, key, value.
pub type Visitor<'v> = &'v mut dyn FnMut(&str, &[u8], &[u8]) -> Result<(), Fault>;

/// An LMDB file whose length and meta pages have been checked.
pub struct DataFile {
    file: File,
    meta: Meta,
    /// The number of whole pages in the file.
    pages: u64,
}

impl DataFile {
    /// Opens a file and checks its meta pages.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        Self::of(File::open(path)?)
    }

    /// Checks the meta pages of an open file.
    pub fn of(file: File) -> Result<Self, Fault> {
        let length = file.metadata()?.len();
        if length == 0 {
            return Err(Fault::Empty);
        }
        let (meta, former) = meta::read(&file)?;
        let opened = Self { file, meta, pages: length / meta.page_size as u64 };
        opened.check_changes(&former)?;
        Ok(opened)
    }

    /// Checks every page of every tree, and passes each row to `visitor`, table by table in key order.
    pub fn walk(&self, visitor: Visitor<'_>) -> Result<(), Fault> {
        let mut walk = self.new_walk();
        Tree::new("free pages", Rows::Free, self.meta.free).walk(&mut walk, visitor)?;
        Tree::new("tables", Rows::Tables, self.meta.main).walk(&mut walk, visitor)?;
        for (name, table) in std::mem::take(&mut walk.tables) {
            Tree::new(&name, Rows::Values, table).walk(&mut walk, visitor)?;
        }
        // LMDB never wrote the pages between the end of the file and the stated last page, so all of them must be free.
        if !walk.seen.has_all_beyond_the_end() {
            return Err(Fault::Meta { page: self.meta.page, what: "its last page number is too high" });
        }
        Ok(())
    }

    /// The size of all pages ever used, in bytes. The file may be longer or, if the last of these pages are free, shorter.
    pub fn used(&self) -> u64 {
        (self.meta.last_page + 1).saturating_mul(self.meta.page_size as u64)
    }

    pub fn has_table(&self, name: &str) -> Result<bool, Fault> {
        let tables = Tree::new("tables", Rows::Tables, self.meta.main);
        Ok(tables.find(self, name.as_bytes())?.is_some())
    }

    /// The value at a key. Reads and checks only the pages on the path to it.
    pub fn get(&self, table: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let tables = Tree::new("tables", Rows::Tables, self.meta.main);
        let Some(row) = tables.find(self, table.as_bytes())? else { return Ok(None) };
        let stated = page::TreeRecord::read(&row).ok_or_else(|| tables.fault("a row that is not a table"))?;
        Tree::new(table, Rows::Values, stated).find(self, key)
    }

    /// The number of rows of each table, which [`Self::walk`] compares with the rows.
    pub fn rows(&self) -> Result<BTreeMap<String, u64>, Fault> {
        let (mut walk, mut rows) = (self.new_walk(), BTreeMap::new());
        Tree::new("tables", Rows::Tables, self.meta.main).walk(&mut walk, &mut |_, _, _| Ok(()))?;
        for (name, table) in walk.tables {
            rows.insert(name, table.rows);
        }
        Ok(rows)
    }

    fn new_walk(&self) -> Walk<'_> {
        let (last, pages) = (self.meta.last_page, self.pages);
        let seen = VisitedPages { last, pages, bits: Vec::new(), beyond: HashSet::new() };
        Walk { file: self, seen, tables: Vec::new() }
    }

    /// Checks the commit number of each meta page: a flipped bit could make the older page the newer one and lose the last
    /// commit. Each commit frees at least the root page of the table tree, and lists it under the commit's number.
    fn check_changes(&self, former: &Meta) -> Result<(), Fault> {
        let fault = |page| Fault::Meta { page, what: "its transaction ID differs from the last one that freed pages" };
        let last = Tree::new("free pages", Rows::Free, self.meta.free).last_key(self)?;
        // The first commit has nothing to free.
        if self.meta.change > 1 && self.meta.main.root.is_some() && last != Some(self.meta.change) {
            return Err(fault(self.meta.page));
        }
        // Later commits may have overwritten the older tree. LMDB never reads it, so that is no fault.
        match Tree::new("free pages", Rows::Free, former.free).last_key(self) {
            Ok(Some(last)) if last > former.change => Err(fault(former.page)),
            _ => Ok(()),
        }
    }

    /// Reads a page, or the first bytes of several consecutive pages.
    fn read(&self, page: u64, into: &mut [u8], table: &str) -> Result<(), Fault> {
        let offset = page.checked_mul(self.meta.page_size as u64);
        let fault = |what| Fault::Page { page, table: table.to_owned(), what };
        let offset = offset.ok_or_else(|| fault("it does not exist"))?;
        match self.file.read_exact_at(into, offset) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(fault("it lies beyond the end of the file")),
            read => Ok(read?),
        }
    }
}

struct Walk<'f> {
    file: &'f DataFile,
    seen: VisitedPages,
    /// Tables found in the tree of tables.
    tables: Vec<(String, page::TreeRecord)>,
}

/// The pages seen so far. Each page may be in one tree only, or free.
struct VisitedPages {
    /// The stated last page, and the number of pages in the file.
    last: u64,
    pages: u64,
    bits: Vec<u64>,
    /// Pages beyond the end of the file.
    beyond: HashSet<u64>,
}

impl VisitedPages {
    /// Marks a free page. Returns false if it does not exist or was seen before.
    fn note_free(&mut self, page: u64) -> bool {
        if page < self.pages || page > self.last { self.note(page) } else { self.beyond.insert(page) }
    }

    /// Marks a used page. Returns false if the file lacks it or it was seen before.
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

    /// Whether each page between the end of the file and the stated last one was seen.
    fn has_all_beyond_the_end(&self) -> bool {
        self.beyond.len() as u64 == (self.last + 1).saturating_sub(self.pages)
    }
}

#[cfg(test)]
mod tests;
