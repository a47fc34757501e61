//! Why an import, or one of its requests, is refused.

use bitcoin::ScriptBuf;
use outrigger_sdk::descriptor::DescriptorError;
use outrigger_sdk::descriptor::without_private_keys;
use outrigger_sdk::params::Type;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::{RpcError, RpcErrorCode};

/// A rule that a call or a request broke, or a service that failed it.
///
/// The messages may hold what the client sent, private keys included: they go to the client and never to the log.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ImportError {
    /// An argument is invalid; the checks are shared with all plugins.
    #[error(transparent)]
    Argument(#[from] RpcError),
    /// A field of importdescriptors has another type, or is no number of 64 bits: the whole call is refused with the words of release 29.
    #[error(transparent)]
    WrongType(RpcError),
    /// A service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),

    /// A request without `timestamp`.
    #[error("Missing required timestamp field for key")]
    NoTimestamp,
    /// A `timestamp` that is neither a number nor `now`.
    #[error("Expected number or \"now\" timestamp value for key. got type {}", .0.name())]
    Timestamp(Type),
    /// The rescan was stopped by a client, or by the host's stopping.
    #[error("Rescan aborted by user.")]
    RescanAborted,
    /// A rescan of some blocks was stopped by a client, or by the host's stopping.
    #[error("Rescan aborted.")]
    HeightsAborted,
    /// A rescan of some blocks could not read all of them.
    #[error("Rescan failed. Potentially corrupted data files.")]
    RescanFailed,
    /// The rescan after an import could not read all blocks.
    #[error("Rescan was unable to fully rescan the blockchain. Some transactions may be missing.")]
    NotAllScanned,
    /// The first height is none of the chain.
    #[error("Invalid start_height")]
    StartHeight,
    /// The last height is none of the chain.
    #[error("Invalid stop_height")]
    StopHeight,
    /// The last height lies below the first.
    #[error("stop_height must be greater than start_height")]
    HeightsReversed,
    /// The node has dropped the first block.
    #[error("Can't rescan beyond pruned data. Use RPC call getblockchaininfo to determine your pruned height.")]
    Pruned,
    /// The node has not fetched a block yet that it is to read.
    #[error(
        "Failed to rescan unavailable blocks likely due to an in-progress assumeutxo background sync. Check logs or \
         getchainstates RPC for assumeutxo background sync progress and try again later."
    )]
    Background,
    /// An import that is to rescan, where the node has dropped blocks.
    #[error("Rescan is disabled when blocks are pruned")]
    RescanOfPruned,
    /// Text that is no transaction.
    #[error("TX decode failed. Make sure the tx has at least one input.")]
    Transaction,
    /// Bytes that are no proof; why, in bitcoind's words.
    #[error("{0}")]
    ProofEncoding(&'static str),
    /// A proof that proves nothing.
    #[error("Something wrong with merkleblock")]
    Proof,
    /// A proof of a block that the wallet has not followed.
    #[error("Block not found in chain")]
    BlockNotInChain,
    /// A proof of other transactions.
    #[error("Transaction given doesn't exist in proof")]
    NotInProof,
    /// A transaction that pays nothing to the wallet.
    #[error("No addresses in wallet correspond to included transaction")]
    NothingPaid,
    /// A transaction that the wallet does not have.
    #[error("Transaction {0} does not belong to this wallet")]
    UnknownTransaction(bitcoin::Txid),
    /// A label that stands for all labels.
    #[error("Invalid label name")]
    Label,
    /// Text that is neither an address nor a script.
    #[error("Invalid Bitcoin address or script")]
    AddressOrScript,
    /// `p2sh` together with an address.
    #[error("Cannot use the p2sh flag with an address - use a script instead")]
    P2shOfAddress,
    /// The address of a later witness version.
    #[error("Bech32m addresses cannot be imported into legacy wallets")]
    Bech32m,

    /// A field of a request has a wrong type. bitcoind says so whatever the field is.
    #[error("Missing required fields")]
    Malformed,
    /// `internal` together with `label`.
    #[error("Internal addresses should not have a label")]
    InternalLabel,
    /// `keypool` in a wallet with private keys.
    #[error("Keys can only be imported to the keypool when private keys are disabled")]
    KeypoolWithPrivateKeys,
    /// `desc` together with `scriptPubKey`.
    #[error("Both a descriptor and a scriptPubKey should not be provided.")]
    DescriptorAndScript,
    /// Neither `desc` nor `scriptPubKey`.
    #[error("Either a descriptor or scriptPubKey must be provided.")]
    NothingToImport,
    /// Private keys for a wallet that may not hold any.
    #[error("Cannot import private keys to a wallet with private keys disabled")]
    PrivateKeysDisabled,
    /// The wallet can spend from the script already.
    #[error("The wallet already contains the private key for this address or script (\"{}\")", .0.to_hex_string())]
    AlreadyOwned(ScriptBuf),
    /// The scripts of a request were not stored.
    #[error("Error adding script to wallet")]
    ScriptNotStored,
    /// The private keys of a request were not stored.
    #[error("Error adding key to wallet")]
    KeyNotStored,
    /// The public keys or watched scripts of a request were not stored.
    #[error("Error adding address to wallet")]
    AddressNotStored,

    /// A `scriptPubKey` of another type.
    #[error("scriptPubKey must be string with script or JSON with address string")]
    ScriptPubKeyForm,
    /// `range` without `desc`.
    #[error("Range should not be specified for a non-descriptor import")]
    RangeWithoutDescriptor,
    /// An address that is not one of this chain.
    #[error("Invalid address \"{0}\"")]
    Address(String),
    /// A `scriptPubKey` that is not hexadecimal.
    #[error("Invalid scriptPubKey \"{0}\"")]
    ScriptPubKey(String),
    /// A script without an address that is not declared internal.
    #[error("Internal must be set to true for nonstandard scriptPubKey imports.")]
    NonstandardNotInternal,
    /// A `redeemscript` that is not hexadecimal.
    #[error("Invalid redeem script \"{0}\": must be hex string")]
    RedeemScript(String),
    /// A `witnessscript` that is not hexadecimal.
    #[error("Invalid witness script \"{0}\": must be hex string")]
    WitnessScript(String),
    /// A public key that is not hexadecimal.
    #[error("Pubkey \"{0}\" must be a hex string")]
    PublicKeyNotHex(String),
    /// A public key that is not a point on the curve.
    #[error("Pubkey \"{0}\" is not a valid public key")]
    PublicKey(String),
    /// A private key of another chain, or none at all.
    #[error("Invalid private key encoding")]
    PrivateKey,
    /// Nested script types that cannot be spent.
    #[error("Trying to nest {0}")]
    Nesting(&'static str),

    /// A descriptor that does not parse.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// A descriptor that the wallet refused to read.
    #[error("{0}")]
    DescriptorRefused(String),
    /// A Taproot descriptor for a legacy wallet.
    #[error("Bech32m descriptors cannot be imported into legacy wallets")]
    TaprootAmongKeys,
    /// `range` for a descriptor without a wildcard.
    #[error("Range should not be specified for an un-ranged descriptor")]
    RangeOfUnranged,
    /// No `range` for a descriptor with a wildcard.
    #[error("Descriptor is ranged, please specify the range")]
    RangeMissing,
    /// So many indexes of so many keys that the work is refused.
    #[error("Range is too large")]
    RangeTooLarge,
    /// A descriptor import without `desc`.
    #[error("Descriptor not found.")]
    NoDescriptor,
    /// `next_index` outside of the range.
    #[error("next_index is out of range")]
    NextIndex,
    /// `active` without a wildcard.
    #[error("Active descriptors must be ranged")]
    ActiveUnranged,
    /// `label` together with `range`.
    #[error("Ranged descriptors should not have a label")]
    RangedLabel,
    /// `label` for several paths.
    #[error("Multipath descriptors should not have a label")]
    MultipathLabel,
    /// `internal` for several paths, the second of which is internal by itself.
    #[error("Cannot have multipath descriptor while also specifying 'internal'")]
    MultipathInternal,
    /// `active` for a combo.
    #[error("Combo descriptors cannot be set to active")]
    ActiveCombo,
    /// Index 0 cannot be derived.
    #[error("Cannot expand descriptor. Probably because of hardened derivations without private keys provided")]
    NotExpandable,
    /// A descriptor without private keys for a wallet that holds them.
    #[error("Cannot import descriptor without private keys to a wallet with private keys enabled")]
    NoPrivateKeys,
    /// The descriptor is known with indexes that the new range leaves out.
    #[error("new range must include current range = [{begin},{end}]")]
    RangeShrinks {
        /// The first known index.
        begin: u32,
        /// The last known index.
        end: u32,
    },
    /// The descriptor was not stored. Its text is the client's own, without private keys.
    #[error("Could not add descriptor '{0}'")]
    DescriptorNotStored(String),
    /// The wallet gave no outcome for a request.
    #[error("The wallet gave no outcome for a request")]
    NoOutcome,
}

impl From<ImportError> for RpcError {
    fn from(error: ImportError) -> Self {
        use ImportError as E;
        let code = match &error {
            E::Argument(error) | E::WrongType(error) => return error.clone(),
            E::Service(error) => return error.clone().into(),
            E::Malformed
            | E::RescanAborted
            | E::HeightsAborted
            | E::ProofEncoding(_)
            | E::RescanFailed
            | E::Pruned
            | E::Background => RpcErrorCode::MISC,
            E::NoTimestamp | E::Timestamp(_) => RpcErrorCode::TYPE,
            E::PrivateKeysDisabled
            | E::AlreadyOwned(_)
            | E::ScriptNotStored
            | E::KeyNotStored
            | E::AddressNotStored
            | E::ActiveCombo
            | E::NotAllScanned
            | E::RescanOfPruned
            | E::UnknownTransaction(_)
            | E::NotExpandable
            | E::NoPrivateKeys
            | E::DescriptorNotStored(_) => RpcErrorCode::WALLET,
            E::Address(_)
            | E::ScriptPubKey(_)
            | E::RedeemScript(_)
            | E::WitnessScript(_)
            | E::PublicKeyNotHex(_)
            | E::PublicKey(_)
            | E::AddressOrScript
            | E::Proof
            | E::BlockNotInChain
            | E::NotInProof
            | E::NothingPaid
            | E::P2shOfAddress
            | E::Bech32m
            | E::PrivateKey
            | E::Nesting(_)
            | E::Descriptor(_)
            | E::DescriptorRefused(_)
            | E::TaprootAmongKeys
            | E::MultipathInternal => RpcErrorCode::INVALID_ADDRESS_OR_KEY,
            E::InternalLabel
            | E::KeypoolWithPrivateKeys
            | E::DescriptorAndScript
            | E::NothingToImport
            | E::ScriptPubKeyForm
            | E::RangeWithoutDescriptor
            | E::NonstandardNotInternal
            | E::RangeOfUnranged
            | E::RangeMissing
            | E::RangeTooLarge
            | E::NoDescriptor
            | E::NextIndex
            | E::ActiveUnranged
            | E::RangedLabel
            | E::MultipathLabel
            | E::RangeShrinks { .. }
            | E::StartHeight
            | E::StopHeight
            | E::HeightsReversed => RpcErrorCode::INVALID_PARAMETER,
            E::Label => RpcErrorCode::WALLET_INVALID_LABEL,
            E::Transaction => RpcErrorCode::DESERIALIZATION,
            E::NoOutcome => RpcErrorCode::INTERNAL,
        };
        // Messages quote what the client sent, without any private keys in it.
        Self::new(code, without_private_keys(&error.to_string()))
    }
}
