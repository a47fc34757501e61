//! A store of wallets in memory: the simple model of what a host's store does.
//!
//! What a wallet holds is kept in plain maps ([`own::Own`]); whose an output is, what a transaction spends of ours and which
//! coins there are is computed anew for each answer. A write is made to a copy of the wallet, which takes its place when all
//! of it has succeeded.

mod descriptors;
mod follow;
mod import;
mod imported;
mod own;
mod sign;
mod tell;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bitcoin::{ScriptBuf, Txid};

pub use descriptors::KEYPOOL;
use own::Own;

use super::super::lock;
use crate::service::chain::{BlockInfo, BlockRef, Tip};
use crate::service::signer::SignBatch;
use crate::service::wallet::{
    AddressType, CoinBatch, CreateOptions, DescriptorInfo, HistoryBatch, HistoryQuery, Import, ImportOutcome,
    LabelBatch, Ownership, ScriptInfo, WalletInfo, check_label,
};
use crate::service::{Chain, ErrorKind, Mempool, Result, Scope, ServiceError, Signer, Wallet};
use crate::wire::{Blob, Encoded, Secret};

/// On whose behalf the store itself asks the node.
const NO_CALL: Scope = Scope::NONE;

/// The node that wallets follow.
struct Node<'a> {
    chain: &'a dyn Chain,
    mempool: &'a dyn Mempool,
}

impl Node<'_> {
    fn tip(&self) -> Result<Tip> {
        self.chain.tip(NO_CALL)
    }

    /// The node's clock, in seconds.
    fn time(&self) -> Result<u64> {
        self.chain.time(NO_CALL)
    }

    fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>> {
        self.chain.block_info(NO_CALL, block)
    }
}

#[derive(Default)]
struct State {
    /// All wallets, loaded or not, by their names.
    wallets: BTreeMap<String, Arc<Own>>,
    /// The names of the loaded ones, in the order in which they were loaded.
    loaded: Vec<String>,
    backups: BTreeMap<String, Arc<Own>>,
    /// The wallets that calls name.
    named: BTreeMap<u64, String>,
    /// What calls have seen: their wallet as it was at their first read.
    snapshots: BTreeMap<u64, Arc<Own>>,
}

impl State {
    /// The name of a call's wallet.
    fn selected(&self, scope: Scope) -> Result<String> {
        match (self.named.get(&scope.0), self.loaded.as_slice()) {
            (Some(name), loaded) if loaded.contains(name) => Ok(name.clone()),
            (Some(_), _) => Err(ErrorKind::WalletNotLoaded.into()),
            (None, []) => Err(ErrorKind::NoWallet.into()),
            (None, [name]) => Ok(name.clone()),
            (None, _) => Err(ErrorKind::WalletNotSpecified.into()),
        }
    }

    fn check_new(&self, name: &str) -> Result<()> {
        let parts = |part: &str| part.is_empty() || part == "." || part == "..";
        if !name.is_empty() && name.split('/').any(parts) || name.chars().any(char::is_control) {
            let detail = format!("Wallet file verification failed. The wallet name '{name}' is not allowed.");
            return Err(ServiceError::new(ErrorKind::Refused, detail));
        }
        if self.wallets.contains_key(name) {
            let detail = format!("Wallet file verification failed. Database '{name}' already exists.");
            return Err(ServiceError::new(ErrorKind::WalletExists, detail));
        }
        Ok(())
    }
}

/// Wallets in memory over a node.
pub(super) struct MemoryStore {
    chain: Arc<dyn Chain>,
    mempool: Arc<dyn Mempool>,
    state: Mutex<State>,
}

impl MemoryStore {
    pub fn new(chain: Arc<dyn Chain>, mempool: Arc<dyn Mempool>) -> Self {
        Self { chain, mempool, state: Mutex::default() }
    }

    pub fn open_call(&self, scope: Scope, wallet: &str) {
        lock(&self.state).named.insert(scope.0, wallet.to_owned());
    }

    pub fn close_call(&self, scope: Scope) {
        let mut state = lock(&self.state);
        state.named.remove(&scope.0);
        state.snapshots.remove(&scope.0);
    }

