//! A store that keeps every promise but one.

use std::sync::Mutex;

use bitcoin::{ScriptBuf, Txid};

use super::InMemory;
use crate::service::signer::SignBatch;
use crate::service::wallet::{
    AddressType, CoinBatch, CreateOptions, DescriptorInfo, HistoryBatch, HistoryQuery, Import, ImportOutcome,
    LabelBatch, Ownership, ScriptInfo, WalletInfo,
};
use crate::service::{ErrorKind, Result, Scope, Signer, Wallet};
use crate::testing::conformance::{Happening, Subject, TestNode};
use crate::testing::lock;
use crate::wire::{Blob, Encoded, Secret};

/// Which promise is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Break {
    RowTwice,
    RowLost,
    RowsReversed,
    RowsSortedById,
    RawLeftOut,
    TooManyCoins,
    CoinsInOtherOrder,
    CoinsDistrusted,
    AnyPlaceTaken,
    ReservedTwice,
    ReleasedByAnyNumber,
    RescannedFromTheBeginning,
    AbortedWhatDoesNotRun,
    ImportedWhileLocked,
    ImportedUntilTheFirstRefusal,
    OthersLabelsForgotten,
    LabelsOfOwnScriptsOnly,
    GivenUpWhateverItIs,
    EmptyTextKept,
    EncryptedAndNotLocked,
    LockedWithoutAPassphrase,
    UnlockedForLonger,
    AddressTwice,
    NewestMomentSeen,
    UnloadedOnesNotListed,
    BackupStillNeeded,
    SignaturesReversed,
    MissingSignaturesLeftOut,
    EveryKeyAvailable,
    SignaturesForAnyScript,
}

/// The store in memory, with one promise broken.
pub struct Broken {
    inner: InMemory,
    what: Break,
    last_script: Mutex<Option<ScriptBuf>>,
    last_rescan: Mutex<u64>,
}

impl Broken {
    pub fn new(what: Break) -> Self {
        Self { inner: InMemory::new(), what, last_script: Mutex::default(), last_rescan: Mutex::default() }
    }

    fn is(&self, what: Break) -> bool {
        self.what == what
    }

    fn whole(&self) -> &dyn Wallet {
        &self.inner.wallet
    }
}

