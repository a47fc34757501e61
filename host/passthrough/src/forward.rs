//! Forwards a call to the node as bytes, and its result back.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bitcoin::Transaction;
use bitcoin::consensus::encode::deserialize_hex;
use bytes::{Buf, Bytes};
use http::StatusCode;
use hyper::body::{Body, Frame};
use outrigger_rpc::{Failure, ResultStream, ResultText};
use outrigger_upstream::{
    Outcome, PREFIX, Reply, ReplyBody, SUFFIX, Upstream, UpstreamError, batch_request, is_read_only, lost_message,
    may_have_effects, read_batch, read_reply, request,
};
use outrigger_values::{RpcError, RpcErrorCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::taps::Submission;

/// Replies longer than this, in bytes, are streamed.
const STREAM_MIN_BYTES: u64 = 1 << 20;

/// The longest arguments, in bytes, whose transaction the host decodes before it forwards them. A standard transaction has at most 800,000
/// characters of hexadecimal.
const MAX_SUBMISSION: usize = 1 << 20;

/// The longest reply that is held in memory, in bytes.
pub(crate) const MAX_WHOLE: usize = 256 << 20;

/// Calls a method of the node at a path: `/`, or a wallet's. `params` is the JSON text of an array or object. A long
/// result is a stream if the caller allows it.
pub(crate) async fn forward(
    upstream: &Upstream,
    path: &str,
    method: &str,
    params: &[u8],
    may_stream: bool,
) -> Result<ResultText, Failure> {
    let reply = upstream.post(path, request(method, params), is_read_only(method)).await;
    let reply = reply.map_err(|error| failure_of(upstream, method, error))?;
    // A stream that ends early looks like a connection without an answer, after which some clients repeat the call.
    if let (StatusCode::OK, Some(length)) = (reply.status, reply.body.length())
        && length > STREAM_MIN_BYTES
        && may_stream
        && upstream.is_plain()
        && !may_have_effects(method)
    {
        let inner = length - (PREFIX.len() + SUFFIX.len()) as u64;
        return Ok(ResultText::Stream(ResultStream::new(inner, ResultBody::new(reply.body, inner))));
    }
    whole_of(upstream, method, reply).await.map(ResultText::Bytes)
}

pub(crate) async fn whole(upstream: &Upstream, method: &str, params: &[u8]) -> Result<Bytes, Failure> {
    let reply = upstream.post("/", request(method, params), is_read_only(method)).await;
    whole_of(upstream, method, reply.map_err(|error| failure_of(upstream, method, error))?).await
}

async fn whole_of(upstream: &Upstream, method: &str, reply: Reply) -> Result<Bytes, Failure> {
    let failed = |error| failure_of(upstream, method, error);
    let (status, body) = reply.collect(MAX_WHOLE).await.map_err(failed)?;
    match read_reply(status, &body) {
        Outcome::Result(result) => Ok(result),
        Outcome::Error(error) => Err(Failure::Rpc(error)),
        Outcome::Strange => Err(failed(UpstreamError::Strange(status))),
    }
}

/// Forwards sendrawtransaction. The same batch asks for the best block and the transaction's entry: if the node accepts the
/// transaction, the host needs both, which go to `accepted`.
pub(crate) async fn submit(
    upstream: &Upstream,
    path: &str,
    params: &[u8],
    accepted: &mut Option<Submission>,
) -> Result<ResultText, Failure> {
    const METHOD: &str = "sendrawtransaction";
    let Some(transaction) = sent_transaction(params) else {
        return forward(upstream, path, METHOD, params, false).await;
    };
    let txid = json!([transaction.compute_txid()]).to_string();
    let calls = [(METHOD, params), ("getbestblockhash", b"[]"), ("getmempoolentry", txid.as_bytes())];
    let failed = |error| failure_of(upstream, METHOD, error);
    let reply = match upstream.post(path, batch_request(calls.into_iter()), is_read_only(METHOD)).await {
        // -rpcwhitelist forbids one of the methods, so the node has executed none.
        Err(UpstreamError::Forbidden) => return forward(upstream, path, METHOD, params, false).await,
        reply => reply.map_err(failed)?,
    };
    let (status, body) = reply.collect(MAX_WHOLE).await.map_err(failed)?;
    let answers = read_batch(&body, calls.len()).and_then(|answers| <[_; 3]>::try_from(answers).ok());
    let [sent, best, entry] = answers.ok_or_else(|| match read_reply(status, &body) {
        // One answer to the whole batch, for example from a proxy that refuses batches.
        Outcome::Error(error) => Failure::Rpc(error),
        _ => failed(UpstreamError::Strange(status)),
    })?;
    *accepted = best.ok().zip(entry.ok()).map(|(best, entry)| Submission { transaction, best, entry });
    sent.map(ResultText::Bytes).map_err(Failure::Rpc)
}

/// sendrawtransaction's arguments, by position or by name.
#[derive(Deserialize)]
struct SendArguments<'a> {
    #[serde(borrow)]
    hexstring: Cow<'a, str>,
    #[serde(default, rename = "maxfeerate")]
    _max_feerate: IgnoredAny,
    #[serde(default, rename = "maxburnamount")]
    _max_burn: IgnoredAny,
}

