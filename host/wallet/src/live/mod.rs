//! A loaded wallet: its store, and its state in memory.

pub mod feed;
pub mod index;
pub mod outgoing;
pub mod rescan_slot;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bitcoin::OutPoint;
use outrigger_service::events::Event;
use outrigger_service::wallet::{SpendSettings, WalletInfo};
use outrigger_service::{ErrorKind, Result as ServiceResult};
use outrigger_values::FeeRate;
use parking_lot::Mutex;

use super::Shared;
use super::attempts::UnlockAttempts;
use super::descriptors::DescriptorCache;
use super::encrypt::EncryptionKey;
use super::error::Result;
use super::guards::Guarded;
use super::labels::Labels;
use super::latest::Latest;
use super::log::next_due;
use super::reorganisations::RemovedBlocks;
use super::store::{PLAINTEXT_KEY, Store};
use super::sums::Sums;
use super::trust::Verdicts;
use super::turns::{Turn, Turns};
use feed::Feed;
use index::WalletNumber;
use outgoing::{Outgoing, Unsent};
use rescan_slot::Slot;

pub(super) enum Lock {
    Plain(EncryptionKey),
    Locked,
    Unlocked {
        key: EncryptionKey,
        /// When it locks again, by the host's clock, in Unix seconds.
        until: u64,
        /// The same by the monotonic clock, which decides.
        deadline: Instant,
    },
}

/// A snapshot's number, with the stored part of the wallet's info and its idle payments.
pub(super) type StoredInfo = (usize, WalletInfo, Arc<[Unsent]>);

pub struct Wallet {
    pub(super) name: String,
    /// The plugin that signs for it.
    signer: Option<Arc<str>>,
    pub(super) guarded: Mutex<Guarded>,
    pub(super) store: Store,
    pub(super) shared: Arc<Shared>,
    pub(super) slot: WalletNumber,
    pub(super) descriptors: DescriptorCache,
    pub(super) lock: Mutex<Lock>,
    /// Coins that payments do not choose (lockunspent). Changed under the write lock.
    pub(super) locked_coins: Mutex<BTreeSet<OutPoint>>,
    turns: Arc<Turns>,
    /// The feerate of payments that do not name one (settxfee).
    pay_feerate: Mutex<Option<FeeRate>>,
    pub(super) rescan: Slot,
    pub(super) feed: Feed,
    pub(super) write_lock: Mutex<()>,
    /// Held while a file is made in the folder [`MAKING`](outrigger_disk::MAKING).
    pub(super) making: Mutex<()>,
    /// Transactions on their way to the node. Never locked during a query to the node.
    pub(super) outgoing: Mutex<Outgoing>,
    /// The rewinds since the wallet was last at the tip.
    pub(super) retreat: Mutex<RemovedBlocks>,
    pub(super) attempts: Arc<UnlockAttempts>,
    /// Held while former secrets are removed.
    pub(super) scrubbing: Mutex<()>,
    /// Whether a call has selected it since the last maintenance.
    pub(super) asked: AtomicBool,
    pub(super) sums: Latest<Sums>,
    pub(super) labels: Latest<Labels>,
    /// The verdicts of the last call that judged transactions, with its snapshot's number. The next call takes them.
    pub(super) verdicts: Mutex<Option<(usize, Verdicts)>>,
    /// The stored part of the info, with its snapshot's number.
    pub(super) told: Mutex<Option<StoredInfo>>,
}

