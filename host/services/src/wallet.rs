//! The services of wallets and their keys on the wallet engine.

use std::sync::Arc;

use bitcoin::consensus::deserialize;
use bitcoin::{BlockHash, OutPoint, ScriptBuf, Txid, Wtxid};
use outrigger_memory::wipe_stack;
use outrigger_service::mempool::Admission;
use outrigger_service::policy::Act;
use outrigger_service::wallet::{
    AddressType, Balances, BalancesQuery, CoinBatch, CreateOptions, DescriptorImport, DescriptorInfo, HdKey,
    HistoryBatch, HistoryQuery, Import, ImportOutcome, LabelBatch, LabelledScript, Received, ReceivedQuery,
    Replaceable, ScriptInfo, SpendSettings, WalletInfo, WalletLog,
};
use outrigger_service::wire::{Blob, Encoded, Secret};
use outrigger_service::{
    ErrorKind, Result, Scope, ServiceError, WalletAdmin, WalletBook, WalletImport, WalletKeys, WalletPay, WalletRead,
};

use super::policy::Providers;
use super::signer::is_judged;
use super::{Call, GrantedWallets, OwnScopes, while_judging};
use outrigger_values::FeeRate;
use outrigger_wallet_engine::{Wallet, WalletManager, WalletView};

/// The service by which a policy reads its wallet.
const WALLET_READ: &str = "wallet-read/1";

pub struct WalletService {
    pub manager: Arc<WalletManager>,
    pub scopes: OwnScopes,
    /// The wallets for which the instance may use the service.
    pub granted: GrantedWallets,
    pub providers: Arc<dyn Providers>,
}

impl WalletService {
    /// The call of a scope. A policy that judges may only read wallets.
    pub(super) fn call(&self, scope: Scope) -> Result<Call> {
        let call = self.scopes.get(scope)?;
        if call.caller.judges && self.granted.service != WALLET_READ { Err(while_judging()) } else { Ok(call) }
    }

    pub(super) fn read<T>(&self, scope: Scope, read: impl FnOnce(&WalletView) -> Result<T>) -> Result<T> {
        self.call(scope)?.with_view(&self.manager, |view| {
            self.granted.check(view.wallet().name())?;
            read(view)
        })
    }

    pub(super) fn wallet(&self, scope: Scope) -> Result<Arc<Wallet>> {
        self.read(scope, |view| Ok(view.wallet().clone()))
    }

    /// Reads with the wallet's keys. The host computes with them on the plugin's thread, so it wipes the stack.
    pub(super) fn with_keys<T>(&self, scope: Scope, read: impl FnOnce(&WalletView) -> Result<T>) -> Result<T> {
        self.read(scope, |view| {
            let outcome = read(view);
            wipe_stack();
            outcome
        })
    }

    /// [`Self::with_keys`], for results with private keys, once the wallet's policies allow it.
    fn give_keys<T>(&self, scope: Scope, read: impl FnOnce(&WalletView) -> Result<T>) -> Result<T> {
        let judged = self.wallet(scope)?;
        self.judge(scope, &judged, || Ok(Act::GiveKeys))?;
        self.with_keys(scope, |view| {
            is_judged(view.wallet().name(), judged.name())?;
            read(view)
        })
    }

    /// Asks the policies whether a signed transaction may be sent. Returns the wallet.
    fn judge_payment(&self, scope: Scope, raw: &[u8], replaces: Option<Txid>) -> Result<Arc<Wallet>> {
        let wallet = self.wallet(scope)?;
        // The wallet refuses bytes that are no transaction.
        let Ok(transaction) = deserialize(raw) else { return Ok(wallet) };
        self.judge(scope, &wallet, || {
            let transaction = self.read(scope, |view| view.judged_payment(transaction))?;
            Ok(Act::Send { transaction, replaces })
        })?;
        Ok(wallet)
    }

    /// [`Self::write`] once the wallet's policies allow the act.
    fn write_if_allowed<T>(&self, scope: Scope, act: Act, write: impl FnOnce(&Wallet) -> Result<T>) -> Result<T> {
        let wallet = self.wallet(scope)?;
        self.judge(scope, &wallet, || Ok(act))?;
        self.write_judged(scope, &wallet, write)
    }

