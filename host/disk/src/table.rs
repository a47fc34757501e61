//! An LMDB table whose values have checksums. Only this code reads and writes rows.
//!
//! Each stored value ends in four bytes: a checksum over the table's name, the key and the value. Reads verify and
//! strip it. A mismatch is an error that names file and table, and prevents further writes to the file
//! ([`super::Environment::write`]).

use std::io::Write as _;
use std::ops::RangeBounds;

use heed::types::Bytes;
use heed::{Database, MdbError, RoTxn, RwTxn};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::damage::FileNumber;
use super::error::StoreError;

/// The table that exists in all layouts.
pub const META: &str = "meta";
/// The key of the version of the program that created the file, as text.
pub const PROGRAM: &[u8] = b"program";

/// In bytes.
pub const CHECK_LEN: usize = 4;

/// How many bytes of a key a message shows.
const SHOWN_KEY: usize = 40;

pub type Result<T> = std::result::Result<T, StoreError>;

/// Computes the checksums of a table's rows.
#[derive(Clone, Copy, Debug)]
pub struct Checksum(u64);

impl Checksum {
    pub fn of(table: &str) -> Self {
        Self(xxh3_64(table.as_bytes()))
    }

    fn row(self, key: &[u8], value: &[u8]) -> [u8; CHECK_LEN] {
        // XXH3 is faster without a seed on long values, so only the key is seeded. Any 32 bits of the hash are as good as
        // a hash of 32 bits.
        let [a, b, c, d, ..] = (xxh3_64(value) ^ xxh3_64_with_seed(key, self.0)).to_le_bytes();
        [a, b, c, d]
    }

    /// Verifies a stored value and strips its checksum; `None` if it does not match.
    pub fn open<'v>(self, key: &[u8], stored: &'v [u8]) -> Option<&'v [u8]> {
        let (value, check) = stored.split_last_chunk::<CHECK_LEN>()?;
        (self.row(key, value) == *check).then_some(value)
    }
}

/// A key as shown in messages.
pub fn shown(key: &[u8]) -> String {
    let mut text: String = key.iter().take(SHOWN_KEY).map(|byte| format!("{byte:02x}")).collect();
    if key.len() > SHOWN_KEY {
        text.push('…');
    }
    text
}

#[derive(Clone, Copy)]
pub struct Table {
    rows: Database<Bytes, Bytes>,
    checksum: Checksum,
    name: &'static str,
    file: FileNumber,
}

/// A read transaction, or a write transaction by deref.
pub type Reading<'t> = RoTxn<'t>;

impl Table {
    pub(super) fn new(rows: Database<Bytes, Bytes>, name: &'static str, file: FileNumber) -> Self {
        Self { rows, checksum: Checksum::of(name), name, file }
    }

    /// The value at `key`. Like all reads, fails if the row does not match its checksum.
    pub fn get<'t>(&self, txn: &'t Reading<'_>, key: &[u8]) -> Result<Option<&'t [u8]>> {
        match self.rows.get(txn, key) {
            Ok(None) => Ok(None),
            Ok(Some(stored)) => self.verified_value(key, stored).map(Some),
            Err(error) => Err(self.table_error(error)),
        }
    }

