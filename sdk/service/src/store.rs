//! `store/1`: a plugin's own store of keys and values, ordered by the keys' bytes.
//!
//! The example `store` of the SDK shows it in use.

use std::ops::Bound;

use super::service;
use crate::wire::{Blob, Encoded, wire_struct, wire_view};
use crate::{ErrorKind, ServiceError};

/// The longest key, in bytes. The shortest has one byte.
pub const MAX_KEY: usize = 511;

/// The longest value, in bytes.
pub const MAX_VALUE: usize = 4 << 20;

/// The most keys of a `get`, and the most rows of an answer of `range`.
pub const MAX_ROWS: usize = 10_000;

/// The most bytes of keys and values in an answer.
pub const MAX_ANSWER: usize = 16 << 20;

/// The most bytes of keys and values in a commit.
pub const MAX_CHANGE: usize = 32 << 20;

wire_struct! {
    /// A range of keys.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct KeyRange {
        /// The first key; none: from the first key of the store.
        pub from: Option<Blob>,
        /// The end, which is excluded; none: to the end of the store.
        pub to: Option<Blob>,
    }
}

/// The bounds of a range.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

impl KeyRange {
    /// The keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut to = prefix.to_vec();
        while to.last() == Some(&u8::MAX) {
            to.pop();
        }
        if let Some(last) = to.last_mut() {
            *last += 1;
        }
        Self { from: Some(Blob(prefix.to_vec())), to: (!to.is_empty()).then_some(Blob(to)) }
    }

    /// The bounds, for implementations of the service; none if no key can be between them.
    ///
    /// # Errors
    /// `Malformed` for a bound that is longer than a key.
    pub fn bounds(&self) -> crate::Result<Option<Bounds<'_>>> {
        if [&self.from, &self.to].into_iter().flatten().any(|bound| bound.len() > MAX_KEY) {
            return Err(ServiceError::new(ErrorKind::Malformed, format!("A key has at most {MAX_KEY} bytes")));
        }
        let from = self.from.as_deref().filter(|from| !from.is_empty());
        let is_empty = self.to.as_deref().is_some_and(|to| to <= from.unwrap_or_default());
        let to = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        Ok((!is_empty).then_some((from.map_or(Bound::Unbounded, Bound::Included), to)))
    }
}

wire_view! { StoreRowView of
    /// A key and its value.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct StoreRow {
        /// The key.
        pub key: Blob,
        /// The value.
        pub value: Blob,
    }
}

wire_view! { StoreRowsView of
    /// Rows in the requested order.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct StoreRows {
        /// The rows.
        pub rows: Vec<StoreRow>,
        /// Whether the range has more rows after these.
        pub more: bool,
    }
}

/// Writes an answer of `range` row by row.
pub struct RowsWriter {
    message: Vec<u8>,
    rows: u32,
    room: usize,
    most: u32,
}

impl RowsWriter {
    /// An answer of at most `limit` rows.
    pub fn new(limit: u32) -> Self {
        let most = limit.min(MAX_ROWS as u32);
        Self { message: vec![0; size_of::<u32>()], rows: 0, room: MAX_ANSWER, most }
    }

    /// Appends a row, unless the answer is full.
    #[must_use]
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        let room = self.room.checked_sub(key.len() + value.len()).filter(|_| self.rows < self.most);
        if let Some(room) = room {
            self.room = room;
            self.rows += 1;
            for bytes in [key, value] {
                self.message.extend_from_slice(&crate::wire::count(bytes.len()));
                self.message.extend_from_slice(bytes);
            }
        }
        room.is_some()
    }

    /// The answer.
    pub fn finish(mut self, more: bool) -> Encoded<StoreRows> {
        if let Some(count) = self.message.first_chunk_mut() {
            *count = self.rows.to_le_bytes();
        }
        self.message.push(u8::from(more));
        Encoded::written(self.message)
    }
}

