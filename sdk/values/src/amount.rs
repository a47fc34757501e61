//! Amounts of money: integers of satoshi inside, decimal text with eight places outside, never a float.

use std::str::FromStr;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::error::RpcError;

/// Satoshi in one bitcoin.
pub const COIN: i64 = 100_000_000;

/// The most money there can be, in satoshi.
pub const MAX_MONEY: i64 = 21_000_000 * COIN;

/// `satoshi` as a JSON number with exactly eight decimals, as bitcoind writes it.
pub fn to_json(satoshi: i64) -> Value {
    // The text is a number by construction; a null would be seen by every test.
    Number::from_str(&to_text(satoshi)).map_or(Value::Null, Value::Number)
}

/// An amount in satoshi that is serialised as [`to_json`] does, without a tree of values in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Btc(pub i64);

impl Serialize for Btc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(to_text(self.0)).map_err(serde::ser::Error::custom)?;
        number.serialize(serializer)
    }
}

/// `satoshi` as text with exactly eight decimals.
pub fn to_text(satoshi: i64) -> String {
    let sign = if satoshi < 0 { "-" } else { "" };
    let magnitude = satoshi.unsigned_abs();
    let coin = COIN.unsigned_abs();
    format!("{sign}{}.{:08}", magnitude / coin, magnitude % coin)
}

/// Reads an amount from a JSON number or string, in satoshi.
///
/// # Errors
/// -3 as bitcoind: `Amount is not a number or string`, `Invalid amount` for text that is no decimal number of at most eight
/// places, `Amount out of range` below zero or above 21 million bitcoin.
pub fn from_json(value: &Value) -> Result<u64, RpcError> {
    /// One bitcoin is 10^8 satoshi.
    const DECIMALS: u32 = 8;
    from_json_within(value, DECIMALS, MAX_MONEY)
}

/// Reads a number of at most `decimals` places from 0 to `max`, with the errors of [`from_json`]. Both `max` and what is
/// returned are in units of `10^-decimals`.
pub(crate) fn from_json_within(value: &Value, decimals: u32, max: i64) -> Result<u64, RpcError> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return Err(RpcError::type_error("Amount is not a number or string")),
    };
    let units = parse_fixed_point(&text, decimals).ok_or_else(|| RpcError::type_error("Invalid amount"))?;
    if !(0..=max).contains(&units) {
        return Err(RpcError::type_error("Amount out of range"));
    }
    Ok(units.unsigned_abs())
}

/// The magnitude from which a fixed-point number is refused: 10^18, as bitcoind's parser.
const FIXED_POINT_BOUND: i64 = 1_000_000_000_000_000_000;

/// Reads a decimal number in JSON's grammar, with an optional exponent, as an integer of `10^-decimals`.
///
/// None for other text, for a number with more places than `decimals` (trailing zeros do not count), and from 10^18 on.
pub fn parse_fixed_point(text: &str, decimals: u32) -> Option<i64> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (rest, 0),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (mantissa, ""),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    let digits: String = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0');
    let dropped = i64::try_from(digits.len() - significant.len()).ok()?;
    // The value is `significant` x 10^power, in units of 10^-decimals.
    let power = exponent + dropped - i64::try_from(fraction.len()).ok()? + i64::from(decimals);
    let mut value: i64 = 0;
    for digit in significant.bytes() {
        value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
        if value >= FIXED_POINT_BOUND {
            return None;
        }
    }
    if value == 0 {
        return Some(0);
    }
    if power < 0 {
        return None;
    }
    for _ in 0..power {
        value = value.checked_mul(10).filter(|value| *value < FIXED_POINT_BOUND)?;
    }
    Some(if negative { -value } else { value })
}

/// The exponents beyond which no number can be in range.
const MAX_EXPONENT: i64 = 10_000;

fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.parse::<i64>().unwrap_or(MAX_EXPONENT).min(MAX_EXPONENT);
    Some(if negative { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_written_with_eight_decimals() {
        for (satoshi, text) in
            [(0, "0.00000000"), (-10_000_000, "-0.10000000"), (1, "0.00000001"), (MAX_MONEY, "21000000.00000000")]
        {
            assert_eq!(serde_json::to_string(&to_json(satoshi)).unwrap(), text);
            assert_eq!(serde_json::to_string(&Btc(satoshi)).unwrap(), text);
        }
    }

    #[test]
    fn amounts_are_read_as_decimal_text() {
        for (text, satoshi) in [
            ("1e-8", 1),
            ("1", COIN as u64),
            ("0.00000001000000", 1),
            ("0.10", 10_000_000),
            ("21000000", MAX_MONEY as u64),
            ("0e100", 0),
        ] {
            assert_eq!(from_json(&json!(text)), Ok(satoshi), "{text}");
            let number: Value = serde_json::from_str(text).unwrap();
            assert_eq!(from_json(&number), Ok(satoshi), "{text} as a number");
        }
        for text in ["0.000000001", "", "1.", ".5", "+1", " 1", "01", "1e10", "x", "1e", "1e+", "-"] {
            assert_eq!(from_json(&json!(text)).unwrap_err().message, "Invalid amount", "{text}");
        }
        for text in ["-1", "21000000.00000001", "-1e-8"] {
            assert_eq!(from_json(&json!(text)).unwrap_err().message, "Amount out of range", "{text}");
        }
        assert_eq!(from_json(&json!(null)).unwrap_err().message, "Amount is not a number or string");
    }
}
