//! A map by calls' tokens, sharded so that threads of different calls rarely contend for a lock.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use parking_lot::{Mutex, MutexGuard};

/// How many shards there are. Consecutive tokens belong to different ones.
const PARTS: usize = 32;

/// A table by token. Tokens are the host's own, so nobody can choose them to collide.
pub type TokenMap<T> = HashMap<u64, T, BuildHasherDefault<TokenHasher>>;

/// Spreads the bits of a token, which is a counter, over the whole word.
#[derive(Default)]
pub struct TokenHasher(u64);

impl Hasher for TokenHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, token: u64) {
        // 2^64 divided by the golden ratio, made odd.
        self.0 = token.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

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
