//! How far a wallet's descriptors were derived when a rescan began, and whether that was far enough.
//!
//! A payment moves its descriptor on, so that the blocks after it are searched for more scripts; those before it are not. Where
//! payments came near the end of what was derived, others may have gone beyond it earlier.

use std::collections::BTreeMap;

use outrigger_service::wire::from_bytes;

use crate::error::{Result, WalletError};
use crate::live::Wallet;
use crate::store::rows::DescriptorRow;
use crate::store::tables::number_from_key;

/// What part of what is kept derived ahead counts as its end: the last fifth.
const END_PART: u32 = 5;

/// The descriptors with a range, by number, and the index behind the last one that was derived of each.
pub type Ends = BTreeMap<u32, u32>;

/// How far the descriptors were derived.
pub struct Reach(Ends);

impl Reach {
    /// As far as they are now.
    pub fn read(wallet: &Wallet) -> Result<Self> {
        Ok(Self(ranged(wallet)?.into_iter().map(|(number, row)| (number, row.range_end)).collect()))
    }

    /// Takes up how far they are now. Where they were paid to near the former end, the descriptors that have grown, and their
    /// former ends.
    pub fn widen(&mut self, wallet: &Wallet) -> Result<Option<Ends>> {
        let mut near = false;
        let mut grown = Ends::new();
        for (number, row) in ranged(wallet)? {
            // One that came meanwhile was searched for by the import that brought it.
            let end = self.0.insert(number, row.range_end).unwrap_or(row.range_end);
            if row.range_end > end {
                let ahead = wallet.shared.settings.keypool.min(end.saturating_sub(row.derived_begin));
                near |= row.next_index > end.saturating_sub(ahead / END_PART);
                grown.insert(number, end);
            }
        }
        Ok(near.then_some(grown))
    }
}

fn ranged(wallet: &Wallet) -> Result<Vec<(u32, DescriptorRow)>> {
    let (txn, t) = (wallet.store.read()?, wallet.store.tables);
    let mut rows = Vec::new();
    for entry in t.descriptors.iter(&txn)? {
        let (key, row) = entry?;
        let row: DescriptorRow = from_bytes(row).map_err(WalletError::Damaged)?;
        if row.ranged {
            rows.push((number_from_key(key)?, row));
        }
    }
    Ok(rows)
}
