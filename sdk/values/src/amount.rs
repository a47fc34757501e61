//! Amounts: integers of satoshi internally, decimals of bitcoin with eight places externally, never floats.
//!
//! The types are rust-bitcoin's, whose operators panic on overflow. Use their checked functions or [`Saturating`].

use std::str::FromStr;

use bitcoin::{Amount, SignedAmount, Weight};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::FeeRate;
use crate::error::RpcError;

/// Satoshi per bitcoin.
pub const COIN: u64 = 100_000_000;

/// Sums and differences that saturate at the bounds of the type.
pub trait Saturating {
    /// The sum, or the greatest value of the type.
    fn saturating_add(self, other: Self) -> Self;

    /// The difference, or the least value of the type.
    fn saturating_sub(self, other: Self) -> Self;
}

macro_rules! saturating {
    ($($type:ty, $from:ident, $to:ident);*) => {$(
        impl Saturating for $type {
            fn saturating_add(self, other: Self) -> Self {
                Self::$from(self.$to().saturating_add(other.$to()))
            }

            fn saturating_sub(self, other: Self) -> Self {
                Self::$from(self.$to().saturating_sub(other.$to()))
            }
        }
    )*};
}
saturating!(Amount, from_sat, to_sat; SignedAmount, from_sat, to_sat; Weight, from_wu, to_wu);

/// An amount, or a feerate per kvB, as a JSON number in bitcoin with exactly eight decimals, as bitcoind writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Btc(SignedAmount);

impl From<SignedAmount> for Btc {
    fn from(amount: SignedAmount) -> Self {
        Self(amount)
    }
}

impl From<Amount> for Btc {
    fn from(amount: Amount) -> Self {
        // An amount that does not fit exceeds 21 million bitcoin by far.
        Self(amount.to_signed().unwrap_or(SignedAmount::MAX))
    }
}

impl From<FeeRate> for Btc {
    fn from(feerate: FeeRate) -> Self {
        Amount::from_sat(feerate.to_sat_per_kvb()).into()
    }
}

/// [`Btc`] as a JSON value.
pub fn to_json(amount: impl Into<Btc>) -> Value {
    // The text is a valid number by construction.
    Number::from_str(&to_text(amount)).map_or(Value::Null, Value::Number)
}

impl Serialize for Btc {
    /// Writes the number without an intermediate tree of values.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(to_text(*self)).map_err(serde::ser::Error::custom)?;
        number.serialize(serializer)
    }
}

/// [`Btc`] as text.
pub fn to_text(amount: impl Into<Btc>) -> String {
    let satoshi = amount.into().0.to_sat();
    let sign = if satoshi < 0 { "-" } else { "" };
    let magnitude = satoshi.unsigned_abs();
    format!("{sign}{}.{:08}", magnitude / COIN, magnitude % COIN)
}

/// Parses an amount in bitcoin from a JSON number or string. The errors are -3 with bitcoind's messages: `Amount is not
/// a number or string`; `Invalid amount` for text other than a decimal number of at most eight places; `Amount out of
/// range` below zero or above 21 million bitcoin.
pub fn from_json(value: &Value) -> Result<Amount, RpcError> {
    const DECIMALS: u32 = 8;
    from_json_scaled(value, DECIMALS).map(Amount::from_sat)
}

/// Parses a number of at most `decimals` places as an integer of `10^-decimals`, from 0 to the number of satoshi in 21
/// million bitcoin. The errors are those of [`from_json`].
pub(crate) fn from_json_scaled(value: &Value, decimals: u32) -> Result<u64, RpcError> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return Err(RpcError::type_error("Amount is not a number or string")),
    };
    let units = parse_fixed_point(&text, decimals).ok_or_else(|| RpcError::type_error("Invalid amount"))?;
    let units = u64::try_from(units).ok().filter(|units| *units <= Amount::MAX_MONEY.to_sat());
    units.ok_or_else(|| RpcError::type_error("Amount out of range"))
}

