//! The errors of funding a transaction, in Bitcoin Core 29's words.

use bitcoin::transaction::Version;
use bitcoin::{OutPoint, Weight};
use outrigger_service::ServiceError;
use outrigger_standard::policy::MAX_STANDARD_WEIGHT;
use outrigger_values::{FeeRate, RpcError, RpcErrorCode};

/// The least `max_tx_weight`: that of the smallest standard transaction.
pub const MIN_TX_WEIGHT: Weight = Weight::from_wu(65 * Weight::WITNESS_SCALE_FACTOR);

/// A broken rule of funding, or a failed service.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpendError {
    /// A service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// There is no recipient.
    #[error("Transaction must have at least one recipient")]
    NoRecipients,
    /// `max_tx_weight` is out of its range.
    #[error("Maximum transaction weight must be between {} and {}", MIN_TX_WEIGHT.to_wu(), MAX_STANDARD_WEIGHT.to_wu())]
    MaxWeight,
    /// A recipient's amount is dust.
    #[error("Transaction amount too small")]
    AmountTooSmall,
    /// The feerate is below the minimum relay feerate or the wallet's minimum.
    #[error("Fee rate ({}) is lower than the minimum fee rate setting ({})", feerate.to_sat_per_vb_text(), minimum.to_sat_per_vb_text())]
    FeerateTooLow {
        /// The sender's feerate.
        feerate: FeeRate,
        /// The minimum.
        minimum: FeeRate,
    },
    /// There is no feerate, no estimate and no fallback feerate.
    #[error("Fee estimation failed. Fallbackfee is disabled. Wait a few blocks or enable -fallbackfee.")]
    NoFeerate,
    /// The target is zero and there are no preset inputs.
    #[error("Transaction requires one destination of non-0 value, a non-0 feerate, or a pre-selected input")]
    NothingToPay,
    /// A preset input spends no coin of the wallet, the UTXO set or the mempool.
    #[error("Unable to find UTXO for external input")]
    UnknownInput,
    /// An input of `input_weights` spends from a transaction unknown to the wallet.
    #[error("Not found pre-selected input {}", short(.0))]
    ForeignInput(OutPoint),
    /// An input of `input_weights` spends an output that the wallet's transaction does not have.
    #[error("Invalid pre-selected input {}", short(.0))]
    InvalidInput(OutPoint),
    /// The solving data for a preset input is missing.
    #[error("Not solvable pre-selected input {}", short(.0))]
    UnsolvableInput(OutPoint),
    /// A preset input is unconfirmed, and either its transaction or the payment is of version 3, not both (BIP 431).
    #[error("Can't spend unconfirmed version {} pre-selected input with a version {} tx", input.0, payment.0)]
    PresetVersion {
        /// The version of the transaction with the coin.
        input: Version,
        /// The version of the payment.
        payment: Version,
    },
    /// The preset inputs do not suffice, and `add_inputs` is off.
    #[error(
        "The preselected coins total amount does not cover the transaction target. Please allow other inputs to be automatically selected or include more coins manually"
    )]
    InputsTooSmall,
    /// The coins do not suffice.
    #[error("Insufficient funds")]
    InsufficientFunds,
    /// The coins would suffice, but for some the solving data is missing.
    #[error("Missing solving data for estimating transaction size")]
    Unsolvable,
    /// The coins would suffice, but some are in unconfirmed chains that the mempool does not accept.
    #[error(
        "Unconfirmed UTXOs are available, but spending them creates a chain of transactions that will be rejected by the mempool"
    )]
    UnconfirmedChain,
    /// The transaction exceeds a mempool limit for unconfirmed chains. The mempool's message.
    #[error("{0}")]
    ChainLimit(String),
    /// The cluster of unconfirmed transactions is too large for computing bump fees.
    #[error(
        "Failed to calculate bump fees, because unconfirmed UTXOs depend on enormous cluster of unconfirmed transactions."
    )]
    EnormousCluster,
    /// All selections exceed the greatest weight.
    #[error(
        "The inputs size exceeds the maximum weight. Please try sending a smaller amount or manually consolidating your wallet's UTXOs"
    )]
    TooManyInputs,
    /// The preset inputs and the added coins together exceed the greatest weight.
    #[error(
        "The combination of the pre-selected inputs and the wallet automatic inputs selection exceeds the transaction maximum weight. Please try sending a smaller amount or manually consolidating your wallet's UTXOs"
    )]
    CombinationTooHeavy,
    /// The outputs alone exceed the greatest weight.
    #[error("Maximum transaction weight is less than transaction weight without inputs")]
    TooManyOutputs,
    /// The outputs fit the greatest weight, but not with change.
    #[error("Maximum transaction weight is too low, can not accommodate change output")]
    NoRoomForChange,
    /// The position of change is beyond the outputs.
    #[error("Transaction change output index out of range")]
    ChangePosition,
    /// Change is needed and the wallet has no address for it: getrawchangeaddress's message.
    #[error("Transaction needs a change address, but we can't generate it. {0}")]
    NoChangeAddress(String),
    /// A recipient's share of the fee exceeds the amount.
    #[error("The transaction amount is too small to pay the fee")]
    AmountBelowFee,
    /// An amount is dust after its share of the fee is subtracted.
    #[error("The transaction amount is too small to send after the fee has been deducted")]
    DustAfterFee,
    /// The transaction exceeds the standardness limit for weight.
    #[error("Transaction too large")]
    TooLarge,
    /// The fee is above [`crate::SpendSettings::max_fee`].
    #[error("Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)")]
    FeeTooHigh,
}

impl SpendError {
    /// The error as an RPC error. `code` is that of broken rules, which differs between methods.
    pub fn with_code(self, code: RpcErrorCode) -> RpcError {
        match self {
            Self::Service(error) => error.into(),
            rule => RpcError::new(code, rule.to_string()),
        }
    }
}

/// An outpoint as in Bitcoin Core's messages (`COutPoint::ToString`).
fn short(outpoint: &OutPoint) -> String {
    let txid = outpoint.txid.to_string();
    format!("COutPoint({}, {})", txid.get(..10).unwrap_or(&txid), outpoint.vout)
}
