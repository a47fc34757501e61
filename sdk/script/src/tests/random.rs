//! A deterministic random generator, so that a failure can be reproduced.

use secp256k1::{Keypair, Secp256k1, SecretKey};

pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    pub(super) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    pub(super) fn keypair(&mut self) -> Keypair {
        let secret = SecretKey::from_slice(&self.bytes(32)).expect("a key below the group order");
        Keypair::from_secret_key(&Secp256k1::new(), &secret)
    }
}
