//! The tables of a wallet, and their keys.
//!
//! | table | key | value |
//! |---|---|---|
//! | meta | name | one row each: `meta`, `program`, `synced`, `chain`, `rescan`, `changes`, `log`, `scrub`, `scrubbed`, and `seal` (encrypted) or `clear` (not); `lock`, txid, vout (LE), empty, for each persistently locked coin; `witness`, txid, wtxid, serialisation, for each witness that results do not show |
//! | descriptors | number (BE) | [`DescriptorRow`] |
//! | identities | SHA-256 of the identity | number (LE) of the descriptor |
//! | active | address type, internal | number (LE) of the descriptor |
//! | scripts | SHA-256 of the script | [`ScriptRow`] |
//! | labels | SHA-256 of the address's script | label |
//! | address_book | SHA-256 of the address's script | that script, if it was labelled as a foreign address or was not in `scripts` at the time |
//! | keys | `d` number (BE), or `k` key hash | private text, encrypted |
//! | transactions | order position (BE) | [`WalletTransaction`] |
//! | raw | order position (BE) | serialisation |
//! | order_positions | txid | order position (BE) |
//! | confirmed | height (BE), index (BE) | order position (BE) |
//! | unconfirmed | order position (BE) | order position (BE) |
//! | conflicted | conflict's height (BE), order position (BE) | order position (BE) |
//! | spends | txid, vout (LE) of the prevout, then the spender's txid | |
//! | outputs | SHA-256 of the address's script, txid, vout (LE) | |
//! | coins | txid, vout (LE) | [`CoinRow`](super::rows::CoinRow) |
//! | log | number (BE) | [`LogRow`](super::rows::LogRow) |
//! | log_due | height (BE), order position (BE) of a transaction that is confirmed and not deep | |
//! | blocks | height (BE) | hash |
//! | mempool_conflicts | `w`, the wallet's transaction, the other in the mempool; and `m`, the other, the wallet's | |
//! | derived | number of a descriptor (BE), index (BE) | definite public descriptors of its scripts at the index, one per line |
//! | imported_keys | HASH160 of the public key | [`KeyRow`] |
//! | imported_scripts | HASH160 of the script | [`KnownScriptRow`] |
//! | imported_watch | SHA-256 of the script | birth time in seconds (LE) |
//! | imported_uses | HASH160 of a key or script, then HASH160 of a known script that names it | |
//! | imported_pool | internal, number (BE) | HASH160 of the public key |
//!
//! Transactions are keyed by order position (nOrderPos in Bitcoin Core), which is nearly the order of the chain, so
//! transactions listed together are stored together.

use std::collections::BTreeSet;

use bitcoin::hashes::{Hash, hash160, sha256};
use bitcoin::{OutPoint, Script, Txid, Wtxid};
use heed::{RoTxn, RwTxn};
use outrigger_service::wallet::{WalletTransaction, WalletTransactionView};
use outrigger_service::wire::{Reader, Viewed, Wire, from_bytes, to_bytes};

use super::rows::{DescriptorRow, EncryptionRow, KeyRow, KnownScriptRow, MetaRow, RescanRow, ScriptRow};
use crate::error::{Result, WalletError};
pub use outrigger_disk::Table;
use outrigger_disk::{Environment, StoreError};

/// In the table `meta`: how many changes have required a backup.
pub const CHANGES: &[u8] = b"changes";

/// In the table `meta`: the [`LogStateRow`](super::rows::LogStateRow).
pub const LOG_STATE: &[u8] = b"log";

/// In the table `meta`: the wallet's [`ChainIdentity`](outrigger_node::ChainIdentity).
pub const CHAIN: &[u8] = b"chain";

/// In the table `meta`: the [`EncryptionRow`] of an encrypted wallet.
pub const ENCRYPTION: &[u8] = b"seal";

/// In the table `meta`: the encryption key of a wallet that is not encrypted.
pub const PLAINTEXT_KEY: &[u8] = b"clear";

/// In the table `meta`: a list of [`TraceRow`](super::rows::TraceRow), the former secrets still to be removed from the file. Absent if
/// there are none.
pub const SCRUB: &[u8] = b"scrub";

