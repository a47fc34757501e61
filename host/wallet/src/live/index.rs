//! Which wallets a block or a mempool transaction may concern: one index over all loaded wallets.
//!
//! A wallet's interests are its scripts, its coins, and the ids and inputs of its unconfirmed transactions (another
//! spender of such an input is a conflict). The index keeps some bits of each interest's hash. Bits may collide, and
//! expired interests stay until the wallet is unloaded; both only make a wallet look at a transaction needlessly.
//! Nothing is missed: an interest is added before the write that creates it commits, and [`Index::hold`] blocks
//! additions while a block is compared with all wallets.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The number of a loaded wallet. Never reused while the host runs.
pub type WalletNumber = u32;

/// The number of parts of the index, each with its own lock.
const SHARDS: usize = 256;
/// Marks an entry of several wallets. The other bits are the position of the wallets' list in [`Shard::lists`].
const SHARED: u32 = 1 << 31;

#[derive(Default)]
struct Shard {
    /// A wallet's number, or, marked with [`SHARED`], the position of a list.
    owners: HashMap<u32, u32, RandomState>,
    lists: Vec<Vec<WalletNumber>>,
}

impl Shard {
    fn list(&self, entry: u32) -> &[WalletNumber] {
        self.lists.get((entry & !SHARED) as usize).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, bits: u32, slot: WalletNumber) {
        let entry = *self.owners.entry(bits).or_insert(slot);
        if entry & SHARED != 0 {
            if let Some(list) = self.lists.get_mut((entry & !SHARED) as usize)
                && let Err(at) = list.binary_search(&slot)
            {
                list.insert(at, slot);
            }
        } else if entry != slot {
            let place = u32::try_from(self.lists.len()).unwrap_or(!SHARED) & !SHARED;
            self.lists.push(vec![entry.min(slot), entry.max(slot)]);
            self.owners.insert(bits, place | SHARED);
        }
    }

    /// A copy without these wallets.
    fn without(&self, dead: &HashSet<WalletNumber>) -> Self {
        let mut kept = Self::default();
        for (bits, entry) in &self.owners {
            let own = [*entry];
            let slots = if entry & SHARED == 0 { &own[..] } else { self.list(*entry) };
            for slot in slots.iter().filter(|slot| !dead.contains(slot)) {
                kept.add(*bits, *slot);
            }
        }
        kept
    }
}

pub struct Index {
    shards: Vec<RwLock<Shard>>,
    /// Locked shared by additions, exclusively while something is compared with all wallets.
    comparing: RwLock<()>,
    /// Unloaded wallets with entries.
    dead: Mutex<HashSet<WalletNumber>>,
}

impl Default for Index {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| RwLock::default()).collect();
        Self { shards, comparing: RwLock::default(), dead: Mutex::default() }
    }
}

impl Index {
    fn shard(&self, interest: u64) -> Option<&RwLock<Shard>> {
        self.shards.get((interest >> 32) as usize % SHARDS)
    }

    fn read(&self, interest: u64) -> Option<RwLockReadGuard<'_, Shard>> {
        Some(self.shard(interest)?.read())
    }

    pub fn add(&self, slot: WalletNumber, interest: u64) {
        let _shared = self.comparing.read();
        if let Some(shard) = self.shard(interest) {
            shard.write().add(interest as u32, slot);
        }
    }

    pub fn has(&self, slot: WalletNumber, interest: u64) -> bool {
        let Some(shard) = self.read(interest) else { return false };
        match shard.owners.get(&(interest as u32)) {
            None => false,
            Some(entry) if entry & SHARED == 0 => *entry == slot,
            Some(entry) => shard.list(*entry).binary_search(&slot).is_ok(),
        }
    }

    pub fn has_any(&self, interest: u64) -> bool {
        self.read(interest).is_some_and(|shard| shard.owners.contains_key(&(interest as u32)))
    }

    pub fn collect(&self, interest: u64, found: &mut HashSet<WalletNumber>) {
        let Some(shard) = self.read(interest) else { return };
        match shard.owners.get(&(interest as u32)) {
            None => {}
            Some(entry) if entry & SHARED == 0 => {
                found.insert(*entry);
            }
            Some(entry) => found.extend(shard.list(*entry)),
        }
    }

    /// Blocks new interests until the guard is dropped.
    pub fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.comparing.write()
    }

    /// Records that a wallet was unloaded.
    pub fn forget(&self, slot: WalletNumber) {
        self.dead.lock().insert(slot);
    }

    /// Removes the entries of unloaded wallets.
    pub fn sweep(&self) {
        let dead = std::mem::take(&mut *self.dead.lock());
        if dead.is_empty() {
            return;
        }
        for shard in &self.shards {
            let mut shard = shard.write();
            *shard = shard.without(&dead);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(index: &Index, interest: u64) -> Vec<WalletNumber> {
        let mut found = HashSet::new();
        index.collect(interest, &mut found);
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn an_interest_leads_to_all_wallets_that_have_it() {
        let index = Index::default();
        [3, 3].into_iter().for_each(|slot| index.add(slot, 77));
        assert_eq!((found(&index, 77), found(&index, 78)), (vec![3], vec![]));
        [1, 2, 1, 2].into_iter().for_each(|slot| index.add(slot, 77));
        assert_eq!(found(&index, 77), [1, 2, 3]);
        assert!(index.has(2, 77) && !index.has(4, 77) && !index.has(2, 78));
    }

    #[test]
    fn the_entries_of_unloaded_wallets_are_taken_out() {
        let index = Index::default();
        let interests: Vec<u64> = (0..1_000).map(|number| number << 32 | number).collect();
        for interest in &interests {
            index.add(1, *interest);
        }
        index.add(2, interests[0]);
        index.add(2, 5);
        index.sweep();
        assert!(index.has(1, interests[7]), "nothing is dead");
        index.forget(1);
        index.sweep();
        assert!(interests.iter().all(|interest| !index.has(1, *interest)));
        assert!(index.has(2, interests[0]) && index.has(2, 5));
        assert_eq!(index.shards.iter().map(|shard| shard.read().owners.len()).sum::<usize>(), 2);
    }
}
