//! WebSocket connections: jsonrpsee's server speaks JSON-RPC 2.0, and each call passes the same layers as HTTP calls.
//!
//! The edge has already checked network, credentials, path and slot. The program's allocator wipes freed memory.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{CONNECTION, ORIGIN, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode};
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceBuilder, RpcServiceT};
use jsonrpsee::core::server::{BatchResponseBuilder, MethodResponse, ResponsePayload};
use jsonrpsee::server::middleware::rpc::RpcService as Subscriptions;
use jsonrpsee::server::{BatchRequestConfig, ConnectionState, PingConfig, ServerConfig, stop_channel, ws};
use jsonrpsee::types::{ErrorObject, Id, Request as RpcRequest};
use outrigger_values::{RpcError, RpcErrorCode};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use super::client::Client;
use super::conversation::{Conversation, MAX_UNDER_WAY};
use super::dispatch::{Failure, Origin};
use super::envelope::reply::{self, Reply, ReplyBody};
use super::envelope::{log_forbidden, well_formed};
use super::gateway::RpcService;
use super::limits::Limits;
use super::subscriptions::{self, Asking, MAX_SUBSCRIPTIONS, SUBSCRIBE, Tips, UNSUBSCRIBE};

/// How many answers can wait in a connection's queue before calls wait.
const QUEUED_ANSWERS: u32 = 16;

/// How often the host pings a client, and how long the client may stay silent.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(75);

/// Whether a request asks for a WebSocket (RFC 6455, 4.1).
pub(super) fn is_upgrade(head: &Parts) -> bool {
    let names = |name, token: &str| {
        let values = head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
    };
    head.method == Method::GET && names(CONNECTION, "upgrade") && names(UPGRADE, "websocket")
}

/// Checks the `Origin` header. Only browsers send it.
pub(super) fn allows_origin(headers: &HeaderMap, listed: &[String]) -> bool {
    headers.get_all(ORIGIN).iter().all(|origin| listed.iter().any(|listed| listed.as_bytes() == origin.as_bytes()))
}

/// Whether a page of another site makes the request, and its origin is not listed.
pub(super) fn is_cross_site(headers: &HeaderMap, listed: &[String]) -> bool {
    let own = headers.get("sec-fetch-site").is_some_and(|site| site == "same-origin" || site == "none");
    !own && !allows_origin(headers, listed)
}

/// Answers the upgrade request. The session begins after the answer is sent.
pub(super) async fn accept<S: RpcService>(
    service: &Arc<S>,
    limits: &Limits,
    client: &Arc<Client>,
    origin: Origin,
    head: Parts,
    tips: Option<Tips>,
) -> Reply {
    let bytes = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
    let config = ServerConfig::builder()
        .max_request_body_size(bytes(limits.max_body_bytes))
        // jsonrpsee limits incoming messages by this too. `Asking::ask` limits answers.
        .max_response_body_size(bytes(limits.max_body_bytes))
        .set_batch_request_config(BatchRequestConfig::Limit(bytes(limits.max_batch)))
        .set_message_buffer_capacity(QUEUED_ANSWERS)
        .max_subscriptions_per_connection(MAX_SUBSCRIPTIONS)
        .enable_ws_ping(PingConfig::new().ping_interval(PING_INTERVAL).inactive_limit(SILENCE))
        .build();
    let (stopped, stop) = stop_channel();
    let Ok(permit) = Arc::new(Semaphore::new(1)).acquire_owned().await else {
        return reply::text(StatusCode::BAD_REQUEST, "no permit");
    };
    let (service, origin) = (service.clone(), Arc::new(origin));
    let asking = Arc::new(Asking { service, limits: limits.clone(), client: client.clone(), origin });
    let methods = subscriptions::methods(asking.clone(), tips);
    let calls = RpcServiceBuilder::new().layer_fn(move |subscriptions| {
        let (asking, running) = (asking.clone(), Semaphore::new(MAX_UNDER_WAY));
        Calls(Arc::new(Shared { asking, running, subscriptions }))
    });
    let state = ConnectionState::new(stopped, 0, permit);
    match ws::connect(Request::from_parts(head, ()), config, methods, state, calls).await {
        Ok((response, messages)) => {
            *client.conversation.lock() = Some(Conversation { messages: messages.boxed(), stop });
            response.map(|_| ReplyBody::default())
        }
        Err(_) => reply::text(StatusCode::BAD_REQUEST, "This is not a WebSocket handshake"),
    }
}

struct Calls<S>(Arc<Shared<S>>);

