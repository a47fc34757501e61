//! A loaded wallet: its store, and what is known of it beside the store (whether it is unlocked, its rescan, whether it
//! lags behind the chain).

pub mod feed;
pub mod index;
pub mod lag;
pub mod outgoing;
pub mod rescan_slot;
pub mod write_lock;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use bitcoin::OutPoint;
use bitcoin::secp256k1::{All, Secp256k1};
use outrigger_service::ErrorKind;
use outrigger_service::events::Event;
use outrigger_service::wallet::{SpendSettings, WalletInfo};
use outrigger_values::FeeRate;
use parking_lot::Mutex;

use super::Shared;
use super::attempts::UnlockAttempts;
use super::credits::Credits;
use super::descriptors::{DescriptorCache, SECP};
use super::encrypt::EncryptionKey;
use super::error::Result;
use super::labels::Labels;
use super::latest::Latest;
use super::reorganisations::Retreat;
use super::store::Store;
use super::store::tables::PLAINTEXT_KEY;
use super::sums::Sums;
use super::turns::Turns;
use feed::Feed;
use index::WalletNumber;
use lag::Lag;
use outgoing::{Outgoing, Unsent};
use rescan_slot::Slot;
use write_lock::WriteLock;

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

/// The number of a snapshot, and what it says of the wallet as a whole and of its idle payments.
pub(super) type Told = (usize, WalletInfo, Arc<[Unsent]>);

/// A loaded wallet.
pub struct Wallet {
    pub(super) name: String,
    pub(super) store: Store,
    pub(super) shared: Arc<Shared>,
    /// The number by which the index knows it.
    pub(super) slot: WalletNumber,
    pub(super) secp: &'static Secp256k1<All>,
    pub(super) descriptors: DescriptorCache,
    pub(super) lock: Mutex<Lock>,
    /// The coins that payments do not choose (lockunspent). Changed by who has the right to write.
    pub(super) locked_coins: Mutex<BTreeSet<OutPoint>>,
    /// Whose turn it is to make a payment.
    pub(super) turns: Turns,
    /// The feerate of payments that name none (settxfee).
    pay_feerate: Mutex<Option<FeeRate>>,
    pub(super) rescan: Slot,
    /// What the node tells it, and where it stands.
    pub(super) feed: Feed,
    /// Who may write to it.
    pub(super) write_lock: WriteLock,
    /// Why the wallet could not follow the chain to its tip.
    pub(super) lag: Mutex<Option<Lag>>,
    /// Its transactions on their way to the node. Never held while the node is asked.
    pub(super) outgoing: Mutex<Outgoing>,
    /// How far it went back, and is not told yet.
    pub(super) retreat: Retreat,
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
    /// The sums of its coins.
    pub(super) sums: Latest<Sums>,
    /// The labels of its address book.
    pub(super) labels: Latest<Labels>,
    /// What was last told of the wallet as a whole.
    pub(super) told: Mutex<Option<Told>>,
    /// What its transactions pay to it, and the number of the snapshot that says so; none where it was not asked, or is too much.
    pub(super) credits: Mutex<Option<(usize, Arc<Credits>)>>,
}

impl Wallet {
    pub(super) fn new(name: String, store: Store, shared: Arc<Shared>) -> Result<Self> {
        let lock = Self::stored_lock(&store)?;
        let txn = store.read()?;
        let feed = Feed::new(store.tables.synced(&txn)?, store.tables.top(&txn)?);
        let locked_coins = store.tables.locked_coins(&txn)?;
        drop(txn);
        Ok(Self {
            attempts: shared.attempts.of(&name),
            name,
            store,
            slot: shared.follower.new_slot(),
            descriptors: DescriptorCache::new(shared.network),
            shared,
            secp: &SECP,
            lock: Mutex::new(lock),
            locked_coins: Mutex::new(locked_coins),
            turns: Turns::default(),
            pay_feerate: Mutex::new(None),
            rescan: Slot::default(),
            feed,
            write_lock: WriteLock::default(),
            lag: Mutex::new(None),
            outgoing: Mutex::default(),
            retreat: Retreat::default(),
            scrub_pending: AtomicBool::new(false),
            scrubbing: Mutex::new(()),
            entries: AtomicU64::new(0),
            asked: AtomicBool::new(true),
            waits_to_be_stored: AtomicBool::new(false),
            sums: Latest::default(),
            labels: Latest::default(),
            told: Mutex::new(None),
            credits: Mutex::new(None),
        })
    }

    /// The state that the store is in: locked where it is encrypted.
    pub(super) fn stored_lock(store: &Store) -> Result<Lock> {
        let txn = store.read()?;
        match store.tables.meta.get(&txn, PLAINTEXT_KEY)? {
            Some(value) => Ok(Lock::Plain(EncryptionKey::from_plaintext(value)?)),
            None => Ok(Lock::Locked),
        }
    }

    /// Why nothing is written to it, if that is so.
    pub(super) fn read_only(&self) -> Option<String> {
        self.lag.lock().as_ref().filter(|lag| lag.read_only).map(|lag| lag.text.clone())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What holds for its payments.
    pub fn spend_settings(&self) -> SpendSettings {
        let (pay_feerate, replaces_any) = (*self.pay_feerate.lock(), self.shared.rules().replaces_any);
        SpendSettings { pay_feerate, replaces_any, ..self.shared.settings.spending.clone() }
    }

    /// Sets the feerate of payments that name none, until it is unloaded; none: it is estimated.
    pub fn set_pay_feerate(&self, feerate: Option<FeeRate>) {
        *self.pay_feerate.lock() = feerate;
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
        }
    }

    pub(super) fn tell_lock(&self, locked: bool) {
        (self.shared.sink)(Event::WalletLockChanged { wallet: self.name.clone(), locked });
    }
}