    fn node(&self) -> Node<'_> {
        Node { chain: &*self.chain, mempool: &*self.mempool }
    }

    /// The wallets, each of which has followed the node to where it stands now.
    fn state(&self) -> Result<MutexGuard<'_, State>> {
        let mut state = lock(&self.state);
        for name in state.loaded.clone() {
            if let Some(own) = state.wallets.get_mut(&name)
                && own.is_behind(&self.node())?
            {
                Arc::make_mut(own).follow(&self.node(), false)?;
            }
        }
        Ok(state)
    }

    /// Reads the wallet of a call as the call saw it first.
    fn read<T>(&self, scope: Scope, read: impl FnOnce(&Own, &Node) -> Result<T>) -> Result<T> {
        let mut state = self.state()?;
        if let Some(seen) = state.snapshots.get(&scope.0) {
            return read(seen, &self.node());
        }
        let own = state.selected(scope)?;
        let own = state.wallets.get(&own).ok_or(ErrorKind::WalletNotLoaded)?.clone();
        let answer = read(&own, &self.node());
        if scope != Scope::NONE {
            state.snapshots.insert(scope.0, own);
        }
        answer
    }

    /// Changes the wallet of a call, wholly or not at all; what the call reads afterwards is the wallet as changed.
    fn write<T>(&self, scope: Scope, write: impl FnOnce(&mut Own, &Node) -> Result<T>) -> Result<T> {
        let mut state = self.state()?;
        let name = state.selected(scope)?;
        state.snapshots.remove(&scope.0);
        let mut own = Own::clone(state.wallets.get(&name).ok_or(ErrorKind::WalletNotLoaded)?);
        let answer = write(&mut own, &self.node())?;
        state.wallets.insert(name, Arc::new(own));
        Ok(answer)
    }

    /// Takes a wallet in among the loaded ones.
    fn start(&self, state: &mut State, mut own: Own) -> Result<Vec<String>> {
        own.follow(&self.node(), true)?;
        own.resubmit(&self.node())?;
        state.loaded.push(own.name.clone());
        state.wallets.insert(own.name.clone(), Arc::new(own));
        Ok(Vec::new())
    }
}

impl Wallet for MemoryStore {
    fn create(&self, _: Scope, options: CreateOptions) -> Result<Vec<String>> {
        let mut state = self.state()?;
        if options.disable_private_keys && !options.passphrase.expose().is_empty() {
            return Err(ServiceError::new(ErrorKind::Refused, "Passphrase provided but private keys are disabled."));
        }
        state.check_new(&options.name)?;
        let own = Own::new(&options, &self.node())?;
        self.start(&mut state, own)
    }

    fn load(&self, _: Scope, name: String, _: Option<bool>) -> Result<Vec<String>> {
        let mut state = self.state()?;
        if state.loaded.contains(&name) {
            let detail = format!("Wallet \"{name}\" is already loaded.");
            return Err(ServiceError::new(ErrorKind::WalletAlreadyLoaded, detail));
        }
        let Some(own) = state.wallets.get(&name).map(|own| Own::clone(own)) else {
            let detail = format!("Wallet file verification failed. There is no wallet '{name}'.");
            return Err(ServiceError::new(ErrorKind::WalletNotLoaded, detail));
        };
        self.start(&mut state, own)
    }

    fn unload(&self, _: Scope, name: String, _: Option<bool>) -> Result<Vec<String>> {
        let mut state = self.state()?;
        if !state.loaded.contains(&name) {
            return Err(ErrorKind::WalletNotLoaded.into());
        }
        if let Some(own) = state.wallets.get_mut(&name).map(Arc::make_mut) {
            if own.reserved.is_some() {
                return Err(ErrorKind::WalletRescanning.into());
            }
            // What is known beside the file is gone with it.
            (own.last_rescan, own.unlocked_until) = (0, 0);
        }
        state.loaded.retain(|other| *other != name);
        Ok(Vec::new())
    }

    fn list(&self, _: Scope) -> Result<Vec<String>> {
        Ok(self.state()?.loaded.clone())
    }

    fn directory(&self, _: Scope) -> Result<Vec<String>> {
        Ok(self.state()?.wallets.keys().cloned().collect())
    }

    fn info(&self, scope: Scope) -> Result<WalletInfo> {
        self.read(scope, Own::info)
    }

    fn scripts(&self, scope: Scope, scripts: Vec<ScriptBuf>) -> Result<Vec<Option<ScriptInfo>>> {
        self.read(scope, |own, _| Ok(scripts.iter().map(|script| own.script(script)).collect()))
    }

    fn transactions(&self, scope: Scope, txids: Vec<Txid>) -> Result<Encoded<HistoryBatch>> {
        self.read(scope, |own, node| own.transactions(&txids, node))
    }

    fn raw_transactions(&self, scope: Scope, txids: Vec<Txid>) -> Result<Vec<Option<Blob>>> {
        self.read(scope, |own, _| Ok(txids.into_iter().map(|txid| own.raw(txid)).collect()))
    }

    fn history(&self, scope: Scope, query: HistoryQuery) -> Result<Encoded<HistoryBatch>> {
        self.read(scope, |own, node| own.history(&query, node))
    }

    fn descriptor_texts(&self, scope: Scope, numbers: Vec<u32>) -> Result<Vec<Option<String>>> {
        self.read(scope, |own, _| {
            let text = |number: u32| own.descriptors.get(number as usize).map(|row| row.identity.clone());
            Ok(numbers.into_iter().map(text).collect())
        })
    }

