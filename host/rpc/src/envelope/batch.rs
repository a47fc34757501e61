//! Batches: elements in order, and runs of elements that are executed together.

use std::collections::VecDeque;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::StatusCode;
use jsonrpsee::core::middleware::{Batch, BatchEntry};

use super::reply::{self, Reply, Writer};
use super::request::{Element, RejectedRequest, Request};
use super::{forbidden, rpc_request};
use crate::dispatch::{Answer, Dispatch, Failure};
use crate::gateway::{RequestContext, RpcService};

/// The most elements, and the most bytes of parameters, of one run.
const MAX_RUN: usize = 256;
const MAX_RUN_BYTES: usize = 1 << 20;

/// Executes the elements of a batch one after the other. One forbidden method refuses the whole batch before any
/// element is executed, as in bitcoind.
pub(super) async fn answer_batch<S: RpcService>(
    service: &S,
    asked: &RequestContext,
    elements: &[Element<'_>],
) -> Reply {
    let mut requests = elements.iter().flatten();
    if let Some(request) = requests.find(|request| !asked.origin.may_call(&request.method)) {
        return forbidden(&asked.origin, &request.method);
    }
    let mut writer = Writer::default();
    let mut separator = "[";
    let mut ahead = Ahead { answers: VecDeque::new(), next: None };
    for (at, element) in elements.iter().enumerate() {
        // Inline calls never yield by themselves, so without this a batch would starve the thread's other connections.
        tokio::task::coop::consume_budget().await;
        let (dialect, id, outcome) = match element {
            Ok(request) => {
                if ahead.answers.is_empty() {
                    ahead.fill(service, asked, elements.get(at..).unwrap_or_default()).await;
                }
                let outcome = match ahead.answers.pop_front() {
                    Some(outcome) => outcome,
                    None => service.call(rpc_request(asked.of_batch(), request)).await,
                };
                (request.dialect, request.id, outcome.map_err(Failure::into_rpc_error))
            }
            Err(RejectedRequest { dialect, id, error }) => (*dialect, *id, Err(error.clone())),
        };
        if dialect.is_notification(id) {
            continue;
        }
        writer.text(separator);
        writer.reply(dialect, id, outcome);
        separator = ",";
    }
    match (elements.is_empty(), separator) {
        (false, "[") => return reply::empty(StatusCode::NO_CONTENT),
        (true, _) => writer.text("[]"),
        _ => writer.text("]"),
    }
    reply::json(StatusCode::OK, writer)
}

/// The remaining answers of the current run, and the next run, which is executed meanwhile.
struct Ahead<'r> {
    answers: VecDeque<Answer>,
    next: Option<Run<'r>>,
}

struct Run<'r> {
    length: usize,
    answers: BoxFuture<'r, Vec<Answer>>,
}

impl<'r> Run<'r> {
    /// Starts the first run; `None` for fewer than two elements.
    fn begin<S: RpcService>(service: &S, asked: &RequestContext, elements: &'r [Element<'_>]) -> Option<Self> {
        let dispatcher = service.dispatcher();
        let mut bytes = 0;
        let run: Vec<&Request<'_>> = elements
            .iter()
            .take(MAX_RUN)
            .map_while(|element| element.as_ref().ok().filter(|request| dispatcher.takes_together(&request.method)))
            .take_while(|request| {
                bytes += request.params.map_or(0, |params| params.get().len());
                bytes <= MAX_RUN_BYTES
            })
            .collect();
        let length = run.len();
        let entry = |request| Ok(BatchEntry::Call(rpc_request(asked.of_batch(), request)));
        (length > 1)
            .then(|| Self { length, answers: service.batch(Batch::from(run.into_iter().map(entry).collect())).boxed() })
    }
}

impl<'r> Ahead<'r> {
    /// Takes the answers of the current run and starts the next. Calls of a run have no effects, so their order does
    /// not matter.
    async fn fill<S: RpcService>(&mut self, service: &S, asked: &RequestContext, elements: &'r [Element<'_>]) {
        let Some(run) = self.next.take().or_else(|| Run::begin(service, asked, elements)) else { return };
        self.next = elements.get(run.length..).and_then(|rest| Run::begin(service, asked, rest));
        self.answers = run.answers.await.into();
    }
}
