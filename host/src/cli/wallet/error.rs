//! Errors of copying, exporting, importing and restoring wallets.

use std::path::PathBuf;

use outrigger_node_wallet::FileError;
use outrigger_upstream::CredentialsError;

use crate::cli::call::connection::CallError;
use crate::config::ConfigError;

/// Why a wallet cannot be copied, exported, imported or restored. It contains no secrets.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("{side}: {error}")]
    NoReply { side: &'static str, error: CallError },
    #[error("{side} answers {method} with error {code}: {message}")]
    Refused { side: &'static str, method: String, code: i64, message: String },
    #[error("{side} answers {method} with an unexpected result: {error}")]
    Strange { side: &'static str, method: String, error: serde_json::Error },
    #[error("{0}")]
    Host(#[from] CallError),
    #[error("{0}")]
    File(#[from] FileError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// Paths of backups or of their folder, each with the reason of the refusal.
    #[error("{0}")]
    Backup(String),
    #[error("{0}")]
    Configuration(#[from] ConfigError),
    #[error("{} has no [backend]", .0.display())]
    NoBackend(PathBuf),
    #[error("the node: {0}")]
    Login(String),
    #[error("the node's credentials cannot be read: {0}")]
    Credentials(#[from] CredentialsError),
    #[error("bitcoind has no default port for the network '{0}': name the node by --bitcoind")]
    NoPort(String),
    #[error("the node and the host are on different chains")]
    OtherChain,
    #[error("{0}'s wallet is a legacy wallet: migrate it with bitcoind's migratewallet first")]
    Legacy(&'static str),
    /// The side does not list the descriptors with their private keys; `message` is its reason.
    #[error(
        "{side} does not list the wallet's descriptors with their private keys ({message}){}",
        remedy(side, message)
    )]
    NotListed { side: &'static str, message: String },
    #[error("the keys of {0}'s wallet are in an external signer, which is not supported")]
    ExternalSigner(&'static str),
    #[error("{side} has a wallet \"{name}\" already: name the copy by --as{}", if *side == "the host" { ", or add to that one by --into-existing" } else { "" })]
    Exists { side: &'static str, name: String },
    #[error(
        "{} of the descriptors cannot be imported into \"{wallet}\"; the first reason: {first}\nRun the command again once that is \
         fixed; a copy that it created has been removed",
        .count
    )]
    NotImported { wallet: String, count: usize, first: String },
    /// Times and flags cannot be copied.
    #[error("the wallet file of the copy cannot be finished: {0}")]
    NotCompleted(String),
    #[error("the copy differs from the original\n{0}")]
    Differs(String),
    #[error("the wallet differs from the file\n{0}")]
    FileDiffers(String),
    #[error("the two passphrases differ")]
    Passphrases,
}

/// The end of the message, if the refusal is that of a wallet of which others hold some of the keys.
fn remedy(side: &str, message: &str) -> &'static str {
    match side {
        _ if message != "Can't get descriptor string." => "",
        "the host" => ", as it does not where others hold some of the keys",
        _ => {
            ", as it does not where others hold some of the keys: unload the wallet there, and copy it from its file by import-from-file"
        }
    }
}
