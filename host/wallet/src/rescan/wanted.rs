//! The scripts that a rescan searches for, and whether they were enough.
//!
//! A payment derives further scripts. The set contains some of these in advance, so that not every payment invalidates
//! the searches ahead of it. They are not searched for in the blocks before the payment: if payments came near the end of the scripts that
//! were derived when the rescan began, earlier blocks may pay to scripts beyond it.

use std::collections::BTreeMap;

use outrigger_service::wallet::Ownership;
use outrigger_service::wire::from_bytes;

use crate::descriptors::derive;
use crate::error::Result;
use crate::live::Wallet;
use crate::store::{DescriptorRow, ScriptRow};
use crate::write::Write;
use outrigger_node::search::ScriptSet;

/// How many future scripts of a descriptor are added at first, and at most. The number doubles each time.
const AHEAD: u32 = 1_000;
const MAX_AHEAD: u32 = 32_000;

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

struct Derived {
    /// The end of the indexes in the set.
    end: u32,
    /// How many indexes beyond the wallet's are added next time.
    ahead: u32,
}

pub struct WatchedScripts {
    pub set: ScriptSet,
    /// The number of the wallet's scripts at the last [`Self::look`].
    pub count: u64,
    reach: BTreeMap<u32, Derived>,
}

/// The effect of a write on the wallet's scripts.
#[derive(PartialEq, Eq, Debug)]
pub enum Growth {
    /// The set holds all of them.
    Held,
    /// These descriptors have grown beyond the set, to these ends.
    Moved(Vec<(u32, u32)>),
    /// Scripts came from elsewhere.
    Unknown,
}

impl WatchedScripts {
    /// All scripts of the wallet.
    pub fn read(wallet: &Wallet) -> Result<Self> {
        Self::read_if(wallet, |row| row.ownership() != Ownership::None)
    }

    /// The scripts of these descriptors beyond their former ends.
    pub fn of(wallet: &Wallet, grown: &Ends) -> Result<Self> {
        let is_new = |(number, index): &(u32, u32)| grown.get(number).is_some_and(|end| index >= end);
        Self::read_if(wallet, |row| row.owners.iter().any(is_new))
    }

    fn read_if(wallet: &Wallet, is_wanted: impl Fn(&ScriptRow) -> bool) -> Result<Self> {
        let (txn, t) = (wallet.store.read()?, wallet.store.tables);
        let mut wanted = Self { set: ScriptSet::default(), count: t.scripts.len(&txn)?, reach: BTreeMap::new() };
        for entry in t.scripts.iter(&txn)? {
            let row: ScriptRow = from_bytes(entry?.1)?;
            if is_wanted(&row) {
                wanted.set.insert(&row.script);
            }
        }
        for (number, row) in t.all_descriptors(&txn)?.into_iter().filter(|(_, row)| row.ranged) {
            wanted.reach.insert(number, Derived { end: row.range_end, ahead: AHEAD });
        }
        Ok(wanted)
    }

    /// Whether another write has added scripts since the last look.
    pub fn is_stale(&self, write: &Write<'_>) -> Result<bool> {
        Ok(write.t.scripts.len(write.reads())? != self.count)
    }

    /// The effect of a write on the wallet's scripts since the last look.
    pub fn look(&mut self, write: &mut Write<'_>) -> Result<Growth> {
        if write.grown.is_empty() {
            return Ok(Growth::Held);
        }
        self.count = write.t.scripts.len(write.reads())?;
        let grown = std::mem::take(&mut write.grown);
        let beyond = |(number, end): &(u32, u32)| self.reach.get(number).is_none_or(|reach| *end > reach.end);
        let moved: Vec<(u32, u32)> = grown.into_iter().filter(beyond).collect();
        Ok(if moved.is_empty() { Growth::Held } else { Growth::Moved(moved) })
    }

    /// Adds the scripts of a committed write.
    pub fn extend(&mut self, wallet: &Wallet, growth: Growth) -> Result<()> {
        let moved = match growth {
            Growth::Held => return Ok(()),
            Growth::Moved(moved) => moved,
            Growth::Unknown => return self.read_anew(wallet),
        };
        for (number, end) in moved {
            let row = wallet.store.tables.descriptor(&*wallet.store.read()?, number)?;
            let (Some(row), Some(reach)) = (row, self.reach.get_mut(&number)) else { return self.read_anew(wallet) };
            let descriptor = wallet.descriptors.get(number, &row.public)?;
            let to = end.saturating_add(reach.ahead);
            // A hardened step below the public key: no script beyond the wallet's can be derived.
            let Ok(derived) = derive(&descriptor, reach.end..to) else { return self.read_anew(wallet) };
            derived.iter().flat_map(|(_, scripts)| scripts).for_each(|script| self.set.insert(script));
            *reach = Derived { end: to, ahead: (2 * reach.ahead).min(MAX_AHEAD) };
        }
        Ok(())
    }

    fn read_anew(&mut self, wallet: &Wallet) -> Result<()> {
        *self = Self::read(wallet)?;
        Ok(())
    }
}
