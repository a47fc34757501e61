//! Locked coins (lockunspent), which payments do not choose. Locks are in memory; a persistent one has a row, too.

use bitcoin::OutPoint;
use outrigger_service::Result as ServiceResult;

use super::error::Result;
use super::follow::states::Counting;
use super::live::Wallet;
use super::store::{LOCKED, outpoint_key};
use super::write::Write;

/// A locked coin, and whether its lock is persistent.
pub type CoinLock = (OutPoint, bool);

fn key(coin: &OutPoint) -> Vec<u8> {
    [LOCKED, outpoint_key(coin).as_slice()].concat()
}

impl Wallet {
    pub fn lock_coins(&self, coins: Vec<OutPoint>, persistent: bool) -> ServiceResult<()> {
        Ok(self.write(|write| coins.into_iter().try_for_each(|coin| write.lock_coin((coin, persistent))))?)
    }

    pub fn unlock_coins(&self, coins: &[OutPoint]) -> ServiceResult<()> {
        self.write(|write| write.unlock_coins(coins))?;
        Ok(())
    }

    /// Sorted.
    pub fn locked_coins(&self) -> Vec<OutPoint> {
        self.locked_coins.lock().iter().copied().collect()
    }

    pub(super) fn note_locks(&self, changes: &[(OutPoint, bool)]) {
        if changes.is_empty() {
            return;
        }
        let mut locked = self.locked_coins.lock();
        for (coin, is_locked) in changes {
            if *is_locked {
                locked.insert(*coin)
            } else {
                locked.remove(coin)
            };
        }
    }
}

impl Write<'_> {
    pub fn lock_coin(&mut self, (coin, persistent): CoinLock) -> Result<()> {
        if self.is_spent(&coin, &mut Counting::default())? {
            return Ok(());
        }
        if persistent {
            self.put(self.t.meta, &key(&coin), &[])?;
        }
        self.locks.push((coin, true));
        Ok(())
    }

    /// Unlocks coins. Returns the locks that were removed.
    pub fn unlock_coins(&mut self, coins: &[OutPoint]) -> Result<Vec<CoinLock>> {
        let locked = self.wallet.locked_coins.lock();
        let found: Vec<OutPoint> = coins.iter().filter(|coin| locked.contains(coin)).copied().collect();
        drop(locked);
        let mut unlocked = Vec::with_capacity(found.len());
        for coin in found {
            unlocked.push((coin, self.delete(self.t.meta, &key(&coin))?));
            self.locks.push((coin, false));
        }
        Ok(unlocked)
    }
}
