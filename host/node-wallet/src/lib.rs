//! A wallet of a bitcoind: what is in it, as far as it can move to another wallet, and how that is read from the file of a
//! descriptor wallet (SQLite), which is never written.
//!
//! This crate knows nothing of our wallets, asks no node, and makes no files. Only the command line depends on it.

mod error;
mod file;
mod keys;
mod record;

use bitcoin::{OutPoint, Txid};
use zeroize::Zeroizing;

pub use error::FileError;
pub use file::read;
pub use record::RecordError;

/// What is in a wallet.
#[derive(Default, Debug)]
pub struct Content {
    /// Whether it is to have private keys.
    pub private_keys: bool,
    /// Whether its private keys are under a passphrase.
    pub encrypted: bool,
    /// Whether it does not spend coins of addresses that it has spent from (`avoid_reuse`).
    pub avoid_reuse: bool,
    /// Whether it was made without keys and has made none of its own since.
    pub blank: bool,
    /// Its descriptors.
    pub descriptors: Vec<Descriptor>,
    /// Addresses with their labels, its own and others.
    pub labels: Vec<(String, String)>,
    /// What was noted of transactions.
    pub comments: Vec<Comment>,
    /// The outputs that are locked.
    pub locked: Vec<OutPoint>,
    /// Its transactions.
    pub transactions: Vec<Txid>,
    /// When it received them, in Unix seconds, and maybe others.
    pub received: Vec<(Txid, u64)>,
}

/// A descriptor of a wallet.
#[derive(PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// Its text, with private keys where the wallet has them, and with its checksum.
    pub text: Zeroizing<String>,
    /// When it was born, in Unix seconds.
    pub timestamp: u64,
    /// The first index in use and the one behind the last; none where it has no wildcard.
    pub range: Option<(u32, u32)>,
    /// The index of the next address.
    pub next_index: u32,
    /// Whether it makes new addresses of its type; and if so, whether these are for change.
    pub active: Option<Active>,
}

/// For what an active descriptor makes addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Active {
    /// For who pays us.
    Receiving,
    /// For change.
    Change,
}

/// What was noted of a transaction.
#[derive(PartialEq, Eq, Debug)]
pub struct Comment {
    /// The transaction.
    pub txid: Txid,
    /// What it was for (`comment`); may be empty.
    pub comment: String,
    /// Who was paid (`comment_to`); may be empty.
    pub to: String,
}

/// Whether a record of a file can be read.
pub fn is_readable(key: &[u8], value: &[u8]) -> bool {
    record::read(key, value).is_ok()
}
