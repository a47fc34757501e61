//! Why a wallet's file cannot be read.

use crate::record::RecordError;

/// Why a wallet's file cannot be read. Nothing of a secret stands in it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// SQLite cannot open or read it.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A running bitcoind has it loaded.
    #[error("a bitcoind has the wallet loaded: unload it there, or use import-from-node")]
    Loaded,
    /// A database of something else.
    #[error(
        "it is no wallet of a bitcoind (a legacy wallet, which is none of SQLite, moves by bitcoind's migratewallet first)"
    )]
    NotAWallet,
    /// A record is not what it says that it is.
    #[error("the record {kind}: {error}")]
    Record {
        /// What kind it is.
        kind: String,
        /// What is wrong.
        error: RecordError,
    },
    /// It has no descriptors.
    #[error("it is a legacy wallet: bitcoind's migratewallet makes it one of descriptors")]
    Legacy,
    /// Its keys are in a device.
    #[error("its keys are in an external signer, which is not supported")]
    ExternalSigner,
    /// Its keys are under a passphrase, and none was given.
    #[error("its keys are encrypted: the passphrase is needed")]
    NeedsPassphrase,
    /// The passphrase is another.
    #[error("the passphrase is not the wallet's")]
    WrongPassphrase,
    /// It is encrypted in a way that no release of Bitcoin Core has.
    #[error("its keys are encrypted in an unknown way")]
    UnknownEncryption,
    /// A key is not that of its public key.
    #[error("a private key is not that of its public key")]
    WrongKey,
}
