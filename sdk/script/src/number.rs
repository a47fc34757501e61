//! Script numbers: little-endian with the sign in the highest bit, of variable length.
//!
//! Operands of arithmetic have at most four bytes and results at most five, so `i64` does not overflow.

pub(super) const MAX_NUMBER_SIZE: usize = 4;
/// Longest operand of a locktime opcode, in bytes: locktimes are unsigned 32-bit values.
pub(super) const MAX_LOCKTIME_NUMBER_SIZE: usize = 5;

/// Decodes a script number; `None` if it exceeds `max_size` bytes, or if it is not minimal and `require_minimal` is set.
pub(super) fn decode_number(bytes: &[u8], require_minimal: bool, max_size: usize) -> Option<i64> {
    if bytes.len() > max_size.min(size_of::<i64>()) || (require_minimal && !is_minimal(bytes)) {
        return None;
    }
    let Some((last, lower)) = bytes.split_last() else {
        return Some(0);
    };
    // The size limit above keeps the magnitude below 2^63.
    let magnitude = lower.iter().rev().fold(i64::from(last & 0x7f), |value, byte| (value << 8) | i64::from(*byte));
    Some(if last & 0x80 == 0 { magnitude } else { -magnitude })
}

/// Whether an encoding is the shortest. Zero is encoded as empty, so neither 00 nor 80 is minimal.
fn is_minimal(bytes: &[u8]) -> bool {
    match bytes {
        [] => true,
        [last] => last & 0x7f != 0,
        // A last byte without magnitude is minimal only if it carries the sign.
        [.., before, last] => last & 0x7f != 0 || before & 0x80 != 0,
    }
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
    use crate::Element;

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
            assert_eq!(Element::number(value).as_bytes(), bytes, "{value}");
            assert_eq!(decode_number(bytes, true, 5), Some(value), "{value}");
        }
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
