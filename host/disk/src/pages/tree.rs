//! Checks all pages of a B+ tree, and finds single rows in it.

use std::cmp::Ordering;

use super::page::{HEADER, LONG_VALUE, OVERFLOW, Page, TABLE, TreeRecord, u16_at, u32_at, u64_at};
use super::{DataFile, Fault, Visitor, Walk};

/// The deepest tree that LMDB creates.
const MAX_DEPTH: u16 = 32;

/// The kind of a tree's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Free lists, by the number of the commit that freed the pages.
    Free,
    Tables,
    Values,
}

/// A tree: its record in the file (`stated`), and the counts that the walk finds (`counted`).
pub struct Tree<'n> {
    name: &'n str,
    rows: Rows,
    stated: TreeRecord,
    counted: TreeRecord,
}

/// The bounds of a page's keys: `from` is inclusive, `to` exclusive.
#[derive(Clone, Copy)]
struct Bounds<'k> {
    from: Option<&'k [u8]>,
    to: Option<&'k [u8]>,
}

impl<'n> Tree<'n> {
    /// A tree by its record in the file (LMDB's `MDB_db`).
    pub fn new(name: &'n str, rows: Rows, stated: TreeRecord) -> Self {
        let counted = TreeRecord { branches: 0, leaves: 0, overflow: 0, rows: 0, ..stated };
        Self { name, rows, stated, counted }
    }

    pub fn fault(&self, what: &'static str) -> Fault {
        Fault::Tree { table: self.name.to_owned(), what }
    }

    fn page_fault(&self, page: u64, what: &'static str) -> Fault {
        Fault::Page { page, table: self.name.to_owned(), what }
    }

    /// The root page; `None` if the tree is empty.
    fn root(&self) -> Result<Option<u64>, Fault> {
        match (self.stated.root, self.stated.depth) {
            (None, 0) => Ok(None),
            (Some(root), 1..=MAX_DEPTH) => Ok(Some(root)),
            _ => Err(self.fault("its depth is invalid")),
        }
    }

    /// Checks all pages, and passes a table's rows to `visitor`.
    pub fn walk(mut self, walk: &mut Walk<'_>, visitor: Visitor<'_>) -> Result<(), Fault> {
        if self.rows == Rows::Values && (self.stated.flags != 0 || self.stated.pad != 0) {
            return Err(self.fault("it has unknown flags"));
        }
        if let Some(root) = self.root()? {
            self.walk_page(root, 1, Bounds { from: None, to: None }, walk, visitor)?;
        }
        if self.counted == self.stated { Ok(()) } else { Err(self.fault("its page or row counts are wrong")) }
    }

    /// Reads a page and checks it in isolation.
    fn read_page(&self, number: u64, leaf: bool, file: &DataFile) -> Result<Page, Fault> {
        let mut bytes = vec![0; file.meta.page_size];
        file.read(number, &mut bytes, self.name)?;
        Page::check(bytes, number, leaf).map_err(|what| self.page_fault(number, what))
    }

    fn walk_page(
        &mut self,
        number: u64,
        level: u16,
        bounds: Bounds<'_>,
        walk: &mut Walk<'_>,
        visitor: Visitor<'_>,
    ) -> Result<(), Fault> {
        if !walk.seen.note(number) {
            return Err(self.page_fault(number, "it does not exist or is referenced twice"));
        }
        let leaf = level == self.stated.depth;
        let page = self.read_page(number, leaf, walk.file)?;
        // The first key of a branch page is unused: its child holds all keys less than the second.
        let (mut before, mut may_be_same) = (bounds.from, true);
        for node in page.nodes().skip(usize::from(!leaf)) {
            let order = before.map_or(Ordering::Less, |before| self.compare(before, node.key));
            let in_order = order == Ordering::Less || may_be_same && order == Ordering::Equal;
            if !in_order || bounds.to.is_some_and(|to| self.compare(node.key, to) != Ordering::Less) {
                return Err(self.page_fault(number, "its keys are not in order"));
            }
            // Only the first key may equal the key that leads to the page.
            (before, may_be_same) = (Some(node.key), false);
        }
        if leaf {
            self.counted.leaves += 1;
            return self.walk_rows(number, &page, walk, visitor);
        }
        self.counted.branches += 1;
        for index in 0..page.count {
            let key = |index| page.node(index).map(|node| node.key);
            let child = page.node(index).map_or(0, |node| node.child);
            let bounds =
                Bounds { from: if index == 0 { bounds.from } else { key(index) }, to: key(index + 1).or(bounds.to) };
            self.walk_page(child, level + 1, bounds, walk, visitor)?;
        }
        Ok(())
    }

