//! The log of a wallet: a numbered entry for each change of a transaction's [`Standing`]. The write that changes the
//! standing also writes the entry.
//!
//! A write notes a transaction's standing before it first changes the transaction, and compares it with the standing at
//! the end of the write. The table `log_due` has the confirmed transactions that are not deep yet. The block that makes one
//! deep moves it to the log, even if the block does not touch the wallet otherwise (`SyncPosition::due`).
//!
//! An entry's number is the time in microseconds, or the last number plus one if that is greater. So a wallet restored
//! from a backup does not reuse the numbers that it gave after the backup.
//!
//! Entries do not contain payments: readers take them from the transaction's row (`view/log.rs`).

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bitcoin::{BlockHash, Txid};
use outrigger_service::wallet::{LOG_DEPTH, LogKind, TxState};

use super::error::{Result, WalletError};
use super::store::{Reading, Tables, height_key, number_from_key};

/// The height of the next block that makes a transaction deep, if no transaction is waiting for one.
pub const NEVER: u32 = u32::MAX;

/// The state of a transaction as the log shows it: the kind of its last entry, and the block that confirms it or conflicts
/// with it.
pub type Standing = (LogKind, Option<(BlockHash, u32)>);

pub const UNKNOWN: Standing = (LogKind::Removed, None);
pub const UNCONFIRMED: Standing = (LogKind::Seen, None);

/// The standing of a transaction before a write changed it.
pub struct Note {
    pub order_position: u64,
    pub before: Standing,
    /// Whether its payments have changed, so that it gets an entry even if its standing has not changed.
    pub again: bool,
    /// The number of transactions that the write changed before it.
    pub place: usize,
}

/// The transactions that a write changes.
pub type LogNotes = HashMap<Txid, Note>;

/// The height of the next block that makes a transaction deep, or [`NEVER`].
pub fn next_due(t: &Tables, txn: &Reading<'_>) -> Result<u32> {
    let first = t.log_due.iter(txn)?.next().transpose()?;
    Ok(first.map_or(Ok(NEVER), |(key, _)| due_height(key))?.saturating_add(LOG_DEPTH - 1))
}

/// The height of the transaction's block, in a key of `log_due`.
pub fn due_height(key: &[u8]) -> Result<u32> {
    number_from_key(key.get(..4).unwrap_or_default())
}

pub fn due_key(height: u32, order_position: u64) -> Vec<u8> {
    height_key(height, &order_position.to_be_bytes())
}

pub fn microseconds() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

pub fn standing(t: &Tables, txn: &Reading<'_>, txid: &Txid, state: &TxState) -> Result<Standing> {
    Ok(match *state {
        TxState::Confirmed { block, height, .. } => (LogKind::Confirmed, Some((block, height))),
        TxState::Conflicted { block, height } => (LogKind::Conflicted, Some((block, height))),
        TxState::Abandoned => (LogKind::Abandoned, None),
        TxState::InMempool | TxState::Inactive if t.is_mempool_conflicted(txn, txid)? => (LogKind::Replaced, None),
        TxState::InMempool | TxState::Inactive => UNCONFIRMED,
    })
}

pub fn log_number(key: &[u8]) -> Result<u64> {
    Ok(u64::from_be_bytes(key.try_into().map_err(|_| WalletError::damaged(key.len()))?))
}
