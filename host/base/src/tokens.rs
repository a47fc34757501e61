//! Data keyed by the tokens of calls, sharded so that threads of different calls rarely contend for a lock.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard};

/// The number of shards. Consecutive tokens belong to different shards.
const PARTS: usize = 32;

pub type TokenMap<T> = HashMap<u64, T, RandomState>;

pub struct ByToken<T> {
    parts: [Part<T>; PARTS],
}

/// A shard, aligned so that no two shards share a cache line.
#[derive(Default)]
#[repr(align(128))]
struct Part<T>(Mutex<T>);

impl<T: Default> Default for ByToken<T> {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| Part::default()) }
    }
}

impl<T> ByToken<T> {
    /// Locks the shard of a token.
    pub fn of(&self, token: u64) -> MutexGuard<'_, T> {
        self.parts[token as usize % PARTS].0.lock()
    }

    /// Locks all shards, one after the other.
    pub fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.parts.iter().map(|part| part.0.lock())
    }
}