struct Shared<S> {
    asking: Arc<Asking<S>>,
    running: Semaphore,
    /// jsonrpsee's own service, with only the methods of subscriptions. A stopped connection drains until this is
    /// dropped.
    subscriptions: Subscriptions,
}

impl<S: RpcService> Shared<S> {
    /// Checks the user's list and the parameters.
    fn admit(&self, method: &str, request: &RpcRequest<'_>) -> Result<(), RpcError> {
        if !self.asking.origin.may_call(method) {
            log_forbidden(&self.asking.origin, method);
            return Err(RpcError::internal("The user may not call this method"));
        }
        request.params.as_ref().map_or(Ok(()), |params| well_formed(params, &self.asking.limits))
    }

    /// Begins or ends a subscription. The right to subscribe includes the right to unsubscribe.
    async fn subscribe(&self, request: RpcRequest<'_>) -> MethodResponse {
        match self.admit(SUBSCRIBE, &request) {
            Ok(()) => self.subscriptions.call(request).await,
            Err(error) => MethodResponse::error(request.id, error_object(error)),
        }
    }

    async fn outcome(&self, request: RpcRequest<'_>) -> Result<Bytes, RpcError> {
        self.admit(request.method_name(), &request)?;
        // The reader stops at the same number, apart from messages that it has already read.
        let _running = self.running.acquire().await;
        self.asking.ask(request).await.map_err(Failure::into_rpc_error)
    }

    fn queue(&self, response: &MethodResponse) {
        self.asking.count_unread(response.as_json().get().len());
    }

    async fn answer(&self, request: RpcRequest<'_>) -> ResponsePayload<'static, Box<RawValue>> {
        match self.outcome(request).await.map(|text| serde_json::from_slice(&text)) {
            Ok(Ok(result)) => ResponsePayload::success(result),
            Ok(Err(_)) => ResponsePayload::error(error_object(RpcError::internal("The answer is not JSON"))),
            Err(error) => ResponsePayload::error(error_object(error)),
        }
    }
}

fn error_object(error: RpcError) -> ErrorObject<'static> {
    ErrorObject::owned(error.code.0, error.message, None::<()>)
}

impl<S: RpcService> RpcServiceT for Calls<S> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: RpcRequest<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let (shared, under_way) = (self.0.clone(), UnderWay::begin(&self.0.asking.client));
        async move {
            if [SUBSCRIBE, UNSUBSCRIBE].contains(&request.method_name()) {
                let response = shared.subscribe(request).await;
                drop(under_way);
                shared.queue(&response);
                return response;
            }
            let id = request.id.clone();
            let (answer, queued) = shared.answer(request).await.notify_on_completion();
            // The message stays in flight until its answer is queued.
            tokio::spawn(queued.map(|_| drop(under_way)));
            let response = MethodResponse::response(id, answer, usize::MAX);
            shared.queue(&response);
            response
        }
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let (shared, under_way) = (self.0.clone(), UnderWay::begin(&self.0.asking.client));
        async move {
            let most = usize::try_from(shared.asking.limits.max_unread_bytes).unwrap_or(usize::MAX);
            let mut responses = BatchResponseBuilder::new_with_limit(most);
            for entry in batch {
                let response = match entry {
                    Ok(BatchEntry::Call(request)) => {
                        let id = request.id.clone();
                        MethodResponse::response(id, shared.answer(request).await, usize::MAX)
                    }
                    Ok(BatchEntry::Notification(_)) => without_id(),
                    Err(error) => {
                        let (error, id) = error.into_parts();
                        MethodResponse::error(id, error)
                    }
                };
                if let Err(too_long) = responses.append(response) {
                    return too_long;
                }
            }
            drop(under_way);
            let response = MethodResponse::from_batch(responses.finish());
            shared.queue(&response);
            response
        }
    }

    fn notification<'a>(&self, _: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        std::future::ready(without_id())
    }
}

/// Refuses a notification. jsonrpsee also treats a request as a notification if its id is a fraction, a negative number,
/// an array or an object. Its client would wait for an answer.
fn without_id() -> MethodResponse {
    let message = "A WebSocket's request has an id: a number without sign and fraction, a text, or null";
    MethodResponse::error(Id::Null, ErrorObject::borrowed(RpcErrorCode::INVALID_REQUEST.0, message, None))
}

/// A message in flight, until dropped.
struct UnderWay(Arc<Client>);

impl UnderWay {
    fn begin(client: &Arc<Client>) -> Self {
        client.gate.enter();
        Self(client.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.gate.leave();
    }
}
