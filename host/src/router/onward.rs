//! Calls that plugins make: of whoever comes next in the chain of a call, and of methods by name (`rpc/1`).
//!
//! A plugin's code waits for the answer on its own thread. The call itself is the same future that a client's would be: it may begin
//! on that thread, if it runs inline, and is otherwise driven by the host's runtime.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use outrigger_plugins::calls::Calls;
use outrigger_plugins::pool::{Overloaded, lent};
use outrigger_rpc::{Answer, Call, Failure, Origin, Params};
use outrigger_service::rpc::{CallerInfo, MAX_RESULT, RpcReply};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result, Scope, ServiceError};
use outrigger_services::{Onward, PluginCalls};
use outrigger_values::{RpcError, RpcErrorCode};
use tokio::runtime::Handle;

/// How long a call outside of calls may take.
const UNSCOPED_PATIENCE: Duration = Duration::from_secs(120);

/// How often a thread that waits looks whether anybody waits for its own answer.
const LOOK: Duration = Duration::from_millis(100);

type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

thread_local! {
    /// Whether this thread begins a call of a plugin, so that an inline method may run on it.
    static BEGINS: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread begins a call of a plugin.
pub fn begins_here() -> bool {
    BEGINS.get()
}

/// The way of plugins' calls into the host.
pub struct Switchboard {
    runtime: Handle,
    /// The calls in flight, in which plugins make calls.
    calls: Arc<Calls>,
    /// The whole service, as clients reach it; not there while the host starts.
    service: OnceLock<Box<dyn Fn(Call) -> Answering + Send + Sync>>,
    /// What answers a call without being logged and counted once more.
    dispatch: OnceLock<Box<dyn Fn(Call) -> Answering + Send + Sync>>,
}

fn refused<T>(kind: ErrorKind, detail: &str) -> Result<T> {
    Err(ServiceError::new(kind, detail))
}

impl Switchboard {
    pub fn new(runtime: Handle, calls: Arc<Calls>) -> Self {
        Self { runtime, calls, service: OnceLock::new(), dispatch: OnceLock::new() }
    }

    /// Connects the host, once it is up.
    pub fn connect(
        &self,
        service: impl Fn(Call) -> Answering + Send + Sync + 'static,
        dispatch: impl Fn(Call) -> Answering + Send + Sync + 'static,
    ) {
        // Only one caller connects.
        let _ = self.service.set(Box::new(service));
        let _ = self.dispatch.set(Box::new(dispatch));
    }

    /// The calls of a plugin.
    pub fn of_plugin(self: &Arc<Self>, plugin: &str) -> PluginUser {
        PluginUser { switchboard: self.clone(), id: plugin.into() }
    }

    /// Waits for the answer of a call while somebody waits for that of `scope`.
    fn wait(
        &self,
        scope: Scope,
        call: Call,
        by: &OnceLock<Box<dyn Fn(Call) -> Answering + Send + Sync>>,
    ) -> Result<RpcReply> {
        let Some(answer) = by.get() else {
            return refused(ErrorKind::Unsupported, "Plugins call methods once the host is up, not while they start");
        };
        let answering = answer(call);
        let mut work = Box::pin(async move { reply(answering.await).await });
        if let Some(reply) = self.begin(work.as_mut()) {
            return reply;
        }
        if Handle::try_current().is_ok() {
            return refused(
                ErrorKind::Unsupported,
                "An inline method of a plugin cannot wait for this call on a thread that serves connections",
            );
        }
        let began = Instant::now();
        let is_wanted = || match scope {
            Scope::NONE => began.elapsed() < UNSCOPED_PATIENCE,
            Scope(token) => self.calls.phase(token).is_some(),
        };
        match lent(|| self.finish(work, is_wanted)) {
            Ok(reply) => reply,
            Err(Overloaded) => refused(ErrorKind::Refused, "Too many calls of plugins wait for others"),
        }
    }

    /// Runs a call on this thread as far as it goes without waiting.
    fn begin<T>(&self, work: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        // Its timers are the runtime's.
        let _entered = self.runtime.enter();
        let before = BEGINS.replace(true);
        let polled = work.poll(&mut Context::from_waker(Waker::noop()));
        BEGINS.set(before);
        match polled {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    /// Waits for a call on the runtime. Dropping its future cancels it.
    fn finish(
        &self,
        work: impl Future<Output = Result<RpcReply>> + Send + 'static,
        is_wanted: impl Fn() -> bool,
    ) -> Result<RpcReply> {
        let (done, outcome) = sync_channel(1);
        // The receiver waits below, or has given up.
        let task = self.runtime.spawn(async move { drop(done.send(work.await)) });
        loop {
            match outcome.recv_timeout(LOOK) {
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Timeout) if is_wanted() => {}
                Err(_) => {
                    task.abort();
                    return refused(ErrorKind::Stale, "Nobody waits for the answer any more");
                }
            }
        }
    }
}

/// A plugin's reply for the outcome of a call.
async fn reply(outcome: Answer) -> Result<RpcReply> {
    match outcome {
        Ok(text) => match text.whole(MAX_RESULT).await {
            Ok(Some(json)) => Ok(RpcReply::Result { json: Blob(json.into()) }),
            Ok(None) => refused(ErrorKind::Refused, "The method did it, but its result is too long"),
            Err(_) => refused(ErrorKind::NodeUnavailable, "The node was lost while it answered"),
        },
        Err(Failure::Rpc(RpcError { code: RpcErrorCode::IN_WARMUP, message })) => {
            refused(ErrorKind::NodeUnavailable, &message)
        }
        Err(Failure::Rpc(error)) => Ok(RpcReply::Error { code: error.code.0, message: error.message }),
        Err(Failure::Overloaded) => refused(ErrorKind::NodeUnavailable, "Work queue depth exceeded"),
        Err(Failure::Forbidden | Failure::UnknownMethod) => {
            refused(ErrorKind::NotGranted, "The node's -rpcwhitelist or the user's list refuses the method")
        }
    }
}

/// A call at a link, from which it goes on.
pub struct OnwardCall {
    pub switchboard: Arc<Switchboard>,
    /// The call, which has gone through the link.
    pub call: Call,
}

impl Onward for OnwardCall {
    fn caller(&self) -> CallerInfo {
        let origin = &self.call.origin;
        let wallet = origin.wallet.as_deref().or(origin.only_wallet.as_deref()).map(str::to_owned);
        let before = self.call.through.split_last().map_or(&[][..], |(_, before)| before);
        CallerInfo { user: origin.user.to_string(), wallet, through: before.iter().map(ToString::to_string).collect() }
    }

    fn next(&self, scope: Scope, params: Option<Blob>) -> Result<RpcReply> {
        let params = params.map_or_else(|| self.call.params.clone(), |params| Params::from_bytes(params.0.into()));
        let call = Call { params, may_stream: false, ..self.call.clone() };
        self.switchboard.wait(scope, call, &self.switchboard.dispatch)
    }

    fn call(&self, scope: Scope, method: String, params: Blob) -> Result<RpcReply> {
        if !self.call.may_call(&method) {
            return refused(ErrorKind::NotGranted, &format!("The user may not call the method '{method}'"));
        }
        let call = Call { method, params: Params::from_bytes(params.0.into()), may_stream: false, ..self.call.clone() };
        self.switchboard.wait(scope, call, &self.switchboard.service)
    }
}

/// The user `plugin:ID`.
pub struct PluginUser {
    switchboard: Arc<Switchboard>,
    id: Arc<str>,
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
        let mut through: Vec<Arc<str>> =
            onward.map_or_else(Vec::new, |call| call.caller().through.into_iter().map(Arc::from).collect());
        through.push(self.id.clone());
        // A method granted by name may also touch files of the node.
        let allowed = Some(Arc::new(BTreeSet::from([method.clone()])));
        let origin = Origin { wallet, allowed, ..Origin::of_user(&format!("plugin:{}", self.id)) };
        let params = Params::from_bytes(params.0.into());
        let call = Call { method, params, origin: origin.into(), may_stream: false, through };
        self.switchboard.wait(scope, call, &self.switchboard.service)
    }
}
