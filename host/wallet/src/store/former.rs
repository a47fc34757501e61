//! Wallets of the former layout: its rows are written anew in this one. Layout 2 had no checksums, and lacked the table `book`
//! where no label was given to a foreign address.

use std::path::Path;

use outrigger_service::wallet::WalletTransaction;
use outrigger_service::wire::{from_bytes, to_bytes};

use super::rows::{CoinRow, DescriptorRow, MetaRow};
use super::tables::NAMES;
use super::{LAYOUT, opening};
use crate::Settings;
use crate::keypool::DEFAULTS;
use crate::ownership::{SHORT_LABEL, is_long_label, row_label};
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
    migrate(folder, &opening(folder, settings), NAMES, &mut |table, key, value| {
        match table {
            META if key == super::LAYOUT_KEY => meta_row(value, has_own_keys),
            // Shorter ones have no label that is too long for a row.
            TRANSACTIONS if value.len() > SHORT_LABEL => transaction_row(value),
            COINS if value.len() > SHORT_LABEL => coin_row(value),
            _ => Ok(value.to_vec()),
        }
    })
}

/// A transaction's row in this layout, in which labels have become bounded.
fn transaction_row(value: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut row: WalletTransaction = from_bytes(value).map_err(|_| fault(TRANSACTIONS))?;
    for label in row.outputs.iter_mut().filter_map(|output| output.label.as_mut()) {
        *label = row_label(label).to_owned();
        row.contested |= is_long_label(Some(label));
    }
    Ok(to_bytes(&row))
}

/// The same of a coin's row.
fn coin_row(value: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut row: CoinRow = from_bytes(value).map_err(|_| fault(COINS))?;
    if let Some(label) = &mut row.label {
        *label = row_label(label).to_owned();
    }
    Ok(to_bytes(&row))
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
