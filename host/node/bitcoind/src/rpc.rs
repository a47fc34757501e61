//! Blocking requests to the node.
//!
//! They run on a separate runtime: a runtime's thread that waits for a task of the same runtime can deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bytes::Bytes;
use outrigger_upstream::{
    Outcome, StatusCode, Upstream, UpstreamError, batch_request, is_read_only, read_batch, read_reply, request,
};
use outrigger_values::RpcError;
use parking_lot::Mutex;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::error::AskError;
use super::needs;

const TIMEOUT: Duration = Duration::from_secs(120);

/// The long poll for blocks, and the timeout of its answer.
pub const WAIT: &str = "waitfornewblock";
pub const WAIT_LIMIT: Duration = Duration::from_secs(15);

/// The longest answer, in bytes: a block of 4,000,000 bytes with the outputs that it spends, as JSON.
const MAX_ANSWER: usize = 256 << 20;

/// More arguments than any method takes.
const TOO_MANY: usize = 32;

const MAX_BATCH: usize = 500;

/// How long the stopping host waits for an answer.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Rpc {
    upstream: Arc<Upstream>,
    runtime: Runtime,
    stopping: watch::Sender<bool>,
    /// The number of replies that failed verification.
    pub unproven: AtomicU64,
    last_fault: Mutex<String>,
}

