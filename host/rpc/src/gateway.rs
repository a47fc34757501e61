//! The bottom of jsonrpsee's middleware stack: turns its requests into calls of the host.
//!
//! Reply bytes travel in the extensions of the [`MethodResponse`] as [`Answer`], so that a reply of
//! many megabytes is never copied into jsonrpsee's own JSON. What jsonrpsee sees is a response with
//! a `null` result, or an error with the true code and no message: a message may repeat an argument.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jsonrpsee::core::middleware::{Batch, Notification, RpcServiceT};
use jsonrpsee::core::server::{MethodResponse, ResponsePayload};
use jsonrpsee::types::{ErrorObject, Id, Request};
use outrigger_values::{RpcError, RpcErrorCode};

use super::dispatch::{Call, Dispatch, Failure, Origin, Params};
use super::result::ResultText;

/// What bitcoind says when its work queue is full.
pub(super) const OVERLOADED: &str = "Work queue depth exceeded";

/// What stands in a batch for the status 403.
const FORBIDDEN: &str = "The node does not allow this method";
/// Of a method of the node that the host does not know.
pub(super) const UNKNOWN_METHOD: &str =
    "The host does not know this method of the node: it takes a user with unknown_methods = \"allow\", or the cookie";

/// A service that the envelope can send requests to: a [`Gateway`], bare or under jsonrpsee layers.
///
/// jsonrpsee's `rpc_logger` layer is not for use here: it traces parameters, which carry keys.
pub trait RpcService: RpcServiceT<MethodResponse = MethodResponse> + Send + Sync + 'static {}

impl<S> RpcService for S where S: RpcServiceT<MethodResponse = MethodResponse> + Send + Sync + 'static {}

/// What the envelope knows of a request besides what jsonrpsee's type holds; put in its extensions.
#[derive(Clone)]
pub(super) struct Asked {
    /// Who makes the call.
    pub origin: Arc<Origin>,
    /// The body that the parameters are a piece of.
    pub body: Bytes,
    /// Whether it is an element of a batch.
    pub in_batch: bool,
}

/// The outcome of a call, put in the extensions of the response.
#[derive(Clone)]
pub(super) struct Answer(pub Result<ResultText, Failure>);

impl Failure {
    fn code(&self) -> RpcErrorCode {
        match self {
            Self::Rpc(error) => error.code,
            Self::Overloaded | Self::Forbidden | Self::UnknownMethod => RpcErrorCode::INTERNAL,
        }
    }

    /// The failure as an error of JSON-RPC, for where HTTP's status cannot tell it.
    pub(super) fn into_rpc_error(self) -> RpcError {
        match self {
            Self::Rpc(error) => error,
            Self::Overloaded => RpcError::internal(OVERLOADED),
            Self::Forbidden => RpcError::internal(FORBIDDEN),
            Self::UnknownMethod => RpcError::internal(UNKNOWN_METHOD),
        }
    }
}

/// The innermost [`RpcServiceT`]: hands each request to the host's [`Dispatch`].
#[derive(Debug)]
pub struct Gateway<D> {
    dispatcher: Arc<D>,
}

impl<D> Clone for Gateway<D> {
    fn clone(&self) -> Self {
        Self { dispatcher: Arc::clone(&self.dispatcher) }
    }
}

impl<D: Dispatch> Gateway<D> {
    /// A gateway to `dispatcher`.
    pub fn new(dispatcher: Arc<D>) -> Self {
        Self { dispatcher }
    }
}

/// The call that `request` asks for. A request that did not come through the envelope is nobody's, and its parameters are copied.
fn call_of(request: Request<'_>) -> Call {
    let Request { method, params, mut extensions, .. } = request;
    let nobody = || Asked { origin: Origin::of_user("").into(), body: Bytes::new(), in_batch: false };
    let Asked { origin, body, in_batch } = extensions.remove().unwrap_or_else(nobody);
    let params = params.map_or(Params::none(), |raw| Params::of(&raw, &body));
    Call { method: method.into_owned(), params, origin, may_stream: !in_batch }
}

/// A response that carries `answer` beside a `null` result or the error's code.
fn carrying(id: Id<'_>, answer: Result<ResultText, Failure>) -> MethodResponse {
    let mut response = match &answer {
        Ok(_) => MethodResponse::response(id, ResponsePayload::success(()), usize::MAX),
        Err(failure) => MethodResponse::error(id, ErrorObject::borrowed(failure.code().0, "", None)),
    };
    response.extensions_mut().insert(Answer(answer));
    response
}

impl<D: Dispatch> RpcServiceT for Gateway<D> {
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, request: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let dispatcher = Arc::clone(&self.dispatcher);
        async move {
            let id = request.id.clone();
            let call = call_of(request);
            // Boxed: the layers above move this future, and every connection keeps room for it.
            carrying(id, Box::pin(async move { dispatcher.dispatch(call).await }).await)
        }
    }

    // The envelope takes batches apart itself, since their members may be of different dialects, and runs notifications as
    // calls: neither comes here.

    fn batch<'a>(&self, _: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        std::future::ready(MethodResponse::notification())
    }

    fn notification<'a>(&self, _: Notification<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        std::future::ready(MethodResponse::notification())
    }
}

/// How a call ended, for layers above the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// With a result.
    Result,
    /// With an error.
    Error,
    /// It was not begun, since too much waited.
    Overloaded,
}

/// How the call of a response ended.
pub fn ended(response: &MethodResponse) -> Ended {
    match response.extensions().get::<Answer>() {
        Some(Answer(Err(Failure::Overloaded))) => Ended::Overloaded,
        _ if response.is_error() => Ended::Error,
        _ => Ended::Result,
    }
}

/// The answer that a response carries, for layers above the gateway.
pub fn answer_of(response: &MethodResponse) -> Option<&Result<ResultText, Failure>> {
    response.extensions().get::<Answer>().map(|Answer(answer)| answer)
}

/// Who makes a request, and for which wallet.
#[derive(Clone, Copy, Default, Debug)]
pub struct RequestOrigin<'r> {
    /// The user; empty where the request did not come through the envelope.
    pub user: &'r str,
    /// The client's address; none where it came over no connection.
    pub peer: Option<IpAddr>,
    /// The wallet that the path names, else the only one of the user.
    pub wallet: Option<&'r str>,
}

/// Who makes a request, for layers above the gateway.
pub fn origin_of<'r>(request: &'r Request<'_>) -> RequestOrigin<'r> {
    let Some(Asked { origin, .. }) = request.extensions().get() else { return RequestOrigin::default() };
    RequestOrigin {
        user: &origin.user,
        peer: origin.client.as_ref().map(|client| client.peer()),
        wallet: origin.wallet.as_deref().or(origin.only_wallet.as_deref()),
    }
}
