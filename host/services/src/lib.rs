//! The services of the SDK on a node and on wallets.
//!
//! An instance gets the tables of its granted services. They accept only calls of that instance, and show it only its
//! granted wallets, through each service only the wallets of that grant. After `stop` they answer `Stale`.
//!
//! All reads within a call use the snapshots that the call opened first, and the end of the call closes them. A write
//! closes them, too, so that the call's next read sees the change in fresh snapshots.

/// Implements functions of a service. Each runs its expression through the implementation's function `$through`.
macro_rules! through {
    ($through:ident: $(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty = |$on:ident| $run:expr;)*) => { $(
        fn $name(&self, scope: Scope, $($argument: $type),*) -> Result<$answer> {
            self.$through(scope, |$on| Ok($run?))
        }
    )* };
}

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
pub use policy::{Asked, JudgedAct, Providers, shortened};
pub use rpc::{Onward, PluginCalls, RpcService};
pub use store::{
    LAYOUT as STORE_LAYOUT, MAX_STORE_MIB, STORE_FOLDER, StoreContents, StoreFile, StoreFileError, StoreService,
    Stores, check_file as check_store_file,
};
pub use wallet::WalletService;

use granted::within_both;
use outrigger_base::client_files::Folders;
use outrigger_base::tokens::{ByToken, TokenMap};
use outrigger_node::{Node, Snapshot};
use outrigger_wallet_engine::{Turn, Wallet, WalletManager, WalletView};

#[derive(Default)]
struct CallScope {
    /// The instance that runs the call. No other instance may use its scope.
    instance: u64,
    caller: Caller,
    of_call: bool,
    chain: Mutex<Option<Box<dyn Snapshot>>>,
    view: Mutex<Option<WalletView>>,
    /// Held from the beginning of a payment to the end of the call, with the wallet, which is not unloaded meanwhile.
    turn: Mutex<Option<(Turn, Arc<Wallet>)>>,
}

/// The caller of a method, and properties of the method. The default caller has no restrictions.
#[derive(Clone, Default)]
pub struct Caller {
    /// The wallet in the call's URI.
    pub wallet: Option<Arc<str>>,
    /// The only wallet that the caller may use; `None` for all.
    pub only_wallet: Option<Arc<str>>,
    /// The folders of the files that the caller may name; `None` for all.
    pub folders: Folders,
    /// Whether the call may use the wallet while it is behind the tip.
    pub any_block: bool,
    /// Whether the manifest marks the method `inline`: it may run on a thread that serves connections.
    pub inline: bool,
    /// Passes the call on, and makes further calls for its user; `None` for a plugin without `rpc/1`.
    pub onward: Option<Arc<dyn Onward>>,
    /// The ids of the plugins whose nested calls led to this one, the outermost first.
    pub makers: Vec<Arc<str>>,
    pub user: Option<Arc<str>>,
    pub method: Option<Arc<str>>,
    /// Whether the host asks a policy for a verdict. The policy may then only read wallets, the chain and the mempool.
    pub judges: bool,
}

/// The running calls' scopes, by token.
#[derive(Default)]
pub struct Scopes {
    open: ByToken<TokenMap<Arc<CallScope>>>,
    named: Mutex<NamedScopes>,
    /// The instances that judge, once for each judgement in progress.
    judging: Mutex<Vec<u64>>,
    /// Whether a client still waits for the answer of the call with this token.
    wanted: Option<Box<dyn Fn(u64) -> bool + Send + Sync>>,
}

/// A bit in the tokens of wallets opened by name, and in no call's token. Below 2^53, which JSON readers keep exact.
const NAMED: u64 = 1 << 51;

/// The most wallets that an instance can have open by name. A further one replaces the oldest.
const MAX_NAMED: usize = 10_000;