wire_struct! {
    /// A change of the store. It deletes ranges, then keys, and then adds rows: a row in `puts` is there afterwards even if its key is
    /// deleted, too.
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    pub struct StoreChange {
        /// New rows, and rows with a new value.
        pub puts: Vec<StoreRow>,
        /// Keys to delete. A missing key is no error.
        pub deletes: Vec<Blob>,
        /// Ranges of keys to delete.
        pub deleted_ranges: Vec<KeyRange>,
        /// The new version of the store; none leaves it unchanged.
        pub version: Option<u32>,
        /// Whether the commit waits until it is on disk. Otherwise a crash of the machine may lose the commit, as a whole, and those
        /// after it. A crash of the plugin or the host loses nothing.
        pub durable: bool,
    }
}

impl StoreChange {
    /// Checks keys and sizes, for implementations of the service.
    ///
    /// # Errors
    /// `Malformed` for a key of an invalid length, `Refused` for a value or change that is too large.
    pub fn check(&self) -> crate::Result<()> {
        let keys = self.puts.iter().map(|row| &row.key).chain(&self.deletes);
        let mut bytes = 0;
        for key in keys {
            check_key(key)?;
            bytes += key.len();
        }
        for range in &self.deleted_ranges {
            range.bounds()?;
            bytes += [&range.from, &range.to].into_iter().flatten().map(|bound| bound.len()).sum::<usize>();
        }
        let refused = |what: &str, most: usize| {
            Err(ServiceError::new(ErrorKind::Refused, format!("{what} has at most {most} bytes; nothing was stored")))
        };
        if self.puts.iter().any(|row| row.value.len() > MAX_VALUE) {
            return refused("A value", MAX_VALUE);
        }
        bytes += self.puts.iter().map(|row| row.value.len()).sum::<usize>();
        if bytes > MAX_CHANGE { refused("A commit", MAX_CHANGE) } else { Ok(()) }
    }
}

/// Checks a key, for implementations of the service.
///
/// # Errors
/// `Malformed` for a key of an invalid length.
pub fn check_key(key: &[u8]) -> crate::Result<()> {
    if (1..=MAX_KEY).contains(&key.len()) {
        return Ok(());
    }
    Err(ServiceError::new(ErrorKind::Malformed, format!("A key has 1 to {MAX_KEY} bytes, not {}", key.len())))
}

/// Checks the keys of a `get`, for implementations of the service.
///
/// # Errors
/// As [`check_key`]; `Refused` for too many keys.
pub fn check_keys(keys: &[Blob]) -> crate::Result<()> {
    if keys.len() > MAX_ROWS {
        return Err(ServiceError::new(ErrorKind::Refused, format!("At most {MAX_ROWS} keys are read at once")));
    }
    keys.iter().try_for_each(|key| check_key(key))
}

/// The error of a `get` whose values exceed [`MAX_ANSWER`].
pub fn answer_too_large() -> ServiceError {
    ServiceError::new(ErrorKind::Refused, format!("The values have more than {MAX_ANSWER} bytes; ask for fewer keys"))
}

wire_struct! {
    /// The size of the store and its limit.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct StoreUsage {
        /// The bytes on disk, without free pages.
        pub bytes: u64,
        /// The limit, in bytes (`max_store_mib`).
        pub bound: u64,
    }
}

