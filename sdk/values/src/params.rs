//! A call's positional arguments, with bitcoind's checks and messages.
//!
//! A wrapper plugin reads the arguments of other plugins' methods with [`Params`]. A plugin's own method gets its arguments as the
//! parameters of a Rust function.
//!
//! ```
//! use outrigger_values::params::Params;
//! use outrigger_values::RpcErrorCode;
//! use serde_json::json;
//!
//! let params = Params(vec![json!(6)]);
//! // As in bitcoind, null means omitted. The error messages are bitcoind's.
//! assert_eq!((params.given(0), params.given(3)), (Some(&json!(6)), None));
//! let error = params.text(0).unwrap_err();
//! assert_eq!((error.code, error.message.as_str()), (RpcErrorCode::MISC, "JSON value is not a string as expected"));
//! ```

use bitcoin::hashes::Hash;
use serde_json::Value;

use crate::error::RpcError;
pub use crate::json_words::{json_words, toml_words};

/// The arguments of a call by position. An omitted argument is null.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Params(pub Vec<Value>);

impl Params {
    /// The argument at `index`; null if omitted.
    pub fn get(&self, index: usize) -> &Value {
        self.0.get(index).unwrap_or(&Value::Null)
    }

    /// The argument at `index`; `None` if omitted or null.
    pub fn given(&self, index: usize) -> Option<&Value> {
        Some(self.get(index)).filter(|value| !value.is_null())
    }

    /// The first `N` arguments; null where omitted.
    pub fn first<const N: usize>(&mut self) -> &mut [Value; N] {
        if self.0.len() < N {
            self.0.resize(N, Value::Null);
        }
        #[allow(clippy::unwrap_used, reason = "the lines above pad the arguments to N")]
        self.0.first_chunk_mut().unwrap()
    }

    /// The argument at `index` as text. Error -1.
    pub fn text(&self, index: usize) -> Result<&str, RpcError> {
        text(self.get(index))
    }
}

/// JSON's types, with bitcoind's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// `null`
    Null,
    /// `bool`
    Bool,
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `number`
    Number,
}

impl Type {
    /// The type of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Object(_) => Self::Object,
            Value::Array(_) => Self::Array,
            Value::String(_) => Self::String,
            Value::Number(_) => Self::Number,
        }
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
        }
    }
}

/// Checks positional types as Bitcoin Core 0.21 did: -3 `Expected type WANT, got GOT`.
pub fn check_types<'v>(given: impl IntoIterator<Item = &'v Value>, wanted: &[Type]) -> Result<(), RpcError> {
    for (value, wanted) in given.into_iter().zip(wanted) {
        let got = Type::of(value);
        if got != *wanted {
            return Err(RpcError::type_error(format!("Expected type {}, got {}", wanted.name(), got.name())));
        }
    }
    Ok(())
}

/// The value as text. Error -1.
pub fn text(value: &Value) -> Result<&str, RpcError> {
    value.as_str().ok_or_else(|| RpcError::misc("JSON value is not a string as expected"))
}

/// The value as a boolean. Error -1.
pub fn flag(value: &Value) -> Result<bool, RpcError> {
    value.as_bool().ok_or_else(|| RpcError::misc("JSON value is not a boolean as expected"))
}

/// The value as a 64-bit integer. Error -1, also for `1.0` and `1e3`.
pub fn int64(value: &Value) -> Result<i64, RpcError> {
    let Value::Number(number) = value else {
        return Err(RpcError::misc("JSON value is not an integer as expected"));
    };
    number.to_string().parse().map_err(|_| RpcError::misc("JSON integer out of range"))
}

/// The value as a 32-bit integer. Error -1.
pub fn int32(value: &Value) -> Result<i32, RpcError> {
    i32::try_from(int64(value)?).map_err(|_| RpcError::misc("JSON integer out of range"))
}

/// A hash in display order, such as a txid, as the argument `name`. Error -1 for another type, -8 for a wrong length or text that is
/// not hexadecimal.
pub fn hash<H: Hash<Bytes = [u8; 32]>>(value: &Value, name: &str) -> Result<H, RpcError> {
    hash_text(text(value)?, name)
}