    /// [`Self::write`] to the wallet whose policies have judged.
    fn write_judged<T>(&self, scope: Scope, judged: &Wallet, write: impl FnOnce(&Wallet) -> Result<T>) -> Result<T> {
        self.write(scope, |wallet| {
            is_judged(wallet.name(), judged.name())?;
            write(wallet)
        })
    }

    fn check_may_use(&self, scope: Scope, name: &str) -> Result<()> {
        self.call(scope)?.check_may_use(name)?;
        self.granted.check(name)
    }

    /// The wallets among these that caller and instance may use.
    fn usable(&self, scope: Scope, mut names: Vec<String>) -> Result<Vec<String>> {
        let call = self.call(scope)?;
        names.retain(|name| call.may_use(name) && self.granted.check(name).is_ok());
        Ok(names)
    }

    /// Changes the call's wallet. The call's later reads see the change. Most changes derive, encrypt or decrypt keys,
    /// so the host wipes the stack.
    fn write<T>(&self, scope: Scope, write: impl FnOnce(&Wallet) -> Result<T>) -> Result<T> {
        let call = self.call(scope)?;
        let wallet = self.wallet(scope)?;
        call.refresh();
        let outcome = write(&wallet);
        wipe_stack();
        call.refresh();
        outcome
    }
}

#[deny(clippy::missing_trait_methods)]
impl WalletRead for WalletService {
    fn list(&self, scope: Scope) -> Result<Vec<String>> {
        self.usable(scope, self.manager.list())
    }

    fn scope_of(&self, scope: Scope, name: String) -> Result<u64> {
        self.check_may_use(scope, &name)?;
        self.manager.select_as_it_stands(Some(&name))?;
        Ok(self.scopes.named(&name)?.0)
    }

    through! { read:
        fn info() -> WalletInfo = |view| view.info();
        fn scripts(scripts: Vec<ScriptBuf>) -> Vec<Option<ScriptInfo>> = |view| view.scripts(scripts);
        fn transactions(txids: Vec<Txid>) -> Encoded<HistoryBatch> = |view| view.transactions(&txids);
        fn raw_transactions(txids: Vec<Txid>) -> Vec<Option<Blob>> = |view| view.raw_transactions(&txids);
        fn alternate_wtxids(txids: Vec<Txid>) -> Vec<Vec<Wtxid>> = |view| view.alternate_wtxids(&txids);
        fn spent_outside_mempool(query: BalancesQuery) -> Balances = |view| view.spent_outside_mempool(&query);
        fn history(query: HistoryQuery) -> Encoded<HistoryBatch> = |view| view.history(&query);
        fn descriptor_texts(numbers: Vec<u32>) -> Vec<Option<String>> = |view| view.descriptor_texts(&numbers);
        fn coins(in_mempool: bool, after: Option<Blob>, limit: u32) -> CoinBatch = |view| match in_mempool {
            true => view.mempool_coins(after.as_deref(), limit),
            false => view.coins(after.as_deref(), limit),
        };
        fn descriptors() -> Vec<DescriptorInfo> = |view| view.descriptors(false);
        fn imported_descriptors() -> Vec<DescriptorInfo> = |view| view.imported_descriptors(false);
        fn labels(after: Option<Blob>, limit: u32) -> LabelBatch = |view| view.labels(after, limit);
        fn spenders(outpoints: Vec<OutPoint>) -> Vec<Vec<Txid>> = |view| view.spenders(&outpoints);
        fn spent_from(scripts: Vec<ScriptBuf>) -> Vec<bool> = |view| view.spent_from(&scripts);
        fn replaceable(txids: Vec<Txid>) -> Vec<Replaceable> = |view| view.replaceable(&txids);
        fn label_names(sending: Option<bool>) -> Vec<String> = |view| view.label_names(sending);
        fn labelled(label: String) -> Vec<LabelledScript> = |view| view.labelled(&label);
        fn balances(query: BalancesQuery) -> Balances = |view| view.balances(&query);
        fn received(query: ReceivedQuery) -> Encoded<Vec<Received>> = |view| view.received(&query);
    }

    through! { with_keys:
        fn hd_keys() -> Vec<HdKey> = |view| view.hd_keys(false);
    }

