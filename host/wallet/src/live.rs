//! A loaded wallet: its store, and what is known of it beside the store (whether it is unlocked, its rescan, whether it
//! lags behind the chain).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bitcoin::Txid;
use bitcoin::secp256k1::{All, Secp256k1};
use outrigger_service::events::Event;
use outrigger_service::wallet::{CreateOptions, Synced, TxState, WalletInfo, WalletKind, check_text};
use outrigger_service::wire::Secret;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use parking_lot::Mutex;

use super::Shared;
use super::attempts::UnlockAttempts;
use super::descriptors::DescriptorCache;
use super::encrypt::EncryptionKey;
use super::error::{Result, WalletError};
use super::follow::Lag;
use super::follow::alarms::Due;
use super::follow::feed::Feed;
use super::follow::index::WalletNumber;
use super::follow::interests::top;
use super::follow::write_lock::WriteLock;
use super::rescan::Slot;
use super::signing::EncryptedBranches;
use super::store::rows::{BlockRow, MetaRow};
use super::store::tables::put;
use super::store::tables::{ENCRYPTION, PLAINTEXT_KEY};
use super::store::{LAYOUT, Store};

/// The longest time a wallet stays unlocked, in seconds, as walletpassphrase bounds it.
pub const MAX_UNLOCK_SECONDS: u64 = 100_000_000;

/// What all wallets derive and sign with.
static SECP: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

/// Whether the wallet's private entries can be read.
pub(super) enum Lock {
    /// It is not encrypted.
    Plain(EncryptionKey),
    /// It is encrypted and locked.
    Locked,
    /// It is encrypted, and unlocked for a time.
    Unlocked {
        /// What opens the entries.
        key: EncryptionKey,
        /// When it is locked again, by the host's clock, in seconds.
        until: u64,
        /// The same by the clock that cannot be set.
        deadline: Instant,
    },
}

/// A loaded wallet.
pub struct Wallet {
    pub(super) name: String,
    pub(super) store: Store,
    pub(super) shared: Arc<Shared>,
    /// The number by which the index knows it.
    pub(super) slot: WalletNumber,
    pub(super) secp: &'static Secp256k1<All>,
    pub(super) descriptors: DescriptorCache,
    pub(super) encrypted_branches: EncryptedBranches,
    pub(super) lock: Mutex<Lock>,
    pub(super) rescan: Slot,
    /// What the node tells it, and where it stands.
    pub(super) feed: Feed,
    /// Who may write to it.
    pub(super) write_lock: WriteLock,
    /// Why the wallet could not follow the chain to its tip.
    pub(super) lag: Mutex<Option<Lag>>,
    /// Attempts to unlock it.
    pub(super) attempts: Arc<UnlockAttempts>,
    /// Whether a former secret is still to be removed from the file, as the last attempt found.
    pub(super) scrub_pending: AtomicBool,
    /// Held while former secrets are removed.
    pub(super) scrubbing: Mutex<()>,
    /// How many entries of the index are its.
    pub(super) entries: AtomicU64,
    /// Whether somebody has asked for it since idle wallets were looked after.
    pub(super) asked: AtomicBool,
    /// Whether it waits for a thread that stores how far it has followed the chain.
    pub(super) waits_to_be_stored: AtomicBool,
    /// What was last told of the wallet as a whole, and the number of the snapshot that says so.
    pub(super) told: Mutex<Option<(usize, WalletInfo)>>,
}