service! {
    /// The plugin's own store.
    ///
    /// Each function sees all earlier commits, regardless of its scope. A key has 1 to 511 bytes, a value at most 4,194,304.
    ///
    /// Fails with `Storage` if the file is damaged; it never returns a damaged value.
    pub trait Store = "store/1" {
        /// The values of keys, in the order of the keys, from one snapshot. At most 10,000 keys; fails with `Refused` if the values have
        /// more than 16,777,216 bytes.
        fn get(keys: Vec<Blob>) -> Vec<Option<Blob>>;

        /// The first rows of a range, or with `reverse` its last ones, last row first. At most `limit` rows, 10,000 rows, and 16,777,216
        /// bytes of keys and values; `more` says whether the range has others.
        fn range(range: KeyRange, limit: u32, reverse: bool) -> Encoded<StoreRows>;

        /// Changes the store: stores all of the change, or nothing. Commits do not overlap.
        ///
        /// Fails with `Refused` if the store would grow beyond its limit, or for more than 33,554,432 bytes of keys and values; with
        /// `Stale` once a newer instance of the plugin has committed.
        fn commit(change: StoreChange) -> ();

        /// The version of the store's content, as the plugin set it; 0 for a new store.
        fn version() -> u32;

        /// The size of the store and its limit.
        fn usage() -> StoreUsage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(bytes: &[u8]) -> Option<Blob> {
        Some(Blob(bytes.to_vec()))
    }

    #[test]
    fn limits_are_those_of_the_documentation() {
        let limits = [MAX_KEY, MAX_VALUE, MAX_ROWS, MAX_ANSWER, MAX_CHANGE];
        assert_eq!(limits, [511, 4_194_304, 10_000, 16_777_216, 33_554_432]);
        // A row always fits into an answer.
        const { assert!(MAX_KEY + MAX_VALUE <= MAX_ANSWER) };
    }

    #[test]
    fn a_prefix_is_the_range_of_its_keys() {
        assert_eq!(KeyRange::prefix(b"ab"), KeyRange { from: blob(b"ab"), to: blob(b"ac") });
        assert_eq!(KeyRange::prefix(b"a\xff\xff"), KeyRange { from: blob(b"a\xff\xff"), to: blob(b"b") });
        assert_eq!(KeyRange::prefix(b"\xff"), KeyRange { from: blob(b"\xff"), to: None });
        assert_eq!(KeyRange::prefix(b"").bounds(), Ok(Some((Bound::Unbounded, Bound::Unbounded))));
    }

    #[test]
    fn a_range_that_ends_before_it_begins_has_no_keys() {
        for (from, to) in
            [(blob(b"b"), blob(b"a")), (blob(b"a"), blob(b"a")), (None, blob(b"")), (blob(b""), blob(b""))]
        {
            assert_eq!(KeyRange { from, to }.bounds(), Ok(None));
        }
        let long = KeyRange { from: None, to: blob(&[0; MAX_KEY + 1]) };
        assert_eq!(long.bounds().unwrap_err().kind, ErrorKind::Malformed);
    }

    #[test]
    fn an_answer_ends_at_its_limits() {
        let mut rows = RowsWriter::new(2);
        assert!(rows.push(b"a", b"1") && rows.push(b"b", b"") && !rows.push(b"c", b""));
        let answer = rows.finish(true).read().unwrap();
        let row = |key: &[u8], value: &[u8]| StoreRow { key: Blob(key.to_vec()), value: Blob(value.to_vec()) };
        assert_eq!(answer, StoreRows { rows: vec![row(b"a", b"1"), row(b"b", b"")], more: true });
        let mut large = RowsWriter::new(u32::MAX);
        let value = vec![0; MAX_VALUE];
        assert_eq!((0..9).filter(|key| large.push(&[*key], &value)).count(), 3);
        let mut many = RowsWriter::new(u32::MAX);
        assert_eq!((0..=MAX_ROWS).filter(|_| many.push(b"k", b"")).count(), MAX_ROWS);
    }

    #[test]
    fn a_change_is_checked_before_it_is_stored() {
        let put = |key: usize, value: usize| StoreRow { key: Blob(vec![0; key]), value: Blob(vec![0; value]) };
        let check = |puts| StoreChange { puts, ..StoreChange::default() }.check().map_err(|error| error.kind);
        assert_eq!(check(vec![put(1, 0), put(MAX_KEY, MAX_VALUE)]), Ok(()));
        assert_eq!(check(vec![put(0, 0)]), Err(ErrorKind::Malformed));
        assert_eq!(check(vec![put(MAX_KEY + 1, 0)]), Err(ErrorKind::Malformed));
        assert_eq!(check(vec![put(1, MAX_VALUE + 1)]), Err(ErrorKind::Refused));
        assert_eq!(check(vec![put(1, MAX_VALUE); 8]), Err(ErrorKind::Refused));
    }
}
