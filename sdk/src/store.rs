//! Keeps state in the plugin's store ([`outrigger_service::Store`]).
//!
//! ```
//! use outrigger_sdk::service::Scope;
//! use outrigger_sdk::service::store::KeyRange;
//! use outrigger_sdk::store::{Batch, open_store};
//! use outrigger_sdk::testing::StubHost;
//!
//! let host = StubHost::new().handle();
//! open_store(&host, Scope::NONE, 1, |_, batch| Ok(batch.put(b"limit", b"5000")))?;
//! let mut batch = Batch::default();
//! batch.put(b"paid/1", b"alice");
//! batch.put(b"paid/2", b"bob");
//! batch.commit_durably(&host, Scope::NONE)?;
//! let paid = host.store.range(Scope::NONE, KeyRange::prefix(b"paid/"), 10, true)?;
//! assert_eq!(paid.view()?.rows.iter().map(|row| row.value).collect::<Vec<_>>(), [&b"bob"[..], b"alice"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use outrigger_service::store::{KeyRange, StoreChange, StoreRow};
use outrigger_service::wire::Blob;
use outrigger_service::{Host, Result as ServiceResult, Scope, ServiceError};

/// Changes that the host commits atomically. If a key is changed more than once, the last change counts.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The new value of each key; `None` removes the key.
    keys: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    ranges: Vec<KeyRange>,
    version: Option<u32>,
    bytes: usize,
}

impl Batch {
    /// Stores a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes += key.len() + value.len();
        self.keys.insert(key.to_vec(), Some(value.to_vec()));
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &[u8]) {
        self.bytes += key.len();
        self.keys.insert(key.to_vec(), None);
    }

    /// Removes the keys in a range, including keys that this batch put there before.
    pub fn delete_range(&mut self, range: KeyRange) {
        // The host refuses to commit a range with invalid bounds.
        if let Ok(Some(bounds)) = range.bounds() {
            self.keys.retain(|key, _| !bounds.contains(&&key[..]));
        }
        self.ranges.push(range);
    }

    /// Sets the store's version.
    pub fn set_version(&mut self, version: u32) {
        self.version = Some(version);
    }

    /// The size of all keys and values put or deleted so far, in bytes. Replaced values count, so the change itself may be smaller.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The value of a key once the batch is committed.
    ///
    /// # Errors
    /// As for [`outrigger_service::Store::get`].
    pub fn get(&self, host: &Host, scope: Scope, key: &[u8]) -> ServiceResult<Option<Vec<u8>>> {
        if let Some(value) = self.keys.get(key) {
            return Ok(value.clone());
        }
        let is_removed = |range: &KeyRange| matches!(range.bounds(), Ok(Some(bounds)) if bounds.contains(&key));
        if self.ranges.iter().any(is_removed) {
            return Ok(None);
        }
        let found = host.store.get(scope, vec![Blob(key.to_vec())])?;
        Ok(found.into_iter().next().flatten().map(|value| value.0))
    }

    /// Whether the batch contains no change.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty() && self.version.is_none()
    }

    /// Converts the batch for [`outrigger_service::Store::commit`]. `durable`: the commit waits until the changes are on disk.
    pub fn into_change(self, durable: bool) -> StoreChange {
        let mut change =
            StoreChange { deleted_ranges: self.ranges, version: self.version, durable, ..Default::default() };
        for (key, value) in self.keys {
            match value {
                Some(value) => change.puts.push(StoreRow { key: Blob(key), value: Blob(value) }),
                None => change.deletes.push(Blob(key)),
            }
        }
        change
    }

    /// Commits all changes, or none of them if it fails. Does not wait until they are on disk.
    ///
    /// # Errors
    /// As for [`outrigger_service::Store::commit`].
    pub fn commit(self, host: &Host, scope: Scope) -> ServiceResult<()> {
        host.store.commit(scope, self.into_change(false))
    }

    /// As [`Batch::commit`], but waits until the changes are on disk.
    ///
    /// # Errors
    /// As for [`outrigger_service::Store::commit`].
    pub fn commit_durably(self, host: &Host, scope: Scope) -> ServiceResult<()> {
        host.store.commit(scope, self.into_change(true))
    }
}

/// Migrates the store to a version. Call it in [`Plugin::start`](crate::Plugin::start).
///
/// The function calls `migrate` once per older version, from the store's (0 for a new store). It passes an empty batch, in which `migrate`
/// puts the changes that lead to the next version. The changes are committed together with that version's number.
///
/// # Errors
/// A reason for the operator: the store has a newer version, a migration failed, or the store failed.
pub fn open_store(
    host: &Host,
    scope: Scope,
    version: u32,
    mut migrate: impl FnMut(u32, &mut Batch) -> Result<(), String>,
) -> Result<(), String> {
    let found = host.store.version(scope).map_err(|error| error.to_string())?;
    if found > version {
        return Err(format!("the store has version {found}, but this plugin knows only versions up to {version}"));
    }
    for older in found..version {
        let failed = |reason: String| format!("the store stays at version {older}: {reason}");
        let mut batch = Batch::default();
        migrate(older, &mut batch).map_err(failed)?;
        batch.set_version(older + 1);
        batch.commit_durably(host, scope).map_err(|error| failed(error.to_string()))?;
    }
    Ok(())
}

