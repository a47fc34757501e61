//! The errors of funding a transaction, with Bitcoin Core's messages.

use std::borrow::Cow;

use bitcoin::{Amount, OutPoint};
use outrigger_service::ServiceError;
use outrigger_values::{RpcError, RpcErrorCode};

/// The error for a fee above [`crate::SpendSettings::max_fee`].
pub(crate) const FEE_TOO_HIGH: SpendError =
    SpendError::rule("Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)");

/// Why a transaction cannot be funded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpendError {
    /// A service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The feerate is below the minimum relay feerate or the wallet's minimum. The text has both feerates.
    #[error("{0}")]
    FeerateTooLow(String),
    /// There is no feerate, no estimate and no fallback feerate.
    #[error("Fee estimation failed. Fallbackfee is disabled. Wait a few blocks or enable -fallbackfee.")]
    NoFeerate,
    /// The solving data for a preset input is missing.
    #[error("Not solvable pre-selected input {}", short(.0))]
    UnsolvableInput(OutPoint),
    /// A preset input is unconfirmed, and only one of its transaction and the payment is of version 3 (BIP 431). The text
    /// has both versions.
    #[error("{0}")]
    PresetVersion(String),
    /// The coins do not suffice.
    #[error("Insufficient funds")]
    InsufficientFunds,
    /// Another broken rule, with Bitcoin Core's message.
    #[error("{0}")]
    Rule(Cow<'static, str>),
}

impl SpendError {
    pub(crate) const fn rule(text: &'static str) -> Self {
        Self::Rule(Cow::Borrowed(text))
    }

    /// The error as an RPC error. `code` is for broken rules, and differs between methods.
    pub fn with_code(self, code: RpcErrorCode) -> RpcError {
        match self {
            Self::Service(error) => error.into(),
            rule => RpcError::new(code, rule.to_string()),
        }
    }
}

/// An outpoint as in Bitcoin Core's messages (`COutPoint::ToString`).
pub(crate) fn short(outpoint: &OutPoint) -> String {
    let txid = outpoint.txid.to_string();
    format!("COutPoint({}, {})", txid.get(..10).unwrap_or(&txid), outpoint.vout)
}

/// The least number of decimals of amounts in Bitcoin Core's messages.
const LEAST_DECIMALS: usize = 2;

/// An amount in BTC without trailing zeros, with at least two decimals (`FormatMoney`).
pub(crate) fn money(amount: Amount) -> String {
    let text = outrigger_values::amount::to_text(amount);
    let least = text.find('.').map_or(text.len(), |point| point + 1 + LEAST_DECIMALS);
    let end = text.trim_end_matches('0').len().max(least);
    text.get(..end).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_shown_as_bitcoin_core_does() {
        for (satoshi, text) in
            [(0, "0.00"), (1_000, "0.00001"), (10_000_000, "0.10"), (100_000_000, "1.00"), (141, "0.00000141")]
        {
            assert_eq!(money(Amount::from_sat(satoshi)), text);
        }
    }
}
