//! Routes a call by its method's name to a plugin, to one of the host's own methods, or to the node.
//!
//! The routing table is read for every call, so plugins can be started and stopped without a pause. The router puts named
//! arguments into the manifest's order, checks their number, and checks their types if the manifest requires it. Plugins
//! only see positional arguments.

mod absent;
pub mod arguments;
pub mod builtins;
mod chain;
mod inline;
mod long;
mod observed;
pub mod onward;
pub mod openrpc;
mod provider;
mod rest;
mod startup_gate;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use outrigger_sdk::manifest::MethodSpec;
use outrigger_values::{RpcError, RpcErrorCode};
use tokio::sync::Semaphore;

use absent::Absent;
use arguments::Arguments;
use builtins::Builtins;
use inline::InlineCall;
use observed::Observed;
use onward::{HasAsked, OnwardCall, Switchboard, may_not_wait};
use outrigger_base::contain::contain;
use outrigger_passthrough::Passthrough;
use outrigger_plugins::calls::{self, Calls, Overdue, Phase};
use outrigger_plugins::grants::GUARDED;
use outrigger_plugins::instance::{Instance, Lease};
use outrigger_plugins::lane::Lane;
use outrigger_plugins::memory;
use outrigger_plugins::pool::{Claimant, Overloaded, Pool};
use outrigger_plugins::registry::{Link, Registry};
use outrigger_rpc::{Answer, Call, Dispatch, Failure};
use outrigger_service::policy::POLICY;
use outrigger_services::{Caller, Onward, Scopes};
use outrigger_upstream::traits::NODE;
use outrigger_wallet_engine::WalletManager;
use provider::is_of;
pub use rest::passed_rest;
pub use startup_gate::StartupGate;

use crate::methods::method;

/// How often the watch thread looks for overdue calls.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

pub struct Router {
    pub registry: Arc<Registry>,
    pub builtins: Builtins,
    pub calls: Arc<Calls>,
    pub scopes: Arc<Scopes>,
    pub pool: Arc<Pool>,
    /// Places for concurrent long polls.
    pub long: Semaphore,
    pub absent: Absent,
    /// Answers the methods that neither a plugin nor the host answers; `None` if calls are not forwarded to a node.
    pub passthrough: Option<Arc<Passthrough>>,
    pub wallets: Arc<WalletManager>,
    pub switchboard: Arc<Switchboard>,
}

impl Router {
    /// The specification of a method; `None` if it is unknown.
    pub fn spec(&self, method: &str) -> Option<Arc<MethodSpec>> {
        let passed = || self.passthrough.as_ref().and_then(|node| node.spec(method));
        self.registry.spec(method).or_else(|| self.builtins.spec(method)).or_else(passed)
    }

    /// Whether a call reads only a wallet that is already at the tip. It then does not wait for the node, and may run inline.
    fn finds_wallet_at_tip(&self, method: &MethodSpec, call: &Call) -> bool {
        method.inline && method.wallet_only && self.wallets.stands_at_tip(call.origin.selected_wallet())
    }

    /// Whether an inline call may wait for plugins that sign for its wallet or approve its payments.
    fn asks_plugins(&self, lease: &Lease, method: &MethodSpec, call: &Call) -> bool {
        let mut guarded = lease.grants.iter().filter(|grant| GUARDED.contains(&&*grant.service));
        method.inline
            && guarded.any(|grant| {
                // If the call names no wallet, the plugin uses the only wallet of its grant.
                let only = grant.wallets.as_deref().and_then(|wallets| <&[String; 1]>::try_from(wallets).ok());
                self.wallets.asks_plugins(call.origin.selected_wallet().or(only.map(|[only]| &**only)))
            })
    }

    /// Lets a plugin pass on a call from its link, or make calls of its own.
    fn onward(&self, link: &Link, call: &Call, asked: &HasAsked) -> Arc<dyn Onward> {
        let mut call = call.clone();
        call.through.push(link.id.clone());
        Arc::new(OnwardCall { switchboard: self.switchboard.clone(), call, asked: asked.clone() })
    }

    /// Runs a call on this thread, or queues it for the pool. Returns whether it ran on this thread.
    async fn run(
        &self,
        token: u64,
        lease: &Lease,
        link: &Link,
        (call, onward): (&Call, Option<Arc<dyn Onward>>),
        params: Arguments,
        may_run_inline: bool,
    ) -> Result<bool, Failure> {
        let method = &link.method;
        let mut lane = Lane::of(method, may_run_inline, &link.latency, params.as_bytes().len());
        // With a node, only calls of wallets at the tip run inline (`finds_wallet_at_tip`), so this one does not wait.
        let needs_tip = method.needs_tip && self.passthrough.is_none();
        let inline_onward = onward.clone();
        let inline_caller = || caller(link, call, inline_onward, needs_tip);
        let inline = (lane == Lane::Inline).then(|| InlineCall::begin(&link.latency));
        if let Some(_inline) = inline.flatten() {
            contain("a call", || {
                let _scope = self.scopes.open(token, lease.id, inline_caller());
                lease.call(token, method, params.as_bytes(), lane);
            });
            return Ok(true);
        }
        if may_not_wait() {
            return Err(Failure::Overloaded);
        }
        lane = Lane::pooled(method);
        let (scopes, origin) = (self.scopes.clone(), &call.origin);
        let caller = caller(link, call, onward, method.needs_tip);
        let (lease, method) = (lease.clone(), method.clone());
        let nested = call.nested.is_some();
        // A nested call does not wait for threads of its wallet: they may wait for the call that made it.
        let wallet = origin.wallet.clone().or_else(|| origin.only_wallet.clone()).filter(|_| !nested);
        let claimant = Claimant { owner: lease.owner, call: token, wallet, nested, health: lease.health.clone() };
        let place = lease.place_for(&method, nested).await.map_err(|full| Failure::Rpc(RpcError::internal(full)))?;
        let held = (call.held.clone(), place);
        let submitted = self.pool.submit(claimant, move || {
            let _held = held;
            let _scope = scopes.open(token, lease.id, caller);
            lease.call(token, &method, params.as_bytes(), lane);
        });
        submitted.map(|()| false).map_err(|Overloaded| Failure::Overloaded)
    }