/// The transaction in sendrawtransaction's arguments; `None` if they are longer than [`MAX_SUBMISSION`].
fn sent_transaction(params: &[u8]) -> Option<Transaction> {
    if params.len() > MAX_SUBMISSION {
        return None;
    }
    let arguments: SendArguments<'_> = serde_json::from_slice(params).ok()?;
    deserialize_hex(&arguments.hexstring).ok()
}

/// The client's error if a call of this method got no reply: -28 while the node is away, -4 if the node may have
/// executed the call.
pub(crate) fn failure_of(upstream: &Upstream, method: &str, error: UpstreamError) -> Failure {
    if error.is_without_effect() || !may_have_effects(method) {
        return failure(upstream, error);
    }
    tracing::warn!(endpoint = %upstream.endpoint(), method, %error, "the node may have executed a call whose answer was lost");
    lost(method, &error)
}

/// The client's error for a call that the node may have executed. Not -28: clients would repeat the call.
pub(crate) fn lost(method: &str, reason: &dyn Display) -> Failure {
    Failure::Rpc(RpcError::wallet(lost_message(method, reason)))
}

/// The client's error for a call that the node did not execute.
pub(crate) fn failure(upstream: &Upstream, error: UpstreamError) -> Failure {
    let endpoint = upstream.endpoint();
    match error {
        UpstreamError::Overloaded => Failure::Overloaded,
        UpstreamError::Forbidden => Failure::Forbidden,
        UpstreamError::Foreign(reason) => Failure::Rpc(RpcError::misc(reason)),
        // Not -28: clients would retry, and be refused again.
        error @ UpstreamError::Ended(_) => Failure::Rpc(RpcError::misc(error.to_string())),
        UpstreamError::NotReady(error) => Failure::Rpc(error),
        UpstreamError::Strange(status) => {
            tracing::error!(%endpoint, %status, "the node's reply does not have bitcoind's form");
            Failure::Rpc(RpcError::misc(format!("{endpoint} does not answer as bitcoind does")))
        }
        // Clients of bitcoind wait and retry on this code.
        error => {
            tracing::debug!(%endpoint, %error, "the node does not answer");
            let message = format!("Waiting for bitcoind at {endpoint}...");
            Failure::Rpc(RpcError::new(RpcErrorCode::IN_WARMUP, message))
        }
    }
}

/// The result in a long reply. Checks and removes the reply's prefix and suffix.
struct ResultBody {
    body: ReplyBody,
    /// The rest of the prefix.
    before: &'static [u8],
    /// The remaining bytes of the result.
    left: u64,
    /// The rest of the suffix.
    behind: &'static [u8],
}

impl ResultBody {
    fn new(body: ReplyBody, length: u64) -> Self {
        Self { body, before: PREFIX, left: length, behind: SUFFIX }
    }

    /// Removes the expected bytes from the front of `data`.
    fn expect(expected: &mut &'static [u8], data: &mut Bytes) -> io::Result<()> {
        let length = expected.len().min(data.len());
        let (now, later) = expected.split_at(length);
        if data.get(..length) != Some(now) {
            return Err(io::Error::other("the node's reply does not have bitcoind's form"));
        }
        data.advance(length);
        *expected = later;
        Ok(())
    }

    /// The result's part of a frame.
    fn cut(&mut self, mut data: Bytes) -> io::Result<Bytes> {
        Self::expect(&mut self.before, &mut data)?;
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(data.len());
        let result = data.split_to(length);
        self.left -= length as u64;
        Self::expect(&mut self.behind, &mut data)?;
        if data.is_empty() { Ok(result) } else { Err(io::Error::other("the reply exceeds its length")) }
    }
}

impl Body for ResultBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                let whole = self.left == 0 && self.behind.is_empty();
                return Poll::Ready((!whole).then(|| Err(io::ErrorKind::UnexpectedEof.into())));
            };
            let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
            let result = self.cut(data)?;
            if !result.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(result))));
            }
        }
    }
}