impl Wallet {
    /// The wallet of a store. It is `on_trial` while its restore may still be refused.
    pub(super) fn new(name: String, store: Store, shared: Arc<Shared>, on_trial: bool) -> Result<Self> {
        let lock = Self::stored_lock(&store)?;
        let txn = store.read()?;
        let due = next_due(&store.tables, &txn)?;
        let feed = Feed::new(store.tables.synced(&txn)?, store.tables.top(&txn)?, due);
        let locked_coins = store.tables.locked_coins(&txn)?;
        let meta = store.tables.meta(&txn)?;
        let policies = meta.policies.into_iter().map(Arc::from).collect();
        let (signer, guarded) = (meta.signer.map(Into::into), Guarded { policies, on_trial, ..Guarded::default() });
        drop(txn);
        let wallet = Self {
            attempts: shared.attempts.of(&name),
            name,
            signer,
            guarded: Mutex::new(guarded),
            store,
            slot: shared.follower.new_slot(),
            descriptors: DescriptorCache::new(shared.network),
            shared,
            lock: Mutex::new(lock),
            locked_coins: Mutex::new(locked_coins),
            turns: Arc::default(),
            pay_feerate: Mutex::new(None),
            rescan: Slot::default(),
            feed,
            write_lock: Mutex::new(()),
            making: Mutex::new(()),
            outgoing: Mutex::default(),
            retreat: Mutex::default(),
            scrubbing: Mutex::new(()),
            asked: AtomicBool::new(true),
            sums: Latest::default(),
            labels: Latest::default(),
            verdicts: Mutex::new(None),
            told: Mutex::new(None),
        };
        wallet.begin_guarding()?;
        Ok(wallet)
    }

    /// The initial state: locked if the wallet is encrypted.
    pub(super) fn stored_lock(store: &Store) -> Result<Lock> {
        let txn = store.read()?;
        match store.tables.meta.get(&txn, PLAINTEXT_KEY)? {
            Some(value) => Ok(Lock::Plain(EncryptionKey::from_plaintext(value)?)),
            None => Ok(Lock::Locked),
        }
    }

    /// Why the wallet refuses writes, if it does.
    pub(super) fn read_only(&self) -> Option<String> {
        self.feed.lag.lock().as_ref().filter(|lag| lag.is_read_only()).map(|lag| lag.error.to_string())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn signer(&self) -> Option<&Arc<str>> {
        self.signer.as_ref()
    }

    pub fn spend_settings(&self) -> SpendSettings {
        let (pay_feerate, replaces_any) = (*self.pay_feerate.lock(), self.shared.rules().replaces_any);
        SpendSettings { pay_feerate, replaces_any, ..self.shared.settings.spending.clone() }
    }

    /// Waits for the payments before this one. Polls `wanted`, and fails with `Stale` once it returns false.
    pub fn begin_payment(&self, wanted: &dyn Fn() -> bool) -> ServiceResult<Turn> {
        self.turns.take(wanted).ok_or_else(|| ErrorKind::Stale.into())
    }

    /// Sets the feerate of payments that do not name one, until the wallet is unloaded. `None`: the host estimates it.
    pub fn set_pay_feerate(&self, feerate: Option<FeeRate>) {
        *self.pay_feerate.lock() = feerate;
    }

    /// The key of the private entries. Fails with `WalletLocked`.
    pub(super) fn encryption_key(&self) -> Result<EncryptionKey> {
        match &*self.lock.lock() {
            Lock::Plain(key) => Ok(key.clone()),
            Lock::Unlocked { key, deadline, .. } if *deadline > Instant::now() => Ok(key.clone()),
            Lock::Locked | Lock::Unlocked { .. } => Err(ErrorKind::WalletLocked.into()),
        }
    }

    /// Whether it is encrypted, whether it is locked, and when an unlocked wallet locks again, in Unix seconds.
    pub(super) fn lock_state(&self) -> (bool, bool, u64) {
        match &*self.lock.lock() {
            Lock::Plain(_) => (false, false, 0),
            Lock::Unlocked { until, deadline, .. } if *deadline > Instant::now() => (true, false, *until),
            Lock::Locked | Lock::Unlocked { .. } => (true, true, 0),
        }
    }

    /// Wipes the key after the deadline. The wallet counts as locked from the deadline on, even before this runs.
    pub(super) fn lock_if_due(&self) {
        let mut state = self.lock.lock();
        if matches!(&*state, Lock::Unlocked { deadline, .. } if *deadline <= Instant::now()) {
            *state = Lock::Locked;
            drop(state);
            self.tell_lock(true);
        }
    }

    /// Frees caches if no call has selected the wallet since the last time.
    pub(super) fn rest(&self) {
        if !self.asked.swap(false, Ordering::Relaxed) {
            self.descriptors.clear();
        }
    }

    pub(super) fn tell_lock(&self, locked: bool) {
        (self.shared.sink)(Event::WalletLockChanged { wallet: self.name.clone(), locked });
    }
}
