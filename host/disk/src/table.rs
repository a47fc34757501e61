//! A table of LMDB whose values have checksums: the one place where rows are written and read.
//!
//! Behind each value stand four bytes: a checksum over the table's name, the key and the value. They are verified whenever a row
//! is read, and taken off, so that nobody else knows of them. What does not agree is an error that names file and table, and
//! from then on nothing is written to that file ([`super::Environment::write`]).

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::RangeBounds;

use heed::types::Bytes;
use heed::{Database, MdbError, RoTxn, RwTxn};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::damage::{Damage, FileNumber};

/// How many bytes a value takes beside its own.
pub const CHECK_LEN: usize = 4;

/// The bytes of a key that a message shows at the most.
const SHOWN_KEY: usize = 40;

/// Why a table could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// LMDB failed.
    #[error("{0}")]
    Storage(#[from] heed::Error),
    /// The file is damaged.
    #[error("{0}")]
    Damaged(#[from] Damage),
}

/// What functions of tables give.
pub type Result<T> = std::result::Result<T, TableError>;

/// The checksums of a table.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u64);

impl Checksum {
    /// Those of the table of this name.
    pub fn of(table: &str) -> Self {
        Self(xxh3_64(table.as_bytes()))
    }

    /// The checksum of a row.
    fn row(self, key: &[u8], value: &[u8]) -> [u8; CHECK_LEN] {
        // Values are hashed without a seed, which takes less time where they are long. The lower half of a good hash is one, too.
        let [a, b, c, d, ..] = (xxh3_64(value) ^ xxh3_64_with_seed(key, self.0)).to_le_bytes();
        [a, b, c, d]
    }

    /// The checksum of a text, in hexadecimal.
    pub fn text(self, text: &str) -> String {
        shown(&self.row(&[], text.as_bytes()))
    }

    /// The value that was stored at a key; none where that is not what stands there.
    pub fn open<'v>(self, key: &[u8], stored: &'v [u8]) -> Option<&'v [u8]> {
        let (value, check) = stored.split_last_chunk::<CHECK_LEN>()?;
        (self.row(key, value) == *check).then_some(value)
    }
}

/// A key as messages show it.
pub fn shown(key: &[u8]) -> String {
    let mut text = String::with_capacity(2 * SHOWN_KEY);
    for byte in key.iter().take(SHOWN_KEY) {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    if key.len() > SHOWN_KEY {
        text.push('…');
    }
    text
}

/// A table whose keys and values are bytes.
#[derive(Clone, Copy)]
pub struct Table {
    rows: Database<Bytes, Bytes>,
    checksum: Checksum,
    name: &'static str,
    file: FileNumber,
}

/// A reading transaction, or a writing one that is read.
type Reading<'t> = RoTxn<'t>;

impl Table {
    /// The table of this name in a file.
    pub(super) fn new(rows: Database<Bytes, Bytes>, name: &'static str, file: FileNumber) -> Self {
        Self { rows, checksum: Checksum::of(name), name, file }
    }

    /// What stands at `key`.
    ///
    /// # Errors
    /// As all functions here: when LMDB fails, or what stands there is not what was written.
    pub fn get<'t>(&self, txn: &'t Reading<'_>, key: &[u8]) -> Result<Option<&'t [u8]>> {
        match self.rows.get(txn, key) {
            Ok(None) => Ok(None),
            Ok(Some(stored)) => self.opened(key, stored).map(Some),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn opened<'t>(&self, key: &[u8], stored: &'t [u8]) -> Result<&'t [u8]> {
        self.checksum.open(key, stored).ok_or_else(|| self.file.damaged(self.name, shown(key)).into())
    }

    /// What was read of this table is not what was written, by what is known beside its checksum.
    pub fn damaged(&self, place: String) -> TableError {
        self.file.damaged(self.name, place).into()
    }

    /// What LMDB says; where it says that it met a page that cannot be, the file is damaged.
    fn failed(&self, error: heed::Error) -> TableError {
        match error {
            heed::Error::Mdb(error @ (MdbError::Corrupted | MdbError::PageNotFound | MdbError::CursorFull)) => {
                self.file.damaged(self.name, error.to_string()).into()
            }
            error => error.into(),
        }
    }

    /// Writes `value` at `key`, in the place of what stood there.
    ///
    /// # Errors
    /// As [`Table::get`], and when the map or the disk is full.
    pub fn put(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<()> {
        let check = self.checksum.row(key, value);
        let written = self.rows.put_reserved(txn, key, value.len() + CHECK_LEN, |place| {
            place.write_all(value)?;
            place.write_all(&check)
        });
        written.map_err(|error| self.failed(error))
    }

    /// Removes what stands at `key`. Says whether there was something.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn delete(&self, txn: &mut RwTxn<'_>, key: &[u8]) -> Result<bool> {
        self.rows.delete(txn, key).map_err(|error| self.failed(error))
    }

    /// Removes what stands at the keys of a range.
    ///
    /// # Errors
    /// As [`Table::put`].
    pub fn delete_range<'k>(&self, txn: &mut RwTxn<'_>, range: &'k impl RangeBounds<&'k [u8]>) -> Result<usize> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        self.rows.delete_range(txn, &range).map_err(|error| self.failed(error))
    }

    /// How many rows there are.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn len(&self, txn: &Reading<'_>) -> Result<u64> {
        self.rows.len(txn).map_err(|error| self.failed(error))
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn is_empty(&self, txn: &Reading<'_>) -> Result<bool> {
        self.rows.is_empty(txn).map_err(|error| self.failed(error))
    }

    /// All rows in the order of their keys.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn iter<'t>(&self, txn: &'t Reading<'_>) -> Result<Rows<heed::RoIter<'t, Bytes, Bytes>>> {
        self.rows.iter(txn).map(|rows| Rows { rows, table: *self }).map_err(|error| self.failed(error))
    }

    /// All rows, the last one first.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn rev_iter<'t>(&self, txn: &'t Reading<'_>) -> Result<Rows<heed::RoRevIter<'t, Bytes, Bytes>>> {
        self.rows.rev_iter(txn).map(|rows| Rows { rows, table: *self }).map_err(|error| self.failed(error))
    }

    /// The rows whose keys begin with `prefix`.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn prefix_iter<'t>(
        &self,
        txn: &'t Reading<'_>,
        prefix: &[u8],
    ) -> Result<Rows<heed::RoPrefix<'t, Bytes, Bytes>>> {
        self.rows.prefix_iter(txn, prefix).map(|rows| Rows { rows, table: *self }).map_err(|error| self.failed(error))
    }

    /// The rows of a range of keys.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn range<'t, 'k>(
        &self,
        txn: &'t Reading<'_>,
        range: &'k impl RangeBounds<&'k [u8]>,
    ) -> Result<Rows<heed::RoRange<'t, Bytes, Bytes>>> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        self.rows.range(txn, &range).map(|rows| Rows { rows, table: *self }).map_err(|error| self.failed(error))
    }

    /// The rows of a range of keys, the last one first.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn rev_range<'t, 'k>(
        &self,
        txn: &'t Reading<'_>,
        range: &'k impl RangeBounds<&'k [u8]>,
    ) -> Result<Rows<heed::RoRevRange<'t, Bytes, Bytes>>> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        self.rows.rev_range(txn, &range).map(|rows| Rows { rows, table: *self }).map_err(|error| self.failed(error))
    }
}