/// In the table `meta`: the key prefix of persistently locked coins.
pub const LOCKED: &[u8] = b"lock";

/// In the table `meta`: the key prefix of serialisations with a witness that is not shown (see `alternate_wtxids`).
pub const WITNESS: &[u8] = b"witness";

/// The key prefix in `meta` of a transaction's serialisations that are not shown. The wtxid follows it.
pub fn witness_key(txid: &Txid) -> Vec<u8> {
    [WITNESS, txid.as_byte_array()].concat()
}

/// The key of a script in `scripts`, `labels`, `outputs` and `imported_watch`.
pub fn script_key(script: &Script) -> [u8; 32] {
    sha256::Hash::hash(script.as_bytes()).to_byte_array()
}

pub fn hash160(bytes: &[u8]) -> [u8; 20] {
    hash160::Hash::hash(bytes).to_byte_array()
}

pub fn outpoint_key(outpoint: &OutPoint) -> [u8; 36] {
    let mut key = [0; 36];
    let (txid, vout) = key.split_at_mut(32);
    txid.copy_from_slice(outpoint.txid.as_byte_array());
    vout.copy_from_slice(&outpoint.vout.to_le_bytes());
    key
}

pub fn outpoint_from(key: &[u8]) -> Result<OutPoint> {
    let (txid, vout) = key.split_at_checked(32).ok_or_else(|| WalletError::damaged(key.len()))?;
    Ok(OutPoint { txid: txid_from(txid)?, vout: number_from(vout)? })
}

/// A key that starts with a height, big-endian, so that the table is ordered by height.
pub fn height_key(height: u32, beside: &[u8]) -> Vec<u8> {
    [&height.to_be_bytes(), beside].concat()
}

/// The key prefix in `mempool_conflicts` of entries that start with the wallet's transaction.
pub const OF_WALLET: u8 = b'w';
/// The key prefix of entries that start with the mempool's transaction.
pub const OF_MEMPOOL: u8 = b'm';

/// The key prefix of a transaction in `mempool_conflicts`.
pub fn conflict_key(side: u8, txid: &Txid) -> Vec<u8> {
    [&[side], txid.as_byte_array().as_slice()].concat()
}

/// The key in `derived` for a descriptor's number and an index.
pub fn place_key(number: u32, index: u32) -> [u8; 8] {
    ((u64::from(number) << 32) | u64::from(index)).to_be_bytes()
}

macro_rules! tables {
    (copied: $($copied:ident)*; others: $($other:ident)*;) => {
        #[derive(Clone, Copy)]
        pub struct Tables {
            $(pub $copied: Table,)*
            $(pub $other: Table,)*
        }

        /// The names of the tables in the file.
        pub const NAMES: &[&str] = &[$(stringify!($copied),)* $(stringify!($other)),*];

        impl Tables {
            pub fn create(env: &Environment, txn: &mut RwTxn<'_>) -> std::result::Result<Self, StoreError> {
                let mut table = |name| env.make_table(txn, name);
                Ok(Self { $($copied: table(stringify!($copied))?,)* $($other: table(stringify!($other))?,)* })
            }

            /// In the order of [`NAMES`].
            pub fn all(&self) -> Vec<Table> {
                vec![$(self.$copied,)* $(self.$other),*]
            }

            /// The tables that an export without private keys copies unchanged.
            pub fn copied(&self) -> Vec<Table> {
                vec![$(self.$copied),*]
            }

            /// Opens the tables; `None` if one is missing.
            pub fn open(env: &Environment, txn: &RoTxn<'_>) -> std::result::Result<Option<Self>, StoreError> {
                $(let Some($copied) = env.table(txn, stringify!($copied))? else { return Ok(None) };)*
                $(let Some($other) = env.table(txn, stringify!($other))? else { return Ok(None) };)*
                Ok(Some(Self { $($copied,)* $($other),* }))
            }
        }
    };
}

// An export without private keys copies the first tables unchanged. It treats each of the others by itself.
tables! {
    copied: active labels address_book raw order_positions confirmed unconfirmed conflicted spends outputs log log_due
        mempool_conflicts derived blocks imported_scripts imported_watch imported_uses imported_pool;
    others: meta descriptors identities scripts keys transactions coins imported_keys;
}

