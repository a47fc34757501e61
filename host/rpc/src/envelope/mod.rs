//! The envelope: bitcoind's two dialects of JSON-RPC, translated to calls and back.
//!
//! A request with `"jsonrpc":"2.0"` is answered as Bitcoin Core 29 does: HTTP 200 also for errors of the call, 400 for
//! a request that fails its checks, 204 without a body for a notification. Every other request is answered in the
//! legacy form: `result`, `error` and `id`, HTTP status by error code. From release 30 on, versions other than 1.0 and 2.0
//! are refused in that form. The answer to a request without `id` has no `id`.
//! The answer to something that is not a request has `"id":null`. Each element of a batch is answered in its own
//! dialect. The batch's status is 200, or 204 if all are notifications.

mod batch;
pub(super) mod reply;
mod request;
mod scan;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use jsonrpsee::types::{Id, Request as RpcRequest};
use tracing::field;

use self::batch::answer_batch;
use self::reply::{Reply, Writer, status_of};
use self::request::{Dialect, Document, RejectedRequest, Request, read_document};
use super::dispatch::{Dispatch, Failure, Origin};
use super::gateway::{OVERLOADED, RequestContext, RpcService, UNKNOWN_METHOD};
use super::limits::Limits;
use outrigger_base::offload::read_offloaded;

pub(super) use self::request::well_formed;

/// How many characters of a method's name are logged. The client controls its length.
const LOGGED_METHOD_CHARS: usize = 64;

pub fn count_calls(body: &[u8], limits: &Limits) -> usize {
    match read_document(body, limits, true) {
        Ok(Document::Single(_)) => 1,
        Ok(Document::Batch(elements)) => elements.iter().filter(|element| element.is_ok()).count(),
        Err(_) => 0,
    }
}

pub(super) async fn answer<S: RpcService>(service: &S, origin: Origin, body: Bytes, limits: &Limits) -> Reply {
    let asked = RequestContext::of(Arc::new(origin), body.clone());
    let strict = service.dispatcher().refuses_other_versions();
    match read_offloaded(body.len(), || read_document(&body, limits, strict)) {
        Ok(Document::Single(request)) => answer_single(service, asked, request).await,
        // Boxed, so that not every connection reserves room for a batch: few requests are batches.
        Ok(Document::Batch(elements)) => Box::pin(answer_batch(service, &asked, &elements)).await,
        Err(RejectedRequest { dialect, id, error }) => {
            let status = status_of(error.code);
            let mut writer = Writer::default();
            writer.reply(dialect, id, Err(error));
            reply::json(status, writer)
        }
    }
}

async fn answer_single<S: RpcService>(service: &S, asked: RequestContext, request: Request<'_>) -> Reply {
    if !asked.origin.may_call(&request.method) {
        return forbidden(&asked.origin, &request.method);
    }
    let (dialect, id) = (request.dialect, request.id);
    let outcome = match service.call(rpc_request(asked, &request)).await {
        Ok(result) => Ok(result),
        Err(Failure::Rpc(error)) => Err(error),
        Err(Failure::Overloaded) => return reply::text(StatusCode::SERVICE_UNAVAILABLE, OVERLOADED),
        Err(Failure::Limited(message)) => return reply::text(StatusCode::TOO_MANY_REQUESTS, message),
        Err(Failure::Forbidden) => return reply::empty(StatusCode::FORBIDDEN),
        Err(Failure::UnknownMethod) => return reply::text(StatusCode::FORBIDDEN, UNKNOWN_METHOD),
    };
    if dialect.is_notification(id) {
        return reply::empty(StatusCode::NO_CONTENT);
    }
    let status = match (dialect, &outcome) {
        (Dialect::V1, Err(error)) => status_of(error.code),
        _ => StatusCode::OK,
    };
    let mut writer = Writer::default();
    writer.reply(dialect, id, outcome);
    reply::json(status, writer)
}

/// HTTP 403.
pub(super) fn forbidden(origin: &Origin, method: &str) -> Reply {
    log_forbidden(origin, method);
    reply::empty(StatusCode::FORBIDDEN)
}

pub(super) fn log_forbidden(origin: &Origin, method: &str) {
    let end = method.char_indices().nth(LOGGED_METHOD_CHARS).map_or(method.len(), |(end, _)| end);
    let (user, method) = (&*origin.user, method.get(..end).unwrap_or_default());
    tracing::warn!(
        peer = origin.peer.map(field::display),
        user,
        method,
        "RPC request for a method not allowed to the user"
    );
}

/// The request in the form of jsonrpsee's middleware, which supports only numbers, strings and null as ids. Its id is
/// the JSON text of the client's id, for the log.
fn rpc_request<'r>(asked: RequestContext, request: &'r Request<'_>) -> RpcRequest<'r> {
    let id = request.id.map_or(Id::Null, |text| Id::Str(text.into()));
    let mut rpc = RpcRequest::borrowed(&request.method, request.params, id);
    rpc.extensions_mut().insert(asked);
    rpc
}
