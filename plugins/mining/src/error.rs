//! Every way in which the operations of mining refuse, and bitcoind's code and message for each.

use bitcoin::BlockHash;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::wire::WireError;
use outrigger_sdk::{RpcError, RpcErrorCode};

/// Why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MiningError {
    /// An argument breaks a rule that all methods share.
    #[error(transparent)]
    Argument(#[from] RpcError),
    /// A service of the host failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A mode that is neither a template nor a proposal.
    #[error("Invalid mode")]
    Mode,
    /// The client does not say that it knows segwit.
    #[error("getblocktemplate must be called with the segwit rule set (call with {{\"rules\": [\"segwit\"]}})")]
    SegwitMissing,
    /// A proposal without its block.
    #[error("Missing data String key for proposal")]
    ProposalData,
    /// Text that is no block.
    #[error("Block decode failed")]
    BlockUndecodable,
    /// Text that is no header.
    #[error("Block header decode failed")]
    HeaderUndecodable,
    /// A header that builds on an unknown block.
    #[error("Must submit previous header ({0}) first")]
    PreviousHeader(BlockHash),
    /// A header that breaks a rule.
    #[error("{0}")]
    HeaderRefused(String),
    /// Judging a block failed inside.
    #[error("{0}")]
    Validation(String),
    /// The host is stopping.
    #[error("Shutting down")]
    ShuttingDown,
    /// The tip changed while a block for it was judged.
    #[error("CreateNewBlock: the tip changed while the template was made")]
    Unsteady,
    /// The host has no selection for the next block.
    #[error("CreateNewBlock: the host selects no transactions")]
    NoCandidate,
    /// A block that is not known.
    #[error("Block not found")]
    BlockNotFound,
    /// A number of blocks that no hash rate can be estimated from.
    #[error("Invalid nblocks. Must be a positive number or -1.")]
    HashRateBlocks,
    /// A height above the best chain's.
    #[error("Block does not exist at specified height")]
    NoBlockAtHeight,
    /// Where a block shall pay to is no address.
    #[error("Error: Invalid address")]
    Address,
    /// Where a block shall pay to is neither an address nor a descriptor.
    #[error("Error: Invalid address or descriptor")]
    AddressOrDescriptor,
    /// A text that is no descriptor, with what is wrong.
    #[error("{0}")]
    Descriptor(String),
    /// A descriptor with more than one index.
    #[error("Ranged descriptor not accepted. Maybe pass through deriveaddresses first?")]
    Ranged,
    /// A descriptor with more than one path.
    #[error("Multipath descriptor not accepted")]
    Multipath,
    /// A descriptor that cannot be derived.
    #[error("Cannot derive script without private keys")]
    NotDerivable,
    /// An id that is not in the mempool.
    #[error("Transaction {0} not in mempool.")]
    NotInMempool(String),
    /// A transaction that is not given as text.
    #[error("JSON value of type {0} is not of expected type string")]
    NotText(&'static str),
    /// Text that is no transaction.
    #[error("Transaction decode failed for {0}. Make sure the tx has at least one input.")]
    TransactionUndecodable(String),
    /// A generated block that breaks a rule.
    #[error("TestBlockValidity failed: {0}")]
    InvalidBlock(String),
    /// No nonce gave enough work.
    #[error("Failed to make block.")]
    NoNonce,
    /// A generated block that the chain did not take.
    #[error("ProcessNewBlock, block not accepted")]
    NotAccepted,
    /// The priority of old, which is gone.
    #[error("Priority is no longer supported, dummy argument to prioritisetransaction must be 0.")]
    Priority,
}

impl From<WireError> for MiningError {
    fn from(error: WireError) -> Self {
        Self::Service(error.into())
    }
}

impl From<MiningError> for RpcError {
    fn from(error: MiningError) -> Self {
        use MiningError as E;
        let code = match &error {
            E::Argument(error) => return error.clone(),
            E::Service(error) => return error.clone().into(),
            E::Mode
            | E::SegwitMissing
            | E::Ranged
            | E::Multipath
            | E::Priority
            | E::HashRateBlocks
            | E::NoBlockAtHeight => RpcErrorCode::INVALID_PARAMETER,
            E::ProposalData | E::NotText(_) => RpcErrorCode::TYPE,
            E::BlockUndecodable | E::HeaderUndecodable | E::TransactionUndecodable(_) => RpcErrorCode::DESERIALIZATION,
            E::PreviousHeader(_) | E::HeaderRefused(_) | E::Validation(_) | E::InvalidBlock(_) => RpcErrorCode::VERIFY,
            E::ShuttingDown => RpcErrorCode::CLIENT_NOT_CONNECTED,
            E::Unsteady | E::NoCandidate | E::NoNonce => RpcErrorCode::MISC,
            E::BlockNotFound
            | E::Address
            | E::AddressOrDescriptor
            | E::Descriptor(_)
            | E::NotDerivable
            | E::NotInMempool(_) => RpcErrorCode::INVALID_ADDRESS_OR_KEY,
            E::NotAccepted => RpcErrorCode::INTERNAL,
        };
        Self::new(code, error.to_string())
    }
}
