//! Why a wallet call is not answered: one variant for each rule, and one place where it becomes a code and a message.

use outrigger_sdk::amount::to_text;
use outrigger_sdk::service::wallet::{MAX_LABEL_LEN, MAX_TEXT_LEN};
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::spend::SpendError;
use outrigger_sdk::{FeeRate, RpcError, RpcErrorCode};

/// RPC_METHOD_DEPRECATED: what `getbalance` answers to an account name.
const DEPRECATED: RpcErrorCode = RpcErrorCode(-32);

/// RPC_WALLET_ALREADY_EXISTS: what `restorewallet` answers for a name that is taken.
const ALREADY_EXISTS: RpcErrorCode = RpcErrorCode(-36);

/// A rule that a call broke, or a service that failed it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WalletError {
    /// An argument is not what it must be; the checks are shared with all plugins.
    #[error(transparent)]
    Argument(#[from] RpcError),
    /// A service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A payment cannot be funded.
    #[error(transparent)]
    Spend(#[from] SpendError),

    /// A new wallet without private keys was given a passphrase.
    #[error(
        "Passphrase provided but private keys are disabled. A passphrase is only used to encrypt private keys, so cannot be used for wallets with private keys disabled."
    )]
    PassphraseWithoutKeys,
    /// An external signer was asked for.
    #[error("Compiled without external signing support (required for external signing)")]
    ExternalSigner,
    /// A wallet that cannot be loaded; why, in the host's words.
    #[error("{0}")]
    CannotLoad(String),
    /// There is no file to restore a wallet from.
    #[error("Backup file does not exist")]
    NoBackup,
    /// A wallet that cannot be restored because there is one; in the host's words.
    #[error("{0}")]
    CannotRestore(String),
    /// A flag of wallets that there is not.
    #[error("Unknown wallet flag: {0}")]
    UnknownFlag(String),
    /// A flag that stays as the wallet was made.
    #[error("Wallet flag is immutable: {0}")]
    ImmutableFlag(String),
    /// A flag that is set to that already.
    #[error("Wallet flag is already set to {value}: {name}")]
    FlagIsSet {
        /// The flag.
        name: String,
        /// What it is set to.
        value: bool,
    },
    /// A size of the keypool below 0.
    #[error("Invalid parameter, expected valid size.")]
    KeypoolSize,
    /// There is nothing to derive so many scripts from.
    #[error("Error refreshing keypool.")]
    KeypoolNotFilled,
    /// Neither the path nor the argument names a wallet.
    #[error("Either the RPC endpoint wallet or the wallet name parameter must be provided")]
    WalletNotNamed,
    /// The path and the argument name different wallets.
    #[error("The RPC endpoint wallet and the wallet name parameter specify different wallets")]
    WalletsDiffer,

    /// A label that stands for all labels.
    #[error("Invalid label name")]
    InvalidLabel,
    /// A label that is too long to be stored; its length in bytes.
    #[error("Invalid label name: it has {0} bytes, and at most {MAX_LABEL_LEN} are stored")]
    LabelTooLong(usize),
    /// A text that is too long to be stored with a payment; its name, and its length in bytes.
    #[error("Invalid {0}: it has {1} bytes, and at most {MAX_TEXT_LEN} are stored")]
    TextTooLong(&'static str, usize),
    /// A purpose of addresses that there is not.
    #[error("Invalid 'purpose' argument, must be a known purpose string, typically 'send', or 'receive'.")]
    UnknownPurpose,
    /// A label that no address has.
    #[error("No addresses with label {0}")]
    NoSuchLabel(String),
    /// No descriptor of the wished side has an address to give.
    #[error("Error: This wallet has no available keys")]
    NoKeys,
    /// Not the name of an address type.
    #[error("Unknown address type '{0}'")]
    UnknownAddressType(String),
    /// Not an address; the reason as validateaddress gives it.
    #[error("{0}")]
    AddressReason(String),
    /// Not an address.
    #[error("Invalid Bitcoin address")]
    Address,
    /// Not an address, among several.
    #[error("Invalid Bitcoin address: {0}")]
    AddressAmong(String),
    /// An address that is listed twice.
    #[error("Invalid parameter, duplicated address: {0}")]
    DuplicatedAddress(String),

    /// The first argument of getbalance names an account.
    #[error("dummy first argument must be excluded or set to \"*\".")]
    AccountName,
    /// `avoid_reuse` was asked of a wallet that does not have it.
    #[error("wallet does not have the \"avoid reuse\" feature enabled")]
    NoAvoidReuse,
    /// A descriptor without private keys cannot be shown with them.
    #[error("Can't get descriptor string.")]
    NoPrivateDescriptor,

    /// Not an extended public key of the network.
    #[error("Unable to parse HD key. Please provide a valid xpub")]
    HdKey,
    /// The wallet does not hold the private key of an extended public key.
    #[error("Private key for {0} is not known")]
    UnknownHdKey(String),
    /// The active descriptors have no key in common.
    #[error("Unable to determine which HD key to use from active descriptors. Please specify with 'hdkey'")]
    ManyHdKeys,
    /// The wallet has the descriptor already.
    #[error("Descriptor already exists")]
    DescriptorExists,
    /// An address that is not of one key.
    #[error("Address does not refer to a key")]
    AddressWithoutKey,
    /// The wallet does not hold the private key of an address.
    #[error("Private key for address {0} is not known")]
    UnknownPrivateKey(String),

    /// A wallet without private keys has nothing to encrypt.
    #[error("Error: wallet does not contain private keys, nothing to encrypt.")]
    NothingToEncrypt,
    /// The wallet is encrypted already.
    #[error("Error: running with an encrypted wallet, but encryptwallet was called.")]
    Encrypted,
    /// The wallet is not encrypted; the method that needs it to be.
    #[error("Error: running with an unencrypted wallet, but {0} was called.")]
    NotEncrypted(&'static str),
    /// A rescan runs; what must wait for its end.
    #[error(
        "Error: the wallet is currently being used to rescan the blockchain for related transactions. Please call `abortrescan` before {0}."
    )]
    Rescanning(&'static str),
    /// A wrong passphrase with a null character, which some versions of bitcoind took only up to that.
    #[error(
        "Error: The wallet passphrase entered is incorrect. It contains a null character (ie - a zero byte). If the passphrase was set with a version of this software prior to 25.0, please try again with only the characters up to — but not including — the first null character. If this is successful, please set a new passphrase to avoid this issue in the future."
    )]
    NullInUnlocking,
    /// The same of the passphrase that is to be changed.
    #[error(
        "Error: The old wallet passphrase entered is incorrect. It contains a null character (ie - a zero byte). If the old passphrase was set with a version of this software prior to 25.0, please try again with only the characters up to — but not including — the first null character."
    )]
    NullInOld,
    /// A passphrase without a character.
    #[error("passphrase cannot be empty")]
    EmptyPassphrase,
    /// A time to unlock for that is below 0.
    #[error("Timeout cannot be negative.")]
    NegativeTimeout,

    /// A feerate out of the range of settxfee.
    #[error("txfee cannot be {what} ({} BTC/kvB)", to_text(*limit))]
    PayFeerate {
        /// On which side of which limit.
        what: &'static str,
        /// The limit.
        limit: FeeRate,
    },
    /// bumpfee in a wallet that may not hold private keys.
    #[error("bumpfee is not available with wallets that have private keys disabled. Use psbtbumpfee instead.")]
    BumpWithoutKeys,
    /// A replacement could not be signed.
    #[error("Can't sign transaction.")]
    CannotSign,
    /// A text that is no transaction.
    #[error("Transaction hex string decoding failure.")]
    Undecodable,
    /// Two inputs of simulated transactions spend the same output.
    #[error("Transaction(s) are spending the same output more than once")]
    SpentTwice,
    /// An input of a simulated transaction spends an output that is not there.
    #[error("One or more transaction inputs are missing or have been spent already")]
    InputMissing,

    /// An output's number below 0.
    #[error("Invalid parameter, vout cannot be negative")]
    NegativeVout,
    /// An output of a transaction that the wallet does not have.
    #[error("Invalid parameter, unknown transaction")]
    UnknownOutput,
    /// An output that its transaction does not have.
    #[error("Invalid parameter, vout index out of bounds")]
    VoutOutOfBounds,
    /// An output that a transaction of the wallet spends.
    #[error("Invalid parameter, expected unspent output")]
    SpentOutput,
    /// An output to unlock that is not locked.
    #[error("Invalid parameter, expected locked output")]
    NotLocked,
    /// An output to lock that is locked.
    #[error("Invalid parameter, output already locked")]
    Locked,

    /// A payment from a wallet that may not hold private keys.
    #[error("Error: Private keys are disabled for this wallet")]
    PrivateKeysDisabled,
    /// The first argument of sendmany names an account.
    #[error("Dummy value must be set to \"\"")]
    Dummy,
    /// A text is no transaction.
    #[error("TX decode failed")]
    Transaction,
    /// An input could not be signed.
    #[error("Signing transaction failed")]
    SigningFailed,
}

