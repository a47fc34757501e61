//! Writes JSON directly into the reply's bytes, value by value.
//!
//! The last byte decides whether a key or an item needs a comma, so a part of an object can also go to a separate buffer first.
//! Writing to memory cannot fail.

use bitcoin::{Amount, SignedAmount};
use outrigger_sdk::params::push_hex;
use serde::Serialize;

/// Writes an object's key, and its value with a function of this module. Without a function the value must follow.
macro_rules! key {
    ($out:expr, $name:literal) => {
        $crate::json::quoted_key($out, concat!("\"", $name, "\":"))
    };
    ($out:expr, $name:literal, $write:ident, $value:expr) => {{
        $crate::json::key!($out, $name);
        $crate::json::$write($out, $value);
    }};
}
pub(crate) use key;

/// Like [`key`], for a name with its quotes and colon. Inlined, so that the compiler knows the length of the copy.
#[inline(always)]
pub fn quoted_key(out: &mut Vec<u8>, name: &'static str) {
    separate(out, b'{');
    out.extend_from_slice(name.as_bytes());
}

/// Like [`key`], for a name that may need escapes.
pub fn text_key(out: &mut Vec<u8>, name: &str) {
    separate(out, b'{');
    text(out, name);
    out.push(b':');
}

/// Separates an item of an array from the item before it.
pub fn item(out: &mut Vec<u8>) {
    separate(out, b'[');
}

/// Writes a comma, except after the opening bracket.
#[inline]
fn separate(out: &mut Vec<u8>, opening: u8) {
    if out.last() != Some(&opening) {
        out.push(b',');
    }
}

#[inline]
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Text without characters that JSON escapes, such as a word or an address.
#[inline]
pub fn plain(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

pub fn text(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(out, text);
}

/// An integer. serde_json writes one faster than `format_args`.
pub fn number(out: &mut Vec<u8>, value: impl Serialize) {
    let _ = serde_json::to_writer(out, &value);
}

/// An amount in BTC with eight decimals.
pub fn bitcoin(out: &mut Vec<u8>, amount: SignedAmount) {
    let coin = Amount::ONE_BTC.to_sat();
    let satoshi = amount.unsigned_abs().to_sat();
    if amount.is_negative() {
        out.push(b'-');
    }
    number(out, satoshi / coin);
    // With one coin added, the number has nine digits, so leading zeros of the decimals are written. The point replaces the first digit.
    let point = out.len();
    number(out, coin + satoshi % coin);
    out.get_mut(point).into_iter().for_each(|digit| *digit = b'.');
}

pub fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    push_hex(out, bytes);
    out.push(b'"');
}

/// A hash in display order, which reverses its bytes.
pub fn hash(out: &mut Vec<u8>, bytes: &[u8; 32]) {
    let mut reversed = *bytes;
    reversed.reverse();
    hex(out, &reversed);
}

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
    use bitcoin::Txid;
    use bitcoin::hashes::Hash as _;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_keys_and_items_are_separated() {
        let object = written(|out| {
            out.push(b'{');
            key!(out, "a", boolean, true);
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

    #[test]
    fn json_values_are_those_of_serde_json() {
        let txids = [1, 2].map(|byte| Txid::from_byte_array([byte; 32]));
        assert_eq!(written(|out| hashes(out, txids.into_iter())), serde_json::to_string(&txids).unwrap());
        assert_eq!(written(|out| hex(out, &[0, 0xab])), r#""00ab""#);
        assert_eq!(written(|out| text(out, "a\"\n")), r#""a\"\n""#);
        assert_eq!(written(|out| bitcoin(out, SignedAmount::from_sat(-1))), "-0.00000001");
        assert_eq!(written(|out| number(out, i64::MIN)), i64::MIN.to_string());
    }
}
