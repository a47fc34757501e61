//! Calls that plugins make (`rpc/1`): `next` passes a call to the next link of its chain, `call` calls a method by name.
//!
//! The thread of the plugin's code polls the call's future, which is the same as for a client's call, until it is answered.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use outrigger_plugins::MAX_LINKS;
use outrigger_plugins::calls::Calls;
use outrigger_plugins::pool::{Overloaded, lent};
use outrigger_rpc::{Answer, Call, CallHere, Dispatch, Failure, NO_WALLET, Origin, PLUGIN_USER, Params};
use outrigger_service::rpc::{CallerInfo, MAX_RESULT, RpcReply};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result, Scope, ServiceError};
use outrigger_services::{Onward, PluginCalls};
use outrigger_values::{RpcError, RpcErrorCode};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::Router;
use crate::audit::AuditLog;

/// The time limit of a call that a plugin makes outside of any client's call.
const UNSCOPED_PATIENCE: Duration = Duration::from_secs(120);

/// How often a waiting thread checks whether its answer is still wanted.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A call that is being answered.
pub type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

thread_local! {
    /// How many nested plugin calls this thread is starting. While it is above 0, inline methods may run on this thread.
    static BEGINS: Cell<usize> = const { Cell::new(0) };
    /// Whether the call that this thread is starting may not wait, since the thread serves connections.
    static MAY_NOT_WAIT: Cell<bool> = const { Cell::new(false) };
    /// Whether such a call was refused because it would wait.
    static WOULD_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is starting a plugin's call.
pub fn begins_here() -> bool {
    BEGINS.get() > 0
}

/// Whether the router must refuse a call on this thread instead of handing it to another thread or to the node.
pub fn may_not_wait() -> bool {
    if MAY_NOT_WAIT.get() {
        WOULD_WAIT.set(true);
    }
    MAY_NOT_WAIT.get()
}

/// Whether the router has refused the call that this thread is starting because it would wait.
pub fn has_refused_to_wait() -> bool {
    WOULD_WAIT.get()
}

/// Marks this thread as starting a call. Dropping it restores the previous state.
struct Begun {
    may_not_wait: bool,
    would_wait: bool,
}

impl Begun {
    fn new(may_not_wait: bool) -> Self {
        BEGINS.set(BEGINS.get() + 1);
        Self { may_not_wait: MAY_NOT_WAIT.replace(may_not_wait), would_wait: WOULD_WAIT.replace(false) }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        BEGINS.set(BEGINS.get().saturating_sub(1));
        MAY_NOT_WAIT.set(self.may_not_wait);
        WOULD_WAIT.set(self.would_wait);
    }
}

/// The functions by which plugins' calls enter the host.
pub struct Front {
    /// The service with all layers, as for clients: it logs, counts and limits calls.
    pub service: Box<dyn Fn(Call) -> Answering + Send + Sync>,
    /// The router alone, which neither logs nor counts calls.
    pub router: Arc<Router>,
    /// Records the verdicts of policies.
    pub audit: Option<Arc<AuditLog>>,
}

/// Connects plugins to the host for their calls.
pub struct Switchboard {
    runtime: Handle,
    /// The calls in progress, during which plugins make calls.
    pub(super) calls: Arc<Calls>,
    /// `None` while the host starts or stops.
    front: Mutex<Option<Arc<Front>>>,
}

fn refused<T>(kind: ErrorKind, detail: &str) -> Result<T> {
    Err(ServiceError::new(kind, detail))
}

impl Switchboard {
    pub fn new(runtime: Handle, calls: Arc<Calls>) -> Self {
        Self { runtime, calls, front: Mutex::new(None) }
    }

    /// Sets the entry points, once the host has started.
    pub fn connect(&self, front: Front) {
        *self.front.lock() = Some(Arc::new(front));
    }

    /// Ends the calls for which plugins wait outside of clients' calls, and refuses new ones.
    pub fn disconnect(&self) {
        *self.front.lock() = None;
    }

    pub(super) fn front(&self) -> Option<Arc<Front>> {
        self.front.lock().clone()
    }

    /// The `rpc/1` user of a plugin's instance that may use these wallets; `None` for all wallets.
    pub fn of_plugin(
        self: &Arc<Self>,
        plugin: &str,
        wallets: Option<Vec<String>>,
        is_ending: Arc<dyn Fn() -> bool + Send + Sync>,
    ) -> PluginUser {
        PluginUser { switchboard: self.clone(), id: plugin.into(), wallets, is_ending }
    }

    /// [`Self::wait_until`], for a caller that does not end.
    pub(super) fn wait(&self, scope: Scope, begin: impl FnOnce(&Front) -> Answering) -> Result<RpcReply> {
        self.wait_until(|| false, scope, begin)
    }

    /// Makes a call and waits for its answer, as long as the answer of the call `scope` is wanted. Outside of calls the caller wants it
    /// until it ends.
    ///
    /// # Errors
    /// The host starts or stops, too many calls are nested or wait, or this thread serves connections and may not wait.
    fn wait_until(
        &self,
        is_ending: impl Fn() -> bool,
        scope: Scope,
        begin: impl FnOnce(&Front) -> Answering,
    ) -> Result<RpcReply> {
        let Some(front) = self.front() else {
            return refused(
                ErrorKind::Unsupported,
                "Plugins call methods while the host is up, not while it starts or stops",
            );
        };
        if BEGINS.get() >= MAX_LINKS {
            return refused(ErrorKind::Refused, "Too many calls of plugins are made within one another");
        }
        let serves_connections = CallHere::is_possible();
        let answering = begin(&front);
        let mut work = Box::pin(async move { reply(answering.await).await });
        let (begun, would_wait) = self.begin(work.as_mut(), serves_connections);
        if serves_connections && (would_wait || begun.is_none()) {
            return refused(
                ErrorKind::Unsupported,
                "An inline method of a plugin cannot wait for this call on a thread that serves connections",
            );
        }
        if let Some(reply) = begun {
            return reply;
        }
        let began = Instant::now();
        let is_wanted = || match scope {
            Scope::NONE => {
                began.elapsed() < UNSCOPED_PATIENCE
                    && !is_ending()
                    && self.front.lock().is_some()
                    && !outrigger_isolate::asker_is_gone()
            }
            Scope(token) => self.calls.phase(token).is_some(),
        };
        match lent(|| self.finish(work.as_mut(), is_wanted)) {
            Ok(reply) => reply,
            Err(Overloaded) => refused(ErrorKind::Refused, "Too many calls of plugins wait for others"),
        }
    }

    /// Polls a call once on this thread; `None` if it is not answered yet. Also returns whether the router refused it because it would
    /// wait.
    fn begin<T>(&self, work: Pin<&mut impl Future<Output = T>>, may_not_wait: bool) -> (Option<T>, bool) {
        // The call's timers need the runtime.
        let _entered = self.runtime.enter();
        let _begun = Begun::new(may_not_wait);
        match work.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => (Some(done), WOULD_WAIT.get()),
            Poll::Pending => (None, WOULD_WAIT.get()),
        }
    }

    /// Polls a call on this thread until it is answered or no longer wanted. Dropping its future cancels it.
    fn finish<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = Result<T>>>,
        is_wanted: impl Fn() -> bool,
    ) -> Result<T> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        // The call's timers need the runtime.
        let _entered = self.runtime.enter();
        let mut next_check = Instant::now() + CHECK_INTERVAL;
        loop {
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return done;
            }
            let now = Instant::now();
            if now >= next_check {
                if !is_wanted() {
                    return refused(ErrorKind::Stale, "Nobody waits for the answer any more");
                }
                next_check = now + CHECK_INTERVAL;
            }
            std::thread::park_timeout(next_check - now);
        }
    }
}

