//! The innermost service of jsonrpsee's middleware stack: turns its requests into calls of the host.
//!
//! The response type is the host's own [`Answer`], so a reply of many megabytes is never copied into jsonrpsee's JSON.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::types::{Id, Request};
use outrigger_values::RpcError;
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use super::dispatch::{Answer, Call, Dispatch, Failure, Origin, Params};

/// bitcoind's message when its work queue is full.
pub(super) const OVERLOADED: &str = "Work queue depth exceeded";

/// The error message in a batch in place of HTTP 403.
const FORBIDDEN: &str = "The node does not allow this method";
/// For a method of the node that the host does not know.
pub(super) const UNKNOWN_METHOD: &str =
    "The host does not know this method of the node: it takes a user with unknown_methods = \"allow\", or the cookie";

/// A service for the envelope: a [`Gateway`], bare or under jsonrpsee layers. A batch holds adjacent calls whose
/// methods are [taken together](Dispatch::takes_together) and returns an answer for each.
///
/// Do not use jsonrpsee's `rpc_logger` layer: it traces parameters, which carry keys.
pub trait RpcService:
    RpcServiceT<MethodResponse = Answer, NotificationResponse = Answer, BatchResponse = Vec<Answer>> + Send + Sync + 'static
{
    type Dispatch: Dispatch;

    /// Where the calls end, below all layers.
    fn dispatcher(&self) -> &Self::Dispatch;
}

/// The envelope's context of a request, kept in jsonrpsee's extensions.
#[derive(Clone)]
pub(super) struct RequestContext {
    pub origin: Arc<Origin>,
    /// The request's body. The parameters are a slice of it.
    pub body: Bytes,
    pub in_batch: bool,
    /// The ids of the plugins that the request went through, if a plugin made it.
    pub through: Vec<Arc<str>>,
    /// As [`Call::nested`].
    pub nested: Option<u64>,
}

impl RequestContext {
    /// The context of a client's request.
    pub(super) fn of(origin: Arc<Origin>, body: Bytes) -> Self {
        Self { origin, body, in_batch: false, through: Vec::new(), nested: None }
    }

    pub(super) fn of_batch(&self) -> Self {
        Self { in_batch: true, ..self.clone() }
    }
}

impl Failure {
    /// The failure as a JSON-RPC error, where an answer has no HTTP status: in a batch or on a WebSocket.
    pub(super) fn into_rpc_error(self) -> RpcError {
        match self {
            Self::Rpc(error) => error,
            Self::Overloaded => RpcError::internal(OVERLOADED),
            Self::Limited(message) => RpcError::internal(message),
            Self::Forbidden => RpcError::internal(FORBIDDEN),
            Self::UnknownMethod => RpcError::internal(UNKNOWN_METHOD),
        }
    }
}

/// The innermost [`RpcServiceT`]: passes each request to the host's [`Dispatch`].
#[derive(Debug)]
pub struct Gateway<D> {
    dispatcher: Arc<D>,
}

impl<D: Dispatch> Gateway<D> {
    pub fn new(dispatcher: Arc<D>) -> Self {
        Self { dispatcher }
    }
}

/// The call of `request`. Without the envelope's context it has no user, and its parameters are copied.
fn call_of(request: Request<'_>) -> Call {
    let Request { method, params, mut extensions, .. } = request;
    let nobody = || RequestContext::of(Arc::default(), Bytes::new());
    let (progress, held) = (extensions.remove(), extensions.remove());
    let RequestContext { origin, body, in_batch, through, nested } = extensions.remove().unwrap_or_else(nobody);
    let params = params.map_or(Params::none(), |raw| Params::of(&raw, &body));
    Call {
        method: method.into_owned(),
        params,
        origin,
        may_stream: !in_batch,
        makers: through.len(),
        through,
        nested,
        progress,
        held,
    }
}

/// The request of a call that a plugin made, to pass through all layers of an [`RpcService`].
pub fn request_of(call: Call) -> Request<'static> {
    let Call { method, params, origin, through, nested, .. } = call;
    // `Params` are well-formed.
    let raw = String::from_utf8(params.as_bytes().to_vec()).ok().and_then(|text| RawValue::from_string(text).ok());
    let mut request = Request::owned(method, raw, Id::Null);
    // `in_batch`: the result must not be a stream.
    request.extensions.insert(RequestContext { origin, body: Bytes::new(), in_batch: true, through, nested });
    request
}

impl<D: Dispatch> RpcService for Gateway<D> {
    type Dispatch = D;

    fn dispatcher(&self) -> &D {
        &self.dispatcher
    }
}

impl<D: Dispatch> RpcServiceT for Gateway<D> {
    type MethodResponse = Answer;
    type NotificationResponse = Answer;
    type BatchResponse = Vec<Answer>;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = Answer> + Send + 'a {
        let (dispatcher, call) = (Arc::clone(&self.dispatcher), call_of(request));
        // Boxed: the layers above move this future, and not every connection should reserve room for it.
        Box::pin(async move { dispatcher.dispatch(call).await })
    }

    /// The calls start before the future is awaited: the next run of a long batch is executed while this one is
    /// written.
    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = Vec<Answer>> + Send + 'a {
        let calls: Vec<Call> = batch
            .into_iter()
            .filter_map(|entry| match entry {
                Ok(BatchEntry::Call(request)) => Some(call_of(request)),
                _ => None,
            })
            .collect();
        let (dispatcher, count) = (Arc::clone(&self.dispatcher), calls.len());
        let mut task = JoinSet::new();
        task.spawn(async move { dispatcher.dispatch_together(calls).await });
        async move {
            let answers = task.join_next().await.and_then(Result::ok);
            answers.unwrap_or_else(|| vec![Err(RpcError::internal("The calls were lost").into()); count])
        }
    }

    /// The envelope sends notifications as calls.
    fn notification<'a>(&self, _: Notification<'a>) -> impl Future<Output = Answer> + Send + 'a {
        std::future::ready(Err(RpcError::internal("The call was lost").into()))
    }
}

/// Who makes a request; `None` without the envelope's context.
pub fn origin_of<'r>(request: &'r Request<'_>) -> Option<&'r Origin> {
    request.extensions().get::<RequestContext>().map(|context| &*context.origin)
}

/// Whether a plugin makes a request, for a client's call or on its own account.
pub fn is_of_plugin(request: &Request<'_>) -> bool {
    request.extensions().get::<RequestContext>().is_some_and(|context| !context.through.is_empty())
}
