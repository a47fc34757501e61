//! Passes a call along the links of its chain: wrappers first, then the plugins of its route, then the host or the node.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use outrigger_base::offload::read_offloaded;
use outrigger_plugins::MAX_LINKS;
use outrigger_plugins::calls::{self, CallGuard, Phase};
use outrigger_plugins::instance::{Instance, Lease};
use outrigger_plugins::memory;
use outrigger_plugins::registry::{Chain, Link};
use outrigger_rpc::{Answer, COOKIE_USER, Call, Failure, Params, ResultText, half_closed};
use outrigger_sdk::manifest::MethodSpec;
use outrigger_upstream::{Method, method};
use outrigger_values::{RpcError, RpcErrorCode};
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::RecvError;

use super::arguments::{self, Arguments};
use super::onward::{HasAsked, has_refused_to_wait, may_not_wait};
use super::{Router, long};

/// The methods by which an operator removes a wrapper. No wrapper sees them if the cookie's user calls them.
const NEVER_WRAPPED: [&str; 6] = ["listplugins", "reload", "reloadplugin", "startplugin", "stop", "stopplugin"];

pub enum Links {
    Route(Arc<Chain>),
    /// The wrappers of a method that no plugin answers.
    Wrappers(Vec<Link>),
}

impl Deref for Links {
    type Target = [Link];

    fn deref(&self) -> &[Link] {
        match self {
            Self::Route(chain) => &chain.links,
            Self::Wrappers(links) => links,
        }
    }
}

/// The lease of a link's instance for one call.
struct Leased {
    lease: Lease,
    /// The current link, if it has changed meanwhile.
    fresh: Option<Link>,
    /// How long the call waited for the instance.
    waited: Duration,
}

/// How a call ended at a link.
pub(super) enum AtLink {
    Answered(Result<Bytes, Failure>),
    /// The plugin passed the call to the next link, with these parameters, or unchanged.
    Passed(Option<Bytes>),
    /// The plugin gave no valid answer.
    Failed(Failure),
}

impl From<calls::Answer> for AtLink {
    fn from(answer: calls::Answer) -> Self {
        match answer {
            calls::Answer::Result(json) => Self::Answered(Ok(json)),
            calls::Answer::Refused(error) => Self::Answered(Err(Failure::Rpc(error))),
            calls::Answer::Passed(params) => Self::Passed(params),
            calls::Answer::Failed(error) => Self::Failed(Failure::Rpc(error)),
        }
    }
}

fn away(link: &Link) -> AtLink {
    let message = format!("The plugin '{}', which this call goes through, does not run", link.id);
    AtLink::Failed(Failure::Rpc(RpcError::internal(message)))
}

/// Logs that a call goes on without its wrapper.
fn tell_passed(link: &Link, method: &str, failure: &Failure) {
    let plugin = &*link.id;
    let tell = |count| tracing::warn!(plugin, count, "more calls have gone on without their wrapper");
    if link.may_fail.as_ref().is_some_and(|rate| rate.allows(tell)) {
        let reason = if let Failure::Rpc(error) = failure { &*error.message } else { "the work queue is full" };
        tracing::warn!(plugin, method, reason, "a call goes on without its wrapper, which failed");
    }
}

impl Router {
    /// The plugins that a call goes through; `None` if no plugin concerns it.
    pub(super) fn links(&self, call: &Call) -> Option<Links> {
        if let Some(chain) = self.registry.chain(&call.method) {
            return Some(Links::Route(chain));
        }
        let is_exempt = || NEVER_WRAPPED.contains(&call.method.as_str()) && &*call.origin.user == COOKIE_USER;
        if !self.registry.wraps(&call.method) || is_exempt() {
            return None;
        }
        let signature = self.builtins.spec(&call.method);
        // A method that only the node knows may take any length of time.
        let may_be_long = signature.is_none() && method(&call.method).is_none_or(Method::may_be_long);
        Some(Links::Wrappers(self.registry.wrappers(&call.method, signature.as_ref(), may_be_long)))
    }

