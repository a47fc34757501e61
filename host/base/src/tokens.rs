//! A map by calls' tokens, sharded so that threads of different calls rarely contend for a lock.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard};

/// How many shards there are. Consecutive tokens belong to different ones.
const PARTS: usize = 32;

/// A table by token.
pub type TokenMap<T> = HashMap<u64, T, RandomState>;

pub struct ByToken<T> {
    parts: [Part<T>; PARTS],
}

/// On its own cache line.
#[derive(Default)]
#[repr(align(128))]
struct Part<T>(Mutex<T>);

impl<T: Default> Default for ByToken<T> {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| Part::default()) }
    }
}

impl<T> ByToken<T> {
    pub fn of(&self, token: u64) -> MutexGuard<'_, T> {
        self.parts[token as usize % PARTS].0.lock()
    }

    pub fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.parts.iter().map(|part| part.0.lock())
    }
}
