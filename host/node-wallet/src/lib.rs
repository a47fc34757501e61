//! Reads the transferable contents of a bitcoind wallet from its descriptor-wallet file (SQLite), opened read-only.
//!
//! This crate does not depend on the host's wallets, contacts no node and creates no files. Only the command line uses it.

mod error;
mod file;
mod keys;
mod record;

use bitcoin::{Amount, OutPoint, Txid};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

pub use error::FileError;
pub use file::{is_readable, read};

#[derive(Default, Debug)]
pub struct Content {
    /// Whether private keys are enabled.
    pub private_keys: bool,
    /// Whether the private keys are encrypted.
    pub encrypted: bool,
    /// Whether the wallet avoids spending from reused addresses (`avoid_reuse`).
    pub avoid_reuse: bool,
    /// Whether the wallet was created without keys and has generated none since.
    pub blank: bool,
    pub descriptors: Vec<Descriptor>,
    /// Addresses with their labels, foreign ones included.
    pub labels: Vec<(String, String)>,
    pub comments: Vec<Comment>,
    pub locked: Vec<OutPoint>,
    pub transactions: Vec<Txid>,
    /// The outputs of confirmed transactions that no confirmed transaction spends, foreign ones included. Only [`read`] fills it.
    pub coins: Vec<Coin>,
    /// The outputs that unconfirmed transactions spend.
    pub pending: Vec<OutPoint>,
    /// The `time` and `timereceived` of transactions, in Unix seconds. May include other transactions.
    pub times: Vec<(Txid, u64, u64)>,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// With checksum, and with private keys if the wallet has them.
    pub text: Zeroizing<String>,
    /// The birth time, in Unix seconds.
    pub timestamp: u64,
    /// The first index and the end (exclusive); `None` without a wildcard.
    pub range: Option<(u32, u32)>,
    pub next_index: u32,
    /// The side on which the descriptor provides new addresses; `None` if it provides none.
    pub active: Option<Active>,
}

/// The side of an active descriptor.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Active {
    Receiving,
    Change,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Coin {
    pub output: OutPoint,
    pub value: Amount,
    pub address: String,
    /// Whether coins of this address were spent while the wallet avoided reuse.
    pub is_used: bool,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Comment {
    pub txid: Txid,
    /// `comment`; may be empty.
    pub comment: String,
    /// `comment_to`; may be empty.
    pub to: String,
}
