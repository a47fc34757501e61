//! Matches many scripts against a block filter (BIP 158). Each script's hash is looked up in the filter's elements,
//! which is faster than sorting the scripts for each block.

use std::hash::Hasher;

use bitcoin::BlockHash;
use bitcoin::consensus::deserialize_partial;
use bitcoin::consensus::encode::VarInt;
use bitcoin::hashes::Hash;

/// BIP 158: the bits of an element's remainder, and the inverse of the false-positive rate.
const P: u8 = 19;
const M: u64 = 784_931;

/// A bitmap has one bit for each range of 2^14 values, with about forty ranges to an element: it excludes most scripts.
const RANGE: u32 = 14;
const WORD: u32 = 6;

/// How many bits of a quotient are counted at once.
const MAX_ONES: u32 = 32;

/// Whether a block's filter has one of these scripts; `None` for an invalid filter.
pub fn matches<'a>(filter: &[u8], block: &BlockHash, mut scripts: impl Iterator<Item = &'a [u8]>) -> Option<bool> {
    let (VarInt(count), at) = deserialize_partial(filter).ok()?;
    let coded = filter.get(at..)?;
    // No element is shorter than its remainder.
    let count = usize::try_from(count).ok().filter(|count| *count <= 8 * coded.len() / usize::from(P))?;
    let range = M * count as u64;
    let elements = elements(coded, count)?;
    let mut bitmap = vec![0_u64; usize::try_from(range >> (RANGE + WORD)).ok()? + 1];
    for element in &elements {
        *bitmap.get_mut(word(*element))? |= bit(*element);
    }
    let keys = block.as_byte_array();
    let (first, second) = (keys.first_chunk().copied()?, keys[8..].first_chunk().copied()?);
    let (first, second) = (u64::from_le_bytes(first), u64::from_le_bytes(second));
    Some(scripts.any(|script| {
        let element = ((u128::from(hash(first, second, script)) * u128::from(range)) >> u64::BITS) as u64;
        bitmap.get(word(element)).is_some_and(|word| word & bit(element) != 0)
            && elements.binary_search(&element).is_ok()
    }))
}

fn word(element: u64) -> usize {
    usize::try_from(element >> (RANGE + WORD)).unwrap_or(usize::MAX)
}

fn bit(element: u64) -> u64 {
    1 << ((element >> RANGE) % u64::from(u64::BITS))
}

/// SipHash-2-4 of a script.
#[expect(
    deprecated,
    reason = "it is SipHash-2-4, which the default hasher need not be; only its use for maps is deprecated"
)]
fn hash(first: u64, second: u64, script: &[u8]) -> u64 {
    let mut hasher = std::hash::SipHasher::new_with_keys(first, second);
    hasher.write(script);
    hasher.finish()
}

/// The elements of a filter in ascending order, decoded from Golomb-Rice coded differences.
fn elements(coded: &[u8], count: usize) -> Option<Vec<u64>> {
    let (mut at, mut last) = (0, 0_u64);
    let mut next = || {
        let mut quotient = 0;
        loop {
            let ones = bits_from(coded, at).leading_ones().min(MAX_ONES);
            at += ones as usize;
            quotient += u64::from(ones);
            if ones < MAX_ONES {
                break;
            }
        }
        let remainder = bits_from(coded, at + 1) >> (u64::BITS - u32::from(P));
        at += 1 + usize::from(P);
        last = last.checked_add((quotient << P) | remainder)?;
        (at <= 8 * coded.len()).then_some(last)
    };
    (0..count).map(|_| next()).collect()
}

/// At least 57 bits from an offset, padded with zeros.
fn bits_from(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at / 8..).unwrap_or_default();
    let mut word = [0; 8];
    word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(word) << (at % 8)
}

#[cfg(test)]
mod tests {
    use bitcoin::bip158::{BlockFilter, GcsFilterWriter};
    use proptest::prelude::*;

    use super::*;

    fn filter(block: &BlockHash, scripts: &[Vec<u8>]) -> Vec<u8> {
        let key = |at: usize| u64::from_le_bytes(*block.as_byte_array()[at..].first_chunk().unwrap());
        let mut filter = Vec::new();
        let mut writer = GcsFilterWriter::new(&mut filter, key(0), key(8), M, P);
        scripts.iter().for_each(|script| writer.add_element(script));
        writer.finish().unwrap();
        filter
    }

    fn own<'a>(filter: &[u8], block: &BlockHash, scripts: impl IntoIterator<Item = &'a Vec<u8>>) -> Option<bool> {
        matches(filter, block, scripts.into_iter().map(Vec::as_slice))
    }

    proptest! {
        #[test]
        fn filters_match_as_those_of_the_reference(
            block in any::<[u8; 32]>(),
            mut scripts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..60),
            others in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..60),
        ) {
            let block = BlockHash::from_byte_array(block);
            let bytes = filter(&block, &scripts);
            let theirs = BlockFilter::new(&bytes).match_any(&block, others.iter().map(Vec::as_slice)).unwrap();
            prop_assert_eq!(own(&bytes, &block, &others), Some(theirs));
            while let Some(script) = scripts.pop() {
                prop_assert_eq!(own(&bytes, &block, [&script]), Some(true));
            }
        }

        #[test]
        fn bytes_that_are_no_filter_are_read_without_harm(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            script in proptest::collection::vec(any::<u8>(), 1..40),
        ) {
            let _ = own(&bytes, &BlockHash::all_zeros(), [&script]);
        }
    }

    #[test]
    fn filter_that_is_cut_off_cannot_be_read() {
        let block = BlockHash::all_zeros();
        let script = vec![1, 2, 3];
        let bytes = filter(&block, &[script.clone(), vec![4]]);
        assert_eq!(own(&bytes[..bytes.len() - 2], &block, [&script]), None);
        assert_eq!(own(&[0], &block, [&script]), Some(false), "a block without scripts");
        assert_eq!(own(&[], &block, [&script]), None);
    }
}
