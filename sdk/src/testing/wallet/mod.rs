//! Wallets in memory: a store that keeps the contract of [`Wallet`] and [`Signer`], or plain answers set by hand.

mod given;
mod store;

use std::sync::Arc;

use bitcoin::{ScriptBuf, Txid};

pub use given::{KnownTransaction, WalletState};

use super::{MemoryChain, MemoryMempool};
use crate::service::signer::SignBatch;
use crate::service::wallet::{
    AddressType, CoinBatch, CreateOptions, DescriptorInfo, HistoryBatch, HistoryQuery, Import, ImportOutcome,
    LabelBatch, ScriptInfo, WalletInfo,
};
use crate::service::{Result, Scope, Signer, Wallet};
use crate::wire::{Blob, Encoded, Secret};
use given::Given;
use store::MemoryStore;

/// The wallets of a host in memory.
///
/// Of itself it is a store in memory that keeps the whole contract of [`Wallet`] and [`Signer`] (the suite of
/// [`super::conformance`] says so): wallets are made by [`Wallet::create`] or restored from its backups, take imports, and
/// follow the chain and the mempool that they were opened over, at each call. It differs from a host's store in what no
/// contract fixes: nothing outlives it, keys are not sealed but only withheld while a wallet is locked, a rescan is over
/// when [`Wallet::rescan_start`] returns, a wallet's random keys follow from its name, and the time of an unlocked wallet
/// runs by the clock of the chain.
///
/// A state that was set by hand ([`MemoryWallet::set`]) stands before it: from then on until it is taken away by hand, all
/// answers come from it, as plain data and without any rules.
pub struct MemoryWallet {
    given: Given,
    store: MemoryStore,
}

impl Default for MemoryWallet {
    /// Wallets over a chain of their own, at which nothing happens.
    fn default() -> Self {
        let chain = Arc::new(MemoryChain::new());
        Self::over(chain.clone(), Arc::new(MemoryMempool::new(chain)))
    }
}

impl MemoryWallet {
    /// How many scripts a wallet of the store keeps derived ahead, per descriptor.
    pub const KEYPOOL: u32 = store::KEYPOOL;

    /// Wallets that follow a chain and a mempool.
    pub fn over(chain: Arc<MemoryChain>, mempool: Arc<MemoryMempool>) -> Self {
        Self { given: Given::default(), store: MemoryStore::new(chain, mempool) }
    }

    /// Puts a wallet set by hand there, or takes it away.
    pub fn set(&self, state: Option<WalletState>) {
        self.given.set(state);
    }

    /// Looks at the wallet set by hand, or changes it.
    ///
    /// # Errors
    /// [`crate::service::ErrorKind::NoWallet`] when there is none.
    pub fn with<T>(&self, body: impl FnOnce(&mut WalletState) -> T) -> Result<T> {
        self.given.with(body)
    }

    /// Makes a call of the store one that names a wallet, as the URI of a client does.
    pub fn open_call(&self, scope: Scope, wallet: &str) {
        self.store.open_call(scope, wallet);
    }

    /// Ends a call of the store: what it has seen is let go of.
    pub fn close_call(&self, scope: Scope) {
        self.store.close_call(scope);
    }

    fn wallet(&self) -> &dyn Wallet {
        if self.given.answers() { &self.given } else { &self.store }
    }

    fn signer(&self) -> &dyn Signer {
        if self.given.answers() { &self.given } else { &self.store }
    }
}

/// Answers a service from what stands there now.
macro_rules! forward {
    ($service:ident by $to:ident: $($function:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl $service for MemoryWallet {
            $(fn $function(&self, scope: Scope $(, $arg: $type)*) -> Result<$answer> {
                self.$to().$function(scope $(, $arg)*)
            })*
        }
    };
}

forward! { Wallet by wallet:
    create(options: CreateOptions) -> Vec<String>;
    load(name: String, load_on_startup: Option<bool>) -> Vec<String>;
    unload(name: String, load_on_startup: Option<bool>) -> Vec<String>;
    list() -> Vec<String>;
    directory() -> Vec<String>;
    info() -> WalletInfo;
    scripts(scripts: Vec<ScriptBuf>) -> Vec<Option<ScriptInfo>>;
    transactions(txids: Vec<Txid>) -> Encoded<HistoryBatch>;
    raw_transactions(txids: Vec<Txid>) -> Vec<Option<Blob>>;
    history(query: HistoryQuery) -> Encoded<HistoryBatch>;
    descriptor_texts(numbers: Vec<u32>) -> Vec<Option<String>>;
    coins(after: Option<Blob>, limit: u32) -> CoinBatch;
    descriptors(private: bool) -> Vec<DescriptorInfo>;
    new_address(kind: AddressType, internal: bool, label: Option<String>) -> ScriptBuf;
    set_label(script: ScriptBuf, label: String) -> ();
    import(requests: Vec<Import>) -> Vec<ImportOutcome>;
    rescan_reserve() -> u64;
    rescan_release(rescan: u64) -> ();
    rescan_start(rescan: u64, from_time: u64) -> ();
    rescan_abort() -> bool;
    set_metadata(txid: Txid, key: String, value: String) -> ();
    abandon(txid: Txid) -> ();
    encrypt(passphrase: Secret) -> ();
    unlock(passphrase: Secret, seconds: u64) -> ();
    lock() -> ();
    change_passphrase(old: Secret, new: Secret) -> ();
    labels(after: Option<Blob>, limit: u32) -> LabelBatch;
    refill_keypool(size: Option<u32>) -> ();
    set_avoid_reuse(avoid: bool) -> ();
    backup(file: String) -> ();
    restore(name: String, file: String, load_on_startup: Option<bool>) -> Vec<String>;
    return_address(script: ScriptBuf) -> bool;
}

forward! { Signer by signer:
    available(scripts: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Vec<bool>;
    sign_many(batch: SignBatch) -> Vec<Option<Blob>>;
}
