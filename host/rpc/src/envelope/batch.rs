//! Batches: their elements in order, and runs of those that can be answered together.

use std::collections::VecDeque;
use std::sync::Arc;

use http::StatusCode;
use serde_json::value::RawValue;

use super::reply::{Reply, Writer};
use super::request::{Rejected, Request, read_element};
use super::{call, forbidden};
use crate::auth::Caller;
use crate::dispatch::{Call, Failure, Params};
use crate::gateway::{Origin, RpcService};
use crate::together::Together;

/// The most elements, and the most bytes of parameters, that are answered together.
const MAX_RUN: usize = 256;
const MAX_RUN_BYTES: usize = 1 << 20;

type Outcome = Result<crate::result::ResultText, Failure>;

/// Runs the elements of a batch one after the other. One method that the user may not call refuses
/// the whole batch before any of it runs, as bitcoind does.
pub(super) async fn answer_batch<S: RpcService>(
    service: &S,
    together: Option<&Arc<dyn Together>>,
    caller: &Caller,
    origin: &Origin,
    elements: &[&RawValue],
) -> Reply {
    if caller.is_restricted() {
        let mut methods = elements.iter().filter_map(|element| Some(read_element(element).ok()?.method));
        if let Some(method) = methods.find(|method| !caller.may_call(method)) {
            return forbidden(caller, &method);
        }
    }
    let mut writer = Writer::default();
    let mut separator = "[";
    // The answers to the next elements, where they are of a run.
    let mut ahead: VecDeque<Outcome> = VecDeque::new();
    for (at, element) in elements.iter().enumerate() {
        // Inline calls never yield by themselves; without this a batch would starve the thread's other connections.
        tokio::task::coop::consume_budget().await;
        let (dialect, id, outcome) = match read_element(element) {
            Ok(request) => {
                if ahead.is_empty()
                    && let Some(together) = together
                {
                    ahead = run_ahead(&**together, origin, elements.get(at..).unwrap_or_default()).await;
                }
                let (dialect, id) = (request.dialect, request.id);
                let is_notification = request.is_notification();
                let origin = Origin { in_batch: true, ahead: ahead.pop_front(), ..origin.clone() };
                let outcome = call(service, origin, request).await;
                if is_notification {
                    continue;
                }
                (dialect, id, outcome.map_err(Failure::into_rpc_error))
            }
            Err(rejected) if rejected.is_notification() => continue,
            Err(Rejected { dialect, id, error }) => (dialect, id, Err(error)),
        };
        writer.text(separator);
        writer.reply(dialect, id, outcome);
        separator = ",";
    }
    match (elements.is_empty(), separator) {
        (false, "[") => return Reply::empty(StatusCode::NO_CONTENT),
        (true, _) => writer.text("[]"),
        _ => writer.text("]"),
    }
    Reply::json(StatusCode::OK, writer)
}

/// The answers to the first elements, where these can be answered together; none where the first cannot, or stands alone.
async fn run_ahead(together: &dyn Together, origin: &Origin, elements: &[&RawValue]) -> VecDeque<Outcome> {
    let mut bytes = 0;
    let run: Vec<Call> = elements
        .iter()
        .take(MAX_RUN)
        .map_while(|element| read_element(element).ok().filter(|request| together.takes(&request.method)))
        .map(|Request { method, params, .. }| {
            let params = params.map_or(Params::none(), |raw| Params::of(raw, &origin.body));
            origin.call(method.into_owned(), params)
        })
        .take_while(|call| {
            bytes += call.params.as_bytes().len();
            bytes <= MAX_RUN_BYTES
        })
        .collect();
    if run.len() < 2 { VecDeque::new() } else { together.answer(run).await.into() }
}