/// Wakes the thread that polls a call.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Converts the answer to a plugin's call into the reply that the plugin receives.
async fn reply(outcome: Answer) -> Result<RpcReply> {
    match outcome {
        Ok(text) => match text.whole(MAX_RESULT).await {
            Ok(Some(json)) => Ok(RpcReply::Result { json: Blob(json.into()) }),
            Ok(None) => refused(ErrorKind::Refused, "The method was executed, but its result is too long"),
            Err(_) => refused(ErrorKind::NodeUnavailable, "The node was lost while it answered"),
        },
        Err(Failure::Rpc(RpcError { code: RpcErrorCode::IN_WARMUP, message })) => {
            refused(ErrorKind::NodeUnavailable, &message)
        }
        Err(Failure::Rpc(error)) => Ok(RpcReply::Error { code: error.code.0, message: error.message }),
        Err(Failure::Overloaded) => {
            Ok(RpcReply::Error { code: RpcErrorCode::INTERNAL.0, message: "Work queue depth exceeded".to_owned() })
        }
        Err(Failure::Limited(message)) => refused(ErrorKind::Refused, &message),
        Err(Failure::Forbidden | Failure::UnknownMethod) => {
            refused(ErrorKind::NotGranted, "The node's -rpcwhitelist or the user's list refuses the method")
        }
    }
}

/// Creates a call for which the call of `scope` waits. All plugins of `through` count as its makers.
pub(super) fn made_by(
    scope: Scope,
    through: Vec<Arc<str>>,
    method: String,
    params: Params,
    origin: Arc<Origin>,
) -> Call {
    let (makers, nested) = (through.len(), Some(scope.0));
    Call { method, params, origin, may_stream: false, through, makers, nested, progress: None, held: None }
}

