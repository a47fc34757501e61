//! The services of the SDK on the host's chain, mempool and wallets.
//!
//! Within a call every read goes to the snapshots that the call opened first; they end with the call. What the call itself
//! writes it must see, so a write lets go of them and the next read opens fresh ones.

mod chain;
mod mempool;
mod wallet;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_sdk::abi::ExportedService;
use outrigger_sdk::service::chain::Tip;
use outrigger_sdk::service::{Chain, ErrorKind, Mempool, Result, Scope, Signer, Wallet};

pub use chain::ChainService;
pub use mempool::MempoolService;
pub use wallet::WalletService;

use crate::node::{ChainSnapshot, EmbeddedNode};
use crate::plugin::instance::SharedServices;
use crate::wallet::{WalletManager, WalletView};

/// What one running call has opened.
#[derive(Default)]
pub struct CallScope {
    /// The wallet that the call's URI names.
    wallet: Option<Arc<str>>,
    chain: Mutex<Option<ChainSnapshot>>,
    view: Mutex<Option<WalletView>>,
}

/// The running calls' scopes, by token.
#[derive(Default)]
pub struct Scopes {
    open: Mutex<HashMap<u64, Arc<CallScope>>>,
}

/// Ends a call's scope, and with it its snapshots.
pub struct ScopeGuard {
    scopes: Arc<Scopes>,
    token: u64,
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        lock(&self.scopes.open).remove(&self.token);
    }
}

/// Locks data that is whole after every operation, so that a panic elsewhere cannot have damaged it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scopes {
    /// Opens the scope of a call; it ends when the guard is dropped.
    pub fn open(self: &Arc<Self>, token: u64, wallet: Option<Arc<str>>) -> ScopeGuard {
        let scope = Arc::new(CallScope { wallet, ..CallScope::default() });
        lock(&self.open).insert(token, scope);
        ScopeGuard { scopes: self.clone(), token }
    }

    /// The scope of a call; an empty one outside of calls.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] once the call has ended.
    fn get(&self, scope: Scope) -> Result<Arc<CallScope>> {
        if scope == Scope::NONE {
            return Ok(Arc::default());
        }
        lock(&self.open).get(&scope.0).cloned().ok_or(ErrorKind::Stale.into())
    }
}

impl CallScope {
    /// Reads the chain as this call sees it.
    fn with_chain<T>(&self, node: &EmbeddedNode, read: impl FnOnce(&ChainSnapshot) -> Result<T>) -> Result<T> {
        let mut chain = lock(&self.chain);
        let snapshot = match chain.take() {
            Some(snapshot) => snapshot,
            None => node.snapshot()?,
        };
        read(chain.insert(snapshot))
    }

    /// The tip as this call sees it: its snapshot's, or, without opening one, the newest.
    fn tip(&self, node: &EmbeddedNode) -> Result<Tip> {
        Ok(lock(&self.chain).as_ref().map_or_else(|| node.tip(), ChainSnapshot::tip))
    }

    /// Reads the wallet as this call sees it.
    fn with_view<T>(&self, manager: &WalletManager, read: impl FnOnce(&WalletView) -> Result<T>) -> Result<T> {
        let mut view = lock(&self.view);
        let opened = match view.take() {
            Some(opened) => opened,
            None => manager.select(self.wallet.as_deref())?,
        };
        read(view.insert(opened))
    }

    /// Lets go of the snapshots, so that what was written is seen.
    fn refresh(&self) {
        *lock(&self.chain) = None;
        *lock(&self.view) = None;
    }
}

/// The tables of the services that are the same for every plugin.
pub fn shared(node: &Arc<EmbeddedNode>, manager: &Arc<WalletManager>, scopes: &Arc<Scopes>) -> SharedServices {
    let wallets = Arc::new(WalletService { manager: manager.clone(), scopes: scopes.clone() });
    let chain = Arc::new(ChainService { node: node.clone(), scopes: scopes.clone() });
    let mempool = Arc::new(MempoolService { node: node.clone(), scopes: scopes.clone() });
    [
        ("chain/1", ExportedService::new::<dyn Chain>(chain)),
        ("mempool/1", ExportedService::new::<dyn Mempool>(mempool)),
        ("wallet/1", ExportedService::new::<dyn Wallet>(wallets.clone())),
        ("signer/1", ExportedService::new::<dyn Signer>(wallets)),
    ]
    .into_iter()
    .map(|(name, service)| (name.to_owned(), Arc::new(service)))
    .collect()
}