    fn walk_rows(&mut self, number: u64, page: &Page, walk: &mut Walk<'_>, visitor: Visitor<'_>) -> Result<(), Fault> {
        for node in page.nodes() {
            self.counted.rows += 1;
            let flags = if self.rows == Rows::Tables { TABLE } else { node.flags & LONG_VALUE };
            if node.flags != flags || node.key.is_empty() {
                return Err(self.page_fault(number, "a row has unknown flags or no key"));
            }
            let long;
            let value = if node.flags & LONG_VALUE == 0 {
                node.value
            } else {
                let (value, pages) = self.long_value(node.value, node.length, walk.file)?;
                for page in pages {
                    self.counted.overflow += 1;
                    if !walk.seen.note(page) {
                        return Err(self.page_fault(page, "it does not exist or is referenced twice"));
                    }
                }
                long = value;
                &long
            };
            match self.rows {
                Rows::Free => self.note_free_pages(number, node.key, value, walk)?,
                Rows::Tables => {
                    let name = std::str::from_utf8(node.key)
                        .map_err(|_| self.page_fault(number, "a table's name is not UTF-8"))?;
                    let stated =
                        TreeRecord::read(value).ok_or_else(|| self.page_fault(number, "a row is not a table"))?;
                    walk.tables.push((name.to_owned(), stated));
                }
                Rows::Values => visitor(self.name, node.key, value)?,
            }
        }
        Ok(())
    }

    /// Reads a value from its overflow pages. Returns it with their numbers.
    fn long_value(&self, at: &[u8], length: usize, file: &DataFile) -> Result<(Vec<u8>, std::ops::Range<u64>), Fault> {
        let number = u64_at(at, 0).ok_or_else(|| self.fault("a row is too short"))?;
        let mut header = [0; HEADER];
        file.read(number, &mut header, self.name)?;
        let fault = |what| self.page_fault(number, what);
        if u64_at(&header, 0) != Some(number) || u16_at(&header, 10) != Some(OVERFLOW) {
            return Err(fault("it is not an overflow page"));
        }
        let pages = u64::from(u32_at(&header, 12).unwrap_or_default());
        let size = HEADER + length;
        // LMDB may keep all pages when a shorter value replaces a longer one.
        if pages < (size.div_ceil(file.meta.page_size)) as u64 || number.saturating_add(pages) > file.pages {
            return Err(fault("its length differs from the value's"));
        }
        let mut bytes = vec![0; size];
        file.read(number, &mut bytes, self.name)?;
        bytes.drain(..HEADER);
        Ok((bytes, number..number + pages))
    }

    /// Marks the pages of a free list: their count, then their numbers in descending order.
    fn note_free_pages(&self, page: u64, key: &[u8], value: &[u8], walk: &mut Walk<'_>) -> Result<(), Fault> {
        let fault = |what| self.page_fault(page, what);
        let change = (key.len() == size_of::<u64>()).then(|| u64_at(key, 0)).flatten();
        if change.is_none_or(|change| change == 0 || change > walk.file.meta.change) {
            return Err(fault("it names a transaction that was not committed"));
        }
        let count = u64_at(value, 0).and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|count| *count < value.len() / size_of::<u64>());
        let count = count.ok_or_else(|| fault("a list of free pages is longer than its row"))?;
        let mut above = u64::MAX;
        for index in 1..=count {
            let free = u64_at(value, index * size_of::<u64>()).unwrap_or(u64::MAX);
            if free >= above || !walk.seen.note_free(free) {
                return Err(self.page_fault(free, "it does not exist, is freed twice, or is both free and in use"));
            }
            above = free;
        }
        Ok(())
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.rows {
            Rows::Free => u64_at(a, 0).cmp(&u64_at(b, 0)),
            Rows::Tables | Rows::Values => a.cmp(b),
        }
    }

    /// The value of a key; `None` if it does not exist. Checks only the pages that it reads.
    pub fn find(&self, file: &DataFile, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let Some(mut number) = self.root()? else { return Ok(None) };
        for _ in 1..self.stated.depth {
            let page = self.read_page(number, false, file)?;
            let child = page.nodes().enumerate();
            let child =
                child.take_while(|(index, node)| *index == 0 || self.compare(node.key, key) != Ordering::Greater);
            number = child.last().map_or(0, |(_, node)| node.child);
        }
        let page = self.read_page(number, true, file)?;
        let Some(node) = page.nodes().find(|node| node.key == key) else { return Ok(None) };
        Ok(Some(match node.flags & LONG_VALUE {
            0 => node.value.to_vec(),
            _ => self.long_value(node.value, node.length, file)?.0,
        }))
    }

    /// The greatest key of a tree with integer keys.
    pub fn last_key(&self, file: &DataFile) -> Result<Option<u64>, Fault> {
        let Some(mut number) = self.root()? else { return Ok(None) };
        for _ in 1..self.stated.depth {
            let page = self.read_page(number, false, file)?;
            number = page.node(page.count - 1).map_or(0, |node| node.child);
        }
        let page = self.read_page(number, true, file)?;
        Ok(page.node(page.count - 1).and_then(|node| u64_at(node.key, 0)))
    }
}