impl Wallet {
    pub(super) fn new(name: String, store: Store, shared: Arc<Shared>) -> Result<Self> {
        let lock = Self::stored_lock(&store)?;
        let txn = store.read()?;
        let feed = Feed::new(store.tables.synced(&txn)?, top(&store.tables, &txn)?);
        drop(txn);
        Ok(Self {
            attempts: shared.attempts.of(&name),
            name,
            store,
            slot: shared.follower.new_slot(),
            descriptors: DescriptorCache::new(shared.network),
            encrypted_branches: EncryptedBranches::default(),
            shared,
            secp: &SECP,
            lock: Mutex::new(lock),
            rescan: Slot::default(),
            feed,
            write_lock: WriteLock::default(),
            lag: Mutex::new(None),
            scrub_pending: AtomicBool::new(false),
            scrubbing: Mutex::new(()),
            entries: AtomicU64::new(0),
            asked: AtomicBool::new(true),
            waits_to_be_stored: AtomicBool::new(false),
            told: Mutex::new(None),
        })
    }

    /// The state that the store is in: locked where it is encrypted.
    fn stored_lock(store: &Store) -> Result<Lock> {
        let txn = store.read()?;
        match store.tables.meta.get(&txn, PLAINTEXT_KEY)? {
            Some(value) => Ok(Lock::Plain(EncryptionKey::from_plaintext(value)?)),
            None => Ok(Lock::Locked),
        }
    }