/// The functions that no break is about, and those that are.
macro_rules! mostly {
    ($($function:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* ; $($own:item)*) => {
        impl Wallet for Broken {
            $(fn $function(&self, scope: Scope $(, $arg: $type)*) -> Result<$answer> {
                self.whole().$function(scope $(, $arg)*)
            })*
            $($own)*
        }
    };
}

mostly! {
    create(options: CreateOptions) -> Vec<String>;
    load(name: String, load_on_startup: Option<bool>) -> Vec<String>;
    unload(name: String, load_on_startup: Option<bool>) -> Vec<String>;
    list() -> Vec<String>;
    scripts(scripts: Vec<ScriptBuf>) -> Vec<Option<ScriptInfo>>;
    descriptor_texts(numbers: Vec<u32>) -> Vec<Option<String>>;
    descriptors(private: bool) -> Vec<DescriptorInfo>;
    unlock(passphrase: Secret, seconds: u64) -> ();
    change_passphrase(old: Secret, new: Secret) -> ();
    refill_keypool(size: Option<u32>) -> ();
    set_avoid_reuse(avoid: bool) -> ();
    backup(file: String) -> ();
    restore(name: String, file: String, load_on_startup: Option<bool>) -> Vec<String>;
    return_address(script: ScriptBuf) -> bool;
    ;

    fn directory(&self, scope: Scope) -> Result<Vec<String>> {
        if self.is(Break::UnloadedOnesNotListed) { self.whole().list(scope) } else { self.whole().directory(scope) }
    }

    fn info(&self, scope: Scope) -> Result<WalletInfo> {
        let only = self.whole().list(scope)?.len() == 1;
        let scope = if self.is(Break::NewestMomentSeen) && only { Scope::NONE } else { scope };
        let mut info = self.whole().info(scope)?;
        info.backup_needed |= self.is(Break::BackupStillNeeded);
        info.unlocked_until += u64::from(self.is(Break::UnlockedForLonger) && info.unlocked_until > 0);
        Ok(info)
    }

    fn transactions(&self, scope: Scope, mut txids: Vec<Txid>) -> Result<Encoded<HistoryBatch>> {
        if self.is(Break::RowsSortedById) {
            txids.sort_unstable();
        }
        self.whole().transactions(scope, txids)
    }

    fn raw_transactions(&self, scope: Scope, txids: Vec<Txid>) -> Result<Vec<Option<Blob>>> {
        let mut raw = self.whole().raw_transactions(scope, txids)?;
        raw.retain(|raw| raw.is_some() || !self.is(Break::RawLeftOut));
        Ok(raw)
    }

    fn history(&self, scope: Scope, mut query: HistoryQuery) -> Result<Encoded<HistoryBatch>> {
        let goes_on = query.after.is_some();
        if self.is(Break::AnyPlaceTaken) {
            query.after = query.after.filter(|after| !after.0.is_empty());
        }
        query.reverse ^= self.is(Break::RowsReversed);
        let mut batch = self.whole().history(scope, query)?.read()?;
        if goes_on && self.is(Break::RowTwice) {
            batch.rows.extend(batch.rows.first().cloned());
        }
        if goes_on && self.is(Break::RowLost) {
            batch.rows.pop();
        }
        Ok(Encoded::new(&batch))
    }

    fn coins(&self, scope: Scope, after: Option<Blob>, limit: u32) -> Result<CoinBatch> {
        let limit = limit + u32::from(self.is(Break::TooManyCoins));
        let mut batch = self.whole().coins(scope, after, limit)?;
        if self.is(Break::CoinsInOtherOrder) {
            batch.coins.reverse();
        }
        batch.coins.iter_mut().for_each(|coin| coin.trusted &= !self.is(Break::CoinsDistrusted));
        Ok(batch)
    }

    fn new_address(&self, scope: Scope, kind: AddressType, internal: bool, label: Option<String>) -> Result<ScriptBuf> {
        let mut last = lock(&self.last_script);
        if let Some(last) = last.take().filter(|_| self.is(Break::AddressTwice)) {
            return Ok(last);
        }
        let script = self.whole().new_address(scope, kind, internal, label)?;
        *last = Some(script.clone());
        Ok(script)
    }

    fn set_label(&self, scope: Scope, script: ScriptBuf, label: String) -> Result<()> {
        let known = self.whole().scripts(scope, vec![script.clone()])?.iter().any(Option::is_some);
        if self.is(Break::LabelsOfOwnScriptsOnly) && !known {
            return Ok(());
        }
        self.whole().set_label(scope, script, label)
    }

    fn import(&self, scope: Scope, requests: Vec<Import>) -> Result<Vec<ImportOutcome>> {
        if self.is(Break::ImportedUntilTheFirstRefusal) {
            let mut outcomes = Vec::new();
            for request in &requests {
                if !outcomes.iter().all(|outcome| matches!(outcome, ImportOutcome::Imported { .. })) {
                    outcomes.push(ImportOutcome::NotStored);
                    continue;
                }
                outcomes.extend(self.whole().import(scope, vec![request.clone()])?);
            }
            return Ok(outcomes);
        }
        match self.whole().import(scope, requests) {
            Err(error) if error.kind == ErrorKind::WalletLocked && self.is(Break::ImportedWhileLocked) => Ok(Vec::new()),
            outcomes => outcomes,
        }
    }

    fn rescan_reserve(&self, scope: Scope) -> Result<u64> {
        match self.whole().rescan_reserve(scope) {
            Err(_) if self.is(Break::ReservedTwice) => Ok(*lock(&self.last_rescan) + 1),
            Ok(rescan) => {
                *lock(&self.last_rescan) = rescan;
                Ok(rescan)
            }
            refused => refused,
        }
    }

    fn rescan_release(&self, scope: Scope, rescan: u64) -> Result<()> {
        let any = self.is(Break::ReleasedByAnyNumber);
        self.whole().rescan_release(scope, if any { *lock(&self.last_rescan) } else { rescan })
    }

    fn rescan_start(&self, scope: Scope, rescan: u64, from_time: u64) -> Result<()> {
        let from_time = if self.is(Break::RescannedFromTheBeginning) { 0 } else { from_time };
        self.whole().rescan_start(scope, rescan, from_time)
    }

    fn rescan_abort(&self, scope: Scope) -> Result<bool> {
        Ok(self.whole().rescan_abort(scope)? || self.is(Break::AbortedWhatDoesNotRun))
    }

    fn set_metadata(&self, scope: Scope, txid: Txid, key: String, mut value: String) -> Result<()> {
        if value.is_empty() && self.is(Break::EmptyTextKept) {
            value.push(' ');
        }
        self.whole().set_metadata(scope, txid, key, value)
    }

    fn abandon(&self, scope: Scope, txid: Txid) -> Result<()> {
        match self.whole().abandon(scope, txid) {
            Err(error) if error.kind == ErrorKind::Refused && self.is(Break::GivenUpWhateverItIs) => Ok(()),
            other => other,
        }
    }

    fn encrypt(&self, scope: Scope, passphrase: Secret) -> Result<()> {
        self.whole().encrypt(scope, passphrase.clone())?;
        if self.is(Break::EncryptedAndNotLocked) { self.whole().unlock(scope, passphrase, 99) } else { Ok(()) }
    }

    fn lock(&self, scope: Scope) -> Result<()> {
        match self.whole().lock(scope) {
            Err(_) if self.is(Break::LockedWithoutAPassphrase) => Ok(()),
            other => other,
        }
    }

    fn labels(&self, scope: Scope, after: Option<Blob>, limit: u32) -> Result<LabelBatch> {
        let mut batch = self.whole().labels(scope, after, limit)?;
        let forgotten = self.is(Break::OthersLabelsForgotten);
        batch.entries.retain(|entry| !forgotten || entry.ownership != Ownership::None);
        Ok(batch)
    }
}

impl Signer for Broken {
    fn available(&self, scope: Scope, scripts: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        let mut available = self.inner.wallet.available(scope, scripts, public_keys)?;
        available.iter_mut().for_each(|available| *available |= self.is(Break::EveryKeyAvailable));
        Ok(available)
    }

    fn sign_many(&self, scope: Scope, mut batch: SignBatch) -> Result<Vec<Option<Blob>>> {
        if self.is(Break::SignaturesForAnyScript) {
            let labels = self.whole().descriptors(scope, false)?;
            batch.scripts.extend(labels.iter().flat_map(|told| {
                let network = bitcoin::Network::Regtest;
                let checksum = crate::descriptor::Checksum::Optional;
                let parsed = crate::descriptor::Descriptor::parse(told.text.expose(), network, checksum).unwrap();
                let expansions = (0..3).filter_map(move |index| parsed[0].expand(index).ok());
                expansions.flat_map(|found| found.scripts).map(|found| found.script_pubkey).collect::<Vec<_>>()
            }));
        }
        let mut signatures = self.inner.wallet.sign_many(scope, batch)?;
        if self.is(Break::SignaturesReversed) {
            signatures.reverse();
        }
        signatures.retain(|signature| signature.is_some() || !self.is(Break::MissingSignaturesLeftOut));
        Ok(signatures)
    }
}

impl Subject for Broken {
    fn node(&self) -> &TestNode {
        self.inner.node()
    }
    fn tell(&self, happening: &Happening) {
        self.inner.tell(happening);
    }
    fn wallet(&self) -> &dyn Wallet {
        self
    }
    fn signer(&self) -> &dyn Signer {
        self
    }
    fn open(&self, wallet: Option<&str>) -> Scope {
        self.inner.open(wallet)
    }
    fn close(&self, scope: Scope) {
        self.inner.close(scope);
    }
    fn keypool(&self) -> u32 {
        self.inner.keypool()
    }
    fn backup_file(&self, name: &str) -> String {
        self.inner.backup_file(name)
    }
}
