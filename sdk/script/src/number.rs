//! Script numbers: little-endian with the sign in the highest bit, of variable length.
//!
//! Operands of arithmetic have at most four bytes and results at most five, so `i64` does not overflow.

pub(super) const MAX_NUMBER_SIZE: usize = 4;
/// Longest operand of a locktime opcode, in bytes: locktimes are unsigned 32-bit values.
pub(super) const MAX_LOCKTIME_NUMBER_SIZE: usize = 5;

/// Longest encoding of an `i64`, in bytes: eight and one for the sign.
const MAX_ENCODED_SIZE: usize = 9;

/// Decodes a script number; `None` if it exceeds `max_size` bytes, or is not minimal although `require_minimal`.
pub(super) fn decode_number(bytes: &[u8], require_minimal: bool, max_size: usize) -> Option<i64> {
    if bytes.len() > max_size.min(size_of::<i64>()) || (require_minimal && !is_minimal(bytes)) {
        return None;
    }
    let Some((last, lower)) = bytes.split_last() else {
        return Some(0);
    };
    // The limits above keep it below 63 bits.
    let magnitude = lower.iter().rev().fold(i64::from(last & 0x7f), |value, byte| (value << 8) | i64::from(*byte));
    Some(if last & 0x80 == 0 { magnitude } else { -magnitude })
}

/// Whether an encoding is the shortest. That of zero is empty, so neither 00 nor 80 is minimal.
fn is_minimal(bytes: &[u8]) -> bool {
    match bytes {
        [] => true,
        [last] => last & 0x7f != 0,
        // A last byte without magnitude is minimal only if it carries the sign.
        [.., before, last] => last & 0x7f != 0 || before & 0x80 != 0,
    }
}

/// The shortest encoding: a buffer, and the length used.
pub(super) fn encode_number(value: i64) -> ([u8; MAX_ENCODED_SIZE], usize) {
    let mut buffer = [0u8; MAX_ENCODED_SIZE];
    let mut magnitude = value.unsigned_abs();
    let sign = if value < 0 { 0x80 } else { 0 };
    let mut length = 0;
    let mut last = 0;
    for slot in buffer.iter_mut() {
        if magnitude == 0 {
            // If the magnitude uses the sign bit, the sign needs a byte of its own.
            if last & 0x80 != 0 {
                *slot = sign;
                length += 1;
            }
            break;
        }
        last = (magnitude & 0xff) as u8;
        magnitude >>= 8;
        *slot = if magnitude == 0 && last & 0x80 == 0 { last | sign } else { last };
        length += 1;
    }
    (buffer, length)
}

/// An element as a boolean: false is zero of any length and sign.
pub(super) fn as_bool(bytes: &[u8]) -> bool {
    match bytes.split_last() {
        None => false,
        Some((last, lower)) => last & 0x7f != 0 || lower.iter().any(|byte| *byte != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: i64) -> Vec<u8> {
        let (buffer, length) = encode_number(value);
        buffer[..length].to_vec()
    }

    #[test]
    fn numbers_have_their_known_encodings() {
        for (value, bytes) in [
            (0, &[][..]),
            (1, &[0x01]),
            (-1, &[0x81]),
            (127, &[0x7f]),
            (-127, &[0xff]),
            (128, &[0x80, 0x00]),
            (-128, &[0x80, 0x80]),
            (255, &[0xff, 0x00]),
            (256, &[0x00, 0x01]),
            (-32768, &[0x00, 0x80, 0x80]),
            (2_147_483_647, &[0xff, 0xff, 0xff, 0x7f]),
            (-4_294_967_294, &[0xfe, 0xff, 0xff, 0xff, 0x80]),
        ] {
            assert_eq!(encoded(value), bytes, "{value}");
            assert_eq!(decode_number(bytes, true, 5), Some(value), "{value}");
        }
    }

    #[test]
    fn extremes_are_encoded() {
        assert_eq!(encoded(i64::MIN), [0, 0, 0, 0, 0, 0, 0, 0x80, 0x80]);
        assert_eq!(encoded(i64::MAX), [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    }

    #[test]
    fn number_that_is_padded_is_refused_where_it_must_be_minimal() {
        for bytes in [&[0x00][..], &[0x80], &[0x01, 0x00], &[0x01, 0x80], &[0x00, 0x00, 0x80]] {
            assert_eq!(decode_number(bytes, true, 4), None, "{bytes:?}");
            assert!(decode_number(bytes, false, 4).is_some(), "{bytes:?}");
        }
        assert_eq!(decode_number(&[1, 2, 3, 4, 5], false, 4), None);
    }

    #[test]
    fn truth_ignores_the_sign_of_zero() {
        for bytes in [&[][..], &[0], &[0x80], &[0, 0], &[0, 0x80]] {
            assert!(!as_bool(bytes), "{bytes:?}");
        }
        for bytes in [&[1][..], &[0x81], &[0x80, 0], &[0x80, 0x80], &[1, 0x80]] {
            assert!(as_bool(bytes), "{bytes:?}");
        }
    }
}
