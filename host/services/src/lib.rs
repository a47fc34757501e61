//! The services of the SDK on a node and on wallets.
//!
//! An instance gets the tables of its granted services. They accept calls of that instance only, know only the wallets
//! of its grants, and use each service only for the wallets of its grant. After `stop` they answer `Stale`.
//!
//! All reads within a call use the snapshots that the call opened first, and the end of the call closes them. A write
//! closes them, too, so that the call's next read sees the change in fresh snapshots.

mod chain;
mod granted;
mod mempool;
mod policy;
mod rpc;
mod signer;
mod steps;
mod store;
mod wallet;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use outrigger_service::chain::Tip;
use outrigger_service::{ErrorKind, Result, Scope, ServiceError};
use parking_lot::Mutex;

pub use chain::ChainService;
pub use granted::{GrantedAccess, GrantedWallets};
pub use mempool::MempoolService;
pub use policy::{Asked, JudgedAct, Providers};
pub use rpc::{Onward, PluginCalls, RpcService};
pub use store::{
    LAYOUT as STORE_LAYOUT, MAX_STORE_MIB, STORE_FOLDER, StoreContents, StoreFile, StoreFileError, StoreService,
    Stores, check_file as check_store_file, remove as remove_store,
};
pub use wallet::WalletService;

use granted::within_both;
use outrigger_base::client_files::Folders;
use outrigger_base::tokens::{ByToken, TokenMap};
use outrigger_node::{Node, Snapshot};
use outrigger_wallet_engine::{Turn, WalletManager, WalletView};

/// The state of a running call.
#[derive(Default)]
struct CallScope {
    /// The instance that runs the call. No other instance may use its scope.
    instance: u64,
    caller: Caller,
    of_call: bool,
    chain: Mutex<Option<Box<dyn Snapshot>>>,
    view: Mutex<Option<WalletView>>,
    /// Held from the begin of a payment to the end of the call.
    turn: Mutex<Option<Turn>>,
}

/// The caller of a method, and the method's needs. By default it has no restrictions.
#[derive(Clone, Default)]
pub struct Caller {
    /// The wallet in the call's URI.
    pub wallet: Option<Arc<str>>,
    /// The only wallet that the caller may use; `None` for all.
    pub only_wallet: Option<Arc<str>>,
    /// The folders of files that the caller may name.
    pub folders: Folders,
    /// Whether the call uses the wallet as it stands, though it may be behind the tip.
    pub any_block: bool,
    /// Whether the manifest marks the method `inline`: it may run on a thread that serves connections.
    pub inline: bool,
    /// The call's way on; `None` for a plugin without `rpc/1`.
    pub onward: Option<Arc<dyn Onward>>,
    /// The ids of the plugins that made the call, one within the other.
    pub makers: Vec<Arc<str>>,
    /// The user's name.
    pub user: Option<Arc<str>>,
    pub method: Option<Arc<str>>,
    /// Whether the host asks a policy. Such a call only reads its wallet.
    pub judges: bool,
}

/// The running calls' scopes, by token.
#[derive(Default)]
pub struct Scopes {
    open: ByToken<TokenMap<Arc<CallScope>>>,
    named: Mutex<NamedScopes>,
    /// Whether a client still waits for the answer of the call with this token.
    wanted: Option<Box<dyn Fn(u64) -> bool + Send + Sync>>,
}

/// The bit of the tokens of wallets that were opened by name. No call has it, and JSON readers with 53 bits read it.
const NAMED: u64 = 1 << 51;

/// The most wallets that an instance has open by name. One more takes the place of the oldest.
const MAX_NAMED: usize = 10_000;

/// The wallets that instances have opened by name, outside of calls. Such a scope keeps no snapshot.
#[derive(Default)]
struct NamedScopes {
    /// The tokens of an instance, by name.
    tokens: HashMap<u64, HashMap<Arc<str>, u64>>,
    of_tokens: HashMap<u64, (u64, Arc<str>)>,
    next: u64,
}

/// Forgets the wallets that an instance has opened by name, when its services are dropped.
struct NamedOf {
    scopes: Arc<Scopes>,
    instance: u64,
}

impl Drop for NamedOf {
    fn drop(&mut self) {
        let mut named = self.scopes.named.lock();
        for token in named.tokens.remove(&self.instance).unwrap_or_default().into_values() {
            named.of_tokens.remove(&token);
        }
    }
}

