//! `subscribe_events` on WebSockets: new blocks, and events of the wallets' transactions. jsonrpsee's own service keeps the
//! subscriptions of a connection.
//!
//! A subscription calls `waitevents` as its user in a loop, so the user's rights apply. The wallets' logs are its queue: while
//! its client does not read, the subscription makes no calls. It reports only the newest block.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jsonrpsee::core::SubscriptionError;
use jsonrpsee::types::{ErrorObject, Id, Params as RpcParams, Request as RpcRequest};
use jsonrpsee::{PendingSubscriptionSink, RpcModule, SubscriptionSink};
use outrigger_values::{RpcError, RpcErrorCode};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::client::Client;
use super::dispatch::{Failure, Origin};
use super::gateway::{RequestContext, RpcService};
use super::limits::Limits;

pub const SUBSCRIBE: &str = "subscribe_events";
pub const UNSUBSCRIBE: &str = "unsubscribe_events";
const NOTIFICATION: &str = "events";
pub(super) const MAX_SUBSCRIPTIONS: u32 = 16;
/// The timeout of the first `waitevents`, in milliseconds: it returns at once.
const AT_ONCE: u32 = 1;
/// The pause while the host is overloaded, and after an answer without events: a stopping plugin gives one at once.
const PAUSE: Duration = Duration::from_millis(100);
/// The most unread bytes of a connection, in multiples of `max_unread_bytes`: one message alone may have that many.
const MAX_UNREAD: u64 = 2;

/// The hash and the height of the newest block, as in JSON; `None` before the first change.
pub type Tips = watch::Receiver<Option<(String, u32)>>;

/// The context of a connection's calls.
pub(super) struct Asking<S> {
    pub service: Arc<S>,
    pub limits: Limits,
    pub client: Arc<Client>,
    pub origin: Arc<Origin>,
}

impl<S: RpcService> Asking<S> {
    pub async fn ask(&self, mut request: RpcRequest<'_>) -> Result<Bytes, Failure> {
        request.extensions_mut().insert(RequestContext::of(self.origin.clone(), Bytes::new()));
        let result = self.service.call(request).await?;
        let (most, len) = (self.limits.max_unread_bytes, result.len());
        match result.whole(usize::try_from(most).unwrap_or(usize::MAX)).await {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(RpcError::internal(format!(
                "The answer has {len} bytes, and a WebSocket's message at most {most} (rpc.max_unread_bytes)"
            ))
            .into()),
            Err(error) => Err(RpcError::internal(format!("The answer broke off: {error}")).into()),
        }
    }

    /// Counts a message as unread, and closes the connection of a client with too many unread bytes.
    pub fn count_unread(&self, bytes: usize) {
        let unread = self.client.activity.queued(bytes as u64);
        if unread > self.limits.max_unread_bytes.saturating_mul(MAX_UNREAD) {
            let peer = self.origin.peer.map(tracing::field::display);
            tracing::warn!(peer, unread, "a WebSocket's client does not read its answers");
            self.client.link.close();
        }
    }

    /// Calls a method. Repeats the call while the host is overloaded or the user is over a limit.
    async fn ask_for<T: for<'de> Deserialize<'de>>(&self, method: &'static str, params: Value) -> Result<T, RpcError> {
        let params = to_raw_value(&params).map_err(|_| unreadable(method))?;
        loop {
            match self.ask(RpcRequest::owned(method.to_owned(), Some(params.clone()), Id::Null)).await {
                Err(Failure::Overloaded | Failure::Limited(_)) => tokio::time::sleep(PAUSE).await,
                Err(failure) => return Err(failure.into_rpc_error()),
                Ok(answer) => return serde_json::from_slice(&answer).map_err(|_| unreadable(method)),
            }
        }
    }
}

fn unreadable(method: &str) -> RpcError {
    RpcError::internal(format!("The answer of {method} cannot be read"))
}

/// The arguments of `subscribe_events`.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    since: Value,
    wallets: Value,
}

/// An answer of waitevents.
#[derive(Deserialize)]
struct Events {
    events: Vec<Box<RawValue>>,
    next: Value,
    missed: Vec<String>,
}

/// The methods of subscriptions, for one connection.
pub(super) fn methods<S: RpcService>(asking: Arc<Asking<S>>, tips: Option<Tips>) -> RpcModule<()> {
    let mut module = RpcModule::new(());
    let registered =
        module.register_subscription(SUBSCRIBE, NOTIFICATION, UNSUBSCRIBE, move |params, pending, _, _| {
            let subscription = Subscription { asking: asking.clone(), tips: tips.clone() };
            subscription.begin(params, pending)
        });
    debug_assert!(registered.is_ok(), "the names differ");
    module
}

