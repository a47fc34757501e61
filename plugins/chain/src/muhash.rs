//! MuHash: a hash of a set, whatever its order. Each element becomes a number of 3072 bits, and the hash is their product
//! modulo the greatest prime of that length.
//!
//! The number of an element is the key stream of ChaCha20 (RFC 8439), with its SHA-256 as the key and counter and nonce 0.
//! Nothing here is secret, so that the time it takes may depend on the values.

use bitcoin::hashes::{Hash, sha256};

/// The limbs of a number, the least first.
const LIMBS: usize = 3072 / 64;
/// The modulus is 2 to the power of 3072 less this.
const SHORT_OF_POWER: u64 = 1_103_717;

/// The bytes of a number.
const BYTES: usize = LIMBS * 8;

type Number = [u64; LIMBS];

/// The product so far.
pub struct MuHash(Number);

impl Default for MuHash {
    fn default() -> Self {
        let mut one = [0; LIMBS];
        one[0] = 1;
        Self(one)
    }
}

impl MuHash {
    /// Puts an element into the set.
    pub fn insert(&mut self, element: &[u8]) {
        self.0 = product(&self.0, &number(element));
    }

    /// The hash of the set, little-endian, before it is shortened by SHA-256.
    pub fn finish(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        for (to, limb) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(reduced(self.0)) {
            *to = limb.to_le_bytes();
        }
        bytes
    }
}

/// The number of an element.
fn number(element: &[u8]) -> Number {
    let key = sha256::Hash::hash(element).to_byte_array();
    let mut number = [0; LIMBS];
    for (counter, limbs) in (0..).zip(number.as_chunks_mut::<8>().0) {
        let words = chacha20_block(&key, counter);
        for (limb, [low, high]) in limbs.iter_mut().zip(words.as_chunks::<2>().0) {
            *limb = u64::from(*high) << 32 | u64::from(*low);
        }
    }
    number
}

/// A block of ChaCha20's key stream, with a nonce of zeros.
fn chacha20_block(key: &[u8; 32], counter: u32) -> [u32; 16] {
    let mut input = [0; 16];
    let (constants, rest) = input.split_at_mut(4);
    constants.copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
    for (word, bytes) in rest.iter_mut().zip(key.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    input[12] = counter;
    let mut state = input;
    for _ in 0..10 {
        for column in 0..4 {
            quarter_round(&mut state, [column, column + 4, column + 8, column + 12]);
        }
        for column in 0..4 {
            quarter_round(&mut state, [column, (column + 1) % 4 + 4, (column + 2) % 4 + 8, (column + 3) % 4 + 12]);
        }
    }
    for (word, input) in state.iter_mut().zip(input) {
        *word = word.wrapping_add(input);
    }
    state
}

#[allow(clippy::indexing_slicing, reason = "the positions are those of the round, all below 16")]
fn quarter_round(state: &mut [u32; 16], [a, b, c, d]: [usize; 4]) {
    for (first, second) in [(16, 12), (8, 7)] {
        state[a] = state[a].wrapping_add(state[b]);
        state[d] = (state[d] ^ state[a]).rotate_left(first);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_left(second);
    }
}

/// The product of two numbers, below 2 to the power of 3072 but not always below the modulus.
fn product(a: &Number, b: &Number) -> Number {
    let mut full = [0_u64; 2 * LIMBS];
    for (shift, factor) in a.iter().enumerate() {
        let mut carry = 0_u128;
        let (_, row) = full.split_at_mut(shift);
        let mut limbs = row.iter_mut();
        for (limb, other) in limbs.by_ref().zip(b) {
            carry += u128::from(*limb) + u128::from(*factor) * u128::from(*other);
            *limb = carry as u64;
            carry >>= 64;
        }
        // No row before reached so far.
        if let Some(limb) = full.get_mut(shift + LIMBS) {
            *limb = carry as u64;
        }
    }
    // What is above the power counts as often again as the modulus falls short of it.
    let (low, high) = full.split_at(LIMBS);
    let mut sum = [0; LIMBS];
    let mut carry = 0_u128;
    for ((limb, low), high) in sum.iter_mut().zip(low).zip(high) {
        carry += u128::from(*low) + u128::from(*high) * u128::from(SHORT_OF_POWER);
        *limb = carry as u64;
        carry >>= 64;
    }
    while carry > 0 {
        carry = add(&mut sum, carry * u128::from(SHORT_OF_POWER));
    }
    sum
}

/// Adds to a number, and gives what does not fit.
fn add(number: &mut Number, mut carry: u128) -> u128 {
    for limb in number {
        carry += u128::from(*limb);
        *limb = carry as u64;
        carry >>= 64;
    }
    carry
}

/// The number below the modulus.
fn reduced(number: Number) -> Number {
    let mut less = number;
    // Where adding the difference reaches the power, what is left is the number less the modulus.
    if add(&mut less, u128::from(SHORT_OF_POWER)) > 0 { less } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn muhash_key_stream_is_that_of_the_standard() {
        // RFC 8439, A.1, test vectors 1 and 2.
        let bytes = |counter| chacha20_block(&[0; 32], counter).map(u32::to_le_bytes).concat();
        assert!(outrigger_sdk::params::encode_hex(&bytes(0)).starts_with("76b8e0ada0f13d90405d6ae55386bd28"));
        assert!(outrigger_sdk::params::encode_hex(&bytes(1)).starts_with("9f07e7be5551387a98ba977c732d080d"));
    }

    #[test]
    fn muhash_products_are_taken_modulo_the_prime() {
        let mut less_one = [u64::MAX; LIMBS];
        less_one[0] = u64::MAX - SHORT_OF_POWER;
        // The square of -1 is 1, and the modulus itself is 0.
        assert_eq!(reduced(product(&less_one, &less_one)), MuHash::default().0);
        let mut modulus = less_one;
        modulus[0] += 1;
        assert_eq!(reduced(modulus), [0; LIMBS]);
        assert_eq!(reduced(product(&[u64::MAX; LIMBS], &MuHash::default().0))[0], SHORT_OF_POWER - 1);
        // (2^3072 - 1) is K - 1 modulo the prime, so its square is (K - 1)^2.
        let mut square = [0; LIMBS];
        square[0] = (SHORT_OF_POWER - 1) * (SHORT_OF_POWER - 1);
        assert_eq!(reduced(product(&[u64::MAX; LIMBS], &[u64::MAX; LIMBS])), square);
    }

    #[test]
    fn muhash_does_not_depend_on_the_order() {
        let of = |elements: &[&[u8]]| {
            let mut hash = MuHash::default();
            elements.iter().for_each(|element| hash.insert(element));
            hash.finish()
        };
        assert_eq!(of(&[b"a", b"b", b"c"]), of(&[b"c", b"a", b"b"]));
        assert_ne!(of(&[b"a", b"b"]), of(&[b"a", b"a"]));
    }
}
