//! Wallets of the former layout: its rows are written anew in this one. Layout 2 had no checksums, and lacked the table `book`
//! where no label was given to a foreign address.

use std::path::Path;

use super::tables::NAMES;
use super::{LAYOUT, opening};
use crate::disk::pages::Fault;
use crate::disk::{META, RemakeError, migrate};
use crate::wallet::Settings;

/// The layout that is migrated.
pub const FORMER: u32 = 2;

/// Makes a wallet of this layout of one of the former one. The former file stays until the new one is whole; after a kill it
/// begins anew.
///
/// # Errors
/// When the former file is damaged, or the disk has no room for both.
pub fn take_over(folder: &Path, settings: &Settings) -> Result<(), RemakeError> {
    tracing::info!(folder = %folder.display(), from = FORMER, to = LAYOUT, "the wallet is written anew in another layout");
    migrate(folder, &opening(folder, settings), NAMES, &mut rewrite)
}

/// A row of this layout, of one of the former: only the version in the wallet's own row is another.
fn rewrite(table: &str, key: &[u8], value: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut value = value.to_vec();
    if table == META && key == super::LAYOUT_KEY {
        let fault = || Fault::Tree { table: table.to_owned(), what: "a row is too short" };
        *value.first_chunk_mut().ok_or_else(fault)? = LAYOUT.to_le_bytes();
    }
    Ok(value)
}
