//! Changes that a client asks for: avoid_reuse, texts of transactions, abandontransaction, transactions that it adds or removes
//! (importprunedfunds, removeprunedfunds), and locked coins (lockunspent), which payments do not choose. Locks are in memory; a
//! persistent one has a row, too.

use bitcoin::consensus::deserialize;
use bitcoin::{BlockHash, OutPoint, Transaction, Txid};
use outrigger_service::chain::BlockRef;
use outrigger_service::wallet::{MAX_TEXT_LEN, Ownership, TxState, WalletTransaction, check_length};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::error::Result;
use super::follow::header_time;
use super::follow::states::Counting;
use super::live::Wallet;
use super::matching::Met;
use super::store::{LOCKED, outpoint_key};
use super::write::Write;

/// A locked coin, and whether its lock is persistent.
pub type CoinLock = (OutPoint, bool);

fn lock_key(coin: &OutPoint) -> Vec<u8> {
    [LOCKED, outpoint_key(coin).as_slice()].concat()
}

impl Wallet {
    /// setwalletflag.
    pub fn set_avoid_reuse(&self, avoid: bool) -> ServiceResult<()> {
        Ok(self.write(|write| {
            write.meta.avoid_reuse = avoid;
            Ok(())
        })?)
    }

    pub fn set_metadata(&self, txid: Txid, key: String, value: String) -> ServiceResult<()> {
        check_length(&key, &value, MAX_TEXT_LEN)?;
        Ok(self.write(|write| write.set_text(txid, key, value))?)
    }

    pub fn abandon(&self, txid: Txid) -> ServiceResult<()> {
        let check = |row: Option<WalletTransaction>| {
            let state = row.ok_or_else(unknown_transaction)?.state;
            let is_eligible = matches!(state, TxState::Inactive | TxState::Abandoned);
            if is_eligible { Ok(state) } else { Err(not_eligible()) }
        };
        let state = check(self.store.tables.transaction(&*self.store.read()?, &txid)?)?;
        // The node decides, since a transaction also counts as inactive while its mempool is unknown. Whoever abandons a
        // payment pays again.
        if state == TxState::Inactive && self.shared.node.mempool_entries(&[txid])?.iter().any(Option::is_some) {
            return Err(not_eligible());
        }
        Ok(self.write(|write| {
            check(write.t.transaction(write.reads(), &txid)?)?;
            write.mark_abandoned(txid)
        })?)
    }

    /// Adds a transaction at a position in a block, as if the wallet had followed it there.
    pub fn add_confirmed(&self, raw: &[u8], block: BlockHash, index: u32) -> ServiceResult<()> {
        let refused = |detail: &str| ServiceError::new(ErrorKind::Refused, detail);
        let transaction: Transaction = deserialize(raw).map_err(|_| refused("not a transaction"))?;
        let unknown = || ServiceError::new(ErrorKind::NotFound, "Block not found in chain");
        loop {
            let retreats = self.feed.retreats();
            let info = self.shared.block_info(BlockRef::Hash { hash: block })?;
            let info = info.filter(|info| info.in_best_chain && info.height <= self.synced().height);
            let info = info.ok_or_else(unknown)?;
            // From here on, the follower rewinds the wallet with a write if this block leaves the chain.
            self.feed.note_height(info.height);
            let place = (block, info.height, index, header_time(&info));
            let written = self.write(|write| {
                // The wallet has gone back to an earlier block since the query.
                if write.wallet.feed.retreats() != retreats {
                    return Ok(None);
                }
                write.add_confirmed(&transaction, place).map(Some)
            })?;
            match written {
                Some(true) => return Ok(()),
                Some(false) => return Err(refused("No output is the wallet's")),
                None => {}
            }
        }
    }

    pub fn remove_transaction(&self, txid: Txid) -> ServiceResult<()> {
        Ok(self.write(|write| {
            let row = write.t.transaction(write.reads(), &txid)?.ok_or_else(unknown_transaction)?;
            let children = write.children(&row)?;
            write.forget_mempool_conflicts(txid)?;
            write.remove(row)?;
            // The wallet no longer knows the outputs that they spend.
            children.into_iter().try_for_each(|child| write.rederive_debit(child))
        })?)
    }

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
    /// Sets a transaction's text `key`. An empty `value` removes it.
    pub fn set_text(&mut self, txid: Txid, key: String, value: String) -> Result<()> {
        let mut row = self.t.transaction(self.reads(), &txid)?.ok_or_else(unknown_transaction)?;
        row.metadata.retain(|(other, _)| *other != key);
        if !value.is_empty() {
            row.metadata.push((key, value));
            row.metadata.sort_unstable();
        }
        self.put_row(&row)
    }

    fn add_confirmed(&mut self, transaction: &Transaction, place: (BlockHash, u32, u32, u32)) -> Result<bool> {
        for output in &transaction.output {
            let known = self.t.script(self.reads(), &output.script_pubkey)?;
            if known.is_some_and(|known| known.ownership() != Ownership::None) {
                let met = Met::Now(self.wallet.shared.node.time());
                self.connect_transaction(transaction, transaction.compute_txid(), place, met)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn lock_coin(&mut self, (coin, persistent): CoinLock) -> Result<()> {
        if self.is_spent(&coin, &mut Counting::default())? {
            return Ok(());
        }
        if persistent {
            self.put(self.t.meta, &lock_key(&coin), &[])?;
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
            unlocked.push((coin, self.delete(self.t.meta, &lock_key(&coin))?));
            self.locks.push((coin, false));
        }
        Ok(unlocked)
    }
}

fn not_eligible() -> ServiceError {
    ServiceError::new(ErrorKind::Refused, "Transaction not eligible for abandonment")
}

fn unknown_transaction() -> ServiceError {
    ServiceError::new(ErrorKind::NotFound, "Invalid or non-wallet transaction id")
}