/// Calls `each` with the key and the value of each row of a range, in the order of the keys. Rows that change meanwhile may be passed with
/// either value.
///
/// # Errors
/// The store or `each` failed.
pub fn each_row<E: From<ServiceError>>(
    host: &Host,
    scope: Scope,
    mut range: KeyRange,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let batch = host.store.range(scope, range.clone(), u32::MAX, false)?;
        let batch = batch.view().map_err(ServiceError::from)?;
        batch.rows.iter().try_for_each(|row| each(row.key, row.value))?;
        match batch.rows.iter().last() {
            // The smallest key after the last one.
            Some(last) if batch.more => range.from = Some(Blob([last.key, &[0]].concat())),
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StubHost;

    fn range(from: &[u8], to: &[u8]) -> KeyRange {
        KeyRange { from: Some(Blob(from.to_vec())), to: Some(Blob(to.to_vec())) }
    }

    #[test]
    fn the_last_change_of_a_key_counts() {
        let stub = StubHost::new();
        let host = stub.handle();
        let mut batch = Batch::default();
        for key in [b"a", b"b", b"c", b"d"] {
            batch.put(key, b"old");
        }
        batch.commit(&host, Scope::NONE).unwrap();
        let mut batch = Batch::default();
        batch.put(b"a", b"gone");
        batch.delete(b"a");
        batch.delete(b"b");
        batch.put(b"b", b"new");
        batch.put(b"c", b"gone");
        batch.delete_range(range(b"c", b"z"));
        batch.put(b"e", b"new");
        assert!(!batch.is_empty() && Batch::default().is_empty());
        let seen =
            |batch: &Batch| [b"a", b"b", b"c", b"d", b"e"].map(|key| batch.get(&host, Scope::NONE, key).unwrap());
        let new = Some(b"new".to_vec());
        assert_eq!(seen(&batch), [None, new.clone(), None, None, new.clone()]);
        assert_eq!(seen(&Batch::default())[3], Some(b"old".to_vec()));
        assert!(batch.bytes() >= b"bnewenew".len() && Batch::default().bytes() == 0);
        batch.commit_durably(&host, Scope::NONE).unwrap();
        let expected = [(b"b".to_vec(), b"new".to_vec()), (b"e".to_vec(), b"new".to_vec())];
        assert_eq!(stub.store.rows(), BTreeMap::from(expected));
    }

    #[test]
    fn a_change_deletes_ranges_then_keys_then_puts() {
        let stub = StubHost::new();
        let row = |key: &[u8]| StoreRow { key: Blob(key.to_vec()), value: Blob(b"v".to_vec()) };
        let commit = |change| stub.handle().store.commit(Scope::NONE, change);
        commit(StoreChange { puts: vec![row(b"a"), row(b"b"), row(b"x")], ..Default::default() }).unwrap();
        let deletes = vec![Blob(b"a".to_vec()), Blob(b"x".to_vec())];
        let change = StoreChange {
            puts: vec![row(b"a")],
            deletes,
            deleted_ranges: vec![range(b"a", b"c")],
            ..Default::default()
        };
        commit(change).unwrap();
        assert_eq!(stub.store.rows().into_keys().collect::<Vec<_>>(), [b"a"]);
    }

    #[test]
    fn a_store_over_its_bound_is_left_as_it_was() {
        let stub = StubHost::new();
        stub.store.set_bound(10);
        let mut batch = Batch::default();
        batch.put(b"k", b"123456789");
        batch.commit(&stub.handle(), Scope::NONE).unwrap();
        let mut batch = Batch::default();
        batch.put(b"l", b"");
        batch.set_version(7);
        let refused = batch.commit(&stub.handle(), Scope::NONE).unwrap_err();
        assert_eq!(refused.kind, outrigger_service::ErrorKind::Refused);
        assert_eq!((stub.store.rows().len(), stub.handle().store.version(Scope::NONE)), (1, Ok(0)));
    }

    #[test]
    fn a_store_goes_through_every_version_and_a_newer_one_is_refused() {
        let stub = StubHost::new();
        let host = stub.handle();
        let mut seen = Vec::new();
        let mut open = |version, fails_at| {
            open_store(&host, Scope::NONE, version, |older, batch| {
                seen.push(older);
                batch.put(format!("from {older}").as_bytes(), b"");
                if Some(older) == fails_at { Err("no".to_owned()) } else { Ok(()) }
            })
        };
        assert_eq!(open(2, None), Ok(()));
        assert_eq!(open(2, None), Ok(()));
        assert_eq!(open(4, Some(3)), Err("the store stays at version 3: no".to_owned()));
        let newer = Err("the store has version 3, but this plugin knows only versions up to 2".to_owned());
        assert_eq!(open(2, None), newer);
        assert_eq!(seen, [0, 1, 2, 3]);
        assert_eq!(stub.store.rows().len(), 3);
    }
}