/// The magnitude from which bitcoind's parser refuses fixed-point numbers.
const FIXED_POINT_BOUND: i64 = 1_000_000_000_000_000_000;

/// Parses a decimal number in JSON's grammar, with an optional exponent, as an integer of `10^-decimals`. `None` for
/// other text, for more than `decimals` places (without trailing zeros), and from 10^18 on.
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
    // In units of 10^-decimals the value is `significant` x 10^power.
    let power = exponent + dropped - i64::try_from(fraction.len()).ok()? + i64::from(decimals);
    let mut value: i64 = 0;
    for digit in significant.bytes() {
        value = value.checked_mul(10)?.checked_add(i64::from(digit - b'0'))?;
        if value >= FIXED_POINT_BOUND {
            return None;
        }
    }
    if value == 0 {
        // bitcoind checks the exponent of zero too, and does not count the digit before the point.
        return (1..19).contains(&power).then_some(0);
    }
    if power < 0 {
        return None;
    }
    for _ in 0..power {
        value = value.checked_mul(10).filter(|value| *value < FIXED_POINT_BOUND)?;
    }
    Some(if negative { -value } else { value })
}

/// Beyond this exponent no number is in range.
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

    const MAX_MONEY: i64 = 2_100_000_000_000_000;

    #[test]
    fn saturating_sums_stop_at_the_bounds() {
        assert_eq!(Amount::MAX.saturating_add(Amount::ONE_SAT), Amount::MAX);
        assert_eq!(Amount::ZERO.saturating_sub(Amount::ONE_SAT), Amount::ZERO);
        assert_eq!(SignedAmount::MIN.saturating_sub(SignedAmount::ONE_SAT), SignedAmount::MIN);
        assert_eq!(Weight::MAX.saturating_add(Weight::from_wu(1)), Weight::MAX);
        assert_eq!(Amount::ONE_BTC.saturating_add(Amount::ONE_SAT), Amount::from_sat(COIN + 1));
    }

    #[test]
    fn amounts_are_written_with_eight_decimals() {
        for (satoshi, text) in
            [(0, "0.00000000"), (-10_000_000, "-0.10000000"), (1, "0.00000001"), (MAX_MONEY, "21000000.00000000")]
        {
            let amount = SignedAmount::from_sat(satoshi);
            assert_eq!(serde_json::to_string(&to_json(amount)).unwrap(), text);
            assert_eq!(serde_json::to_string(&Btc::from(amount)).unwrap(), text);
        }
        assert_eq!(to_text(Amount::from_sat(1)), "0.00000001");
        assert_eq!(to_text(FeeRate::from_sat_per_kvb(1_000)), "0.00001000");
    }

    #[test]
    fn amounts_are_read_as_decimal_text() {
        for (text, satoshi) in [
            ("1e-8", 1),
            ("1", COIN),
            ("0.00000001000000", 1),
            ("0.10", 10_000_000),
            ("21000000", MAX_MONEY as u64),
            ("0e9", 0),
            ("0e-8", 0),
            ("0.0e9", 0),
            ("0.000000000", 0),
        ] {
            let amount = Amount::from_sat(satoshi);
            assert_eq!(from_json(&json!(text)), Ok(amount), "{text}");
            let number: Value = serde_json::from_str(text).unwrap();
            assert_eq!(from_json(&number), Ok(amount), "{text} as a number");
        }
        for text in [
            "0.000000001",
            "",
            "1.",
            ".5",
            "+1",
            " 1",
            "01",
            "1e10",
            "0e10",
            "0.0e10",
            "0e100",
            "0e-9",
            "x",
            "1e",
            "1e+",
            "-",
        ] {
            assert_eq!(from_json(&json!(text)).unwrap_err().message, "Invalid amount", "{text}");
        }
        for text in ["-1", "21000000.00000001", "-1e-8"] {
            assert_eq!(from_json(&json!(text)).unwrap_err().message, "Amount out of range", "{text}");
        }
        assert_eq!(from_json(&json!(null)).unwrap_err().message, "Amount is not a number or string");
    }
}
