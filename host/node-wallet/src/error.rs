/// Why a wallet's file cannot be read. Contains no secrets.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("a bitcoind has the wallet loaded: unload it there, or use import-from-node")]
    Loaded,
    #[error("it is not a descriptor wallet of bitcoind (migrate a legacy wallet with bitcoind's migratewallet first)")]
    NotAWallet,
    #[error("the record {kind}: {error}")]
    Record { kind: String, error: &'static str },
    #[error("it is a legacy wallet: migrate it with bitcoind's migratewallet first")]
    Legacy,
    #[error("its keys are in an external signer, which is not supported")]
    ExternalSigner,
    #[error("its keys are encrypted: the passphrase is needed")]
    NeedsPassphrase,
    #[error("the passphrase is not the wallet's")]
    WrongPassphrase,
    /// No release of Bitcoin Core encrypts in this way.
    #[error("its keys are encrypted in an unknown way")]
    UnknownEncryption,
    /// A private key does not belong to its public key.
    #[error("a private key does not match its public key")]
    WrongKey,
}