    fn locked_coins(&self, scope: Scope) -> Result<Vec<OutPoint>> {
        self.read(scope, |view| Ok(view.wallet().locked_coins()))
    }

    fn spend_settings(&self, scope: Scope) -> Result<SpendSettings> {
        self.read(scope, |view| Ok(view.wallet().spend_settings()))
    }

    fn log(&self, scope: Scope, after: u64, limit: u32) -> Result<WalletLog> {
        let call = self.scopes.get(scope)?;
        if call.of_call {
            return self.read(scope, |view| Ok(view.log(after, limit)?));
        }
        // Outside of calls, a thread of the plugin follows the log. It must not wait for the chain.
        let view = self.manager.select_as_it_stands(call.selected()?)?;
        call.check_may_use(view.wallet().name())?;
        self.granted.check(view.wallet().name())?;
        Ok(view.log(after, limit)?)
    }
}

#[deny(clippy::missing_trait_methods)]
impl WalletBook for WalletService {
    through! { write:
        fn new_address(kind: AddressType, internal: bool, label: Option<String>) -> ScriptBuf =
            |wallet| wallet.new_address(kind, internal, label);
        fn set_label(script: ScriptBuf, label: String) -> () = |wallet| wallet.set_label(script, label);
        fn set_metadata(txid: Txid, key: String, value: String) -> () = |wallet| wallet.set_metadata(txid, key, value);
        fn refill_keypool(size: Option<u32>) -> () = |wallet| wallet.refill_keypool(size);
        fn return_address(script: ScriptBuf) -> bool = |wallet| wallet.return_address(&script);
        fn lock_coins(coins: Vec<OutPoint>, persistent: bool) -> () = |wallet| wallet.lock_coins(coins, persistent);
        fn unlock_coins(coins: Vec<OutPoint>) -> () = |wallet| wallet.unlock_coins(&coins);
    }
}

#[deny(clippy::missing_trait_methods)]
impl WalletPay for WalletService {
    through! { write:
        fn abandon(txid: Txid) -> () = |wallet| wallet.abandon(txid);
    }

    fn send(&self, scope: Scope, raw: Blob, metadata: Vec<(String, String)>) -> Result<Option<Admission>> {
        let wallet = self.judge_payment(scope, &raw, None)?;
        self.write_judged(scope, &wallet, |wallet| wallet.send(None, &raw, metadata))
    }

    fn replace(
        &self,
        scope: Scope,
        replaced: Txid,
        raw: Blob,
        metadata: Vec<(String, String)>,
    ) -> Result<Option<Admission>> {
        let wallet = self.judge_payment(scope, &raw, Some(replaced))?;
        self.write_judged(scope, &wallet, |wallet| wallet.send(Some(replaced), &raw, metadata))
    }

    fn begin_payment(&self, scope: Scope) -> Result<()> {
        let call = self.call(scope)?;
        if call.caller.inline || !call.of_call {
            let message = "a payment is begun by a call of a method that the manifest does not mark 'inline'";
            return Err(ServiceError::new(ErrorKind::Unsupported, message));
        }
        let mut turn = call.turn.lock();
        if turn.is_none() {
            let wallet = self.wallet(scope)?;
            // The call keeps no snapshot open while it waits, and then reads the results of earlier payments.
            call.refresh();
            let mut begun = Err(ErrorKind::Stale.into());
            // Payments that wait must not hold the threads of the wallet's other calls.
            self.providers.lend(&mut || begun = wallet.begin_payment(&|| self.scopes.is_wanted(scope)))?;
            *turn = Some((begun?, wallet));
            call.refresh();
        }
        Ok(())
    }

    fn set_pay_feerate(&self, scope: Scope, feerate: Option<FeeRate>) -> Result<()> {
        self.read(scope, |view| {
            view.wallet().set_pay_feerate(feerate);
            Ok(())
        })
    }
}

#[deny(clippy::missing_trait_methods)]
impl WalletImport for WalletService {
    fn import(&self, scope: Scope, requests: Vec<Import>) -> Result<Vec<ImportOutcome>> {
        self.write_if_allowed(scope, Act::Import, |wallet| wallet.import(requests))
    }

    fn add_confirmed(&self, scope: Scope, raw: Blob, block: BlockHash, index: u32) -> Result<()> {
        self.write_if_allowed(scope, Act::Import, |wallet| wallet.add_confirmed(&raw, block, index))
    }

