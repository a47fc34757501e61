//! Whether a wallet's descriptors were derived far enough when a rescan began.
//!
//! A payment derives further scripts, which are searched for in the blocks after it, but not in those before. If
//! payments came near the end of the derived scripts, earlier blocks may pay to scripts beyond it.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::live::Wallet;
use crate::store::rows::DescriptorRow;

/// The part of the scripts derived ahead that counts as their end: the last fifth.
const END_PART: u32 = 5;

/// Ranged descriptors by number, with the end of their derived indexes.
pub type Ends = BTreeMap<u32, u32>;

/// The derived indexes at one moment.
pub struct Reach(Ends);

impl Reach {
    pub fn read(wallet: &Wallet) -> Result<Self> {
        Ok(Self(ranged(wallet)?.into_iter().map(|(number, row)| (number, row.range_end)).collect()))
    }

    /// Updates to the current state. If payments came near the former ends, returns the descriptors that have grown,
    /// with their former ends.
    pub fn widen(&mut self, wallet: &Wallet) -> Result<Option<Ends>> {
        let mut near = false;
        let mut grown = Ends::new();
        for (number, row) in ranged(wallet)? {
            // A new descriptor was searched for by the rescan of its import.
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
    let mut rows = wallet.store.tables.all_descriptors(&*wallet.store.read()?)?;
    rows.retain(|(_, row)| row.ranged);
    Ok(rows)
}