    fn coins(&self, scope: Scope, after: Option<Blob>, limit: u32) -> Result<CoinBatch> {
        self.read(scope, |own, node| own.coins(after.as_ref(), limit, node))
    }

    fn descriptors(&self, scope: Scope, private: bool) -> Result<Vec<DescriptorInfo>> {
        self.read(scope, |own, node| own.tell_descriptors(private, node))
    }

    fn new_address(&self, scope: Scope, kind: AddressType, internal: bool, label: Option<String>) -> Result<ScriptBuf> {
        check_label(label.as_deref().unwrap_or_default())?;
        self.write(scope, |own, node| own.new_address(kind, internal, label.as_deref(), node))
    }

    fn set_label(&self, scope: Scope, script: ScriptBuf, label: String) -> Result<()> {
        self.write(scope, |own, _| {
            check_label(&label)?;
            let ours = own.ownership(&script) != Ownership::None;
            own.set_label(&script, &label, ours);
            Ok(())
        })
    }

    fn import(&self, scope: Scope, requests: Vec<Import>) -> Result<Vec<ImportOutcome>> {
        self.write(scope, |own, node| own.import(&requests, node))
    }

    fn rescan_reserve(&self, scope: Scope) -> Result<u64> {
        self.write(scope, |own, _| own.rescan_reserve())
    }

    fn rescan_release(&self, scope: Scope, rescan: u64) -> Result<()> {
        self.write(scope, |own, _| {
            own.reserved = own.reserved.filter(|reserved| *reserved != rescan);
            Ok(())
        })
    }

    fn rescan_start(&self, scope: Scope, rescan: u64, from_time: u64) -> Result<()> {
        self.write(scope, |own, node| own.rescan_start(rescan, from_time, node))
    }

    fn rescan_abort(&self, scope: Scope) -> Result<bool> {
        self.write(scope, |_, _| Ok(false))
    }

    fn set_metadata(&self, scope: Scope, txid: Txid, key: String, value: String) -> Result<()> {
        self.write(scope, |own, _| own.set_metadata(txid, key, value))
    }

    fn abandon(&self, scope: Scope, txid: Txid) -> Result<()> {
        self.write(scope, |own, _| own.abandon(txid))
    }

    fn encrypt(&self, scope: Scope, passphrase: Secret) -> Result<()> {
        self.write(scope, |own, node| own.encrypt(passphrase, node))
    }

    fn unlock(&self, scope: Scope, passphrase: Secret, seconds: u64) -> Result<()> {
        self.write(scope, |own, node| own.unlock(&passphrase, seconds, node))
    }

    fn lock(&self, scope: Scope) -> Result<()> {
        self.write(scope, |own, _| own.lock())
    }

    fn change_passphrase(&self, scope: Scope, old: Secret, new: Secret) -> Result<()> {
        // The one write that leaves something behind where it fails: the lock.
        self.write(scope, |own, _| Ok(own.change_passphrase(&old, new)))?
    }

    fn labels(&self, scope: Scope, after: Option<Blob>, limit: u32) -> Result<LabelBatch> {
        self.read(scope, |own, _| own.labels(after.as_ref(), limit))
    }

    fn refill_keypool(&self, scope: Scope, size: Option<u32>) -> Result<()> {
        self.write(scope, |own, node| own.refill(size, node))
    }

    fn set_avoid_reuse(&self, scope: Scope, avoid: bool) -> Result<()> {
        self.write(scope, |own, _| {
            own.avoid_reuse = avoid;
            Ok(())
        })
    }

    fn backup(&self, scope: Scope, file: String) -> Result<()> {
        let copy = self.write(scope, |own, node| {
            let copy = Arc::new(own.clone());
            (own.backup_needed, own.last_backup) = (false, node.time()?);
            Ok(copy)
        })?;
        lock(&self.state).backups.insert(file, copy);
        Ok(())
    }

    fn restore(&self, _: Scope, name: String, file: String, _: Option<bool>) -> Result<Vec<String>> {
        let mut state = self.state()?;
        let Some(mut own) = state.backups.get(&file).map(|own| Own::clone(own)) else {
            return Err(ServiceError::new(ErrorKind::NotFound, "Backup file does not exist"));
        };
        state.check_new(&name)?;
        // A copy begins without what is known beside the file.
        (own.last_rescan, own.reserved, own.unlocked_until, own.name) = (0, None, 0, name);
        self.start(&mut state, own)
    }

    fn return_address(&self, scope: Scope, script: ScriptBuf) -> Result<bool> {
        self.write(scope, |own, _| Ok(own.return_address(&script)))
    }
}

impl Signer for MemoryStore {
    fn available(&self, scope: Scope, scripts: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        self.read(scope, |own, node| own.available(&scripts, &public_keys, node))
    }

    fn sign_many(&self, scope: Scope, batch: SignBatch) -> Result<Vec<Option<Blob>>> {
        self.read(scope, |own, node| own.sign_many(&batch, node))
    }
}
