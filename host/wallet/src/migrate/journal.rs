//! The note of the wallets that are being made for a migration, so that a kill leaves all of them or none.

use std::fs;
use std::io;
use std::path::Path;

use outrigger_disk::pages::{DataFile, Fault};
use outrigger_disk::{Checksum, META};
use outrigger_service::wallet::WalletKind;
use outrigger_service::wire::from_bytes;
use serde::{Deserialize, Serialize};

use crate::error::{Result, WalletError};
use crate::files::{self, MIGRATION_FILE};
use crate::store::rows::MetaRow;
use crate::store::{DATA_FILE, LAYOUT_KEY};

/// What is noted.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// The wallet that is migrated.
    wallet: String,
    /// The wallets that are made for it. None of them was there before.
    sides: Vec<String>,
}

impl Journal {
    /// The note of a migration.
    pub fn of<'n>(wallet: &str, sides: impl Iterator<Item = &'n String>) -> Self {
        Self { wallet: wallet.to_owned(), sides: sides.cloned().collect() }
    }

    /// Writes it, before the first of the wallets is made.
    pub fn begin(&self, dir: &Path) -> Result<()> {
        files::write_migration(dir, &serde_json::to_vec(self).map_err(io::Error::from)?)
    }
}

/// Ends the migration that is noted, if there is one: where the wallet has become one of descriptors, the others are loaded at
/// every start from now on; otherwise they are removed.
///
/// # Errors
/// When the note or the wallet cannot be read: then all stays as it is.
pub fn recover(dir: &Path) -> Result<()> {
    let text = match fs::read(dir.join(MIGRATION_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        text => text?,
    };
    let Journal { wallet, sides } = serde_json::from_slice(&text).map_err(io::Error::from)?;
    if is_migrated(&files::folder(dir, &wallet)?.join(DATA_FILE))? {
        let mut names = files::load_list(dir)?;
        for side in sides {
            files::set_load_on_startup(dir, &mut names, &side, true)?;
        }
    } else {
        for side in sides {
            files::discard(&files::folder(dir, &side)?);
        }
    }
    files::remove_migration(dir)
}

/// Whether a wallet is not one of keys and scripts any more. One that is gone counts as migrated: what was made for it may be all
/// that is left.
fn is_migrated(file: &Path) -> Result<bool> {
    let bad = |fault| WalletError::BadFile { file: file.to_owned(), fault };
    let data = match DataFile::open(file) {
        Err(Fault::Unreadable(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened.map_err(bad)?,
    };
    let stored = data.get(META, LAYOUT_KEY).map_err(bad)?.ok_or(WalletError::NotAWallet)?;
    let row = Checksum::of(META).open(LAYOUT_KEY, &stored).ok_or(WalletError::damaged(stored.len()))?;
    let row: MetaRow = from_bytes(row).map_err(WalletError::Damaged)?;
    Ok(row.kind != WalletKind::Legacy as u8)
}
