//! Several calls as one batch to the node: sent alone, a thousand cost ten times as much.

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::join_all;
use outrigger_rpc::{Call, Failure, ResultText};
use outrigger_upstream::{Upstream, UpstreamError, put_request, request_length};
use outrigger_values::{RpcError, RpcErrorCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::forward::{failure, forward};

/// Batched calls have no effects, so a batch whose reply was lost can be sent again.
const READ_ONLY: bool = true;

/// The longest answer to a batch, in bytes: it is held in memory.
const MAX_ANSWER: usize = 256 << 20;

#[derive(Deserialize)]
struct Element<'b> {
    #[serde(borrow, default)]
    result: Option<&'b RawValue>,
    #[serde(default)]
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i32,
    message: String,
}

/// Forwards calls as one batch. If the node forbids one of the methods (-rpcwhitelist) it refuses the whole batch, and
/// the calls are sent alone. Answers are in the order of the calls.
pub(crate) async fn forward_all(upstream: &Upstream, path: &str, calls: &[Call]) -> Vec<Result<ResultText, Failure>> {
    match answers(upstream, path, calls).await {
        Ok(answers) => answers,
        Err(UpstreamError::Forbidden) => {
            let alone = calls.iter().map(|call| forward(upstream, path, &call.method, call.params.as_bytes(), false));
            join_all(alone).await
        }
        Err(error) => vec![Err(failure(upstream, error)); calls.len()],
    }
}

/// As [`forward_all`]; an error concerns all calls.
async fn answers(
    upstream: &Upstream,
    path: &str,
    calls: &[Call],
) -> Result<Vec<Result<ResultText, Failure>>, UpstreamError> {
    let (status, reply) = upstream.post(path, body(calls), READ_ONLY).await?.collect(MAX_ANSWER).await?;
    let answers = read_batch(&reply, calls.len()).ok_or(UpstreamError::Strange(status))?;
    Ok(answers.into_iter().map(|answer| answer.map(ResultText::Bytes).map_err(Failure::Rpc)).collect())
}

/// The answers in a reply to a batch of `count` calls; `None` for an invalid reply.
pub fn read_batch(reply: &Bytes, count: usize) -> Option<Vec<Result<Bytes, RpcError>>> {
    let elements: Vec<Element<'_>> = serde_json::from_slice(reply).ok()?;
    let answer = |element: Element<'_>| match (element.error, element.result) {
        (Some(ErrorObject { code, message }), _) => Err(RpcError::new(RpcErrorCode(code), message)),
        // A slice of the reply, without a copy.
        (None, Some(result)) => Ok(reply.slice_ref(result.get().as_bytes())),
        (None, None) => Ok(Bytes::from_static(b"null")),
    };
    (elements.len() == count).then(|| elements.into_iter().map(answer).collect())
}

/// bitcoind answers the elements in order.
fn body(calls: &[Call]) -> Bytes {
    let length = calls.iter().map(|call| 1 + request_length(&call.method, call.params.as_bytes())).sum();
    let mut body = BytesMut::with_capacity(length);
    let mut separator = b'[';
    for call in calls {
        body.put_u8(separator);
        put_request(&mut body, &call.method, call.params.as_bytes());
        separator = b',';
    }
    body.put_u8(b']');
    body.freeze()
}
