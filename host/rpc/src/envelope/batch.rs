//! Batches: their elements in order, and runs of those that can be answered together.

use std::collections::VecDeque;
use std::sync::Arc;

use http::StatusCode;
use outrigger_values::RpcError;
use tokio::task::JoinSet;

use super::reply::{Reply, Writer};
use super::request::{Element, Rejected, Request};
use super::{call, forbidden};
use crate::auth::Caller;
use crate::dispatch::{Call, Failure, Params};
use crate::gateway::{Asked, RpcService};
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
    asked: &Asked,
    elements: &[Element<'_>],
) -> Reply {
    if caller.is_restricted() {
        let mut requests = elements.iter().flatten();
        if let Some(request) = requests.find(|request| !caller.may_call(&request.method)) {
            return forbidden(caller, &request.method);
        }
    }
    let mut writer = Writer::default();
    let mut separator = "[";
    let mut ahead = Ahead::default();
    for (at, element) in elements.iter().enumerate() {
        // Inline calls never yield by themselves; without this a batch would starve the thread's other connections.
        tokio::task::coop::consume_budget().await;
        let (dialect, id, outcome) = match element {
            Ok(request) => {
                if ahead.answers.is_empty()
                    && let Some(together) = together
                {
                    ahead.fill(&**together, asked, elements.get(at..).unwrap_or_default()).await;
                }
                let (dialect, id) = (request.dialect, request.id);
                let is_notification = request.is_notification();
                let outcome = match ahead.answers.pop_front() {
                    Some(outcome) => outcome,
                    None => call(service, Asked { in_batch: true, ..asked.clone() }, request).await,
                };
                if is_notification {
                    continue;
                }
                (dialect, id, outcome.map_err(Failure::into_rpc_error))
            }
            Err(rejected) if rejected.is_notification() => continue,
            Err(Rejected { dialect, id, error }) => (*dialect, *id, Err(error.clone())),
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

/// The answers to the next elements, where these are of a run, and the run behind them, which is on its way.
#[derive(Default)]
struct Ahead {
    answers: VecDeque<Outcome>,
    next: Option<Run>,
}

/// Elements that are answered together: how many there are, and the task that answers them, which ends with this.
struct Run {
    length: usize,
    task: JoinSet<Vec<Outcome>>,
}

impl Run {
    /// The first elements, where they can be answered together; none where the first cannot, or stands alone.
    fn begin(together: &dyn Together, asked: &Asked, elements: &[Element<'_>]) -> Option<Self> {
        let mut bytes = 0;
        let calls: Vec<Call> = elements
            .iter()
            .take(MAX_RUN)
            .map_while(|element| element.as_ref().ok().filter(|request| together.takes(&request.method)))
            .map(|Request { method, params, .. }| {
                let params = params.map_or(Params::none(), |raw| Params::of(raw, &asked.body));
                Call { method: method.to_string(), params, origin: asked.origin.clone(), may_stream: false }
            })
            .take_while(|call| {
                bytes += call.params.as_bytes().len();
                bytes <= MAX_RUN_BYTES
            })
            .collect();
        let length = calls.len();
        (length > 1).then(|| {
            let mut task = JoinSet::new();
            task.spawn(together.answer(calls));
            Self { length, task }
        })
    }
}

impl Ahead {
    /// Takes the answers to the first elements. Those of the run behind them come while these are waited for and written: calls of
    /// a run have no effects, so their order does not show.
    async fn fill(&mut self, together: &dyn Together, asked: &Asked, elements: &[Element<'_>]) {
        let Some(mut run) = self.next.take().or_else(|| Run::begin(together, asked, elements)) else { return };
        self.next = elements.get(run.length..).and_then(|rest| Run::begin(together, asked, rest));
        let lost = || Failure::Rpc(RpcError::internal("The calls were lost"));
        let answers = run.task.join_next().await.and_then(Result::ok);
        self.answers = answers.unwrap_or_else(|| vec![Err(lost()); run.length]).into();
    }
}