    /// Passes a call along the links until one of them answers, or else to the host or the node.
    pub(super) async fn walk(&self, links: Links, mut call: Call) -> Answer {
        for link in links.iter() {
            if call.through.contains(&link.id) {
                continue;
            }
            if call.through.len() >= MAX_LINKS {
                let message = format!("The call goes through more than {MAX_LINKS} plugins");
                return Err(Failure::Rpc(RpcError::internal(message)));
            }
            let asked = link.asks.then(HasAsked::default);
            let fresh = || {
                let links = self.links(&call).ok_or(AtLink::Passed(None))?;
                links.iter().find(|fresh| fresh.id == link.id).cloned().ok_or_else(|| away(link))
            };
            let ended = self.at_link(link, fresh, &call, asked.as_ref()).await;
            let has_asked = asked.is_some_and(|asked| *asked.get_or_init(|| false));
            match ended {
                AtLink::Answered(answer) => return answer.map(ResultText::from),
                // A call that its thread may not wait for is refused. It does not go on without the wrapper.
                AtLink::Failed(failure) if link.may_fail.is_none() || has_refused_to_wait() => return Err(failure),
                // The next link has already received the call, and must not receive it twice.
                AtLink::Failed(failure) if has_asked => return Err(failure),
                AtLink::Passed(_) if has_asked => {
                    let message = format!("The plugin '{}' passed a call on that the next one had answered", link.id);
                    return Err(Failure::Rpc(RpcError::internal(message)));
                }
                AtLink::Passed(Some(params)) => call.params = Params::from_bytes(params),
                AtLink::Passed(None) => {}
                AtLink::Failed(failure) => tell_passed(link, &call.method, &failure),
            }
            call.through.push(link.id.clone());
        }
        self.without_plugins(&call).await
    }