    /// Fills the tables of a wallet that is being made. It begins where the chain stands.
    pub(super) fn initialise(options: &CreateOptions, store: Store, shared: Arc<Shared>) -> Result<Self> {
        let tip = shared.node.tip();
        let synced = Synced { hash: tip.hash, height: tip.height, time: tip.time, median_time: tip.median_time };
        let meta = MetaRow {
            version: LAYOUT,
            kind: match options.descriptors {
                None => WalletKind::Both as u8,
                Some(true) => WalletKind::Descriptors as u8,
                Some(false) => WalletKind::Legacy as u8,
            },
            private_keys_enabled: !options.disable_private_keys,
            blank: options.blank,
            avoid_reuse: options.avoid_reuse,
            next_order_position: 0,
            next_descriptor: 0,
            next_pool: 0,
            birth_time: u64::MAX,
            backup_needed: true,
            last_backup: 0,
        };
        let t = store.tables;
        let mut txn = store.write()?;
        let encryption_key = EncryptionKey::random();
        if options.passphrase.expose().is_empty() {
            t.meta.put(&mut txn, PLAINTEXT_KEY, &encryption_key.to_plaintext())?;
        } else {
            put(t.meta, &mut txn, ENCRYPTION, &encryption_key.protect(&options.passphrase, &shared.settings)?)?;
        }
        put(t.meta, &mut txn, b"meta", &meta)?;
        put(t.meta, &mut txn, b"synced", &synced)?;
        put(t.blocks, &mut txn, &synced.height.to_be_bytes(), &BlockRow { hash: synced.hash })?;
        txn.commit()?;
        let wallet = Self::new(options.name.clone(), store, shared)?;
        if !meta.blank && meta.private_keys_enabled {
            wallet.write(|write| write.add_default_descriptors(&encryption_key))?;
        }
        Ok(wallet)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What private entries are read and written with.
    ///
    /// # Errors
    /// `WalletLocked`.
    pub(super) fn encryption_key(&self) -> Result<EncryptionKey> {
        match &*self.lock.lock() {
            Lock::Plain(key) => Ok(key.clone()),
            Lock::Unlocked { key, deadline, .. } if *deadline > Instant::now() => Ok(key.clone()),
            Lock::Locked | Lock::Unlocked { .. } => Err(ErrorKind::WalletLocked.into()),
        }
    }

    /// Whether it is encrypted, whether it is locked, and until when it is unlocked, in seconds.
    pub(super) fn lock_state(&self) -> (bool, bool, u64) {
        match &*self.lock.lock() {
            Lock::Plain(_) => (false, false, 0),
            Lock::Unlocked { until, deadline, .. } if *deadline > Instant::now() => (true, false, *until),
            Lock::Locked | Lock::Unlocked { .. } => (true, true, 0),
        }
    }

    /// Wipes the key when its time has come. It counts as locked from that very moment, whenever this is called.
    pub(super) fn lock_if_due(&self) {
        let mut state = self.lock.lock();
        if matches!(&*state, Lock::Unlocked { deadline, .. } if *deadline <= Instant::now()) {
            *state = Lock::Locked;
            drop(state);
            self.tell_lock(true);
        }
    }

    /// Gives memory back that only makes answers quicker, where nobody has asked for the wallet since the last time.
    pub(super) fn rest(&self) {
        if !self.asked.swap(false, Ordering::Relaxed) {
            self.descriptors.clear();
            self.encrypted_branches.clear();
        }
    }

    fn tell_lock(&self, locked: bool) {
        (self.shared.sink)(Event::WalletLockChanged { wallet: self.name.clone(), locked });
    }

    fn wrong_state(&self, encrypted: bool, method: &str) -> ServiceError {
        let state = if encrypted { "an encrypted" } else { "an unencrypted" };
        ServiceError::new(
            ErrorKind::WrongEncryptionState,
            format!("Error: running with {state} wallet, but {method} was called."),
        )
    }

    fn require_encrypted(&self, method: &str) -> ServiceResult<()> {
        if self.lock_state().0 { Ok(()) } else { Err(self.wrong_state(false, method)) }
    }

    /// Encrypts the wallet's keys with a passphrase, and locks it (encryptwallet). Unless it was made blank, addresses come
    /// from fresh descriptors from then on, and from none of the former ones, imported ones included.
    ///
    /// # Errors
    /// `WrongEncryptionState` when it is encrypted already; `Refused` when it may not hold private keys.
    pub fn encrypt(&self, passphrase: Secret) -> ServiceResult<()> {
        if self.lock_state().0 {
            return Err(self.wrong_state(true, "encryptwallet"));
        }
        let key = EncryptionKey::random();
        let row = key.protect(&passphrase, &self.shared.settings)?;
        self.write(|write| {
            if !write.meta.private_keys_enabled {
                let detail = "Error: wallet does not contain private keys, nothing to encrypt.";
                return Err(ServiceError::new(ErrorKind::Refused, detail).into());
            }
            let former = match &*self.lock.lock() {
                Lock::Plain(former) => former.clone(),
                _ => return Err(self.wrong_state(true, "encryptwallet").into()),
            };
            put(write.t.meta, &mut write.txn, ENCRYPTION, &row)?;
            write.t.meta.delete(&mut write.txn, PLAINTEXT_KEY)?;
            write.mark_scrub_due(former.expose())?;
            write.reencrypt(&former, &key)?;
            if !write.meta.blank {
                write.add_default_descriptors(&key)?;
            }
            // Within the write, so that nothing can be encrypted with the former key between its commit and the lock.
            *self.lock.lock() = Lock::Locked;
            Ok(())
        })
        .or_else(|error| self.restore_lock(error))?;
        self.scrub();
        self.tell_lock(true);
        Ok(())
    }

    /// After a write that may have failed before or after it locked the wallet: what the store says holds.
    fn restore_lock(&self, error: WalletError) -> Result<()> {
        *self.lock.lock() = Self::stored_lock(&self.store)?;
        Err(error)
    }

    /// Unlocks it for a time, in seconds, at most 100,000,000 (walletpassphrase).
    ///
    /// # Errors
    /// `WrongEncryptionState`, `PassphraseIncorrect`; `Refused` while another attempt waits after wrong ones.
    pub fn unlock(&self, passphrase: Secret, seconds: u64) -> ServiceResult<()> {
        self.require_encrypted("walletpassphrase")?;
        let key = self.recover(&passphrase)?;
        let seconds = seconds.min(MAX_UNLOCK_SECONDS);
        let until = self.shared.node.time().saturating_add(seconds);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        *self.lock.lock() = Lock::Unlocked { key, until, deadline };
        self.shared.follower.alarms.set(deadline, Due::Lock, self.slot);
        self.tell_lock(false);
        Ok(())
    }

    /// The encryption key, by the passphrase. Attempts with wrong ones are slowed.
    fn recover(&self, passphrase: &Secret) -> ServiceResult<EncryptionKey> {
        self.attempts.make(|| {
            let row = self.store.tables.encryption(&*self.store.read()?)?;
            Ok(EncryptionKey::recover(&row.ok_or(ErrorKind::WrongEncryptionState)?, passphrase)?)
        })
    }

    /// Locks it now (walletlock).
    ///
    /// # Errors
    /// `WrongEncryptionState`.
    pub fn lock(&self) -> ServiceResult<()> {
        self.require_encrypted("walletlock")?;
        self.lock_now();
        Ok(())
    }

    /// Locks it, given that it is encrypted.
    fn lock_now(&self) {
        let was = std::mem::replace(&mut *self.lock.lock(), Lock::Locked);
        if matches!(was, Lock::Unlocked { .. }) {
            self.tell_lock(true);
        }
    }

    /// Changes the passphrase, and leaves it locked or unlocked as it was (walletpassphrasechange). An old passphrase that
    /// does not open it locks it: bitcoind locks a wallet before it tries.
    ///
    /// # Errors
    /// `WrongEncryptionState`, `PassphraseIncorrect`.
    pub fn change_passphrase(&self, old: Secret, new: Secret) -> ServiceResult<()> {
        self.require_encrypted("walletpassphrasechange")?;
        let key = self.recover(&old).inspect_err(|error| {
            // As bitcoind; what was not tried says nothing about who asked.
            if error.kind == ErrorKind::PassphraseIncorrect {
                self.lock_now();
            }
        })?;
        let row = key.protect(&new, &self.shared.settings)?;
        self.write(|write| {
            let former = write.t.encryption(&write.txn)?.ok_or(ErrorKind::WrongEncryptionState)?;
            write.mark_scrub_due(&former.encrypted_key)?;
            put(write.t.meta, &mut write.txn, ENCRYPTION, &row)
        })?;
        self.scrub();
        Ok(())
    }

    /// Sets whether it avoids reused addresses (setwalletflag).
    ///
    /// # Errors
    /// `Storage`.
    pub fn set_avoid_reuse(&self, avoid: bool) -> ServiceResult<()> {
        Ok(self.write(|write| {
            write.meta.avoid_reuse = avoid;
            Ok(())
        })?)
    }

    /// Stores a text with a transaction (`comment`, `to`); an empty one is taken away.
    ///
    /// # Errors
    /// `NotFound`; `Refused` for a text that is too long.
    pub fn set_metadata(&self, txid: Txid, key: String, value: String) -> ServiceResult<()> {
        check_text(&key, &value)?;
        Ok(self.write(|write| {
            let mut row = write.t.transaction(&write.txn, &txid)?.ok_or_else(unknown_transaction)?;
            row.metadata.retain(|(other, _)| *other != key);
            if !value.is_empty() {
                row.metadata.push((key, value));
                row.metadata.sort_unstable();
            }
            write.put_row(&row)
        })?)
    }

    /// Gives up a transaction that is neither in the chain nor in the mempool, and what builds on it. Nothing where it is
    /// given up already.
    ///
    /// # Errors
    /// `NotFound`; `Refused` when it is in the chain, in the mempool or conflicted.
    pub fn abandon(&self, txid: Txid) -> ServiceResult<()> {
        Ok(self.write(|write| {
            let row = write.t.transaction(&write.txn, &txid)?.ok_or_else(unknown_transaction)?;
            if !matches!(row.state, TxState::Inactive | TxState::Abandoned) {
                return Err(ServiceError::new(ErrorKind::Refused, "Transaction not eligible for abandonment").into());
            }
            write.mark_abandoned(txid)
        })?)
    }
}

fn unknown_transaction() -> ServiceError {
    ServiceError::new(ErrorKind::NotFound, "Invalid or non-wallet transaction id")
}
