//! A write transaction of a wallet. All of its changes commit together, or none.

use std::collections::BTreeSet;
use std::ops::RangeBounds;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bitcoin::secp256k1::PublicKey;
use bitcoin::{OutPoint, ScriptBuf, Txid};
use outrigger_service::events::Event;
use outrigger_service::wallet::Synced;
use outrigger_service::wire::{Secret, Wire};
use outrigger_service::{ErrorKind, ServiceError};
use parking_lot::MutexGuard;

use super::encrypt::EncryptionKey;
use super::error::{Result, WalletError};
use super::labels::LabelChanges;
use super::live::Wallet;
use super::log::{LogNotes, next_due};
use super::store::{CHANGES, MetaRow, Reading, Table, Tables, Writing, put};
use super::sums::Sums;

/// How many scripts or keys a write handles between two calls of [`Write::check_wanted`].
pub const CHUNK: usize = 10_000;
/// How long a follower thread waits for a writer before it turns to other wallets.
const FOLLOWER_PATIENCE: Duration = Duration::from_millis(50);

pub struct Write<'w> {
    pub wallet: &'w Wallet,
    pub t: Tables,
    txn: Writing<'w>,
    /// Stored at the end if it changed.
    pub meta: MetaRow,
    /// The wallet's position on the chain, stored at the end if it changed.
    pub synced: Synced,
    /// Changed transactions. An event announces each after the commit.
    pub changed: BTreeSet<Txid>,
    /// Descriptors that derived further scripts, with the end of their range.
    pub grown: Vec<(u32, u32)>,
    /// Scripts whose ownership changed, until [`Self::rederive`].
    pub touched: Vec<ScriptBuf>,
    pub sums: Sums,
    pub labels: LabelChanges,
    pub log: LogNotes,
    /// Coins to lock (true) or unlock after the commit.
    pub locks: Vec<(OutPoint, bool)>,
    /// Whether the write adds keys with which the wallet signs.
    pub adds_keys: bool,
    /// The public keys of new private keys without a wildcard.
    pub new_keys: Vec<PublicKey>,
    /// Encrypts new private entries, if the write may have any.
    pub key: Option<EncryptionKey>,
    /// Whether the last backup lacks a change of this write.
    needs_backup: bool,
}

/// Proof of a wallet's write lock. No thread queries the node while it holds the lock.
pub type WriteGuard<'w> = MutexGuard<'w, ()>;

