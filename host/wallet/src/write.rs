//! One write to a wallet: everything that happens in it is committed together or not at all.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use bitcoin::{OutPoint, Txid};
use outrigger_service::events::Event;
use outrigger_service::wallet::Synced;
use outrigger_service::wire::Wire;
use outrigger_service::{ErrorKind, ServiceError};

use super::encrypt::EncryptionKey;
use super::error::{Result, WalletError};
use super::labels::LabelChanges;
use super::live::Wallet;
use super::store::rows::MetaRow;
use super::store::tables::{CHANGES, Table, put};
use super::store::{Reading, Tables, Writing};
use super::sums::Sums;

/// The number of scripts or keys that a write handles between two checks of [`Write::check_wanted`].
pub const CHUNK: usize = 10_000;

/// A write transaction.
pub struct Write<'w> {
    pub wallet: &'w Wallet,
    pub t: Tables,
    txn: Writing<'w>,
    /// The meta row, stored at the end if it changed.
    pub meta: MetaRow,
    /// The position of the wallet, stored at the end if it changed.
    pub synced: Synced,
    /// Changed transactions, announced after the commit.
    pub changed: BTreeSet<Txid>,
    /// Descriptors that derived further scripts, with the index behind the last one.
    pub grown: Vec<(u32, u32)>,
    /// How the sums of the coins change.
    pub sums: Sums,
    pub labels: LabelChanges,
    /// Coins to lock (true) or unlock after the commit.
    pub locks: Vec<(OutPoint, bool)>,
}

/// The right to write to a wallet, until it is dropped.
pub struct WriteGuard<'w> {
    wallet: &'w Wallet,
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if self.wallet.write_lock.release() {
            self.wallet.shared.follower.requeue(self.wallet);
        }
    }
}

impl Wallet {
    /// Waits for the right to write.
    pub(super) fn lock_writes(&self) -> WriteGuard<'_> {
        self.write_lock.acquire();
        WriteGuard { wallet: self }
    }

    /// The right to write, if nobody has it.
    pub(super) fn try_lock_writes(&self) -> Option<WriteGuard<'_>> {
        self.write_lock.try_acquire().then(|| WriteGuard { wallet: self })
    }

    /// The right to write, for the thread that follows the node for the wallet. None where another keeps it for long: the
    /// wallet is queued again afterwards.
    pub(super) fn lock_for_following(&self) -> Option<WriteGuard<'_>> {
        self.write_lock.acquire_for_following().then(|| WriteGuard { wallet: self })
    }

    /// Runs `change` in one write transaction and commits it; any error aborts it whole.
    ///
    /// # Errors
    /// `Refused` where the wallet is read-only.
    pub(super) fn write<R>(&self, change: impl FnOnce(&mut Write<'_>) -> Result<R>) -> Result<R> {
        if let Some(reason) = self.read_only() {
            return Err(ServiceError::new(ErrorKind::Refused, reason).into());
        }
        let guard = self.lock_writes();
        self.write_in(&guard, change)
    }

    /// The same for the thread that follows the node for the wallet.
    ///
    /// # Errors
    /// [`WalletError::Occupied`] where another writes for long: the wallet gets another turn.
    pub(super) fn write_following<R>(&self, change: impl FnOnce(&mut Write<'_>) -> Result<R>) -> Result<R> {
        let guard = self.lock_for_following().ok_or(WalletError::Occupied)?;
        self.write_in(&guard, change)
    }

    /// The same for one who has the right to write.
    pub(super) fn write_in<R>(
        &self,
        _: &WriteGuard<'_>,
        change: impl FnOnce(&mut Write<'_>) -> Result<R>,
    ) -> Result<R> {
        let t = self.store.tables;
        let txn = self.store.write()?;
        // Where the wallet stands may be ahead of what is stored.
        let (meta, stored, synced) = (t.meta(&txn)?, t.synced(&txn)?, self.synced());
        let mut write = Write {
            wallet: self,
            t,
            txn,
            meta: meta.clone(),
            synced,
            changed: BTreeSet::new(),
            grown: Vec::new(),
            sums: Sums::default(),
            labels: Vec::new(),
            locks: Vec::new(),
        };
        let result = change(&mut write)?;
        if write.meta != meta {
            put(t.meta, &mut write.txn, b"meta", &write.meta)?;
        }
        if write.synced != stored {
            put(t.meta, &mut write.txn, b"synced", &write.synced)?;
            write.remember_block()?;
        }
        let Write { txn, changed, synced: now, locks, sums, labels, .. } = write;
        self.sums.announce(txn.id(), sums);
        self.labels.announce(txn.id(), labels);
        let committed = txn.commit();
        // Where no snapshot can be opened, both are read anew: the write is on disk, and must not count as failed.
        let last = self.store.read().map_or(0, |txn| txn.id());
        self.sums.end(last);
        self.labels.end(last);
        committed?;
        self.note_locks(&locks);
        self.feed.note_stored(synced, now);
        for txid in changed {
            (self.shared.sink)(Event::WalletTransaction { wallet: self.name.clone(), txid });
        }
        Ok(result)
    }
}

impl<'w> Write<'w> {
    /// The tables as they are within the write.
    pub fn reads(&self) -> &Reading<'w> {
        &self.txn
    }

    pub fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(table.put(&mut self.txn, key, value)?)
    }

    pub fn store_row<T: Wire>(&mut self, table: Table, key: &[u8], row: &T) -> Result<()> {
        put(table, &mut self.txn, key, row)
    }

    /// Whether there was a value to delete.
    pub fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        Ok(table.delete(&mut self.txn, key)?)
    }

    /// Asked between the chunks of a write that may take long, which is then aborted whole.
    ///
    /// # Errors
    /// `ShuttingDown` when the host is stopping.
    pub fn check_wanted(&self) -> Result<()> {
        if self.wallet.shared.stopping.load(Ordering::Relaxed) { Err(ErrorKind::ShuttingDown.into()) } else { Ok(()) }
    }

    /// The same for a long list: asked at each item's number, it looks once for each chunk.
    ///
    /// # Errors
    /// As [`Write::check_wanted`].
    pub fn check_chunk(&self, number: usize) -> Result<()> {
        if number > 0 && number.is_multiple_of(CHUNK) { self.check_wanted() } else { Ok(()) }
    }

    /// Something came to the wallet that its last backup lacks.
    pub fn note_backup_needed(&mut self) -> Result<()> {
        self.meta.backup_needed = true;
        // Counted, so that a backup sees whether anything came while it was made.
        let count = self.t.changes(self.reads())?.wrapping_add(1);
        self.store_row(self.t.meta, CHANGES, &count)
    }

    /// Writes every private entry anew under another key.
    pub fn reencrypt(&mut self, from: &EncryptionKey, to: &EncryptionKey) -> Result<()> {
        let mut entries = Vec::new();
        for entry in self.t.keys.iter(self.reads())? {
            let (place, value) = entry?;
            entries.push((place.to_vec(), from.unwrap(place, value)?));
        }
        for (place, text) in entries {
            self.put(self.t.keys, &place, &to.wrap(&place, text.expose())?)?;
        }
        Ok(())
    }
}