/// Ends a call's scope, and so its snapshots, when it is dropped.
pub struct ScopeGuard {
    scopes: Arc<Scopes>,
    token: u64,
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        // The snapshots are closed after the lock is released.
        let _scope = self.scopes.open.of(self.token).remove(&self.token);
    }
}

impl Scopes {
    /// `wanted` returns whether a client still waits for a call's answer. Without it, one does for every call.
    pub fn of_calls(wanted: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self { wanted: Some(Box::new(wanted)), ..Self::default() }
    }

    pub fn open(self: &Arc<Self>, token: u64, instance: u64, caller: Caller) -> ScopeGuard {
        let scope = CallScope { instance, caller, of_call: true, ..CallScope::default() };
        self.open.of(token).insert(token, Arc::new(scope));
        ScopeGuard { scopes: self.clone(), token }
    }
}

/// The scopes of an instance's calls, and the instance's grants.
#[derive(Clone, Default)]
pub struct OwnScopes {
    scopes: Arc<Scopes>,
    instance: u64,
    granted: Arc<GrantedAccess>,
    _named: Option<Arc<NamedOf>>,
}

/// A call's scope, bounded by the grants of its instance.
struct Call {
    scope: Arc<CallScope>,
    granted: Arc<GrantedAccess>,
}

impl Deref for Call {
    type Target = CallScope;

    fn deref(&self) -> &CallScope {
        &self.scope
    }
}

impl OwnScopes {
    pub fn of(scopes: Arc<Scopes>, instance: u64, granted: GrantedAccess) -> Self {
        let _named = Some(Arc::new(NamedOf { scopes: scopes.clone(), instance }));
        Self { scopes, instance, granted: Arc::new(granted), _named }
    }

    /// The call of `scope`. Outside of calls it is an empty one, or one of a wallet that the instance has opened by name. The
    /// instance's grants bound all of them. [`ErrorKind::Stale`] if the call has ended, or is of another instance.
    fn get(&self, scope: Scope) -> Result<Call> {
        let granted = self.granted.clone();
        if scope == Scope::NONE {
            return Ok(Call { scope: Arc::default(), granted });
        }
        if scope.0 & NAMED != 0 {
            let named = self.scopes.named.lock();
            let (_, name) =
                named.of_tokens.get(&scope.0).filter(|(of, _)| *of == self.instance).ok_or(ErrorKind::Stale)?;
            let caller = Caller { wallet: Some(name.clone()), ..Caller::default() };
            let scope = CallScope { instance: self.instance, caller, ..CallScope::default() };
            return Ok(Call { scope: Arc::new(scope), granted });
        }
        let open = self.scopes.open.of(scope.0);
        let own = open.get(&scope.0).filter(|call| call.instance == self.instance);
        let scope = own.cloned().ok_or(ErrorKind::Stale)?;
        Ok(Call { scope, granted })
    }

    /// The scope of a wallet by its name, the same for the same name.
    fn named(&self, name: &str) -> Result<Scope> {
        let mut named = self.scopes.named.lock();
        let named = &mut *named;
        let own = named.tokens.entry(self.instance).or_default();
        if let Some(token) = own.get(name) {
            return Ok(Scope(*token));
        }
        if own.len() >= MAX_NAMED
            && let Some((oldest, token)) =
                own.iter().min_by_key(|(_, token)| **token).map(|(name, token)| (name.clone(), *token))
        {
            own.remove(&oldest);
            named.of_tokens.remove(&token);
        }
        let (name, token) = (Arc::<str>::from(name), NAMED | named.next);
        named.next = named.next.wrapping_add(1);
        own.insert(name.clone(), token);
        named.of_tokens.insert(token, (self.instance, name));
        Ok(Scope(token))
    }

    /// Whether a client still waits for the call's answer. Outside of calls, the plugin does.
    fn is_wanted(&self, scope: Scope) -> bool {
        let outside = scope == Scope::NONE || scope.0 & NAMED != 0;
        outside || self.scopes.wanted.as_ref().is_none_or(|wanted| wanted(scope.0))
    }
}

