//! The services of the SDK on a node and on wallets.
//!
//! An instance gets the tables of its granted services. They accept only calls of that instance, know only the wallets of its grant, and
//! sign only for the wallets that it may sign for. After `stop` they answer `Stale`.
//!
//! Within a call every read goes to the snapshots that the call opened first; they end with the call. What the call itself
//! writes it must see, so a write lets go of them and the next read opens fresh ones.

mod chain;
mod granted;
mod mempool;
mod node_rpc;
mod wallet;

use std::ops::Deref;
use std::sync::Arc;

use outrigger_service::chain::Tip;
use outrigger_service::{ErrorKind, Result, Scope};
use parking_lot::Mutex;

pub use chain::ChainService;
pub use granted::{Granted, Keys};
pub use mempool::MempoolService;
pub use node_rpc::{NodeMethods, NodeRpcService};
pub use wallet::WalletService;

use granted::within_both;
use outrigger_base::client_files::Folders;
use outrigger_base::tokens::{ByToken, TokenMap};
use outrigger_node::{Node, Snapshot};
use outrigger_wallet_engine::{Turn, WalletManager, WalletView};

/// What one running call has opened.
#[derive(Default)]
pub struct CallScope {
    /// The instance that runs it: no other may ask on its behalf.
    instance: u64,
    /// The wallet that the call's URI names.
    wallet: Option<Arc<str>>,
    /// The only wallet that the caller may use; none for all.
    only_wallet: Option<Arc<str>>,
    /// The folders that the caller's files may lie in.
    folders: Folders,
    /// Whether the wallet is taken as it stands, and need not have followed the chain to its tip.
    any_block: bool,
    /// Whether the method may run on a thread that serves connections.
    inline: bool,
    chain: Mutex<Option<Box<dyn Snapshot>>>,
    view: Mutex<Option<WalletView>>,
    /// Its turn to make a payment.
    turn: Mutex<Option<Turn>>,
}

/// Who makes a call, and what it needs.
#[derive(Clone)]
pub struct Caller {
    /// The wallet that the call's URI names.
    pub wallet: Option<Arc<str>>,
    /// The only wallet that the caller may use; none for all.
    pub only_wallet: Option<Arc<str>>,
    /// The folders that the caller's files may lie in.
    pub folders: Folders,
    /// Whether the wallet must have followed the chain to its tip.
    pub needs_tip: bool,
    /// Whether the manifest calls the method inline: it may run on a thread that serves connections.
    pub inline: bool,
}

impl Caller {
    /// One who may use everything, and names a wallet or none.
    pub fn unbounded(wallet: Option<Arc<str>>) -> Self {
        Self { wallet, only_wallet: None, folders: None, needs_tip: true, inline: false }
    }
}

/// The running calls' scopes, by token.
#[derive(Default)]
pub struct Scopes {
    open: ByToken<TokenMap<Arc<CallScope>>>,
    /// Says whether a call's answer is waited for.
    wanted: Option<Box<dyn Fn(u64) -> bool + Send + Sync>>,
}

/// Ends a call's scope, and with it its snapshots.
pub struct ScopeGuard {
    scopes: Arc<Scopes>,
    token: u64,
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        // Its snapshots are closed when nobody waits for that.
        let _scope = self.scopes.open.of(self.token).remove(&self.token);
    }
}

impl Scopes {
    /// None yet; `wanted` says whether a call's answer is waited for. Without it, all are.
    pub fn of_calls(wanted: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self { wanted: Some(Box::new(wanted)), ..Self::default() }
    }

    /// Opens the scope of a call. It ends when the guard is dropped.
    pub fn open(self: &Arc<Self>, token: u64, instance: u64, caller: Caller) -> ScopeGuard {
        let Caller { wallet, only_wallet, folders, needs_tip, inline } = caller;
        let any_block = !needs_tip;
        let scope = CallScope { instance, wallet, only_wallet, folders, any_block, inline, ..CallScope::default() };
        let scope = Arc::new(scope);
        self.open.of(token).insert(token, scope);
        ScopeGuard { scopes: self.clone(), token }
    }
}

/// The scopes of the calls of one instance, and what it may use in them.
#[derive(Clone, Default)]
pub struct OwnScopes {
    scopes: Arc<Scopes>,
    instance: u64,
    granted: Arc<Granted>,
}

/// A call as the services see it: what it has opened, bounded by what the caller and the instance may use.
struct Call {
    scope: Arc<CallScope>,
    granted: Arc<Granted>,
}

impl Deref for Call {
    type Target = CallScope;

    fn deref(&self) -> &CallScope {
        &self.scope
    }
}