/// The tables that a file of this layout may lack. A load makes them.
pub const LATER: [&str; 2] = ["log", "log_due"];

pub fn get<T: Wire>(table: Table, txn: &RoTxn<'_>, key: &[u8]) -> Result<Option<T>> {
    Ok(table.get(txn, key)?.map(from_bytes).transpose()?)
}

pub fn put<T: Wire>(table: Table, txn: &mut RwTxn<'_>, key: &[u8], row: &T) -> Result<()> {
    Ok(table.put(txn, key, &to_bytes(row))?)
}

#[cfg(test)]
thread_local! {
    /// How many rows this thread has read: of transactions, and of coins for their sums.
    pub static ROWS_READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub fn count_row() {
    ROWS_READ.set(ROWS_READ.get() + 1);
}

/// Decodes a txid in a value or at the end of a key.
pub fn txid_from(bytes: &[u8]) -> Result<Txid> {
    Txid::from_slice(bytes).map_err(|_| WalletError::damaged(bytes.len()))
}

/// Decodes four little-endian bytes.
pub fn number_from(bytes: &[u8]) -> Result<u32> {
    Ok(u32::from_le_bytes(bytes.try_into().map_err(|_| WalletError::damaged(bytes.len()))?))
}

/// Decodes a key of four big-endian bytes.
pub fn number_from_key(bytes: &[u8]) -> Result<u32> {
    Ok(u32::from_be_bytes(bytes.try_into().map_err(|_| WalletError::damaged(bytes.len()))?))
}

impl Tables {
    pub fn meta(&self, txn: &RoTxn<'_>) -> Result<MetaRow> {
        get(self.meta, txn, b"meta")?.ok_or(WalletError::damaged(0))
    }

    /// The stored position on the chain.
    pub fn synced(&self, txn: &RoTxn<'_>) -> Result<outrigger_service::wallet::Synced> {
        get(self.meta, txn, b"synced")?.ok_or(WalletError::damaged(0))
    }

    /// `None` if the wallet is not encrypted.
    pub fn encryption(&self, txn: &RoTxn<'_>) -> Result<Option<EncryptionRow>> {
        get(self.meta, txn, ENCRYPTION)
    }

    pub fn changes(&self, txn: &RoTxn<'_>) -> Result<u64> {
        Ok(get(self.meta, txn, CHANGES)?.unwrap_or(0))
    }

    pub fn locked_coins(&self, txn: &RoTxn<'_>) -> Result<BTreeSet<OutPoint>> {
        let rows = self.meta.prefix_iter(txn, LOCKED)?;
        rows.map(|row| outpoint_from(row?.0.get(LOCKED.len()..).unwrap_or_default())).collect()
    }

    pub fn rescan(&self, txn: &RoTxn<'_>) -> Result<Option<RescanRow>> {
        get(self.meta, txn, b"rescan")
    }

    /// A transaction's row, undecoded.
    pub fn stored<'t>(&self, txn: &'t RoTxn<'_>, txid: &Txid) -> Result<Option<&'t [u8]>> {
        let Some(order_position) = self.order_positions.get(txn, txid.as_byte_array())? else { return Ok(None) };
        self.stored_at(txn, order_position).map(Some)
    }

    /// The row at an order position (BE), undecoded.
    pub fn stored_at<'t>(&self, txn: &'t RoTxn<'_>, order_position: &[u8]) -> Result<&'t [u8]> {
        #[cfg(test)]
        count_row();
        self.transactions.get(txn, order_position)?.ok_or_else(|| WalletError::damaged(order_position.len()))
    }

    pub fn transaction(&self, txn: &RoTxn<'_>, txid: &Txid) -> Result<Option<WalletTransaction>> {
        Ok(self.stored(txn, txid)?.map(from_bytes).transpose()?)
    }

    /// A transaction's row, decoded in place.
    pub fn transaction_view<'t>(&self, txn: &'t RoTxn<'_>, txid: &Txid) -> Result<Option<WalletTransactionView<'t>>> {
        Ok(self.stored(txn, txid)?.map(|row| WalletTransaction::view(&mut Reader::new(row))).transpose()?)
    }

    /// The row at an order position (BE).
    pub fn transaction_at(&self, txn: &RoTxn<'_>, order_position: &[u8]) -> Result<WalletTransaction> {
        Ok(from_bytes(self.stored_at(txn, order_position)?)?)
    }

    pub fn serialised<'t>(&self, txn: &'t RoTxn<'_>, txid: &Txid) -> Result<Option<&'t [u8]>> {
        let Some(order_position) = self.order_positions.get(txn, txid.as_byte_array())? else { return Ok(None) };
        Ok(self.raw.get(txn, order_position)?)
    }

    /// The wtxids of a transaction's witnesses that are not shown, sorted by internal bytes.
    pub fn alternate_wtxids(&self, txn: &RoTxn<'_>, txid: &Txid) -> Result<Vec<Wtxid>> {
        let prefix = witness_key(txid);
        let wtxid = |key: &[u8]| Wtxid::from_slice(key.get(prefix.len()..).unwrap_or_default());
        let rows = self.meta.prefix_iter(txn, &prefix)?;
        rows.map(|row| {
            row.map_err(Into::into).and_then(|(key, _)| wtxid(key).map_err(|_| WalletError::damaged(key.len())))
        })
        .collect()
    }

    pub fn script(&self, txn: &RoTxn<'_>, script: &Script) -> Result<Option<ScriptRow>> {
        get(self.scripts, txn, &script_key(script))
    }

    pub fn descriptor(&self, txn: &RoTxn<'_>, number: u32) -> Result<Option<DescriptorRow>> {
        get(self.descriptors, txn, &number.to_be_bytes())
    }

    pub fn all_descriptors(&self, txn: &RoTxn<'_>) -> Result<Vec<(u32, DescriptorRow)>> {
        let mut rows = Vec::new();
        for entry in self.descriptors.iter(txn)? {
            let (number, row) = entry?;
            rows.push((number_from_key(number)?, from_bytes(row)?));
        }
        Ok(rows)
    }

    pub fn imported_key(&self, txn: &RoTxn<'_>, hash: &[u8; 20]) -> Result<Option<KeyRow>> {
        get(self.imported_keys, txn, hash)
    }

    pub fn imported_script(&self, txn: &RoTxn<'_>, hash: &[u8; 20]) -> Result<Option<KnownScriptRow>> {
        get(self.imported_scripts, txn, hash)
    }

    /// Whether a mempool transaction conflicts with a transaction of the wallet, or with an ancestor of it.
    pub fn is_mempool_conflicted(&self, txn: &RoTxn<'_>, txid: &Txid) -> Result<bool> {
        let prefix = conflict_key(OF_WALLET, txid);
        Ok(self.mempool_conflicts.prefix_iter(txn, &prefix)?.next().transpose()?.is_some())
    }

    /// The conflicting transactions, sorted by internal bytes: the mempool's for a transaction of the wallet
    /// ([`OF_WALLET`]), the wallet's for a mempool transaction ([`OF_MEMPOOL`]).
    pub fn mempool_conflicts_of(&self, txn: &RoTxn<'_>, side: u8, txid: &Txid) -> Result<Vec<Txid>> {
        let prefix = conflict_key(side, txid);
        let rows = self.mempool_conflicts.prefix_iter(txn, &prefix)?;
        rows.map(|row| txid_from(row?.0.get(prefix.len()..).unwrap_or_default())).collect()
    }

    pub fn spenders(&self, txn: &RoTxn<'_>, outpoint: &OutPoint) -> Result<Vec<Txid>> {
        let rows = self.spends.prefix_iter(txn, &outpoint_key(outpoint))?;
        rows.map(|row| txid_from(row?.0.get(36..).unwrap_or_default())).collect()
    }

    /// The greatest height at which a transaction is confirmed or conflicted; 0 if there is none.
    pub fn top(&self, txn: &RoTxn<'_>) -> Result<u32> {
        let mut top = 0;
        for table in [self.confirmed, self.conflicted] {
            let last = table.rev_iter(txn)?.next().transpose()?;
            let height = last.and_then(|(key, _)| key.first_chunk::<4>().copied());
            top = top.max(height.map_or(0, u32::from_be_bytes));
        }
        Ok(top)
    }
}
