//! Data that imports cannot set, for a wallet that is copied from another program.

use std::path::Path;

use bitcoin::Txid;

use super::error::Result;
use super::files;
use super::settings::Settings;
use super::store::{Store, put};

/// Sets whether a wallet that is not loaded is blank, and the `time` and `timereceived` of its transactions, in Unix seconds. Skips
/// unknown transactions.
pub fn take_over(dir: &Path, name: &str, blank: bool, times: &[(Txid, u64, u64)]) -> Result<()> {
    let store = Store::open(&files::folder(dir, name)?, &Settings::default())?;
    let (t, mut txn) = (store.tables, store.write()?);
    let mut meta = t.meta(&txn)?;
    meta.blank = blank;
    put(t.meta, &mut txn, b"meta", &meta)?;
    for (txid, time, received) in times {
        if let Some(mut row) = t.transaction(&txn, txid)? {
            (row.time, row.time_received) = (*time, *received);
            put(t.transactions, &mut txn, &row.order_position.to_be_bytes(), &row)?;
        }
    }
    Ok(txn.commit()?)
}
