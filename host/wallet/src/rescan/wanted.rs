//! The scripts that a rescan searches for.
//!
//! A payment derives further scripts. The set contains some of these in advance, so that not every payment invalidates
//! the searches ahead of it.

use std::collections::BTreeMap;

use outrigger_service::wallet::Ownership;
use outrigger_service::wire::from_bytes;

use super::reach::Ends;
use crate::descriptors::derive;
use crate::error::Result;
use crate::live::Wallet;
use crate::store::rows::ScriptRow;
use crate::write::Write;
use outrigger_node::search::ScriptSet;

/// How many future scripts of a descriptor are added at first, and at most. The number doubles each time.
const AHEAD: u32 = 1_000;
const MAX_AHEAD: u32 = 32_000;

struct Reach {
    /// The end of the indexes in the set.
    end: u32,
    /// How many indexes beyond the wallet's are added next time.
    ahead: u32,
}

pub struct WatchedScripts {
    pub set: ScriptSet,
    /// The number of the wallet's scripts at the last [`Self::look`].
    pub count: u64,
    reach: BTreeMap<u32, Reach>,
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
            wanted.reach.insert(number, Reach { end: row.range_end, ahead: AHEAD });
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
            *reach = Reach { end: to, ahead: (2 * reach.ahead).min(MAX_AHEAD) };
        }
        Ok(())
    }

    fn read_anew(&mut self, wallet: &Wallet) -> Result<()> {
        *self = Self::read(wallet)?;
        Ok(())
    }
}