/// Rows one after the other, each verified when it is given.
pub struct Rows<I> {
    rows: I,
    table: Table,
}

/// A key and its value, in place.
pub type Pair<'t> = (&'t [u8], &'t [u8]);

impl<'t, I: Iterator<Item = heed::Result<Pair<'t>>>> Rows<I> {
    fn verified(&self, row: heed::Result<Pair<'t>>) -> Result<Pair<'t>> {
        let (key, stored) = row.map_err(|error| self.table.failed(error))?;
        Ok((key, self.table.opened(key, stored)?))
    }
}

impl<'t, I: Iterator<Item = heed::Result<Pair<'t>>>> Iterator for Rows<I> {
    type Item = Result<Pair<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(self.verified(row))
    }

    /// Rows that are passed over are not read, so they are not verified.
    fn nth(&mut self, count: usize) -> Option<Self::Item> {
        let row = self.rows.nth(count)?;
        Some(self.verified(row))
    }

    fn count(self) -> usize {
        self.rows.count()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use super::*;
    use crate::{Environment, Opening};

    const OPENING: Opening = Opening { map_size: 1 << 24, max_readers: 8, tables: 2, lazy: false };

    #[test]
    fn a_value_that_is_not_what_was_written_is_an_error_and_ends_all_writing() {
        let dir = tempfile::tempdir().unwrap();
        let env = Environment::open(dir.path(), &OPENING).unwrap();
        let mut txn = env.write().unwrap();
        let table = env.make_table(&mut txn, "one").unwrap();
        let other = env.make_table(&mut txn, "other").unwrap();
        for key in [b"a", b"b", b"c"] {
            table.put(&mut txn, key, b"value").unwrap();
            assert_eq!(table.get(&txn, key).unwrap(), Some(&b"value"[..]));
        }
        // What stands at another key, or in another table, is not what was written there; neither is too short a value.
        let stored = table.rows.get(&txn, b"a").unwrap().unwrap().to_vec();
        other.rows.put(&mut txn, b"a", &stored).unwrap();
        other.rows.put(&mut txn, b"short", b"123").unwrap();
        let mut flipped = stored.clone();
        flipped[0] ^= 1;
        table.rows.put(&mut txn, b"b", &flipped).unwrap();
        txn.commit().unwrap();
        let txn = env.read().unwrap();
        assert_eq!(table.get(&txn, b"a").unwrap(), Some(&b"value"[..]));
        env.write().unwrap().abort();
        for (table, key) in [(table, &b"b"[..]), (other, b"a"), (other, b"short")] {
            let Err(TableError::Damaged(damage)) = table.get(&txn, key) else {
                panic!("{key:?} is taken for what was written")
            };
            assert_eq!((damage.file, damage.table), (dir.path().join("data.mdb"), table.name));
        }
        // However they are walked.
        let from = (Bound::Excluded(&b"a"[..]), Bound::Unbounded);
        assert!(
            table.iter(&txn).unwrap().nth(1).unwrap().is_err()
                && table.rev_iter(&txn).unwrap().nth(1).unwrap().is_err()
        );
        assert!(table.range(&txn, &from).unwrap().next().unwrap().is_err());
        assert!(table.rev_range(&txn, &from).unwrap().nth(1).unwrap().is_err());
        assert!(table.prefix_iter(&txn, b"b").unwrap().next().unwrap().is_err());
        assert!(matches!(env.write(), Err(TableError::Damaged(_))));
        // Nobody else is held up.
        let beside = tempfile::tempdir().unwrap();
        Environment::open(beside.path(), &OPENING).unwrap().write().unwrap().abort();
    }
}