/// As [`hash`], for an argument that is known to be text.
pub fn hash_text<H: Hash<Bytes = [u8; 32]>>(text: &str, name: &str) -> Result<H, RpcError> {
    const LENGTH: usize = 64;
    if text.len() != LENGTH {
        let message = format!("{name} must be of length {LENGTH} (not {}, for '{text}')", text.len());
        return Err(RpcError::invalid_parameter(message));
    }
    let not_hex = || RpcError::invalid_parameter(format!("{name} must be hexadecimal string (not '{text}')"));
    let bytes = decode_hex(text).ok_or_else(not_hex)?;
    let mut bytes: [u8; 32] = bytes.try_into().map_err(|_| not_hex())?;
    bytes.reverse();
    Ok(H::from_byte_array(bytes))
}

/// Decodes the argument `name` from hexadecimal text. Error -8 for text that is empty or not hexadecimal, and for other types, whose
/// message shows an empty text.
pub fn hex(value: &Value, name: &str) -> Result<Vec<u8>, RpcError> {
    let text = value.as_str().unwrap_or_default();
    decode_hex(text)
        .filter(|bytes| !bytes.is_empty())
        .ok_or_else(|| RpcError::invalid_parameter(format!("{name} must be hexadecimal string (not '{text}')")))
}

/// The bytes of hexadecimal text; `None` for other text or an odd number of digits.
pub fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = text.as_bytes().as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let value = |digit: u8| DIGIT_VALUES.get(usize::from(digit)).copied().unwrap_or(NO_DIGIT);
    // Invalid digits are detected once, after the loop: a block has millions of digits.
    let mut seen = 0;
    let byte = |[high, low]: &[u8; 2]| {
        let (high, low) = (value(*high), value(*low));
        seen |= high | low;
        high << 4 | low
    };
    let bytes = pairs.iter().map(byte).collect();
    (seen < NO_DIGIT).then_some(bytes)
}

/// Greater than any digit's value.
const NO_DIGIT: u8 = 0x10;

/// The values of the hexadecimal digits, by character.
const DIGIT_VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        let character = b"0123456789abcdef"[digit as usize];
        values[character as usize] = digit;
        values[character.to_ascii_uppercase() as usize] = digit;
        digit += 1;
    }
    values
};

/// `bytes` in lower-case hexadecimal.
pub fn encode_hex(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    push_hex(&mut text, bytes);
    // The digits are valid UTF-8.
    String::from_utf8(text).unwrap_or_default()
}

/// Appends `bytes` in lower-case hexadecimal.
pub fn push_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let digit = |value: u8| value + if value < 10 { b'0' } else { b'a' - 10 };
    let start = out.len();
    out.resize(start + 2 * bytes.len(), 0);
    let (pairs, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<2>();
    for ([high, low], byte) in pairs.iter_mut().zip(bytes) {
        (*high, *low) = (digit(byte >> 4), digit(byte & 0xf));
    }
}

