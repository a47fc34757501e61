//! JSON written straight into the reply's bytes, value by value, as `serde_json` would write it.
//!
//! Nothing here allocates but the reply when it grows. What separates keys and items follows from what was written last, so
//! that a part of an object can be written apart and put into it later.

use bitcoin::SignedAmount;
use outrigger_sdk::amount::COIN;

/// Begins an object's key, and the value that must follow.
macro_rules! key {
    ($out:expr, $name:literal) => {
        $crate::json::quoted_key($out, concat!("\"", $name, "\":"))
    };
}
pub(crate) use key;

/// As [`key`], for a name with its quotes and colon. Inlined, so that the name's length is known where it is copied.
#[inline(always)]
pub fn quoted_key(out: &mut Vec<u8>, name: &'static str) {
    separate(out, b'{');
    out.extend_from_slice(name.as_bytes());
}

/// As [`key`], for a name that somebody chose.
pub fn text_key(out: &mut Vec<u8>, name: &str) {
    separate(out, b'{');
    text(out, name);
    out.push(b':');
}

/// Begins an item of an array.
pub fn item(out: &mut Vec<u8>) {
    separate(out, b'[');
}

/// Writes a comma, unless what `opening` opens has nothing in it yet.
#[inline]
fn separate(out: &mut Vec<u8>, opening: u8) {
    if out.last() != Some(&opening) {
        out.push(b',');
    }
}

/// `true` or `false`.
#[inline]
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Text that holds no character which JSON escapes, such as a word or an address.
#[inline]
pub fn plain(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Text.
pub fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| is_escaped(*byte)) {
        let (plain, escaped) = rest.split_at(at);
        out.extend_from_slice(plain);
        if let Some((byte, behind)) = escaped.split_first() {
            escape(out, *byte);
            rest = behind;
        }
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(b"\\u00");
            hex_digits(out, &[byte]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// The longest `u64`, in digits.
const MAX_DIGITS: usize = 20;

/// A number.
pub fn unsigned(out: &mut Vec<u8>, value: u64) {
    digits(out, value, 1);
}

/// A number that may be negative.
pub fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(out, value.unsigned_abs());
}

/// The decimals of an amount in bitcoin.
const DECIMALS: usize = 8;

/// An amount as bitcoin with eight decimals.
pub fn bitcoin(out: &mut Vec<u8>, amount: SignedAmount) {
    let satoshi = amount.to_sat();
    if satoshi < 0 {
        out.push(b'-');
    }
    let magnitude = satoshi.unsigned_abs();
    unsigned(out, magnitude / COIN);
    out.push(b'.');
    digits(out, magnitude % COIN, DECIMALS);
}

/// A number's digits, with zeros in front where there are fewer than `least`.
fn digits(out: &mut Vec<u8>, mut value: u64, least: usize) {
    let mut text = [b'0'; MAX_DIGITS];
    let mut begin = MAX_DIGITS;
    for (at, digit) in text.iter_mut().enumerate().rev() {
        if value == 0 && MAX_DIGITS - begin >= least {
            break;
        }
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
        begin = at;
    }
    out.extend_from_slice(text.get(begin..).unwrap_or_default());
}

/// The two digits of every byte.
const HEX: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    table
};

fn hex_digits<'b>(out: &mut Vec<u8>, bytes: impl IntoIterator<Item = &'b u8>) {
    out.extend(bytes.into_iter().flat_map(|byte| HEX[usize::from(*byte)]));
}

/// Bytes in hexadecimal.
pub fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    out.reserve(2 * bytes.len() + 1);
    hex_digits(out, bytes);
    out.push(b'"');
}

/// A hash, given in internal order, as it is printed: reversed.
pub fn hash(out: &mut Vec<u8>, bytes: &[u8; 32]) {
    let mut text = [b'"'; 66];
    for index in 0..32 {
        [text[2 * index + 1], text[2 * index + 2]] = HEX[usize::from(bytes[31 - index])];
    }
    out.extend_from_slice(&text);
}

/// An array of hashes.
pub fn hashes<H: bitcoin::hashes::Hash<Bytes = [u8; 32]>>(out: &mut Vec<u8>, hashes: impl Iterator<Item = H>) {
    out.push(b'[');
    for value in hashes {
        item(out);
        hash(out, &value.to_byte_array());
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::Txid;
    use bitcoin::hashes::Hash;
    use outrigger_sdk::amount::Btc;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_characters_below_a_hundred_are_escaped_as_serde_json_does() {
        for character in (0..=0xff_u8).map(char::from).chain(['\u{2028}', '\u{ffff}', '😀']) {
            let given = format!("a{character}b{character}");
            assert_eq!(written(|out| text(out, &given)), serde_json::to_string(&given).unwrap());
        }
    }

    #[test]
    fn json_numbers_are_written_to_their_ends() {
        for value in [0, 1, 9, 10, 99, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(written(|out| unsigned(out, value)), value.to_string());
        }
        for value in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(written(|out| signed(out, value)), value.to_string());
        }
        assert_eq!(written(|out| bitcoin(out, SignedAmount::from_sat(-1))), "-0.00000001");
        assert_eq!(written(|out| bitcoin(out, SignedAmount::MAX_MONEY)), "21000000.00000000");
    }

    #[test]
    fn json_keys_and_items_are_separated() {
        let object = written(|out| {
            out.push(b'{');
            key!(out, "a");
            boolean(out, true);
            text_key(out, "b\"");
            out.push(b'[');
            item(out);
            plain(out, "x");
            item(out);
            boolean(out, false);
            out.extend_from_slice(b"]}");
        });
        assert_eq!(object, r#"{"a":true,"b\"":["x",false]}"#);
        assert_eq!(written(|out| key!(out, "later")), r#","later":"#);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn json_is_what_serde_json_writes(
            value in any::<String>(),
            hard in "[\\x00-\\x22\\\\a-c\u{7f}é]{0,12}",
            unsigned_number in any::<u64>(),
            signed_number in any::<i64>(),
            bytes in prop::collection::vec(any::<u8>(), 0..40),
            txids in prop::collection::vec(any::<[u8; 32]>(), 0..3),
        ) {
            for given in [&value, &hard] {
                prop_assert_eq!(written(|out| text(out, given)), serde_json::to_string(given).unwrap());
            }
            let expected = serde_json::to_string(&unsigned_number).unwrap();
            prop_assert_eq!(written(|out| unsigned(out, unsigned_number)), expected);
            prop_assert_eq!(written(|out| signed(out, signed_number)), serde_json::to_string(&signed_number).unwrap());
            let amount = SignedAmount::from_sat(signed_number);
            let expected = serde_json::to_string(&Btc::from(amount)).unwrap();
            prop_assert_eq!(written(|out| bitcoin(out, amount)), expected);
            let expected = serde_json::to_string(&outrigger_sdk::params::encode_hex(&bytes)).unwrap();
            prop_assert_eq!(written(|out| hex(out, &bytes)), expected);
            let txids: Vec<Txid> = txids.into_iter().map(Txid::from_byte_array).collect();
            prop_assert_eq!(written(|out| hashes(out, txids.iter().copied())), serde_json::to_string(&txids).unwrap());
        }
    }
}