/// The wallets that instances have opened by name, outside of calls. Such a scope keeps no snapshot.
#[derive(Default)]
struct NamedScopes {
    /// The tokens, by instance and wallet name.
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

/// Ends a call's scope when dropped, and closes its snapshots.
pub struct ScopeGuard {
    scopes: Arc<Scopes>,
    token: u64,
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        // The snapshots are closed after the lock is released.
        let scope = self.scopes.open.of(self.token).remove(&self.token);
        if let Some(scope) = scope.filter(|scope| scope.caller.judges) {
            let mut judging = self.scopes.judging.lock();
            if let Some(at) = judging.iter().position(|instance| *instance == scope.instance) {
                judging.swap_remove(at);
            }
        }
    }
}

impl Scopes {
    /// `wanted` returns whether a client still waits for a call's answer. The default assumes so for every call.
    pub fn of_calls(wanted: impl Fn(u64) -> bool + Send + Sync + 'static) -> Self {
        Self { wanted: Some(Box::new(wanted)), ..Self::default() }
    }

    pub fn open(self: &Arc<Self>, token: u64, instance: u64, caller: Caller) -> ScopeGuard {
        if caller.judges {
            self.judging.lock().push(instance);
        }
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

    /// The call of `scope`. Outside of calls, this is an empty one, or one for a wallet that the instance opened by name. It judges while
    /// the instance judges anything, since the host cannot tell for which call a thread uses it.
    /// The instance's grants bound each. [`ErrorKind::Stale`] if the call has ended, or belongs to another instance.
    fn get(&self, scope: Scope) -> Result<Call> {
        let granted = self.granted.clone();
        let outside = |wallet| {
            let judges = self.scopes.judging.lock().contains(&self.instance);
            let caller = Caller { wallet, judges, ..Caller::default() };
            Arc::new(CallScope { instance: self.instance, caller, ..CallScope::default() })
        };
        if scope == Scope::NONE {
            return Ok(Call { scope: outside(None), granted });
        }
        if scope.0 & NAMED != 0 {
            let named = self.scopes.named.lock();
            let (_, name) =
                named.of_tokens.get(&scope.0).filter(|(of, _)| *of == self.instance).ok_or(ErrorKind::Stale)?;
            return Ok(Call { scope: outside(Some(name.clone())), granted });
        }
        let open = self.scopes.open.of(scope.0);
        let own = open.get(&scope.0).filter(|call| call.instance == self.instance);
        let scope = own.cloned().ok_or(ErrorKind::Stale)?;
        Ok(Call { scope, granted })
    }

    /// The scope of a wallet by its name. A name keeps its scope while it is open.
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

    /// Whether a client still waits for the call's answer. Always true outside of calls, since the plugin waits.
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

    /// The tip of the call's snapshot, or the node's if the call has no snapshot. Opens none.
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
    ServiceError::new(ErrorKind::Refused, "A policy that judges may only read wallets, the chain and the mempool")
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

    /// The name of the call's wallet; `None` if the wallet manager must choose. A wallet that may not be used is
    /// [`ErrorKind::WalletNotLoaded`], which does not reveal whether it exists.
    fn selected(&self) -> Result<Option<&str>> {
        let only = || self.caller.only_wallet.as_deref().or_else(|| self.granted.only_wallet());
        match self.caller.wallet.as_deref().or_else(only) {
            Some(name) => self.check_may_use(name).map(|()| Some(name)),
            None => Ok(None),
        }
    }

    /// Whether both caller and instance may use the wallet.
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
    fn an_instance_that_judges_judges_with_its_scopes_outside_of_calls_too() {
        let scopes = Arc::new(Scopes::default());
        let [own, others] = [1, 2].map(|instance| OwnScopes::of(scopes.clone(), instance, GrantedAccess::default()));
        let judges = |own: &OwnScopes| {
            [Scope::NONE, own.named("hot").unwrap()].map(|scope| own.get(scope).unwrap().caller.judges)
        };
        let judging = Caller { judges: true, ..Caller::default() };
        let [first, second] = [5, 6].map(|token| scopes.open(token, 1, judging.clone()));
        drop(first);
        assert_eq!((judges(&own), judges(&others)), ([true; 2], [false; 2]));
        drop(second);
        assert_eq!(judges(&own), [false; 2]);
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
