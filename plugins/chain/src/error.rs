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
    /// No block of the best chain has this height.
    #[error("Block height out of range")]
    HeightOutOfRange,
    /// A height below that of the first block.
    #[error("Target block height {0} is negative")]
    NegativeHeight(i32),
    /// A height above the best block's.
    #[error("Target block height {height} after current tip {tip}")]
    HeightAfterTip {
        /// The requested height.
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
    /// The mempool's file cannot be written.
    #[error("Unable to dump mempool to disk")]
    MempoolNotSaved,
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
    /// Transactions of which not all are parents of the last, or some build on one another.
    #[error("package topology disallowed. not child-with-parents or parents depend on each other.")]
    PackageTopology,
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
    /// An argument that cannot be.
    #[error("Invalid parameter{0}")]
    Create(&'static str),
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
    /// A mock time that no clock can have.
    #[error("Mocktime must be in the range [0, {max}], not {0}.", max = crate::limits::MAX_MOCK_TIME)]
    MockTime(i64),
    /// Mocking the time on a chain with real money.
    #[error("setmocktime is for regression testing (-regtest mode) only")]
    MockTimeOffRegtest,
    /// A text that is no address.
    #[error("Invalid address")]
    InvalidAddress,
    /// An address that is of no single key.
    #[error("Address does not refer to key")]
    AddressWithoutKey,
    /// A signature that is no Base64.
    #[error("Malformed base64 encoding")]
    MalformedSignature,
    /// A kind of address that there is none of.
    #[error("Unknown address type '{0}'")]
    AddressType(String),
    /// Multisig in taproot.
    #[error("createmultisig cannot create bech32m multisig addresses")]
    TaprootMultisig,
    /// A proof of nothing.
    #[error("Parameter 'txids' cannot be empty")]
    NoTxids,
    /// A transaction that is named twice.
    #[error("Invalid parameter, duplicated txid: {0}")]
    DuplicateTxid(String),
    /// A transaction to prove that no block has.
    #[error("Transaction not yet in block")]
    NotYetInBlock,
    /// Transactions to prove that are not all in one block.
    #[error("Not all transactions found in specified or retrieved block")]
    NotAllInBlock,
    /// Bytes that are no proof.
    #[error("{0}")]
    ProofEncoding(&'static str),
    /// A proof for a block off the best chain.
    #[error("Block not found in chain")]
    BlockNotInChain,
    /// A negative time to wait.
    #[error("Negative timeout")]
    NegativeTimeout,
    /// A second scan at a time.
    #[error("Scan already in progress, use action \"abort\" or \"status\"")]
    ScanInProgress,
    /// Something to do with a scan that there is none of.
    #[error("Invalid action '{0}'")]
    ScanAction(String),
    /// A scan for nothing.
    #[error("scanobjects argument is required for the start action")]
    NoScanObjects,
    /// Something to scan for without a descriptor.
    #[error("Descriptor needs to be provided in scan object")]
    NoScanDescriptor,
    /// Something to scan for that is no descriptor.
    #[error("Scan object needs to be either a string or an object")]
    ScanObject,
    /// A descriptor with a hardened step behind a public key.
    #[error("Cannot derive script without private keys: '{0}'")]
    NeedsPrivateKeys(String),
    /// A scan that begins above the tip.
    #[error("Invalid start_height")]
    StartHeight,
    /// A scan that ends above the tip, or before it begins.
    #[error("Invalid stop_height")]
    StopHeight,
    /// A type of block filter that there is none of.
    #[error("Unknown filtertype")]
    FilterType,
    /// The filter of a block of which nobody knows what it spends.
    #[error("Filter not found. Block was not connected to active chain.")]
    FilterNotConnected,
}

impl From<ChainError> for RpcError {
    fn from(error: ChainError) -> Self {
        use ChainError as E;
        let code = match &error {
            E::Argument(error) => return error.clone(),
            E::Service(error) => return error.clone().into(),
            E::BlockNotAvailable
            | E::MempoolNotSaved
            | E::UndoNotAvailable
            | E::MockTimeOffRegtest
            | E::ProofEncoding(_)
            | E::NegativeTimeout
            | E::NoScanObjects
            | E::StartHeight
            | E::StopHeight => RpcErrorCode::MISC,
            E::AddressWithoutKey | E::MalformedSignature => RpcErrorCode::TYPE,
            E::BlockNotFound
            | E::BlockHashNotFound
            | E::GenesisCoinbase
            | E::NotInBlock
            | E::NoSuchTransaction
            | E::NotInMempool
            | E::Descriptor(_)
            | E::InvalidAddress
            | E::AddressType(_)
            | E::TaprootMultisig
            | E::NotYetInBlock
            | E::NotAllInBlock
            | E::BlockNotInChain
            | E::NeedsPrivateKeys(_)
            | E::FilterType
            | E::FilterNotConnected => RpcErrorCode::INVALID_ADDRESS_OR_KEY,
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
            | E::TriedCount
            | E::FeerateBound
            | E::Create(_)
            | E::Range(_)
            | E::MockTime(_)
            | E::NoTxids
            | E::DuplicateTxid(_)
            | E::ScanInProgress
            | E::ScanAction(_)
            | E::NoScanDescriptor
            | E::ScanObject => RpcErrorCode::INVALID_PARAMETER,
            E::Undecodable | E::NothingToSend | E::NothingToTry(_) => RpcErrorCode::DESERIALIZATION,
            E::Burns | E::FeeTooHigh | E::MissingInputs | E::PackageTopology => RpcErrorCode::VERIFY,
            E::Rejected(_) => RpcErrorCode::VERIFY_REJECTED,
            E::AlreadyInChain => RpcErrorCode::VERIFY_ALREADY_IN_CHAIN,
            E::Damaged(_) => RpcErrorCode::INTERNAL,
        };
        Self::new(code, error.to_string())
    }
}
