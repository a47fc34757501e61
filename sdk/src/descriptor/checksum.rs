//! The checksum of a descriptor (BIP 380): eight characters of a BCH code over its text.

/// The characters of descriptors, in the order in which the code numbers them.
const INPUT_CHARSET: &[u8] =
    b"0123456789()[],'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH`#\"\\ ";

/// The characters of checksums, those of bech32.
const CHECKSUM_CHARSET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// The coefficients of the code's generator.
const GENERATOR: [u64; 5] = [0xf5_dee5_1989, 0xa9_fdca_3312, 0x1b_ab10_e32d, 0x37_06b1_677a, 0x64_4d62_6ffd];

/// The number of characters in a checksum.
pub const CHECKSUM_LEN: usize = 8;

fn feed(state: u64, symbol: u64) -> u64 {
    let top = state >> 35;
    let shifted = (state & 0x7_ffff_ffff) << 5 ^ symbol;
    GENERATOR.iter().enumerate().filter(|(bit, _)| top >> bit & 1 == 1).fold(shifted, |sum, (_, term)| sum ^ term)
}

/// The number of a character in the code's order: `byte -> position`, 0xff for characters outside of descriptors.
const POSITIONS: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut index = 0;
    while index < INPUT_CHARSET.len() {
        table[INPUT_CHARSET[index] as usize] = index as u8;
        index += 1;
    }
    table
};

/// The checksum of `payload` (the text before `#`); none where a character cannot stand in a descriptor.
pub fn checksum(payload: &str) -> Option<String> {
    let (mut state, mut group, mut count) = (1, 0, 0);
    for byte in payload.bytes() {
        let position = *POSITIONS.get(usize::from(byte)).filter(|position| **position != 0xff)?;
        state = feed(state, u64::from(position & 31));
        group = group * 3 + u64::from(position >> 5);
        count += 1;
        if count == 3 {
            state = feed(state, group);
            (group, count) = (0, 0);
        }
    }
    if count > 0 {
        state = feed(state, group);
    }
    for _ in 0..CHECKSUM_LEN {
        state = feed(state, 0);
    }
    state ^= 1;
    (0..CHECKSUM_LEN)
        .rev()
        .map(|index| CHECKSUM_CHARSET.get((state >> (5 * index) & 31) as usize).map(|byte| char::from(*byte)))
        .collect()
}

/// `payload#checksum`. A payload that this module rendered has only characters of descriptors.
pub(super) fn with_checksum(payload: &str) -> String {
    format!("{payload}#{}", checksum(payload).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_bip_380_and_of_bitcoind() {
        assert_eq!(checksum("raw(deadbeef)").as_deref(), Some("89f8spxm"));
        assert_eq!(checksum("raw(00)").as_deref(), Some("qwfjgwf6"));
        assert_eq!(checksum("raw(Ü)"), None);
    }

    #[test]
    fn every_changed_character_changes_the_checksum() {
        let text = "wpkh(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)";
        let right = checksum(text);
        for at in 0..text.len() {
            let mut changed = text.to_owned().into_bytes();
            changed[at] ^= 1;
            assert_ne!(checksum(std::str::from_utf8(&changed).unwrap()), right, "position {at}");
        }
    }
}