pub type Question = (&'static str, Value);

impl Rpc {
    pub fn start(upstream: Arc<Upstream>) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("bitcoind")
            .enable_all()
            .build()?;
        let stopping = watch::Sender::default();
        Ok(Self { upstream, runtime, stopping, unproven: AtomicU64::new(0), last_fault: Mutex::default() })
    }

    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.upstream
    }

    /// The host stops: each request under way, and each later one, waits no longer than `STOP_TIMEOUT`.
    pub fn give_up(&self) {
        self.stopping.send_replace(true);
    }

    /// Counts and logs false data from the node. `fault` says why it is false.
    pub fn unproven(&self, fault: String) -> AskError {
        let count = self.unproven.fetch_add(1, Ordering::Relaxed) + 1;
        let is_new = std::mem::replace(&mut *self.last_fault.lock(), fault.clone()) != fault;
        // Retries would fill the log.
        if !(is_new || count.is_power_of_two()) {
            return AskError::Unproven(fault);
        }
        tracing::error!(count, endpoint = %self.upstream.endpoint(), fault, "the node returned false data, which is ignored");
        AskError::Unproven(fault)
    }

    /// Runs a future on the runtime, and waits for it.
    fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, UpstreamError>> + Send + 'static,
    ) -> Result<T, UpstreamError> {
        let (done, answer) = sync_channel(1);
        let mut stopping = self.stopping.subscribe();
        self.runtime.spawn(async move {
            let stopped = async {
                // The sender lives as long as the runtime.
                let _ = stopping.wait_for(|stopping| *stopping).await;
                sleep(STOP_TIMEOUT).await;
            };
            let answer = tokio::select! {
                answer = timeout(limit, work) => answer.unwrap_or(Err(UpstreamError::TimedOut)),
                () = stopped => Err(UpstreamError::TimedOut),
            };
            // The receiver waits below.
            let _ = done.send(answer);
        });
        answer.recv().unwrap_or(Err(UpstreamError::TimedOut))
    }

    /// The JSON text of a method's result.
    fn send(&self, limit: Duration, method: &str, params: &Value, read_only: bool) -> Result<Bytes, AskError> {
        debug_assert!(needs::is_listed(method), "{method} is missing in the table of needs");
        let (upstream, body) = (self.upstream.clone(), request(method, params.to_string().as_bytes()));
        let answer =
            self.wait(limit, async move { upstream.post("/", body, read_only).await?.collect(MAX_ANSWER).await });
        let answer = answer.map_err(|error| AskError::of(method, error)).and_then(|answer| result(method, &answer));
        answer.map_err(|error| match error {
            AskError::Upstream(error) if !(read_only || error.is_without_effect()) => {
                AskError::Lost { method: method.to_owned(), error }
            }
            error => error,
        })
    }

    pub fn ask<T: DeserializeOwned>(&self, method: &str, params: &Value) -> Result<T, AskError> {
        self.ask_within(TIMEOUT, method, params)
    }

    pub fn ask_within<T: DeserializeOwned>(
        &self,
        limit: Duration,
        method: &str,
        params: &Value,
    ) -> Result<T, AskError> {
        read(method, &self.send(limit, method, params, is_read_only(method))?)
    }

    /// Long-polls the node for a block, up to this time. Long polls are counted separately.
    pub fn wait_for_block(&self, milliseconds: u64) -> Result<(), AskError> {
        let (upstream, body) = (self.upstream.clone(), request(WAIT, json!([milliseconds]).to_string().as_bytes()));
        let answer = self.wait(WAIT_LIMIT, async move { upstream.wait("/", body).await?.collect(MAX_ANSWER).await });
        let answer = answer.map_err(|error| AskError::of(WAIT, error))?;
        read(WAIT, &result(WAIT, &answer)?).map(|IgnoredAny| ())
    }

    /// The results of several calls of a method without effects, in order. If a call fails, its error takes the result's place.
    pub fn batch<T: DeserializeOwned>(&self, questions: &[Question]) -> Result<Vec<Result<T, AskError>>, AskError> {
        let mut answers = Vec::with_capacity(questions.len());
        for part in questions.chunks(MAX_BATCH) {
            answers.extend(self.batch_part(part)?);
        }
        Ok(answers)
    }

    fn batch_part<T: DeserializeOwned>(&self, questions: &[Question]) -> Result<Vec<Result<T, AskError>>, AskError> {
        let params: Vec<String> = questions.iter().map(|(_, params)| params.to_string()).collect();
        let calls = questions.iter().zip(&params).map(|((method, _), params)| {
            debug_assert!(needs::is_listed(method), "{method} is missing in the table of needs");
            (*method, params.as_bytes())
        });
        let (upstream, body) = (self.upstream.clone(), batch_request(calls));
        let reply = self.wait(TIMEOUT, async move { upstream.post("/", body, true).await?.collect(MAX_ANSWER).await });
        let method = questions.first().map_or("", |(method, _)| method);
        let (status, reply) = reply.map_err(|error| AskError::of(method, error))?;
        let answers = read_batch(&reply, questions.len()).ok_or(UpstreamError::Strange(status))?;
        let answer = |(answer, (method, _)): (Result<Bytes, RpcError>, &Question)| {
            let method = *method;
            read(method, &answer.map_err(|error| AskError::Rpc { method: method.to_owned(), error })?)
        };
        Ok(answers.into_iter().zip(questions).map(answer).collect())
    }

    /// Whether the node lets the host's user call a method. The host passes too many arguments: the node checks
    /// -rpcwhitelist first, then refuses the call without executing it.
    pub fn may_call(&self, method: &str) -> Result<bool, AskError> {
        match self.send(TIMEOUT, method, &Value::from(vec![0; TOO_MANY]), true) {
            Err(AskError::Forbidden(_)) => Ok(false),
            Err(AskError::Rpc { .. }) | Ok(_) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The content at a path of the REST interface; `None` if there is none, or REST is off.
    pub fn rest(&self, path: &str) -> Result<Option<Bytes>, AskError> {
        let (upstream, path) = (self.upstream.clone(), path.to_owned());
        let (status, body) = self.wait(TIMEOUT, async move { upstream.get(&path).await?.collect(MAX_ANSWER).await })?;
        Ok((status.as_u16() == 200).then_some(body))
    }
}

fn result(method: &str, (status, body): &(StatusCode, Bytes)) -> Result<Bytes, AskError> {
    match read_reply(*status, body) {
        Outcome::Result(result) => Ok(result),
        Outcome::Error(error) => Err(AskError::Rpc { method: method.to_owned(), error }),
        Outcome::Strange => Err(UpstreamError::Strange(*status).into()),
    }
}

pub fn read<T: DeserializeOwned>(method: &str, text: &[u8]) -> Result<T, AskError> {
    serde_json::from_slice(text).map_err(|error| AskError::form(method, &error))
}
