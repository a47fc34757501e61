//! Why a transaction cannot be funded, in Bitcoin Core 29's words.

use bitcoin::transaction::Version;
use bitcoin::{OutPoint, Weight};
use outrigger_service::ServiceError;
use outrigger_standard::policy::MAX_STANDARD_WEIGHT;
use outrigger_values::{FeeRate, RpcError, RpcErrorCode};

/// The least weight that `max_tx_weight` may be: that of the smallest transaction that is relayed.
pub const MIN_TX_WEIGHT: Weight = Weight::from_wu(65 * Weight::WITNESS_SCALE_FACTOR);

/// A rule that the funding of a transaction broke, or a service that failed it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpendError {
    /// A service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A payment to nobody.
    #[error("Transaction must have at least one recipient")]
    NoRecipients,
    /// `max_tx_weight` is out of its range.
    #[error("Maximum transaction weight must be between {} and {}", MIN_TX_WEIGHT.to_wu(), MAX_STANDARD_WEIGHT.to_wu())]
    MaxWeight,
    /// An amount that would be dust.
    #[error("Transaction amount too small")]
    AmountTooSmall,
    /// A feerate below what is relayed, or below the wallet's least one.
    #[error("Fee rate ({}) is lower than the minimum fee rate setting ({})", feerate.to_sat_per_vb_text(), minimum.to_sat_per_vb_text())]
    FeerateTooLow {
        /// What was asked for.
        feerate: FeeRate,
        /// The least.
        minimum: FeeRate,
    },
    /// No feerate is given, and there is neither an estimate nor a fallback.
    #[error("Fee estimation failed. Fallbackfee is disabled. Wait a few blocks or enable -fallbackfee.")]
    NoFeerate,
    /// A payment of nothing without a fee of its own.
    #[error("Transaction requires one destination of non-0 value, a non-0 feerate, or a pre-selected input")]
    NothingToPay,
    /// An input that is neither the wallet's nor in the chain or the mempool.
    #[error("Unable to find UTXO for external input")]
    UnknownInput,
    /// An input that only its weight names, of a transaction that the wallet does not have.
    #[error("Not found pre-selected input {}", short(.0))]
    ForeignInput(OutPoint),
    /// The same, of an output that the wallet's transaction does not have.
    #[error("Invalid pre-selected input {}", short(.0))]
    InvalidInput(OutPoint),
    /// An input of which it is not known how it is signed.
    #[error("Not solvable pre-selected input {}", short(.0))]
    UnsolvableInput(OutPoint),
    /// An input that is named is unconfirmed, and only one of it and of the payment is of version 3 (BIP 431).
    #[error("Can't spend unconfirmed version {} pre-selected input with a version {} tx", input.0, payment.0)]
    PresetVersion {
        /// The version of the transaction that the input spends.
        input: Version,
        /// The version of the payment.
        payment: Version,
    },
    /// The inputs named do not suffice, and others may not be added.
    #[error(
        "The preselected coins total amount does not cover the transaction target. Please allow other inputs to be automatically selected or include more coins manually"
    )]
    InputsTooSmall,
    /// The coins do not suffice.
    #[error("Insufficient funds")]
    InsufficientFunds,
    /// They would, but of some it is not known how they are spent.
    #[error("Missing solving data for estimating transaction size")]
    Unsolvable,
    /// They would, but the mempool takes no longer chains of unconfirmed transactions.
    #[error(
        "Unconfirmed UTXOs are available, but spending them creates a chain of transactions that will be rejected by the mempool"
    )]
    UnconfirmedChain,
    /// The transaction breaks a limit of the mempool for chains of unconfirmed transactions, in its words.
    #[error("{0}")]
    ChainLimit(String),
    /// Too many unconfirmed transactions hang together to tell what raising them costs.
    #[error(
        "Failed to calculate bump fees, because unconfirmed UTXOs depend on enormous cluster of unconfirmed transactions."
    )]
    EnormousCluster,
    /// It takes more inputs than a transaction may have.
    #[error(
        "The inputs size exceeds the maximum weight. Please try sending a smaller amount or manually consolidating your wallet's UTXOs"
    )]
    TooManyInputs,
    /// The inputs named and those that are added are together more than a transaction may have.
    #[error(
        "The combination of the pre-selected inputs and the wallet automatic inputs selection exceeds the transaction maximum weight. Please try sending a smaller amount or manually consolidating your wallet's UTXOs"
    )]
    CombinationTooHeavy,
    /// The outputs alone are more than a transaction may have.
    #[error("Maximum transaction weight is less than transaction weight without inputs")]
    TooManyOutputs,
    /// The outputs are no more than a transaction may have, but with change they are.
    #[error("Maximum transaction weight is too low, can not accommodate change output")]
    NoRoomForChange,
    /// There are fewer outputs than the wished position of the change.
    #[error("Transaction change output index out of range")]
    ChangePosition,
    /// There is change and no address for it; why, in the words of getrawchangeaddress.
    #[error("Transaction needs a change address, but we can't generate it. {0}")]
    NoChangeAddress(String),
    /// The fee to take off an amount is greater than the amount.
    #[error("The transaction amount is too small to pay the fee")]
    AmountBelowFee,
    /// What is left of an amount would be dust.
    #[error("The transaction amount is too small to send after the fee has been deducted")]
    DustAfterFee,
    /// The transaction is heavier than what is relayed.
    #[error("Transaction too large")]
    TooLarge,
    /// The fee is above [`crate::SpendSettings::max_fee`].
    #[error("Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)")]
    FeeTooHigh,
}

impl SpendError {
    /// It as the error of a method; the code of what is none of a service's errors differs from method to method.
    pub fn with_code(self, code: RpcErrorCode) -> RpcError {
        match self {
            Self::Service(error) => error.into(),
            rule => RpcError::new(code, rule.to_string()),
        }
    }
}

/// An outpoint as Bitcoin Core's messages show it.
fn short(outpoint: &OutPoint) -> String {
    let txid = outpoint.txid.to_string();
    format!("COutPoint({}, {})", txid.get(..10).unwrap_or(&txid), outpoint.vout)
}