    through! { write:
        fn rescan_reserve() -> u64 = |wallet| wallet.rescan_reserve();
        fn rescan_release(rescan: u64) -> () = |wallet| wallet.rescan_release(rescan);
        fn rescan_start(rescan: u64, from_time: u64) -> () = |wallet| wallet.rescan_start(rescan, from_time);
        fn rescan_abort() -> bool = |wallet| wallet.rescan_abort();
        fn rescan_heights(rescan: u64, first: u32, last: Option<u32>) -> () =
            |wallet| wallet.rescan_heights(rescan, first, last);
        fn remove_transaction(txid: Txid) -> () = |wallet| wallet.remove_transaction(txid);
    }
}

#[deny(clippy::missing_trait_methods)]
impl WalletAdmin for WalletService {
    fn create(&self, scope: Scope, options: CreateOptions) -> Result<Vec<String>> {
        self.check_may_use(scope, &options.name)?;
        self.manager.create(options)
    }

    fn load(&self, scope: Scope, name: String, load_on_startup: Option<bool>) -> Result<Vec<String>> {
        self.check_may_use(scope, &name)?;
        let folders = self.call(scope)?.readable();
        let loaded = self.manager.load(name.clone(), load_on_startup);
        loaded.map_err(|error| self.manager.with_advice(&name, &folders, error))
    }

    fn unload(&self, scope: Scope, name: String, load_on_startup: Option<bool>) -> Result<Vec<String>> {
        self.check_may_use(scope, &name)?;
        self.manager.unload(name, load_on_startup)
    }

    fn directory(&self, scope: Scope) -> Result<Vec<String>> {
        self.usable(scope, self.manager.directory()?)
    }

    through! { write:
        fn encrypt(passphrase: Secret) -> () = |wallet| wallet.encrypt(passphrase);
        fn unlock(passphrase: Secret, seconds: u64) -> () = |wallet| wallet.unlock(passphrase, seconds);
        fn lock() -> () = |wallet| wallet.lock();
        fn change_passphrase(old: Secret, new: Secret) -> () = |wallet| wallet.change_passphrase(old, new);
        fn set_avoid_reuse(avoid: bool) -> () = |wallet| wallet.set_avoid_reuse(avoid);
    }

    fn backup(&self, scope: Scope, file: String) -> Result<()> {
        let folders = self.call(scope)?.writable();
        let wallet = self.wallet(scope)?;
        self.judge(scope, &wallet, || Ok(Act::Backup))?;
        let states = self.save_policies(scope, &wallet)?;
        let file = std::path::Path::new(&file);
        self.write_judged(scope, &wallet, |wallet| wallet.backup(file, &folders, &states))
    }

    fn export_watch_only(&self, scope: Scope, file: String) -> Result<()> {
        let folders = self.call(scope)?.writable();
        self.write_if_allowed(scope, Act::Export, |wallet| {
            wallet.export_watch_only(std::path::Path::new(&file), &folders)
        })
    }

    fn restore(&self, scope: Scope, name: String, file: String, load_on_startup: Option<bool>) -> Result<Vec<String>> {
        self.check_may_use(scope, &name)?;
        let folders = self.call(scope)?.readable();
        let guarded = |wallet: &Wallet| self.restore_policies(scope, wallet);
        self.manager.restore(name, std::path::Path::new(&file), &folders, load_on_startup, &guarded)
    }

    fn add_own_descriptors(&self, scope: Scope, descriptors: Vec<DescriptorImport>) -> Result<Vec<ImportOutcome>> {
        self.write_if_allowed(scope, Act::Import, |wallet| wallet.add_own_descriptors(descriptors))
    }
}

#[deny(clippy::missing_trait_methods)]
impl WalletKeys for WalletService {
    through! { give_keys:
        fn private_hd_keys() -> Vec<HdKey> = |view| view.hd_keys(true);
        fn private_imported_descriptors() -> Vec<DescriptorInfo> = |view| view.imported_descriptors(true);
        fn private_descriptors() -> Vec<DescriptorInfo> = |view| view.descriptors(true);
        fn private_key(public_key_hash: [u8; 20]) -> Option<Secret> = |view| view.private_key(&public_key_hash);
    }
}
