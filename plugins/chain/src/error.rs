//! Every way in which the operations on the chain refuse, and bitcoind's code and message for each.

use outrigger_sdk::service::ServiceError;
use outrigger_sdk::{RpcError, RpcErrorCode};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// An argument breaks a rule that all methods share.
    #[error(transparent)]
    Argument(#[from] RpcError),
    /// A service of the host failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A value of another JSON type.
    #[error("JSON value of type {got} is not of expected type {wanted}")]
    WrongType {
        /// The type that was found.
        got: &'static str,
        /// The type that was wanted.
        wanted: &'static str,
    },
    /// An integer that does not fit.
    #[error("JSON integer out of range")]
    IntegerOutOfRange,
    /// No block of the best chain has this height.
    #[error("Block height out of range")]
    HeightOutOfRange,
    /// A height below that of the first block.
    #[error("Target block height {0} is negative")]
    NegativeHeight(i32),
    /// A height above the best block's.
    #[error("Target block height {height} after current tip {tip}")]
    HeightAfterTip {
        /// What was asked for.
        height: u32,
        /// The best block's.
        tip: u32,
    },
    /// A block that never was connected, of which nobody knows what it spends.
    #[error("Undo data not available")]
    UndoNotAvailable,
    /// A hash over the unspent outputs that there is none of.
    #[error("'{0}' is not a valid hash_type")]
    HashType(String),
    /// The unspent outputs at another block than the best one.
    #[error("Querying specific block heights requires coinstatsindex")]
    NoCoinIndex,
    /// A statistic that there is none of.
    #[error("Invalid selected statistic '{0}'")]
    Statistic(String),
    /// A block that is not known.
    #[error("Block not found")]
    BlockNotFound,
    /// A block that is not known, named as the place to look in.
    #[error("Block hash not found")]
    BlockHashNotFound,
    /// A block of which only the header is known.
    #[error("Block not available (not fully downloaded)")]
    BlockNotAvailable,
    /// Stored bytes that are no block or transaction.
    #[error("{0} cannot be read from the chain")]
    Damaged(String),
    /// The genesis block's transaction was asked for.
    #[error("The genesis block coinbase is not considered an ordinary transaction and cannot be retrieved")]
    GenesisCoinbase,
    /// A transaction that is not in the named block.
    #[error("No such transaction found in the provided block. Use gettransaction for wallet transactions.")]
    NotInBlock,
    /// A transaction that is neither in the mempool nor on the best chain.
    #[error("No such mempool or blockchain transaction. Use gettransaction for wallet transactions.")]
    NoSuchTransaction,
    /// A transaction that is not in the mempool.
    #[error("Transaction not in mempool")]
    NotInMempool,
    /// The sequence was asked for beside entries.
    #[error("Verbose results cannot contain mempool sequence values.")]
    VerboseSequence,
    /// Text that is no transaction.
    #[error("TX decode failed")]
    Undecodable,
    /// Text that is no transaction to send.
    #[error("TX decode failed. Make sure the tx has at least one input.")]
    NothingToSend,
    /// Text that is no transaction to try.
    #[error("TX decode failed: {0} Make sure the tx has at least one input.")]
    NothingToTry(String),
    /// Too few or too many transactions to try.
    #[error("Array must contain between 1 and {max} transactions.", max = crate::limits::MAX_TRIED)]
    TriedCount,
    /// A bound on the feerate that bounds nothing sensible.
    #[error("Fee rates larger than or equal to 1BTC/kvB are not accepted")]
    FeerateBound,
    /// An output that can never be spent holds too much.
    #[error("Unspendable output exceeds maximum configured by user (maxburnamount)")]
    Burns,
    /// The feerate is above the caller's bound.
    #[error("Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)")]
    FeeTooHigh,
    /// An input is unknown or spent.
    #[error("bad-txns-inputs-missingorspent")]
    MissingInputs,
    /// The transaction is confirmed already.
    #[error("Transaction outputs already in utxo set")]
    AlreadyInChain,
    /// The mempool refuses, for this reason.
    #[error("{0}")]
    Rejected(String),
    /// A transaction cannot be made from these arguments.
    #[error("Invalid parameter{0}")]
    Create(&'static str),
    /// An address that is paid twice.
    #[error("Invalid parameter, duplicated address: {0}")]
    DuplicateAddress(String),
    /// A text that is no address of this network.
    #[error("Invalid Bitcoin address: {0}")]
    Address(String),
    /// A descriptor that is none, or that cannot be derived here.
    #[error("{0}")]
    Descriptor(String),
    /// A range for a descriptor, or none for one, where it is the other way round.
    #[error("{0}")]
    Range(&'static str),
    /// A confirmation target that fees are not estimated for.
    #[error("Invalid conf_target, must be between 1 and {max}", max = crate::limits::MAX_TARGET)]
    ConfirmationTarget,
    /// A way of estimating fees that there is none of.
    #[error("Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"")]
    EstimateMode,
    /// A window with more blocks than there are.
    #[error("Invalid block count: should be between 0 and the block's height - 1")]
    BlockCount,
    /// A block off the best chain.
    #[error("Block is not in main chain")]
    NotInMainChain,
    /// A negative number of addresses.
    #[error("Address count out of range")]
    AddressCount,
    /// A kind of network that there is none of.
    #[error("Network not recognized: {0}")]
    Network(String),
    /// A block to fetch whose header is not known.
    #[error("Block header missing")]
    HeaderMissing,
    /// A block to fetch that is there.
    #[error("Block already downloaded")]
    AlreadyDownloaded,
    /// A peer that there is none of.
    #[error("Peer does not exist")]
    NoSuchPeer,
    /// A mock time that no clock can have.
    #[error("Mocktime must be in the range [0, {max}], not {0}.", max = crate::limits::MAX_MOCK_TIME)]
    MockTime(i64),
    /// Mocking the time on a chain with real money.
    #[error("setmocktime is for regression testing (-regtest mode) only")]
    MockTimeOffRegtest,
}

impl From<ChainError> for RpcError {
    fn from(error: ChainError) -> Self {
        use ChainError as E;
        let code = match &error {
            E::Argument(error) => return error.clone(),
            E::Service(error) => return error.clone().into(),
            E::IntegerOutOfRange
            | E::BlockNotAvailable
            | E::UndoNotAvailable
            | E::MockTimeOffRegtest
            | E::HeaderMissing
            | E::AlreadyDownloaded
            | E::NoSuchPeer => RpcErrorCode::MISC,
            E::WrongType { .. } => RpcErrorCode::TYPE,
            E::BlockNotFound
            | E::BlockHashNotFound
            | E::GenesisCoinbase
            | E::NotInBlock
            | E::NoSuchTransaction
            | E::NotInMempool
            | E::Address(_)
            | E::Descriptor(_) => RpcErrorCode::INVALID_ADDRESS_OR_KEY,
            E::HeightOutOfRange
            | E::NegativeHeight(_)
            | E::HeightAfterTip { .. }
            | E::Statistic(_)
            | E::HashType(_)
            | E::NoCoinIndex
            | E::VerboseSequence
            | E::ConfirmationTarget
            | E::EstimateMode
            | E::BlockCount
            | E::NotInMainChain
            | E::AddressCount
            | E::Network(_)
            | E::TriedCount
            | E::FeerateBound
            | E::Create(_)
            | E::DuplicateAddress(_)
            | E::Range(_)
            | E::MockTime(_) => RpcErrorCode::INVALID_PARAMETER,
            E::Undecodable | E::NothingToSend | E::NothingToTry(_) => RpcErrorCode::DESERIALIZATION,
            E::Burns | E::FeeTooHigh | E::MissingInputs => RpcErrorCode::VERIFY,
            E::Rejected(_) => RpcErrorCode::VERIFY_REJECTED,
            E::AlreadyInChain => RpcErrorCode::VERIFY_ALREADY_IN_CHAIN,
            E::Damaged(_) => RpcErrorCode::INTERNAL,
        };
        Self::new(code, error.to_string())
    }
}