struct Subscription<S> {
    asking: Arc<Asking<S>>,
    tips: Option<Tips>,
}

impl<S: RpcService> Subscription<S> {
    async fn begin(
        mut self,
        params: RpcParams<'static>,
        pending: PendingSubscriptionSink,
    ) -> Result<(), SubscriptionError> {
        if let Some(tips) = &mut self.tips {
            tips.mark_unchanged();
        }
        let first = match self.first(&params).await {
            Ok(first) => first,
            Err(RpcError { code, message, .. }) => {
                pending.reject(ErrorObject::owned(code.0, message, None::<()>)).await;
                return Ok(());
            }
        };
        let Ok(sink) = pending.accept().await else { return Ok(()) };
        tokio::select! {
            () = sink.closed() => Ok(()),
            ended = self.run(&sink, first) => ended,
        }
    }

    /// The events since the client's `since`; `None` if the host has no wallets for this client.
    async fn first(&self, params: &RpcParams<'_>) -> Result<Option<Events>, RpcError> {
        let wanted = match params.as_str() {
            None => Wanted::default(),
            Some(text) => serde_json::from_str(text)
                .map_err(|error| RpcError::new(RpcErrorCode::INVALID_PARAMS, error.to_string()))?,
        };
        let is_absent = |error: &RpcError| error.code == RpcErrorCode::METHOD_NOT_FOUND;
        let origin = &self.asking.origin;
        let (mut wallets, is_named) = (wanted.wallets, !wanted.since.is_null());
        if wallets.is_null() && !wanted.since.is_object() && origin.wallet.is_none() && origin.only_wallet.is_none() {
            wallets = match self.asking.ask_for::<Vec<String>>("listwallets", json!([])).await {
                Ok(names) if names.is_empty() && !is_named => return Ok(None),
                Err(error) if is_absent(&error) && !is_named => return Ok(None),
                names => json!(names?),
            };
        }
        let is_named = is_named || wallets.is_array();
        match self.asking.ask_for("waitevents", json!([wanted.since, AT_ONCE, wallets])).await {
            Err(error) if is_absent(&error) && !is_named => Ok(None),
            events => events.map(Some),
        }
    }

    async fn run(mut self, sink: &SubscriptionSink, first: Option<Events>) -> Result<(), SubscriptionError> {
        let (asking, mut tips) = (self.asking.clone(), self.tips.take());
        let mut next = match first {
            Some(events) => Some(self.tell(sink, events).await?),
            None => None,
        };
        loop {
            let mut events = Box::pin(async {
                match &next {
                    Some(since) => asking.ask_for::<Events>("waitevents", json!([since])).await,
                    None => pending().await,
                }
            });
            let answer = loop {
                tokio::select! {
                    answer = &mut events => break answer,
                    tip = changed(&mut tips) => self.send(sink, &block(tip)).await?,
                }
            };
            drop(events);
            let answer = answer.map_err(|error| to_error(&error))?;
            if answer.events.is_empty() && answer.missed.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
            next = Some(self.tell(sink, answer).await?);
        }
    }

    /// Sends the events of an answer to the client. Returns the position after them.
    async fn tell(&self, sink: &SubscriptionSink, events: Events) -> Result<Value, SubscriptionError> {
        if !events.missed.is_empty() {
            self.send(sink, &json!({"kind": "missed", "wallets": events.missed})).await?;
        }
        for event in events.events {
            self.send_raw(sink, event).await?;
        }
        Ok(events.next)
    }

    async fn send(&self, sink: &SubscriptionSink, event: &Value) -> Result<(), SubscriptionError> {
        self.send_raw(sink, to_raw_value(event)?).await
    }

    /// Waits while the connection's queue is full.
    async fn send_raw(&self, sink: &SubscriptionSink, event: Box<RawValue>) -> Result<(), SubscriptionError> {
        self.asking.count_unread(event.get().len());
        Ok(sink.send(event).await?)
    }
}

/// Waits for the next tip; without a source of tips, forever.
async fn changed(tips: &mut Option<Tips>) -> Option<(String, u32)> {
    if let Some(tips) = tips
        && tips.changed().await.is_ok()
    {
        return tips.borrow_and_update().clone();
    }
    pending().await
}

fn block(tip: Option<(String, u32)>) -> Value {
    let (hash, height) = tip.unwrap_or_default();
    json!({"kind": "block", "blockhash": hash, "blockheight": height})
}

fn to_error(error: &RpcError) -> SubscriptionError {
    let told = to_raw_value(&json!({"code": error.code.0, "message": error.message}));
    told.map_or_else(|_| SubscriptionError::from(&error.message), SubscriptionError::from_json)
}