impl Wallet {
    pub(super) fn lock_writes(&self) -> WriteGuard<'_> {
        self.write_lock.lock()
    }

    /// Takes the write lock for a follower thread. Fails with [`WalletError::Occupied`] after `FOLLOWER_PATIENCE`.
    pub(super) fn lock_for_following(&self) -> Result<WriteGuard<'_>> {
        self.write_lock.try_lock_for(FOLLOWER_PATIENCE).ok_or(WalletError::Occupied)
    }

    /// Runs `change` in one write transaction and commits it. An error aborts the transaction. Fails if the
    /// wallet is read-only.
    pub(super) fn write<R>(&self, change: impl FnOnce(&mut Write<'_>) -> Result<R>) -> Result<R> {
        if let Some(reason) = self.read_only() {
            return Err(ServiceError::new(ErrorKind::Refused, reason).into());
        }
        let guard = self.lock_writes();
        self.write_in(&guard, change)
    }

    /// [`Self::write`] under a lock that the caller holds. Does not check whether the wallet is read-only.
    pub(super) fn write_in<R>(
        &self,
        guard: &WriteGuard<'_>,
        change: impl FnOnce(&mut Write<'_>) -> Result<R>,
    ) -> Result<R> {
        let t = self.store.tables;
        let txn = self.store.write()?;
        // The position in memory may be ahead of the stored one.
        let (meta, stored, synced) = (t.meta(&txn)?, t.synced(&txn)?, self.synced());
        let mut write = Write {
            wallet: self,
            t,
            txn,
            meta: meta.clone(),
            synced,
            changed: BTreeSet::new(),
            grown: Vec::new(),
            touched: Vec::new(),
            sums: Sums::default(),
            labels: Vec::new(),
            log: LogNotes::default(),
            locks: Vec::new(),
            adds_keys: false,
            new_keys: Vec::new(),
            key: None,
            needs_backup: false,
        };
        let result = change(&mut write)?;
        if write.adds_keys {
            write.guard_keys()?;
        }
        if write.meta != meta {
            put(t.meta, &mut write.txn, b"meta", &write.meta)?;
        }
        if write.synced != stored {
            put(t.meta, &mut write.txn, b"synced", &write.synced)?;
            write.remember_block()?;
        }
        let logged = write.write_log()?;
        let due = next_due(&t, write.reads())?;
        let Write { txn, changed, synced: now, locks, sums, labels, needs_backup, .. } = write;
        self.sums.announce(txn.id(), sums);
        self.labels.announce(txn.id(), labels);
        let committed = txn.commit();
        // If no snapshot opens, the wallet rereads sums and labels later: the write is on disk and must not fail.
        let last = self.store.read().map_or(0, |txn| txn.id());
        self.sums.end(last);
        self.labels.end(last);
        committed?;
        self.note_locks(&locks);
        self.feed.note_stored(synced, now, due);
        if needs_backup {
            self.shared.wake_backups();
        }
        for txid in changed {
            (self.shared.sink)(Event::WalletTransaction { wallet: self.name.clone(), txid });
        }
        if let Some(last) = logged {
            (self.shared.sink)(Event::WalletLogged { wallet: self.name.clone(), last });
        }
        self.log_passed(guard);
        Ok(result)
    }

    /// Logs transactions of this write that are already deep: the wallet may have followed blocks in memory meanwhile.
    fn log_passed(&self, guard: &WriteGuard<'_>) {
        let place = self.feed.position();
        if place.now.height >= place.due
            && let Err(error) = self.write_in(guard, |_| Ok(()))
        {
            tracing::warn!(wallet = self.name(), %error, "cannot update the log of the wallet; its next write retries");
        }
    }
}

impl<'w> Write<'w> {
    /// The tables, with the changes of this write.
    pub fn reads(&self) -> &Reading<'w> {
        &self.txn
    }

    pub fn put(&mut self, table: Table, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(table.put(&mut self.txn, key, value)?)
    }

    pub fn store_row<T: Wire>(&mut self, table: Table, key: &[u8], row: &T) -> Result<()> {
        put(table, &mut self.txn, key, row)
    }

    /// Deletes a row. Returns whether there was one.
    pub fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        Ok(table.delete(&mut self.txn, key)?)
    }

    pub fn delete_range<'k>(&mut self, table: Table, keys: &'k impl RangeBounds<&'k [u8]>) -> Result<()> {
        table.delete_range(&mut self.txn, keys)?;
        Ok(())
    }

    /// Called between the chunks of a long write. Fails with `ShuttingDown` when the host is stopping, which aborts the
    /// write.
    pub fn check_wanted(&self) -> Result<()> {
        if self.wallet.shared.stopping.load(Ordering::Relaxed) { Err(ErrorKind::ShuttingDown.into()) } else { Ok(()) }
    }

    /// Calls [`Write::check_wanted`] once per chunk; `number` is the item's position.
    pub fn check_chunk(&self, number: usize) -> Result<()> {
        if number > 0 && number.is_multiple_of(CHUNK) { self.check_wanted() } else { Ok(()) }
    }

    /// Records that the last backup lacks a change.
    pub fn note_backup_needed(&mut self) -> Result<()> {
        (self.meta.backup_needed, self.needs_backup) = (true, true);
        // A counter, so that a backup notices changes that are made during the copy.
        let count = self.t.changes(self.reads())?.wrapping_add(1);
        self.store_row(self.t.meta, CHANGES, &count)
    }

    /// Stores a private entry.
    pub fn put_private(&mut self, place: &[u8], text: &Secret) -> Result<()> {
        let encrypted = self.key.as_ref().ok_or(ErrorKind::WalletLocked)?.encrypt(place, text.expose().as_bytes())?;
        self.put(self.t.keys, place, &encrypted)
    }

    /// Encrypts every private entry under the write's key instead of a former one.
    pub fn reencrypt(&mut self, former: &EncryptionKey) -> Result<()> {
        let mut entries = Vec::new();
        for entry in self.t.keys.iter(self.reads())? {
            let (place, value) = entry?;
            entries.push((place.to_vec(), former.unwrap(place, value)?));
        }
        entries.iter().try_for_each(|(place, text)| self.put_private(place, text))
    }
}