    /// The error of a call whose deadline has passed. `phase` is its last phase; `None` if it was just answered.
    fn expired(
        &self,
        token: u64,
        lease: &Lease,
        method: &MethodSpec,
        phase: Option<Phase>,
        limit: Duration,
    ) -> Failure {
        if phase == Some(Phase::Queued) {
            return Failure::Overloaded;
        }
        // A call that was just answered counts as answered.
        if phase.is_some() {
            lease.timed_out(&method.name);
        }
        if phase == Some(Phase::Running) {
            self.note_stuck(token, lease, &method.name);
        }
        let message = format!("{} was not answered within {} s", method.name, limit.as_secs());
        Failure::Rpc(RpcError::internal(message))
    }

    /// Records that the code of a call does not return, and replaces its pool thread.
    fn note_stuck(&self, token: u64, instance: &Instance, method: &str) {
        self.pool.replace_lost(token, true);
        instance.does_not_return(method, self.pool.share());
    }

    /// Handles overdue calls that no deadline of a waiting client covers: abandoned, long-running and inline calls.
    fn handle_overdue_calls(&self) {
        for Overdue { token, instance, run } in self.calls.find_overdue(Instant::now()) {
            let Some(instance) = self.registry.instance_by_id(instance) else { continue };
            let method = &*instance.method_of(token);
            if run.lane == Lane::Long {
                let plugin = instance.manifest().id.as_str();
                if self.pool.replace_lost(token, false) {
                    tracing::warn!(
                        plugin,
                        method,
                        "a long-running call has not returned; the pool replaces its thread"
                    );
                }
                continue;
            }
            let late = || calls::Answer::Failed(RpcError::internal(format!("{method} did not return in time")));
            match self.calls.expire(instance.id, token, late()) {
                Ok(()) => instance.timed_out(method),
                gone => instance.health.failed(gone),
            }
            self.note_stuck(token, &instance, method);
        }
    }

    /// Starts the thread that watches for overdue calls. It ends with the router.
    pub fn watch(self: &Arc<Self>) -> std::io::Result<()> {
        let router: Weak<Self> = Arc::downgrade(self);
        let work = move || {
            while let Some(router) = router.upgrade() {
                contain("watching the calls", || router.handle_overdue_calls());
                drop(router);
                memory::give_back_after_large_answers();
                std::thread::sleep(WATCH_INTERVAL);
            }
        };
        std::thread::Builder::new().name("call-watch".to_owned()).spawn(work).map(drop)
    }
}

impl Dispatch for Router {
    async fn dispatch(&self, call: Call) -> Answer {
        // Only the functions that plugins provide to the host have such names. A plugin that both wraps calls and provides functions
        // must not take a client's call for the host's.
        if call.method.contains('/') {
            return Err(Failure::Rpc(RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, "Method not found")));
        }
        let origin = &call.origin;
        // A user restricted to a wallet or to folders changes the node and the host only by methods of its list.
        if origin.is_confined()
            && origin.allowed.is_none()
            && method(&call.method).is_some_and(|method| method.is(NODE))
        {
            return Err(Failure::Forbidden);
        }
        // Observers hear of a call that a plugin passes on once, from the client's.
        let is_observed = self.registry.is_observed() && call.through.len() == call.makers;
        let observed = is_observed.then(|| Observed::of(&call));
        let answer = match self.links(&call) {
            Some(links) => self.walk(links, call).await,
            None => self.without_plugins(&call).await,
        };
        if let Some(observed) = observed {
            observed.tell(&self.registry, &answer);
        }
        answer
    }

    /// Whether only the node answers a method, so that its calls in a batch go to the node as one batch.
    fn takes_together(&self, method: &str) -> bool {
        let is_ours = || {
            self.registry.spec(method).is_some() || self.builtins.spec(method).is_some() || self.registry.wraps(method)
        };
        self.passthrough.as_ref().is_some_and(|node| node.takes_together(method) && !is_ours())
    }

    fn refuses_other_versions(&self) -> bool {
        self.registry.rules().refuses_other_json_rpc
    }

    async fn dispatch_together(&self, calls: Vec<Call>) -> Vec<Answer> {
        match &self.passthrough {
            Some(node) => {
                let observed = self.registry.is_observed().then(|| calls.iter().map(Observed::of).collect::<Vec<_>>());
                let answers = node.call_together(&calls).await;
                for (observed, answer) in observed.into_iter().flatten().zip(&answers) {
                    observed.tell(&self.registry, answer);
                }
                answers
            }
            None => vec![Err(Failure::Overloaded); calls.len()],
        }
    }
}

/// The context of a call's scope at a link.
fn caller(link: &Link, call: &Call, onward: Option<Arc<dyn Onward>>, needs_tip: bool) -> Caller {
    let origin = &call.origin;
    Caller {
        wallet: origin.wallet.clone(),
        only_wallet: origin.only_wallet.clone(),
        folders: origin.folders.clone(),
        any_block: !needs_tip,
        inline: link.method.inline,
        onward,
        makers: call.through.iter().take(call.makers).cloned().collect(),
        user: Some(origin.user.clone()),
        method: Some(link.name.clone()),
        judges: is_of(POLICY, &link.name),
    }
}
