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