impl From<ErrorKind> for WalletError {
    fn from(kind: ErrorKind) -> Self {
        Self::Service(kind.into())
    }
}

impl WalletError {
    fn code(&self) -> RpcErrorCode {
        match self {
            Self::Argument(error) => error.code,
            Self::Service(error) => RpcError::from(error.clone()).code,
            Self::PassphraseWithoutKeys
            | Self::ExternalSigner
            | Self::NoKeys
            | Self::NoAvoidReuse
            | Self::NoPrivateDescriptor
            | Self::Rescanning(_)
            | Self::DescriptorExists
            | Self::UnknownPrivateKey(_)
            | Self::KeypoolNotFilled
            | Self::PrivateKeysDisabled
            | Self::BumpWithoutKeys
            | Self::CannotSign => RpcErrorCode::WALLET,
            Self::HdKey
            | Self::UnknownHdKey(_)
            | Self::ManyHdKeys
            | Self::UnknownAddressType(_)
            | Self::AddressReason(_)
            | Self::Address
            | Self::AddressAmong(_) => RpcErrorCode::INVALID_ADDRESS_OR_KEY,
            Self::Spend(_) | Self::SigningFailed => RpcErrorCode::WALLET_INSUFFICIENT_FUNDS,
            Self::WalletNotNamed
            | Self::NoBackup
            | Self::UnknownFlag(_)
            | Self::ImmutableFlag(_)
            | Self::FlagIsSet { .. }
            | Self::KeypoolSize
            | Self::UnknownPurpose
            | Self::TextTooLong(..)
            | Self::WalletsDiffer
            | Self::DuplicatedAddress(_)
            | Self::Dummy
            | Self::EmptyPassphrase
            | Self::PayFeerate { .. }
            | Self::SpentTwice
            | Self::InputMissing
            | Self::NegativeVout
            | Self::UnknownOutput
            | Self::VoutOutOfBounds
            | Self::SpentOutput
            | Self::NotLocked
            | Self::Locked
            | Self::NegativeTimeout => RpcErrorCode::INVALID_PARAMETER,
            Self::InvalidLabel | Self::LabelTooLong(_) | Self::NoSuchLabel(_) => RpcErrorCode::WALLET_INVALID_LABEL,
            Self::Encrypted | Self::NotEncrypted(_) => RpcErrorCode::WALLET_WRONG_ENC_STATE,
            Self::NullInUnlocking | Self::NullInOld => RpcErrorCode::WALLET_PASSPHRASE_INCORRECT,
            Self::NothingToEncrypt => RpcErrorCode::WALLET_ENCRYPTION_FAILED,
            Self::CannotLoad(_) => RpcErrorCode::WALLET_NOT_FOUND,
            Self::Undecodable => RpcErrorCode::DESERIALIZATION,
            Self::CannotRestore(_) => ALREADY_EXISTS,
            Self::Transaction => RpcErrorCode::DESERIALIZATION,
            Self::AccountName => DEPRECATED,
            Self::AddressWithoutKey => RpcErrorCode::TYPE,
        }
    }
}

impl From<WalletError> for RpcError {
    fn from(error: WalletError) -> Self {
        match error {
            WalletError::Argument(error) => error,
            WalletError::Service(error) => error.into(),
            WalletError::Spend(error) => error.with_code(RpcErrorCode::WALLET_INSUFFICIENT_FUNDS),
            rule => Self::new(rule.code(), rule.to_string()),
        }
    }
}
