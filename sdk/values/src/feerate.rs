//! Feerates in whole satoshi per kvB, as bitcoind's `CFeeRate`.

use std::cmp::Ordering;
use std::fmt;

use bitcoin::{Amount, SignedAmount};
use serde_json::Value;

use crate::amount;
use crate::error::RpcError;

/// Virtual bytes per kvB.
const KVB: u64 = 1_000;

/// A feerate in whole satoshi per kvB (1000 virtual bytes).
///
/// rust-bitcoin 0.32's `FeeRate` counts whole satoshi per 1000 weight units (250 virtual bytes), which is coarser than
/// bitcoind's. `Display` yields BTC/kvB, and [`amount::to_json`] the JSON number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FeeRate(u64);

impl FeeRate {
    /// No fee. As a client's limit it means no limit.
    pub const ZERO: Self = Self(0);

    /// The greatest value, beyond any real feerate.
    pub const MAX: Self = Self(u64::MAX);

    /// A feerate in satoshi per kvB.
    pub const fn from_sat_per_kvb(satoshi: u64) -> Self {
        Self(satoshi)
    }

    /// The satoshi per kvB.
    pub const fn to_sat_per_kvb(self) -> u64 {
        self.0
    }

    /// The feerate of a transaction with this fee and virtual size, rounded down; zero for size 0.
    pub fn paid(fee: Amount, size: u64) -> Self {
        let rate = (u128::from(fee.to_sat()) * u128::from(KVB)).checked_div(u128::from(size)).unwrap_or(0);
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// The fee for this virtual size, rounded up.
    pub fn fee(self, size: u64) -> Amount {
        let fee = (u128::from(self.0) * u128::from(size)).div_ceil(u128::from(KVB));
        Amount::from_sat(u64::try_from(fee).unwrap_or(u64::MAX))
    }

    /// The sum, at most [`FeeRate::MAX`].
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Parses a feerate in BTC/kvB from a JSON number or string. Fails as [`amount::from_json`].
    pub fn from_btc_per_kvb(value: &Value) -> Result<Self, RpcError> {
        amount::from_json(value).map(|amount| Self(amount.to_sat()))
    }

    /// Parses a feerate in sat/vB with at most three decimals from JSON. Fails as [`amount::from_json`].
    pub fn from_sat_per_vb(value: &Value) -> Result<Self, RpcError> {
        const DECIMALS: u32 = 3;
        amount::from_json_scaled(value, DECIMALS).map(Self)
    }

    /// The feerate in sat/vB with three decimals and unit, as in bitcoind's messages about `fee_rate`.
    pub fn to_sat_per_vb_text(self) -> String {
        format!("{}.{:03} sat/vB", self.0 / 1_000, self.0 % 1_000)
    }
}

impl fmt::Display for FeeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:08} BTC/kvB", self.0 / amount::COIN, self.0 % amount::COIN)
    }
}

/// A fee and a size (bitcoind's `FeeFrac`): a feerate that compares exactly, without a division.
#[derive(Clone, Copy, Debug)]
pub struct FeeFrac {
    /// The fee, perhaps negative.
    pub fee: SignedAmount,
    /// The size in virtual bytes.
    pub size: u64,
}

impl Ord for FeeFrac {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |fee: SignedAmount, size: u64| i128::from(fee.to_sat()) * i128::from(size);
        product(self.fee, other.size).cmp(&product(other.fee, self.size))
    }
}

impl PartialOrd for FeeFrac {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FeeFrac {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FeeFrac {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const fn rate(satoshi: u64) -> FeeRate {
        FeeRate::from_sat_per_kvb(satoshi)
    }

    #[test]
    fn fee_is_rounded_up_as_bitcoinds() {
        for (satoshi, size, fee) in
            [(100, 110, 11), (1_000, 110, 110), (1, 1, 1), (123, 9, 2), (0, 500, 0), (u64::MAX, u64::MAX, u64::MAX)]
        {
            assert_eq!(rate(satoshi).fee(size), Amount::from_sat(fee), "{satoshi} for {size}");
        }
    }

    #[test]
    fn feerate_that_was_paid_is_rounded_down_as_bitcoinds() {
        let paid = |fee, size| FeeRate::paid(Amount::from_sat(fee), size);
        assert_eq!(paid(10_000, 110), rate(90_909));
        assert_eq!((paid(5, 0), paid(0, 5)), (FeeRate::ZERO, FeeRate::ZERO));
        assert_eq!(paid(u64::MAX, 1), FeeRate::MAX);
    }

    #[test]
    fn feerates_are_written_in_both_units() {
        assert_eq!(rate(90_909).to_string(), "0.00090909 BTC/kvB");
        assert_eq!(rate(90_909).to_sat_per_vb_text(), "90.909 sat/vB");
    }

    #[test]
    fn feerates_are_read_in_both_units() {
        assert_eq!(FeeRate::from_btc_per_kvb(&json!("0.00001")), Ok(rate(1_000)));
        assert_eq!(FeeRate::from_sat_per_vb(&json!("5.555")), Ok(rate(5_555)));
        assert_eq!(FeeRate::from_sat_per_vb(&json!(1)), Ok(rate(1_000)));
        let refused = |value| FeeRate::from_sat_per_vb(&value).unwrap_err().message;
        assert_eq!(refused(json!("5.5555")), "Invalid amount");
        assert_eq!(refused(json!(-1)), "Amount out of range");
        assert_eq!(refused(json!(true)), "Amount is not a number or string");
    }

    #[test]
    fn feerates_compare_without_division() {
        let rate = |fee, size| FeeFrac { fee: SignedAmount::from_sat(fee), size };
        assert_eq!(rate(1, 3), rate(2, 6));
        assert!(rate(i64::MAX, 1) > rate(i64::MAX, 2));
        assert!(rate(-1, 1) < rate(0, 1));
    }
}
