//! Wallets of former layouts: their rows are written anew in this one. In layouts 2 and 3 rows of transactions and coins had
//! labels. Layout 2 had no checksums either, and lacked the table `book` where no label was given to a foreign address.

use std::path::Path;

use bitcoin::{Amount, ScriptBuf};
use heed::RwTxn;
use outrigger_service::wallet::{Ownership, TxState, WalletTransaction};
use outrigger_service::wire::{from_bytes, to_bytes};
use outrigger_service::wire_struct;

use super::rows::{CoinRow, DescriptorRow, MetaRow};
use super::tables::{NAMES, Tables, put};
use super::{LAYOUT, opening};
use crate::Settings;
use crate::error::WalletError;
use crate::keypool::DEFAULTS;
use outrigger_disk::pages::{DataFile, Fault};
use outrigger_disk::{DATA_FILE, META, RemakeError, migrate};

/// Tables of which more than the bytes are looked at.
const DESCRIPTORS: &str = "descriptors";
const TRANSACTIONS: &str = "transactions";
const COINS: &str = "coins";

/// The layout that is migrated.
pub const FORMER: u32 = 2;

/// Makes a wallet of this layout of one of the former one. The former file stays until the new one is whole; after a kill it
/// begins anew.
///
/// # Errors
/// When the former file is damaged, or the disk has no room for both.
pub fn take_over(folder: &Path, settings: &Settings) -> Result<(), RemakeError> {
    tracing::info!(folder = %folder.display(), from = FORMER, to = LAYOUT, "the wallet is written anew in another layout");
    let has_own_keys = has_own_keys(&DataFile::open(&folder.join(DATA_FILE))?)?;
    migrate(folder, &opening(folder, settings), NAMES, &mut |table, key, value| match table {
        META if key == super::LAYOUT_KEY => meta_row(value, has_own_keys),
        TRANSACTIONS => transaction_row(value),
        COINS => coin_row(value),
        _ => Ok(value.to_vec()),
    })
}

/// Makes a wallet of this layout of one of layout 3: takes the labels out of its rows.
///
/// # Errors
/// When a row is damaged, or the storage fails.
pub fn take_labels_out(t: &Tables, txn: &mut RwTxn<'_>) -> Result<(), WalletError> {
    type Convert = fn(&[u8]) -> Result<Vec<u8>, Fault>;
    for (table, convert) in [(t.transactions, transaction_row as Convert), (t.coins, coin_row)] {
        let mut rows = Vec::new();
        for entry in table.iter(txn)? {
            let (key, row) = entry?;
            rows.push((key.to_vec(), convert(row).map_err(|_| WalletError::damaged(row.len()))?));
        }
        for (key, row) in rows {
            table.put(txn, &key, &row)?;
        }
    }
    put(t.meta, txn, super::LAYOUT_KEY, &MetaRow { version: LAYOUT, ..t.meta(txn)? })
}

/// A transaction's row in this layout, whose outputs have no labels.
fn transaction_row(value: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut row: WalletTransaction = from_bytes(value).map_err(|_| fault(TRANSACTIONS))?;
    for output in &mut row.outputs {
        (output.change, output.label) = (output.ownership != Ownership::None, None);
    }
    Ok(to_bytes(&row))
}

/// A coin's row in this layout, without its label.
fn coin_row(value: &[u8]) -> Result<Vec<u8>, Fault> {
    let row: FormerCoinRow = from_bytes(value).map_err(|_| fault(COINS))?;
    Ok(to_bytes(&CoinRow {
        value: row.value,
        script: row.script,
        state: row.state,
        coinbase: row.coinbase,
        ownership: row.ownership,
        from_us: row.from_us,
        reused: row.reused,
    }))
}

wire_struct! {
    /// A coin's row in the former layouts.
    pub struct FormerCoinRow {
        /// As in [`CoinRow`].
        pub value: Amount,
        /// As in [`CoinRow`].
        pub script: ScriptBuf,
        /// As in [`CoinRow`].
        pub state: TxState,
        /// As in [`CoinRow`].
        pub coinbase: bool,
        /// As in [`CoinRow`].
        pub ownership: Ownership,
        /// Whether it was change.
        pub change: bool,
        /// The label of its address.
        pub label: Option<String>,
        /// As in [`CoinRow`].
        pub from_us: bool,
        /// As in [`CoinRow`].
        #[since(1)]
        pub reused: bool,
    }
}

/// The wallet's own row in this layout. In the former one an import ended that a wallet was blank, and one without private keys
/// was blank from the beginning; `blank` has come to mean that it was made without keys although it may have some.
fn meta_row(value: &[u8], has_own_keys: bool) -> Result<Vec<u8>, Fault> {
    let mut row: MetaRow = from_bytes(value).map_err(|_| fault(META))?;
    row.version = LAYOUT;
    row.blank = row.private_keys_enabled && !has_own_keys;
    Ok(to_bytes(&row))
}

/// Whether a wallet has the descriptors that it was made with: its first ones, in the order in which they are made.
fn has_own_keys(file: &DataFile) -> Result<bool, Fault> {
    for (number, (internal, (_, purpose, open, _))) in
        (0_u32..).zip([false, true].into_iter().flat_map(|internal| DEFAULTS.map(|default| (internal, default))))
    {
        let Some(row) = file.get(DESCRIPTORS, &number.to_be_bytes())? else { return Ok(false) };
        let row: DescriptorRow = from_bytes(&row).map_err(|_| fault(DESCRIPTORS))?;
        let (purpose, side) = (format!("/{purpose}h/"), format!("/{}/*", u8::from(internal)));
        if !row.identity.starts_with(open) || !row.identity.contains(&purpose) || !row.identity.contains(&side) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fault(table: &str) -> Fault {
    Fault::Tree { table: table.to_owned(), what: "a row cannot be read" }
}