    /// Answers a call by the host's own method, or by the node.
    pub(super) async fn without_plugins(&self, call: &Call) -> Answer {
        // Boxed to keep the future of each call small, including a plugin's long poll.
        if let Some(answer) = Box::pin(self.builtins.call(call)).await {
            return answer.map(ResultText::from).map_err(Failure::Rpc);
        }
        if let Some(node) = &self.passthrough {
            if may_not_wait() {
                return Err(Failure::Overloaded);
            }
            return Box::pin(node.call(call)).await;
        }
        self.absent.called(&call.method, &self.registry);
        Err(Failure::Rpc(RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, "Method not found")))
    }

    /// Leases the instance of a link for one call. If a plugin is being reloaded, this waits for the new instance, at most until the
    /// call's deadline.
    ///
    /// The registry closes an instance only after it has replaced its routes, or before it starts the successor. A closed instance
    /// therefore means that the link is outdated, so `read` reads it again. If the same instance is closed again, the host is stopping.
    async fn lease(&self, link: &Link, read: impl Fn() -> Result<Link, AtLink>, call: &Call) -> Result<Leased, AtLink> {
        let (mut fresh, mut closed, mut waited): (Option<Link>, _, _) = (None, None, Duration::ZERO);
        loop {
            let link = fresh.as_ref().unwrap_or(link);
            let instance = link.instance.as_ref().ok_or_else(|| away(link))?;
            if let Some(lease) = instance.lease().or_else(|| self.lease_of_waiting(instance, call)) {
                return Ok(Leased { lease, fresh, waited });
            }
            let began = Instant::now();
            if self.wait_for_successor(instance, &link.method, waited).await.map_err(AtLink::Failed)? {
                waited += began.elapsed();
            } else if closed.replace(instance.id) == Some(instance.id) {
                let stops = RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down");
                return Err(AtLink::Failed(Failure::Rpc(stops)));
            }
            fresh = Some(read()?);
        }
    }

    /// A lease of an instance that is about to have a successor, if one of its calls waits for this one: the successor waits for that
    /// call.
    fn lease_of_waiting(&self, instance: &Arc<Instance>, call: &Call) -> Option<Lease> {
        let waiting = call.nested.filter(|_| self.registry.awaits_successor(instance.id))?;
        // Leased before the check: the waiting call's lease then overlaps with this one, so the instance does not stop in between.
        let lease = instance.lease_while_draining()?;
        self.calls.is_within(waiting, instance.id).then_some(lease)
    }

    /// Waits for the successor of an instance. Returns false at once if none is about to start.
    async fn wait_for_successor(
        &self,
        instance: &Instance,
        method: &MethodSpec,
        waited: Duration,
    ) -> Result<bool, Failure> {
        if !self.registry.awaits_successor(instance.id) {
            return Ok(false);
        }
        if may_not_wait() {
            return Err(Failure::Overloaded);
        }
        // Boxed to keep the future of each call small.
        let successor = Box::pin(self.registry.successor(instance.id));
        let Some(limit) = instance.deadline.filter(|_| !method.long_running) else { return Ok(successor.await) };
        let late = |_| {
            let seconds = limit.as_secs();
            let message = format!("{} was not answered within {seconds} s: its plugin is being replaced", method.name);
            Failure::Rpc(RpcError::internal(message))
        };
        tokio::time::timeout(limit.saturating_sub(waited), successor).await.map_err(late)
    }

    /// The parameters as the link receives them: in the manifest's order if it has the method's signature.
    fn arguments(&self, link: &Link, params: &Params) -> Result<Arguments, RpcError> {
        let Some(method) = &link.signature else { return Ok(Arguments::Given(params.clone())) };
        let rules = self.registry.rules();
        read_offloaded(params.as_bytes().len(), || arguments::positional(method, &rules, params))
    }

    /// Calls a plugin's method and waits for its answer. `fresh` reads the link again after a change. Dropping the future cancels the
    /// call.
    pub(super) async fn at_link(
        &self,
        link: &Link,
        fresh: impl Fn() -> Result<Link, AtLink>,
        call: &Call,
        asked: Option<&HasAsked>,
    ) -> AtLink {
        let Leased { lease, fresh, waited } = match self.lease(link, fresh, call).await {
            Ok(leased) => leased,
            Err(ended) => return ended,
        };
        let link = fresh.as_ref().unwrap_or(link);
        let params = match self.arguments(link, &call.params) {
            Ok(params) => params,
            Err(error) => return AtLink::Answered(Err(Failure::Rpc(error))),
        };
        let method = &link.method;
        let stuck = lease.stuck();
        if stuck >= self.pool.share() {
            let message = format!("The plugin '{}' does not end its calls", lease.manifest().id);
            return AtLink::Failed(Failure::Rpc(RpcError::internal(message)));
        }
        let waits = (method.needs_tip && self.passthrough.is_some() && !self.finds_wallet_at_tip(method, call))
            || self.asks_plugins(&lease, method, call);
        let may_run_inline = lease.trusted && stuck == 0 && !waits && !lease.waits_for_runner();
        let (token, answer) = self.calls.open(lease.id, link.position);
        if !link.is_listed() || call.progress.is_some() {
            let name = (!link.is_listed()).then(|| link.name.clone());
            self.calls.describe(token, name, call.progress.clone());
        }
        if let Some(waiting) = call.nested {
            self.calls.nest(token, waiting);
        }
        let guard = CallGuard::new(&self.calls, token, |token, is_gone| {
            lease.health.gone.fetch_add(u64::from(is_gone), Ordering::Relaxed);
            lease.leave_cancel(token);
        });
        let onward = asked.map(|asked| self.onward(link, call, asked));
        let ran_inline = match self.run(token, &lease, link, (call, onward), params, may_run_inline).await {
            Ok(ran_inline) => ran_inline,
            Err(failure) => {
                guard.not_begun();
                return AtLink::Failed(failure);
            }
        };
        // An inline call that returned without an answer is a long poll, and counts towards the limit of long polls. A call
        // on the pool may already be running, so it is not refused here; the pool has its own limit.
        let long = ran_inline && method.long_running && answer.is_empty();
        let _long = match long.then(|| self.long.try_acquire()) {
            Some(Err(_)) => return AtLink::Failed(Failure::Overloaded),
            entered => entered,
        };
        let answer = match self.in_time(link, call, (token, &lease), asked, waited, answer).await {
            Ok(Some(answer)) => answer,
            Ok(None) => return AtLink::Answered(Err(Failure::Rpc(half_closed()))),
            Err(limit) => return AtLink::Failed(self.expired(token, &lease, method, guard.expired(), limit)),
        };
        guard.answered();
        if let Ok(calls::Answer::Result(json)) = &answer {
            memory::note_answer(json.len());
        }
        answer.unwrap_or_else(|_| calls::Answer::Failed(RpcError::internal("The call was lost"))).into()
    }

    /// Waits for the answer of a begun call. `None`: the client of a long poll has closed its side of the connection.
    ///
    /// # Errors
    /// The time limit, if it passed.
    async fn in_time(
        &self,
        link: &Link,
        call: &Call,
        (token, lease): (u64, &Lease),
        asked: Option<&HasAsked>,
        waited: Duration,
        answer: Receiver<calls::Answer>,
    ) -> Result<Option<Result<calls::Answer, RecvError>>, Duration> {
        if !link.method.long_running {
            let Some(limit) = lease.deadline else { return Ok(Some(answer.await)) };
            return tokio::time::timeout(limit.saturating_sub(waited), answer).await.map(Some).map_err(|_| limit);
        }
        if !answer.is_empty() {
            return Ok(Some(answer.await));
        }
        let is_kept = || self.calls.phase(token) == Some(Phase::Kept);
        let mut answer = Box::pin(long::wait(answer, call.origin.client.clone(), is_kept));
        // A wrapper's own time is bounded: until it asks the next link, which may take any time.
        let Some(limit) = lease.deadline.filter(|_| !link.is_listed()) else { return Ok(answer.await) };
        match tokio::time::timeout(limit.saturating_sub(waited), &mut answer).await {
            Ok(answer) => Ok(answer),
            Err(_) if asked.is_some_and(|asked| asked.get() == Some(&true)) => Ok(answer.await),
            Err(_) => Err(limit),
        }
    }
}