    fn verified_value<'t>(&self, key: &[u8], stored: &'t [u8]) -> Result<&'t [u8]> {
        self.checksum.open(key, stored).ok_or_else(|| self.file.damaged(self.name, shown(key)).into())
    }

    /// The error for a row with a valid checksum and invalid content. Marks the file as damaged.
    pub fn damaged(&self, place: String) -> StoreError {
        self.file.damaged(self.name, place).into()
    }

    /// Converts an LMDB error. An impossible page marks the file as damaged.
    fn table_error(&self, error: heed::Error) -> StoreError {
        match error {
            heed::Error::Mdb(error @ (MdbError::Corrupted | MdbError::PageNotFound | MdbError::CursorFull)) => {
                self.file.damaged(self.name, error.to_string()).into()
            }
            error => error.into(),
        }
    }

    pub fn put(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<()> {
        let check = self.checksum.row(key, value);
        let written = self.rows.put_reserved(txn, key, value.len() + CHECK_LEN, |place| {
            place.write_all(value)?;
            place.write_all(&check)
        });
        written.map_err(|error| self.table_error(error))
    }

    /// Returns whether there was a row.
    pub fn delete(&self, txn: &mut RwTxn<'_>, key: &[u8]) -> Result<bool> {
        self.rows.delete(txn, key).map_err(|error| self.table_error(error))
    }

    /// Returns the number of deleted rows.
    pub fn delete_range<'k>(&self, txn: &mut RwTxn<'_>, range: &'k impl RangeBounds<&'k [u8]>) -> Result<usize> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        self.rows.delete_range(txn, &range).map_err(|error| self.table_error(error))
    }

    pub fn len(&self, txn: &Reading<'_>) -> Result<u64> {
        self.rows.len(txn).map_err(|error| self.table_error(error))
    }

    /// The number of pages that the rows take.
    pub fn pages(&self, txn: &Reading<'_>) -> Result<u64> {
        let stat = self.rows.stat(txn).map_err(|error| self.table_error(error))?;
        Ok((stat.branch_pages + stat.leaf_pages + stat.overflow_pages) as u64)
    }

    pub fn is_empty(&self, txn: &Reading<'_>) -> Result<bool> {
        self.rows.is_empty(txn).map_err(|error| self.table_error(error))
    }

    fn verifying<I>(&self, rows: heed::Result<I>) -> Result<Rows<I>> {
        rows.map(|rows| Rows { rows, table: *self }).map_err(|error| self.table_error(error))
    }

    pub fn iter<'t>(&self, txn: &'t Reading<'_>) -> Result<Rows<heed::RoIter<'t, Bytes, Bytes>>> {
        self.verifying(self.rows.iter(txn))
    }

    pub fn rev_iter<'t>(&self, txn: &'t Reading<'_>) -> Result<Rows<heed::RoRevIter<'t, Bytes, Bytes>>> {
        self.verifying(self.rows.rev_iter(txn))
    }

    pub fn prefix_iter<'t>(
        &self,
        txn: &'t Reading<'_>,
        prefix: &[u8],
    ) -> Result<Rows<heed::RoPrefix<'t, Bytes, Bytes>>> {
        self.verifying(self.rows.prefix_iter(txn, prefix))
    }

    pub fn range<'t, 'k>(
        &self,
        txn: &'t Reading<'_>,
        range: &'k impl RangeBounds<&'k [u8]>,
    ) -> Result<Rows<heed::RoRange<'t, Bytes, Bytes>>> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        self.verifying(self.rows.range(txn, &range))
    }

    pub fn rev_range<'t, 'k>(
        &self,
        txn: &'t Reading<'_>,
        range: &'k impl RangeBounds<&'k [u8]>,
    ) -> Result<Rows<heed::RoRevRange<'t, Bytes, Bytes>>> {
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        self.verifying(self.rows.rev_range(txn, &range))
    }
}

/// An iterator that verifies each returned row.
pub struct Rows<I> {
    rows: I,
    table: Table,
}

/// A key and its value, in LMDB's map.
pub type Pair<'t> = (&'t [u8], &'t [u8]);

impl<'t, I: Iterator<Item = heed::Result<Pair<'t>>>> Rows<I> {
    fn verified(&self, row: heed::Result<Pair<'t>>) -> Result<Pair<'t>> {
        let (key, stored) = row.map_err(|error| self.table.table_error(error))?;
        Ok((key, self.table.verified_value(key, stored)?))
    }
}

impl<'t, I: Iterator<Item = heed::Result<Pair<'t>>>> Iterator for Rows<I> {
    type Item = Result<Pair<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        Some(self.verified(row))
    }

    /// Skipped rows are not verified.
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
    fn table_checksum_mismatch_is_damage_and_stops_writes_to_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let env = Environment::open(dir.path(), &OPENING).unwrap();
        let mut txn = env.write().unwrap();
        let table = env.make_table(&mut txn, "one").unwrap();
        let other = env.make_table(&mut txn, "other").unwrap();
        for key in [b"a", b"b", b"c"] {
            table.put(&mut txn, key, b"value").unwrap();
            assert_eq!(table.get(&txn, key).unwrap(), Some(&b"value"[..]));
        }
        // A value copied from another table, a value shorter than a checksum, and a flipped bit do not match.
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
            let Err(StoreError::Damage(damage)) = table.get(&txn, key) else { panic!("{key:?} passes its checksum") };
            assert_eq!((damage.file, damage.table), (dir.path().join("data.mdb"), table.name));
        }
        // Every kind of iterator verifies.
        let from = (Bound::Excluded(&b"a"[..]), Bound::Unbounded);
        assert!(
            table.iter(&txn).unwrap().nth(1).unwrap().is_err()
                && table.rev_iter(&txn).unwrap().nth(1).unwrap().is_err()
        );
        assert!(table.range(&txn, &from).unwrap().next().unwrap().is_err());
        assert!(table.rev_range(&txn, &from).unwrap().nth(1).unwrap().is_err());
        assert!(table.prefix_iter(&txn, b"b").unwrap().next().unwrap().is_err());
        assert!(matches!(env.write(), Err(StoreError::Damage(_))));
        // Other files can still be written.
        let beside = tempfile::tempdir().unwrap();
        Environment::open(beside.path(), &OPENING).unwrap().write().unwrap().abort();
    }
}