/// Parses the range of a ranged descriptor: `[BEGIN, END]`, or `END` for `[0, END]`. Returns the first and the last index, both included.
/// Error -8 for an invalid range, -1 for a number that is not a 64-bit integer. The checks run in bitcoind's order.
pub fn descriptor_range(value: &Value) -> Result<(u32, u32), RpcError> {
    const MAX_INDEXES: i64 = 1_000_000;
    let error = |message: &str| Err(RpcError::invalid_parameter(message));
    let (begin, end) = match value {
        Value::Number(_) => (0, int64(value)?),
        Value::Array(ends) => match ends.as_slice() {
            [begin @ Value::Number(_), end @ Value::Number(_)] => {
                let (begin, end) = (int64(begin)?, int64(end)?);
                if begin > end {
                    return error("Range specified as [begin,end] must not have begin after end");
                }
                (begin, end)
            }
            _ => return error("Range must be specified as end or as [begin,end]"),
        },
        _ => return error("Range must be specified as end or as [begin,end]"),
    };
    if begin < 0 {
        return error("Range should be greater or equal than 0");
    }
    match (u32::try_from(begin), u32::try_from(end)) {
        (Ok(_), Ok(last)) if last >= 1 << 31 => error("End of range is too high"),
        (Ok(_), Ok(_)) if end >= begin + MAX_INDEXES => error("Range is too large"),
        (Ok(first), Ok(last)) => Ok((first, last)),
        _ => error("End of range is too high"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::Txid;
    use serde_json::json;

    #[track_caller]
    fn message<T: std::fmt::Debug>(result: Result<T, RpcError>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn accessors_say_what_they_wanted() {
        assert_eq!(message(text(&json!(1))), "JSON value is not a string as expected");
        assert_eq!(message(flag(&json!("true"))), "JSON value is not a boolean as expected");
        assert_eq!(message(int64(&json!("1"))), "JSON value is not an integer as expected");
        for value in ["1.0", "1e3", "9223372036854775808"] {
            let value: Value = serde_json::from_str(value).unwrap();
            assert_eq!(message(int64(&value)), "JSON integer out of range");
        }
        assert_eq!(message(int32(&json!(2_147_483_648_i64))), "JSON integer out of range");
        assert_eq!(int32(&json!(-5)), Ok(-5));
    }

    #[test]
    fn hexadecimal_text_is_bytes_and_nothing_else_is() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encode_hex(&all);
        assert_eq!((&text[..8], &text[504..]), ("00010203", "fcfdfeff"));
        assert_eq!(decode_hex(&text), Some(all.clone()));
        assert_eq!(decode_hex(&text.to_uppercase()), Some(all));
        assert_eq!((decode_hex(""), encode_hex(&[])), (Some(Vec::new()), String::new()));
        for character in (0..=255).map(char::from).filter(|character| !character.is_ascii_hexdigit()) {
            for text in [format!("0{character}"), format!("{character}0"), format!("ab{character}")] {
                assert_eq!(decode_hex(&text), None, "{text:?}");
            }
        }
        assert_eq!(decode_hex("abc"), None);
    }

    #[test]
    fn types_are_checked_by_position() {
        let params = Params(vec![json!([]), json!(null)]);
        assert_eq!(check_types(&params.0, &[Type::Array]), Ok(()));
        let refused = check_types(&params.0, &[Type::Array, Type::Object]);
        assert_eq!(message(refused), "Expected type object, got null");
    }

    #[test]
    fn hashes_are_read_in_display_order() {
        let text = "00".repeat(31) + "AB";
        assert_eq!(hash::<Txid>(&json!(text), "txid").unwrap().to_byte_array()[0], 0xab);
        assert_eq!(message(hash::<Txid>(&json!("ab"), "txid")), "txid must be of length 64 (not 2, for 'ab')");
        let bad = "zz".repeat(32);
        assert_eq!(
            message(hash::<Txid>(&json!(bad), "txid")),
            format!("txid must be hexadecimal string (not '{bad}')")
        );
        assert_eq!(message(hex(&json!(""), "x")), "x must be hexadecimal string (not '')");
        assert_eq!(message(hex(&json!(7), "x")), "x must be hexadecimal string (not '')");
    }

    #[test]
    fn ranges_follow_the_order_of_their_rules() {
        assert_eq!(descriptor_range(&json!(10)), Ok((0, 10)));
        assert_eq!(descriptor_range(&json!([0, 999_999])), Ok((0, 999_999)));
        for (value, text) in [
            (json!("x"), "Range must be specified as end or as [begin,end]"),
            (json!([1]), "Range must be specified as end or as [begin,end]"),
            (json!([2, 1]), "Range specified as [begin,end] must not have begin after end"),
            (json!([-1, 10]), "Range should be greater or equal than 0"),
            (json!(-1), "End of range is too high"),
            (json!(1_i64 << 31), "End of range is too high"),
            (json!([0, 1_000_000]), "Range is too large"),
        ] {
            assert_eq!(message(descriptor_range(&value)), text, "{value}");
        }
    }
}
