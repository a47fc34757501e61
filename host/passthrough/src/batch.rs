//! Sends several calls to the node as one batch: sent one by one, a thousand calls cost ten times as much.

use futures_util::future::join_all;
use outrigger_rpc::{Call, Failure, ResultText};
use outrigger_upstream::{Upstream, UpstreamError, batch_request, read_batch};

use super::forward::{MAX_WHOLE, failure, forward};

/// Batched calls have no effects, so a batch whose reply was lost can be sent again.
const READ_ONLY: bool = true;

/// Forwards calls as one batch. If the node forbids one of the methods (-rpcwhitelist), it refuses the whole batch. The
/// calls are then sent one by one. Answers are in the order of the calls.
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

/// Sends the batch. An error is the error of every call.
async fn answers(
    upstream: &Upstream,
    path: &str,
    calls: &[Call],
) -> Result<Vec<Result<ResultText, Failure>>, UpstreamError> {
    let body = batch_request(calls.iter().map(|call| (&*call.method, call.params.as_bytes())));
    let (status, reply) = upstream.post(path, body, READ_ONLY).await?.collect(MAX_WHOLE).await?;
    let answers = read_batch(&reply, calls.len()).ok_or(UpstreamError::Strange(status))?;
    Ok(answers.into_iter().map(|answer| answer.map(ResultText::Bytes).map_err(Failure::Rpc)).collect())
}
