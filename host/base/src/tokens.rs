//! What is kept by calls' tokens. Threads that serve different calls seldom meet here: each token belongs to one of several
//! parts, and each part has a lock of its own.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use parking_lot::{Mutex, MutexGuard};

/// How many parts there are. Tokens that follow each other belong to different ones.
const PARTS: usize = 32;

/// A table by token. Tokens are the host's own, so nobody can choose them to collide.
pub type TokenMap<T> = HashMap<u64, T, BuildHasherDefault<TokenHasher>>;

/// Spreads a token's bits, which count upwards, over the whole word.
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

/// Something of which each part of the tokens has its own.
pub struct ByToken<T> {
    parts: [Part<T>; PARTS],
}

/// On a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Part<T>(Mutex<T>);

impl<T: Default> Default for ByToken<T> {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| Part::default()) }
    }
}

impl<T> ByToken<T> {
    /// The part that a token belongs to.
    pub fn of(&self, token: u64) -> MutexGuard<'_, T> {
        self.parts[token as usize % PARTS].lock()
    }

    /// All parts, one after the other.
    pub fn all(&self) -> impl Iterator<Item = MutexGuard<'_, T>> {
        self.parts.iter().map(Part::lock)
    }
}

impl<T> Part<T> {
    fn lock(&self) -> MutexGuard<'_, T> {
        // What is kept is whole after every operation, so a panic elsewhere cannot have damaged it.
        self.0.lock()
    }
}
