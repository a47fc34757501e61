//! A store in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use outrigger_service::store::{
    KeyRange, MAX_ANSWER, RowsWriter, StoreChange, StoreRows, StoreUsage, answer_too_large, check_keys,
};
use outrigger_service::wire::{Blob, Encoded};
use outrigger_service::{ErrorKind, Result, Scope, ServiceError, Store};

use super::lock;

/// A host's bound of the store without `max_store_mib`, in bytes.
const BOUND: u64 = 256 << 20;

/// A store in memory. It counts the bytes of keys and values alone.
pub struct StubStore(Mutex<State>);

struct State {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    bytes: u64,
    version: u32,
    bound: u64,
    failure: Option<ServiceError>,
}

impl State {
    /// Sets or removes the value of a key. Returns the key and its former value.
    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> (Vec<u8>, Option<Vec<u8>>) {
        let size = |value: &Vec<u8>| (key.len() + value.len()) as u64;
        let added = value.as_ref().map_or(0, size);
        let former = match value {
            Some(value) => self.rows.insert(key.clone(), value),
            None => self.rows.remove(&key),
        };
        self.bytes = self.bytes + added - former.as_ref().map_or(0, size);
        (key, former)
    }

    /// The state, unless the store fails.
    fn working(&mut self) -> Result<&mut Self> {
        self.failure.clone().map_or(Ok(self), Err)
    }
}

impl Default for StubStore {
    fn default() -> Self {
        Self(Mutex::new(State { rows: BTreeMap::new(), bytes: 0, version: 0, bound: BOUND, failure: None }))
    }
}

impl StubStore {
    /// Bounds the store from now on, in bytes.
    pub fn set_bound(&self, bound: u64) {
        lock(&self.0).bound = bound;
    }

    /// Makes every function fail with this error from now on; `None` ends that.
    pub fn fail(&self, failure: Option<ServiceError>) {
        lock(&self.0).failure = failure;
    }

    /// All rows.
    pub fn rows(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        lock(&self.0).rows.clone()
    }
}

impl Store for StubStore {
    fn get(&self, _: Scope, keys: Vec<Blob>) -> Result<Vec<Option<Blob>>> {
        check_keys(&keys)?;
        let mut state = lock(&self.0);
        let rows = &state.working()?.rows;
        let values: Vec<_> = keys.iter().map(|key| rows.get(&key.0).map(|value| Blob(value.clone()))).collect();
        let bytes: usize = values.iter().flatten().map(|value| value.len()).sum();
        if bytes > MAX_ANSWER { Err(answer_too_large()) } else { Ok(values) }
    }

    fn range(&self, _: Scope, range: KeyRange, limit: u32, reverse: bool) -> Result<Encoded<StoreRows>> {
        let mut state = lock(&self.0);
        let rows = &state.working()?.rows;
        let mut answer = RowsWriter::new(limit);
        let Some(bounds) = range.bounds()? else { return Ok(answer.finish(false)) };
        let mut rows = rows.range::<[u8], _>(bounds);
        let more = match reverse {
            false => rows.any(|(key, value)| !answer.push(key, value)),
            true => rows.rev().any(|(key, value)| !answer.push(key, value)),
        };
        Ok(answer.finish(more))
    }

    fn commit(&self, _: Scope, change: StoreChange) -> Result<()> {
        change.check()?;
        let mut state = lock(&self.0);
        let state = state.working()?;
        let (mut before, bytes) = (Vec::new(), state.bytes);
        for range in &change.deleted_ranges {
            let Some(bounds) = range.bounds()? else { continue };
            let keys: Vec<_> = state.rows.range::<[u8], _>(bounds).map(|(key, _)| key.clone()).collect();
            before.extend(keys.into_iter().map(|key| state.set(key, None)));
        }
        before.extend(change.deletes.into_iter().map(|key| state.set(key.0, None)));
        before.extend(change.puts.into_iter().map(|row| state.set(row.key.0, Some(row.value.0))));
        let bound = state.bound;
        // A store that is too large may still shrink.
        if state.bytes > bound.max(bytes) {
            for (key, value) in before.into_iter().rev() {
                state.set(key, value);
            }
            let detail = format!("The store may take at most {bound} bytes; nothing was stored");
            return Err(ServiceError::new(ErrorKind::Refused, detail));
        }
        state.version = change.version.unwrap_or(state.version);
        Ok(())
    }

    fn version(&self, _: Scope) -> Result<u32> {
        Ok(lock(&self.0).working()?.version)
    }

    fn usage(&self, _: Scope) -> Result<StoreUsage> {
        let mut state = lock(&self.0);
        let state = state.working()?;
        Ok(StoreUsage { bytes: state.bytes, bound: state.bound })
    }
}