impl OwnScopes {
    /// The scopes of an instance's calls.
    pub fn of(scopes: Arc<Scopes>, instance: u64, granted: Granted) -> Self {
        Self { scopes, instance, granted: Arc::new(granted) }
    }

    /// A call; outside of calls one with an empty scope, which the instance's grants bound all the same.
    ///
    /// # Errors
    /// [`ErrorKind::Stale`] once the call has ended, or when it is another instance's.
    fn get(&self, scope: Scope) -> Result<Call> {
        let granted = self.granted.clone();
        if scope == Scope::NONE {
            return Ok(Call { scope: Arc::default(), granted });
        }
        let open = self.scopes.open.of(scope.0);
        let own = open.get(&scope.0).filter(|call| call.instance == self.instance);
        let scope = own.cloned().ok_or(ErrorKind::Stale)?;
        Ok(Call { scope, granted })
    }

    /// Whether the answer of a call is waited for.
    fn is_wanted(&self, scope: Scope) -> bool {
        self.scopes.wanted.as_ref().is_none_or(|wanted| wanted(scope.0))
    }
}

impl CallScope {
    /// Reads the chain as this call sees it.
    fn with_chain<T>(&self, node: &dyn Node, read: impl FnOnce(&dyn Snapshot) -> Result<T>) -> Result<T> {
        let mut chain = self.chain.lock();
        let snapshot = match chain.take() {
            Some(snapshot) => snapshot,
            None => node.snapshot()?,
        };
        read(&**chain.insert(snapshot))
    }

    /// The tip as this call sees it: its snapshot's, or, without opening one, the newest.
    fn tip(&self, node: &dyn Node) -> Result<Tip> {
        if let Some(snapshot) = self.chain.lock().as_ref() {
            return Ok(snapshot.tip());
        }
        if !self.any_block {
            node.catch_up()?;
        }
        Ok(node.tip())
    }

    /// Lets go of the snapshots, so that what was written is seen.
    fn refresh(&self) {
        *self.chain.lock() = None;
        *self.view.lock() = None;
    }
}

impl Call {
    /// Reads the wallet as this call sees it.
    fn with_view<T>(&self, manager: &WalletManager, read: impl FnOnce(&WalletView) -> Result<T>) -> Result<T> {
        let mut view = self.view.lock();
        let opened = match view.take() {
            Some(opened) => opened,
            None if self.any_block => manager.select_as_it_stands(self.selected()?)?,
            None => manager.select(self.selected()?)?,
        };
        // Where no name was given, it is the only one that is loaded.
        self.check_may_use(opened.wallet().name())?;
        read(view.insert(opened))
    }

    /// The wallet of the call, by name; none where there is only one to choose from.
    ///
    /// # Errors
    /// [`ErrorKind::WalletNotLoaded`] for one that may not be used: whether it exists is not told.
    fn selected(&self) -> Result<Option<&str>> {
        let only = || self.only_wallet.as_deref().or_else(|| self.granted.only_wallet());
        match self.wallet.as_deref().or_else(only) {
            Some(name) => self.check_may_use(name).map(|()| Some(name)),
            None => Ok(None),
        }
    }

    /// Whether the caller and the instance may know of this wallet.
    fn may_use(&self, name: &str) -> bool {
        self.only_wallet.as_deref().is_none_or(|only| only == name) && self.granted.may_use(name)
    }

    /// # Errors
    /// [`ErrorKind::WalletNotLoaded`] for a wallet that may not be used.
    fn check_may_use(&self, name: &str) -> Result<()> {
        if self.may_use(name) { Ok(()) } else { Err(ErrorKind::WalletNotLoaded.into()) }
    }

    /// The folders in which files may be read.
    fn readable(&self) -> Folders {
        within_both(&self.folders, &self.granted.reads)
    }

    /// The folders in which files may be written.
    fn writable(&self) -> Folders {
        within_both(&self.folders, &self.granted.writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_of_its_own_instance_and_ends_with_its_call() {
        let scopes = Arc::new(Scopes::default());
        let guard = scopes.open(5, 1, Caller::unbounded(Some("hot".into())));
        let own = OwnScopes::of(scopes.clone(), 1, Granted::default());
        assert_eq!(own.get(Scope(5)).unwrap().wallet.as_deref(), Some("hot"));
        let others = OwnScopes::of(scopes.clone(), 2, Granted::default()).get(Scope(5));
        assert_eq!(others.err().unwrap().kind, ErrorKind::Stale);
        drop(guard);
        assert_eq!(own.get(Scope(5)).err().unwrap().kind, ErrorKind::Stale);
    }
}
