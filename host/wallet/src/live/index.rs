//! Which wallets a block or a mempool transaction may concern: one index over all loaded wallets.
//!
//! A wallet's interests are its scripts, its coins, and the ids and inputs of its unconfirmed transactions (another
//! spender of such an input is a conflict). The index keeps some bits of each interest's hash. Bits may collide, and
//! expired interests stay until the wallet is unloaded; both only make a wallet look at a transaction needlessly.
//! Nothing is missed: an interest is added before the write that creates it commits, and [`Index::hold`] blocks
//! additions while a block is compared with all wallets.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

/// The number of a loaded wallet. Never reused while the host runs.
pub type WalletNumber = u32;

/// The number of parts of the index, each with its own lock.
const SHARDS: usize = 256;
#[derive(Default)]
struct Shard {
    /// The first wallet that has an interest.
    first: HashMap<u32, WalletNumber, RandomState>,
    /// All wallets, sorted, of an interest that several have.
    shared: HashMap<u32, Vec<WalletNumber>, RandomState>,
}

impl Shard {
    fn wallets(&self, bits: u32) -> &[WalletNumber] {
        let Some(first) = self.first.get(&bits) else { return &[] };
        self.shared.get(&bits).map_or(std::slice::from_ref(first), Vec::as_slice)
    }

    fn add(&mut self, bits: u32, slot: WalletNumber) {
        let first = *self.first.entry(bits).or_insert(slot);
        if first != slot {
            let all = self.shared.entry(bits).or_insert_with(|| vec![first]);
            if let Err(at) = all.binary_search(&slot) {
                all.insert(at, slot);
            }
        }
    }

    /// A copy without these wallets.
    fn without(&self, dead: &HashSet<WalletNumber>) -> Self {
        let mut kept = Self::default();
        for bits in self.first.keys() {
            for slot in self.wallets(*bits).iter().filter(|slot| !dead.contains(slot)) {
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

    /// Reads the wallets that have an interest.
    fn read<T: Default>(&self, interest: u64, read: impl FnOnce(&[WalletNumber]) -> T) -> T {
        self.shard(interest).map_or_else(Default::default, |shard| read(shard.read().wallets(interest as u32)))
    }

    pub fn add(&self, slot: WalletNumber, interest: u64) {
        let _shared = self.comparing.read();
        if let Some(shard) = self.shard(interest) {
            shard.write().add(interest as u32, slot);
        }
    }

    pub fn has(&self, slot: WalletNumber, interest: u64) -> bool {
        self.read(interest, |wallets| wallets.binary_search(&slot).is_ok())
    }

    pub fn has_any(&self, interest: u64) -> bool {
        self.read(interest, |wallets| !wallets.is_empty())
    }

    pub fn collect(&self, interest: u64, found: &mut HashSet<WalletNumber>) {
        self.read(interest, |wallets| found.extend(wallets));
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
        assert_eq!(index.shards.iter().map(|shard| shard.read().first.len()).sum::<usize>(), 2);
    }
}