/// Whether the plugin of a link has asked the next link, which must receive the call once. The plugin sets true, and the router
/// sets false when the call has ended at the link. Only the first value counts.
pub type HasAsked = Arc<OnceLock<bool>>;

/// A call at a link, for the plugin of that link to pass on.
pub struct OnwardCall {
    pub switchboard: Arc<Switchboard>,
    /// The call, whose `through` ends with the link's plugin.
    pub call: Call,
    pub asked: HasAsked,
}

impl Onward for OnwardCall {
    fn caller(&self) -> CallerInfo {
        let origin = &self.call.origin;
        let before = self.call.through.split_last().map_or(&[][..], |(_, before)| before);
        CallerInfo {
            user: origin.user.to_string(),
            wallet: origin.shown_wallet(),
            through: before.iter().map(ToString::to_string).collect(),
        }
    }

    fn makers(&self) -> Vec<Arc<str>> {
        let makers = self.call.through.iter().take(self.call.makers);
        makers.chain(self.call.through.last()).cloned().collect()
    }

    fn next(&self, scope: Scope, params: Option<Blob>) -> Result<RpcReply> {
        let params = params.map_or_else(|| self.call.params.clone(), |params| Params::from_bytes(params.0.into()));
        let call = Call { params, may_stream: false, nested: Some(scope.0), ..self.call.clone() };
        // At its deadline, a call may have gone on without this plugin.
        if self.switchboard.calls.phase(scope.0).is_none() || !*self.asked.get_or_init(|| true) {
            return refused(ErrorKind::Stale, "Nobody waits for the answer any more");
        }
        self.switchboard.wait(scope, |front| {
            let router = front.router.clone();
            Box::pin(async move { router.dispatch(call).await })
        })
    }

    fn call(&self, scope: Scope, method: String, params: Blob) -> Result<RpcReply> {
        if !self.call.origin.may_call(&method) {
            return refused(ErrorKind::NotGranted, &format!("The user may not call the method '{method}'"));
        }
        let call = made_by(scope, self.makers(), method, Params::from_bytes(params.0.into()), self.call.origin.clone());
        self.switchboard.wait(scope, |front| (front.service)(call))
    }
}

/// The user `plugin:ID`.
pub struct PluginUser {
    switchboard: Arc<Switchboard>,
    id: Arc<str>,
    wallets: Option<Vec<String>>,
    /// Whether the plugin's instance has been told to end.
    is_ending: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl PluginUser {
    /// The `wallet` and `only_wallet` of a call's origin. `named` is the wallet of the client's call.
    fn wallets(&self, named: Option<Arc<str>>) -> (Option<Arc<str>>, Option<Arc<str>>) {
        let Some(wallets) = &self.wallets else { return (named, None) };
        let named = named.filter(|named| wallets.iter().any(|wallet| **wallet == **named));
        let only = match (&named, wallets.as_slice()) {
            (Some(named), _) => named.clone(),
            (None, [only]) => only.as_str().into(),
            // The call names none of several wallets, or the plugin may use none.
            (None, _) => NO_WALLET.into(),
        };
        (named, Some(only))
    }
}

impl PluginCalls for PluginUser {
    fn call(
        &self,
        scope: Scope,
        method: String,
        params: Blob,
        wallet: Option<Arc<str>>,
        onward: Option<Arc<dyn Onward>>,
    ) -> Result<RpcReply> {
        // A thread of the plugin's own makes other calls, for which no client's call waits.
        let nested = onward.as_ref().map(|_| scope.0);
        let through = onward.map_or_else(|| vec![self.id.clone()], |call| call.makers());
        // An explicit list, so that the granted method may also touch files of the node.
        let allowed = Some(Arc::new(BTreeSet::from([method.clone()])));
        let (wallet, only_wallet) = self.wallets(wallet);
        let origin = Origin { wallet, only_wallet, allowed, ..Origin::of_user(&format!("{PLUGIN_USER}{}", self.id)) };
        let call = made_by(scope, through, method, Params::from_bytes(params.0.into()), origin.into());
        self.switchboard.wait_until(|| (self.is_ending)(), scope, |front| (front.service)(Call { nested, ..call }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_within_another_does_not_make_that_one_wait() {
        let outer = Begun::new(true);
        let inner = Begun::new(true);
        assert!(may_not_wait() && WOULD_WAIT.get());
        drop(inner);
        assert!(!WOULD_WAIT.get() && MAY_NOT_WAIT.get() && begins_here());
        drop(outer);
        assert!(!may_not_wait() && !begins_here());
    }
}