impl CallScope {
    /// Reads the call's snapshot of the chain.
    fn with_chain<T>(&self, node: &dyn Node, read: impl FnOnce(&dyn Snapshot) -> Result<T>) -> Result<T> {
        let mut chain = self.chain.lock();
        let snapshot = match chain.take() {
            Some(snapshot) => snapshot,
            None => node.snapshot()?,
        };
        read(&**chain.insert(snapshot))
    }

    /// The snapshot's tip; without a snapshot the node's, and none is opened.
    fn tip(&self, node: &dyn Node) -> Result<Tip> {
        if let Some(snapshot) = self.chain.lock().as_ref() {
            return Ok(snapshot.tip());
        }
        if !self.caller.any_block {
            node.catch_up()?;
        }
        Ok(node.tip())
    }

    /// Closes the snapshots, so that the next read sees a change.
    fn refresh(&self) {
        *self.chain.lock() = None;
        *self.view.lock() = None;
    }
}

fn while_judging() -> ServiceError {
    ServiceError::new(ErrorKind::Refused, "A policy that judges may only read its wallet, the chain and the mempool")
}

impl Call {
    /// The user of the call, or the plugin outside of calls.
    fn user(&self) -> &str {
        self.caller.user.as_deref().unwrap_or(&self.granted.user)
    }

    /// Reads the call's view of the wallet.
    fn with_view<T>(&self, manager: &WalletManager, read: impl FnOnce(&WalletView) -> Result<T>) -> Result<T> {
        let mut view = self.view.lock();
        let opened = match view.take() {
            Some(opened) => opened,
            None if self.caller.any_block => manager.select_as_it_stands(self.selected()?)?,
            None => manager.select(self.selected()?)?,
        };
        // Without a name, the only loaded wallet was selected.
        self.check_may_use(opened.wallet().name())?;
        read(view.insert(opened))
    }

    /// The name of the call's wallet; `None` if the wallet manager has to choose. A wallet that may not be used is
    /// [`ErrorKind::WalletNotLoaded`], which does not reveal whether it exists.
    fn selected(&self) -> Result<Option<&str>> {
        let only = || self.caller.only_wallet.as_deref().or_else(|| self.granted.only_wallet());
        match self.caller.wallet.as_deref().or_else(only) {
            Some(name) => self.check_may_use(name).map(|()| Some(name)),
            None => Ok(None),
        }
    }

    /// Whether caller and instance may know the wallet.
    fn may_use(&self, name: &str) -> bool {
        self.caller.only_wallet.as_deref().is_none_or(|only| only == name) && self.granted.may_use(name)
    }

    fn check_may_use(&self, name: &str) -> Result<()> {
        if self.may_use(name) { Ok(()) } else { Err(ErrorKind::WalletNotLoaded.into()) }
    }

    fn readable(&self) -> Folders {
        within_both(&self.caller.folders, &self.granted.reads)
    }

    fn writable(&self) -> Folders {
        within_both(&self.caller.folders, &self.granted.writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_of_its_own_instance_and_ends_with_its_call() {
        let scopes = Arc::new(Scopes::default());
        let guard = scopes.open(5, 1, Caller { wallet: Some("hot".into()), ..Caller::default() });
        let own = OwnScopes::of(scopes.clone(), 1, GrantedAccess::default());
        assert_eq!(own.get(Scope(5)).unwrap().caller.wallet.as_deref(), Some("hot"));
        let others = OwnScopes::of(scopes.clone(), 2, GrantedAccess::default()).get(Scope(5));
        assert_eq!(others.err().unwrap().kind, ErrorKind::Stale);
        drop(guard);
        assert_eq!(own.get(Scope(5)).err().unwrap().kind, ErrorKind::Stale);
    }

    #[test]
    fn a_wallet_opened_by_name_is_of_its_own_instance() {
        let scopes = Arc::new(Scopes::default());
        let [own, others] = [1, 2].map(|instance| OwnScopes::of(scopes.clone(), instance, GrantedAccess::default()));
        let hot = own.named("hot").unwrap();
        assert_eq!(own.named("hot").unwrap(), hot);
        assert_ne!(others.named("hot").unwrap(), hot);
        assert_ne!(own.named("cold").unwrap(), hot);
        assert_eq!(own.get(hot).unwrap().caller.wallet.as_deref(), Some("hot"));
        assert_eq!(others.get(hot).err().unwrap().kind, ErrorKind::Stale);
    }
}
